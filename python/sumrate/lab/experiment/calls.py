"""Calls and games as experiments: how late small messages are, and how many are lost."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from sumrate.lab.endpoints import Scheme
from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.by_method import CallsCondition, CallsExperiment, expect
from sumrate.lab.experiment.media import deliver
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import seconds_of
from sumrate.lab.process import Process
from sumrate.lab.scene import Scene
from sumrate.lab.stream.driver import ENVIRONMENT, PATIENCE_S, PROGRAM, reaching, serving, timing
from sumrate.verdict.metrics import hardly_any

DOWNLOAD = "download.json"
Place = tuple[str, str, str, str]
"""Condition, congestion control, buffers, scheme."""
MEASURED = {
    "p50_ms": "ms",
    "p99_ms": "ms",
    "p999_ms": "ms",
    "max_ms": "ms",
    "lost_share": "ratio",
    "late_share": "ratio",
}


def call(
    run: Run,
    scheme: Scheme,
    built: Scene,
    experiment: Experiment,
    condition: ConditionSetting,
    *,
    on_first_byte: Callable[[], object],
) -> None:
    """Calls over the scheme and notes what became of the messages."""
    setting = expect(experiment, CallsExperiment).calls
    download = expect(condition, CallsCondition).download
    seconds = seconds_of(experiment, condition)
    length = seconds + experiment.warmup_s
    output = built.folder / "call.json"
    downloads = _downloading(built, length) if download else _nothing
    argv = [
        *(*PROGRAM, "near", "--bytes", str(setting.message_bytes)),
        *("--interval", f"{setting.interval_ms:g}"),
        *timing(seconds, experiment.warmup_s, output),
    ]

    def caller(reach: Reach) -> list[str]:
        datagrams = reach.datagrams and scheme.name not in setting.over_tcp
        return [*argv, *reaching(reach), *(["--datagrams"] if datagrams else [])]

    @contextmanager
    def far(reach: Reach) -> Iterator[Process]:
        with ExitStack() as stack:
            server = stack.enter_context(_far(built, reach))
            stack.enter_context(downloads(reach))
            yield server

    if not download:  # the emulator's own lateness must not be the tail that is judged
        run.detail["emulator_real_time"] = built.raise_emulator()
    delivery = deliver(
        run,
        scheme,
        built,
        server=("far end", far),
        client=caller,
        output=output,
        measured_s=length,
        on_first_byte=on_first_byte,
    )
    for name, unit in MEASURED.items():
        run.add(f"message_{name}", float(delivery.document[name]), unit)
    run.detail["messages"] = {key: delivery.document[key] for key in ("offered", "slowest_ms")}
    if download:
        run.add("download_mbps", downloaded_mbps(built.folder / DOWNLOAD), "Mbit/s")
    run.detail |= delivery.detail


def downloaded_mbps(document: Path) -> float:
    """What the download beside the call carried, in Mbit/s.

    Raises RuntimeError: It broke before the call was over, which was alone from then on.
    """
    downloaded = json.loads(document.read_text(encoding="utf-8"))
    if downloaded["error"]:
        message = f"the download beside the call broke: {downloaded['error']}"
        raise RuntimeError(message)
    return float(downloaded["goodput_mbps"])


def _far(built: Scene, reach: Reach) -> AbstractContextManager[Process]:
    """The end that sends back, once it accepts connections."""
    return serving(built, reach, "far-end", ["far"])


@contextmanager
def _nothing(reach: Reach) -> Iterator[None]:
    del reach
    yield


def _downloading(built: Scene, length_s: float) -> Callable[[Reach], AbstractContextManager[None]]:
    """A download over the same scheme, from before the first message until after the last."""

    @contextmanager
    def downloading(reach: Reach) -> Iterator[None]:
        output = built.folder / DOWNLOAD
        other = Reach(
            reach.address,
            reach.listen_address,
            port=reach.port + 1,
            listen_port=reach.listen_port + 1,
            socks=reach.socks,
            mptcp=reach.mptcp,
        )
        argv = [*PROGRAM, "sink", *reaching(other), *timing(length_s + PATIENCE_S, 0.0, output)]
        with serving(built, other, "download", ["source"]):
            log = built.folder / "download-sink.log"
            with Process(argv, log=log, host=built.client, env=ENVIRONMENT):
                yield

    return downloading


def pooled_percentile_ms(runs: Sequence[Run], per_mille: int) -> float | None:
    """The percentile of all messages of these runs together (nearest rank).

    None where a run did not tell enough of its slowest messages, or none.
    """
    known = [run.detail["messages"] for run in runs if "messages" in run.detail]
    total = sum(messages["offered"] for messages in known)
    above = total - -(-per_mille * total // 1000)
    slowest = sorted((ms for m in known for ms in m["slowest_ms"]), reverse=True)
    told = all(len(m["slowest_ms"]) > min(above, m["offered"] - 1) for m in known)
    return float(slowest[above]) if known and told else None


def add_pooled_delays(experiment: Experiment, runs: Sequence[Run]) -> None:
    """The 99.9th percentile of the messages of all repetitions, and how much of it is added.

    In one repetition it would be the second slowest of 1500. Of the repetitions that count for
    every scheme of the condition that has any: others have other seeds. `pooled_message_p999_ms`
    and `pooled_message_p999_added_ms`, against the link whose own is least in the baseline, stand
    in the first of those runs.
    """
    places: dict[Place, list[Run]] = {}
    for run in runs:
        if not run.void and run.value("message_p999_ms") is not None:
            key = (run.condition, run.congestion_control, run.buffers, run.scheme)
            places.setdefault(key, []).append(run)
    places = _of_all_schemes(places)
    pooled = {key: pooled_percentile_ms(found, 999) for key, found in places.items()}
    links = _links(experiment)
    for (condition, control, buffers, scheme), value in pooled.items():
        first = places[condition, control, buffers, scheme][0]
        first.add("pooled_message_p999_ms", value, "ms")
        alone = [pooled.get((experiment.baseline, control, buffers, link)) for link in links]
        known = [ms for ms in alone if ms is not None]
        if value is not None and len(known) == len(links) and scheme not in links:
            first.add("pooled_message_p999_added_ms", value - min(known), "ms")


def _of_all_schemes(places: Mapping[Place, Sequence[Run]]) -> dict[Place, list[Run]]:
    """Of each scheme's runs those of repetitions that every scheme of the condition has.

    One of which most do not count takes none from the others.
    """
    counted = {key: {run.repetition for run in found} for key, found in places.items()}
    most: dict[tuple[str, ...], int] = {}
    for key, own in counted.items():
        most[key[:-1]] = max(most.get(key[:-1], 0), len(own))
    shared: dict[tuple[str, ...], set[int]] = {}
    for key, own in counted.items():
        if not hardly_any(len(own), most[key[:-1]]):
            shared[key[:-1]] = shared.get(key[:-1], own) & own
    kept = {
        key: [run for run in found if run.repetition in shared[key[:-1]]]
        for key, found in places.items()
    }
    return {key: found for key, found in kept.items() if found}


def _links(experiment: Experiment) -> set[str]:
    return {link.name for link in experiment.links}


def add_message_delays(experiment: Experiment, runs: Sequence[Run]) -> None:
    """How much later the slowest messages are than over the best link alone with nothing amiss.

    `message_p999_added_ms`: against the link whose 99.9th percentile is least in the baseline, in
    the same repetition.
    """
    links = _links(experiment)
    best: dict[tuple[str, str, int], float] = {}
    for run in runs:
        value = run.value("message_p999_ms")
        alone = run.scheme in links and run.condition == experiment.baseline
        if alone and value is not None and not run.void:
            key = (run.congestion_control, run.buffers, run.repetition)
            best[key] = min(value, best.get(key, value))
    for run in runs:
        value = run.value("message_p999_ms")
        least = best.get((run.congestion_control, run.buffers, run.repetition))
        if value is not None and least is not None and run.scheme not in links:
            run.add("message_p999_added_ms", value - least, "ms")
