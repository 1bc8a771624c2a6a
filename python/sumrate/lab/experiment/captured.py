"""A capture at the receiver during a benchmark, and what it adds to the run, subflow by subflow."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

from sumrate.lab.experiment.record import Run, percentile
from sumrate.lab.experiment.tcp_model import SETTLE_SAMPLES, round_trips_of
from sumrate.lab.links import Link
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Scene
from sumrate.lab.subflows import Subflow, carried, full_rate_after_s, read, subflows, variation


@contextmanager
def captured(built: Scene) -> Iterator[Path]:
    """Captures on the client's interfaces; the file is whole on leaving.

    Raises ProcessFailedError: nothing could be captured, or packets found no place.
    """
    output, ready = built.folder / "receiver.pcap", built.folder / "receiver.ready"
    ready.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "sumrate.lab.capture", "--output", str(output)]
    argv += ["--ready", str(ready)]
    for interface in dict.fromkeys(link.interface for link in built.links):
        argv += ["--interface", interface]
    with Process(
        argv,
        log=built.folder / "capture.log",
        host=built.client,
        env={"PYTHONPATH": str(REPOSITORY / "python")},
    ) as capture:
        capture.wait_until(ready.exists, "packets are captured")
        yield output
        capture.stop()
        if capture.poll() != 0:
            raise ProcessFailedError(f"`{capture.command_line}`: {capture.tail()}")


def add_subflows(
    run: Run,
    links: Sequence[Link],
    capture: Path,
    *,
    warmup_s: float,
    seconds: float,
    without: Collection[int] = (),
) -> dict[str, float]:
    """Adds each subflow's series, steadiness and ACKs; returns the rates by link, in Mbit/s.

    Rates count after the warm-up; series begin with the first data. What senders with the ports
    `without` send is left out: TCPs beside come to the same addresses.
    """
    names = {link.client_ip: link.name for link in links}
    whole = warmup_s + seconds
    found = {names[ip]: flow for ip, flow in subflows(read(capture), [*names], without).items()}
    rates: dict[str, float] = {}
    for name, flow in found.items():
        run.subflows[name] = series = flow.series(whole)
        counted = [(at, rate) for at, rate in series if at >= warmup_s]
        rates[name] = sum(rate for _, rate in counted) / len(counted) if counted else 0.0
        run.add(f"path_{name}_variation", variation(counted), "ratio")
        run.add(f"path_{name}_full_rate_after_s", full_rate_after_s(series), "s")
        _add_acks(run, name, flow)
    _add_turns(run)
    if found:
        times = [at for at, _ in next(iter(run.subflows.values()))]
        columns = zip(*(run.subflows[name] for name in found), strict=True)
        totals = [sum(rate for _, rate in column) for column in columns]
        run.series = list(zip(times, totals, strict=True))
    return rates


CONTROL_BYTES = 4096
"""More than a program's control connection exchanges while data are sent: results of iperf3."""


def connections_by_link(
    links: Sequence[Link],
    capture: Path,
    *,
    warmup_s: float,
    seconds: float,
    without: Collection[int] = (),
) -> dict[str, int]:
    """How many connections brought data in the time that counts, by the link of the server's end.

    Each link has an address of the server, also where it shares a wire.
    """
    names = {link.server_ip: link.name for link in links}
    own = {link.client_ip for link in links}
    found = dict.fromkeys(names.values(), 0)
    of_each = carried(read(capture), [*own], without, warmup_s=warmup_s, seconds=seconds)
    for (_, server, *_), size in of_each.items():
        if server in names and size > CONTROL_BYTES:
            found[names[server]] += 1
    return found


FIRST_S = 0.3
"""The begin of a run, in which its paths have not found their places yet."""


def _add_turns(run: Run) -> None:
    """What each subflow carries at first, and what once every other one has its full rate."""
    full = {name: full_rate_after_s(series) for name, series in run.subflows.items()}
    for name, series in run.subflows.items():
        first = [rate for at, rate in series if at < FIRST_S]
        run.add(f"path_{name}_first_mbps", fmean(first) if first else None, "Mbit/s")
        others = [at for other, at in full.items() if other != name and at is not None]
        if others and len(others) == len(full) - 1:
            rest = [rate for at, rate in series if at >= max(others)]
            run.add(f"path_{name}_after_others_mbps", fmean(rest) if rest else None, "Mbit/s")


def _add_acks(run: Run, name: str, flow: Subflow) -> None:
    if flow.acks:
        run.add(f"path_{name}_kbytes_per_ack", flow.payload / flow.acks / 1e3, "kB")
        run.add(f"path_{name}_sack_share", flow.selective_acks / flow.acks, "ratio")
    if flow.payload:
        run.add(f"path_{name}_repeated_share", flow.repeated / flow.payload, "ratio")


def add_round_trips(run: Run, links: Sequence[Link], samples: Path) -> None:
    """Median and 95th percentile of each subflow's smoothed RTT at the sender."""
    trips = round_trips_of(samples.read_text(encoding="utf-8"))
    for link in links:
        steady = trips.get(link.server_ip, [])[SETTLE_SAMPLES:-1]
        for label, share in (("p50", 0.5), ("p95", 0.95)):
            run.add(f"rtt_{link.name}_{label}_ms", percentile(steady, share), "ms")
