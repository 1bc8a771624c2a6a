"""Reads experiment files; what is wrong is said with its line."""

import difflib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from sumrate.lab.experiment import (
    calls,
    forward,
    impairments,
    keys,
    metrics,
    player,
    simulated,
    templates,
    tiles,
    video,
)
from sumrate.lab.experiment.judge import BESIDE
from sumrate.lab.experiment.model import (
    EVERY,
    Change,
    Check,
    ConditionSetting,
    Experiment,
    SchemeSetting,
)
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import RefusedError
from sumrate.qoe import settings

FOLDER = REPOSITORY / "experiments"
CATALOGUE = "claims.toml"
MOST_BURST = 1_000_000_000
MOST_SSTHRESH = 1_000_000
"""As the emulator takes it."""


class ExperimentError(RefusedError):
    """An experiment file cannot be used; the message has the file, the line and what is wrong."""


def names(folder: Path = FOLDER) -> list[str]:
    """Names of all experiments, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml") if path.name != CATALOGUE)


def load(name: str, folder: Path = FOLDER) -> Experiment:
    """Reads one experiment and checks that everything it names exists in it.

    Raises:
        ExperimentError: there is no such file, or it is wrong.

    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        near = difflib.get_close_matches(name, names(folder), n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `sumrate-lab list` shows them all"
        raise ExperimentError(f"there is no experiment `{name}` in {folder}{hint}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ExperimentError(f"{path.name}:{line}: not UTF-8 text: {error.reason}") from error
    try:
        experiment = msgspec.toml.decode(text, type=Experiment)
    except msgspec.DecodeError as error:
        said = f"{error}{keys.meant(str(error), Experiment)}"
        raise ExperimentError(f"{path.name}{_line_of(text, str(error))}: {said}") from error
    problems = [*templates.problems(experiment)]
    if not problems:
        experiment = templates.expanded(experiment)
        problems = [*_problems(experiment, path.stem), *_claim_problems(experiment, folder)]
    if problems:
        where, what = problems[0]
        raise ExperimentError(f"{path.name}{_line_of(text, f'`{where}`')}: {what}")
    return experiment


def _line_of(text: str, message: str) -> str:
    """`:LINE` that the message has, or of the last word that it quotes or whose path it names."""
    if found := re.search(r"\(at line (\d+)", message):
        return f":{found[1]}"
    lines = text.splitlines()
    header = _header(lines, message)
    if header and "missing required field" in message:
        return f":{header}"
    first = max(header - 1, 0)
    for word in (*re.findall(r"`([^`$]+)`", message), *re.findall(r"\.(\w+)", message)[::-1]):
        for number, line in enumerate(lines[first:], start=first + 1):
            if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line):
                return f":{number}"
    return ""


def _header(lines: Sequence[str], message: str) -> int:
    """The line of the `[[TABLE]]` that a path in the message (`$.TABLE[N]`) begins with; else 0."""
    found = re.search(r"`\$\.(\w+)\[(\d+)\]", message)
    if found is None:
        return 0
    headers = [n for n, line in enumerate(lines, start=1) if line.strip() == f"[[{found[1]}]]"]
    return headers[int(found[2])] if int(found[2]) < len(headers) else 0


def _problems(experiment: Experiment, stem: str) -> Iterator[tuple[str, str]]:
    """What is inconsistent: the word at fault, and the sentence about it."""
    if experiment.name != stem:
        yield experiment.name, f"the name `{experiment.name}` is not the file's"
    yield from simulated.problems(experiment)
    yield from _workload_problems(experiment)
    yield from video.problems(experiment)
    yield from tiles.problems(experiment)
    yield from player.problems(experiment)
    yield from calls.problems(experiment)
    yield from forward.problems(experiment)
    yield from _link_problems(experiment)
    yield from impairments.problems(experiment)
    yield from _scheme_problems(experiment)
    for condition in experiment.conditions:
        yield from _condition_problems(condition, experiment)
    conditions = {condition.name for condition in experiment.conditions}
    if experiment.baseline and experiment.baseline not in conditions:
        yield experiment.baseline, f"baseline `{experiment.baseline}` is no condition"
    for name in set(experiment.quick) - conditions:
        yield name, f"`quick` names `{name}`, which is no condition"
    yield from _size_problems(experiment)
    for name in experiment.why_not.keys() - set(BESIDE):
        yield name, f"`why_not` speaks of `{name}`; what can be left out is {', '.join(BESIDE)}"
    schemes = scheme_names(experiment)
    if len(schemes) != len(set(schemes)):
        yield schemes[0], f"two schemes have the same name: {', '.join(schemes)}"
    for check in experiment.checks:
        yield from _check_problems(check, experiment)
    yield from metrics.problems(experiment)


def _size_problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """How often, how long, and how fast."""
    if not 1 <= experiment.repetitions <= 1000:
        said = f"`repetitions` must be 1 to 1000, not {experiment.repetitions}"
        yield "repetitions", said
    if not 0 < experiment.seconds <= 3600:
        yield "seconds", f"`seconds` must be above 0 and at most 3600, not {experiment.seconds:g}"
    times = [experiment.seconds, experiment.warmup_s]
    times += [t for c in experiment.conditions for t in (c.seconds, c.warmup_s) if t]
    if experiment.method == "bench" and any(time % 1 for time in times):
        yield "seconds", "`seconds` and warmup_s must be whole: iperf3 cuts fractions"
    if experiment.pace_mbps is not None and not experiment.pace_mbps > 0:
        yield "pace_mbps", f"`pace_mbps` must be above 0, not {experiment.pace_mbps:g}"
    if not 0 < experiment.trace_scale <= 1:
        yield "trace_scale", "`trace_scale` must be above 0 and at most 1"


def _workload_problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """A workload has its table, and only its own."""
    for method in ("files", "pages", "daily"):
        if (getattr(experiment, method) is None) == (experiment.method == method):
            yield method, f"method {method} and a table `{method}` go together"
    for problem in settings.problems(tuple(link.name for link in experiment.links), experiment):
        yield problem.partition("`")[2].partition("`")[0], problem


def _condition_problems(
    condition: ConditionSetting, experiment: Experiment
) -> Iterator[tuple[str, str]]:
    links = {link.name for link in experiment.links}
    for link in condition.links.keys() - links:
        yield link, f"condition {condition.name} changes `{link}`, which is no link"
    for scheme in set(condition.schemes) - set(scheme_names(experiment)):
        yield scheme, f"condition {condition.name} runs `{scheme}`, which is no scheme"
    for link in set(condition.beside) - links:
        yield link, f"condition {condition.name} has a TCP beside on `{link}`, which is no link"
    for name, change in condition.links.items():
        yield from _change_problems(name, change)
        yield from _time_changes(name, change)
    yield from _less_than_all(condition, experiment)
    yield from _time_problems(condition, experiment)
    yield from _reason_problems(condition, scheme_names(experiment))
    for key in ("congestion_control", "buffers"):
        for value in set(getattr(condition, key)) - set(getattr(experiment, key)):
            yield value, f"condition {condition.name} is for `{value}`, which the experiment lacks"
    dark = all(getattr(condition.links.get(link), "absent", False) for link in links)
    if dark and experiment.simulation is None:
        yield condition.name, f"condition `{condition.name}` leaves no link"


def _reason_problems(
    condition: ConditionSetting, known: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """What a condition says of schemes that are not, or hardly, there."""
    for scheme in condition.few_runs.keys() - set(known):
        yield scheme, f"condition {condition.name} expects few runs of `{scheme}`: no scheme"
    for scheme in condition.why_not.keys() - (set(known) - set(condition.schemes or known)):
        yield scheme, f"condition {condition.name} says why `{scheme}` is out, which is not"


def _time_problems(
    condition: ConditionSetting, experiment: Experiment
) -> Iterator[tuple[str, str]]:
    if condition.warmup_s is not None and experiment.method not in ("bench", "stream"):
        yield condition.name, f"method {experiment.method} has no `warmup_s` of a condition"
    for start, end in condition.phases:
        if not 0 <= start < end:
            yield condition.name, f"a phase of `{condition.name}` ends before it starts"


def _less_than_all(
    condition: ConditionSetting, experiment: Experiment
) -> Iterator[tuple[str, str]]:
    """Repetitions and pages, where a condition has fewer than the experiment."""
    most = experiment.repetitions
    if condition.repetitions is not None and not 1 <= condition.repetitions <= most:
        said = f"the repetitions of `{condition.name}` must be 1 to {most}, the experiment's"
        yield condition.name, f"{said}, not {condition.repetitions}"
    offered = experiment.pages.sites if experiment.pages else ()
    for site in set(condition.sites) - set(offered):
        yield site, f"condition {condition.name} loads `{site}`, which is none of the `sites`"


def _scheme_problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    links = {link.name for link in experiment.links}
    for scheme in experiment.schemes:
        if scheme.first and scheme.first not in links:
            yield scheme.first, f"a scheme starts on `{scheme.first}`, which is no link"
        if scheme.backup and scheme.backup not in links:
            yield scheme.backup, f"`{scheme.backup}` stands by in a scheme, but is no link"
        if scheme.backup and scheme.kind not in ("sumrate", "mptcp-backup"):
            yield scheme.backup, f"a scheme of kind {scheme.kind} has no backup `{scheme.backup}`"
        yield from _policy_problems(scheme, experiment)
        for key in ("congestion_control", "buffers"):
            for value in set(getattr(scheme, key)) - set(getattr(experiment, key)):
                yield value, f"a scheme is for `{value}`, which the experiment's {key} lacks"


def _policy_problems(scheme: SchemeSetting, experiment: Experiment) -> Iterator[tuple[str, str]]:
    """A policy is of a link, and of what the client's `up` takes."""
    for policy in scheme.policy:
        name = policy.partition("=")[0]
        if name not in {link.name for link in experiment.links}:
            yield policy, f"a policy is of `{name}`, which is no link"
    if scheme.policy and (scheme.kind != "sumrate" or experiment.method in ("bench", "crowd")):
        said = f"a scheme of kind {scheme.kind} with method {experiment.method} has no `policy`"
        yield scheme.policy[0], said


def _time_changes(name: str, change: Change) -> Iterator[tuple[str, str]]:
    for key in ("rtt_ms", "extra_rtt_ms"):
        if (getattr(change, key) or 0.0) < 0:
            yield name, f"the {key} of `{name}` must not be below 0"
    for start, end in (*change.blackouts, *change.up_blackouts):
        if not 0 <= start < end:
            yield name, f"a blackout of `{name}` from {start:g} to {end:g} s ends before it starts"


def _change_problems(name: str, change: Change) -> Iterator[tuple[str, str]]:
    for key in ("loss", "loss_up"):
        if not 0.0 <= (getattr(change, key) or 0.0) <= 1.0:
            yield name, f"the {key} of `{name}` is a probability, 0 to 1"
    if change.mtu is not None and not 576 <= change.mtu <= 65_535:
        yield name, f"the mtu of `{name}` must be 576 to 65535 bytes"
    if not 0 <= (change.burst_bytes or 0) <= MOST_BURST:
        yield name, f"the burst_bytes of `{name}` must be 0 to {MOST_BURST}"
    if not 0.01 <= change.trace_scale <= 100 or (change.trace_scale != 1 and not change.trace):
        yield name, f"the trace_scale of `{name}` must be 0.01 to 100, and of a trace"
    if change.ssthresh is not None and not 2 <= change.ssthresh <= MOST_SSTHRESH:
        yield name, f"the ssthresh of `{name}` must be 2 to {MOST_SSTHRESH} segments"
    delay = change.ack_delay
    if delay is None:
        return
    if not 0 < delay.hold_ms < delay.every_ms:
        yield name, f"the ack_delay of `{name}` must hold for less than every_ms, and more than 0"
    if change.blackouts or change.up_blackouts or change.flap or change.trace:
        yield name, f"`{name}` has an ack_delay: it cannot have blackouts or a trace as well"


def _link_problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    own = {link.name for link in experiment.links if not link.shares}
    for link in experiment.links:
        if link.shares and link.shares not in own:
            yield link.shares, f"`{link.name}` shares `{link.shares}`, which has no wire of its own"
        if not 576 <= link.mtu <= 65_535:
            yield link.name, f"link `{link.name}` needs an mtu of 576 to 65535 bytes"
        if link.returns and link.returns not in own:
            yield link.returns, f"`{link.name}` returns by `{link.returns}`, which has no wire"
        if not 0 <= link.burst_bytes <= MOST_BURST:
            yield link.name, f"link `{link.name}` needs burst_bytes of 0 to {MOST_BURST}"
        if link.rtt_ms < 0:
            yield link.name, f"link `{link.name}` cannot have an rtt_ms below 0"
        if experiment.medium == "emulated" and not link.rate_mbps > 0:
            yield link.name, f"link `{link.name}` needs a rate_mbps above 0"


def _check_problems(check: Check, experiment: Experiment) -> Iterator[tuple[str, str]]:
    for name in {*check.causes, *check.without} - {c.name for c in experiment.conditions}:
        yield name, f"a check speaks of `{name}`, which is no condition"
    if not (check.claim or check.goal):
        yield check.statement, f"`{check.statement}` names neither a claim nor a goal"
    yield from _limit_problems(check)
    known: dict[str, list[str]] = {
        "scheme": scheme_names(experiment),
        "condition": [c.name for c in experiment.conditions],
        "congestion_control": list(experiment.congestion_control),
        "buffers": list(experiment.buffers),
    }
    for selection in (check.value, check.over):
        if selection is None:
            continue
        for key, allowed in known.items():
            value = getattr(selection, key)
            if value and value != EVERY and value not in allowed:
                near = difflib.get_close_matches(value, allowed, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield value, f"`{value}` is no {key.replace('_', ' ')} of this experiment{hint}"
        if not selection.condition and selection is check.value:
            yield check.statement, f"`{check.statement}` names no condition"


def _claim_problems(experiment: Experiment, folder: Path) -> Iterator[tuple[str, str]]:
    """Claims that the folder's catalogue does not have; none where there is no catalogue."""
    catalogue = folder / CATALOGUE
    if not catalogue.is_file():
        return
    text = catalogue.read_text(encoding="utf-8")
    for check in experiment.checks:
        if check.claim and f'[claims."{check.claim}"]' not in text:
            yield check.claim, f"`{check.claim}` is no claim of {CATALOGUE}"


def _limit_problems(check: Check) -> Iterator[tuple[str, str]]:
    low, high = check.at_least, check.at_most
    if any(limit is not None and not math.isfinite(limit) for limit in (low, high)):
        yield check.statement, f"a limit of `{check.statement}` is no number"
    if check.over == check.value:
        yield check.statement, f"`{check.statement}` divides a value by itself: cannot fail"
    if low is not None and high is not None and low > high:
        yield check.statement, f"`{check.statement}` has at_least above at_most: it can only fail"
    if check.slack < 0 or (check.slack and check.over is None):
        yield check.statement, f"`slack` of `{check.statement}` must be positive, and of a quotient"
    if (check.at_least is None and check.at_most is None) != check.reported:
        said = "has neither at_least nor at_most: cannot fail"
        if check.reported:
            said = "has a limit although it is only reported"
        yield check.statement, f"`{check.statement}` {said}"


def scheme_names(experiment: Experiment) -> list[str]:
    """Names of all schemes in results, the links alone by the links' names."""
    found: list[str] = []
    for scheme in experiment.schemes:
        if scheme.kind == "alone":
            found += [link.name for link in experiment.links]
        else:
            found.append(scheme.name or scheme.kind)
    return found
