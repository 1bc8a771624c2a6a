"""`sumrate-lab trace ...`: makes, shows, plays and tabulates link traces.

`play` gives a link of two network namespaces the trace's rate, loss and extra delay, sends one TCP
stream through it and sets its goodput beside what the trace allows.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from sumrate.lab.endpoints.base import iperf
from sumrate.lab.lateness import is_late, worst_lateness_ms
from sumrate.lab.links import Link
from sumrate.lab.namespaces import run_isolated
from sumrate.lab.options import Json, Seed
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.programs import program, require
from sumrate.lab.scene import radio, scene
from sumrate.phy.parameters import ParameterError
from sumrate.traces.emulator import schedule
from sumrate.traces.link_trace import LinkTrace, read_link_trace
from sumrate.traces.measure import GOODPUT_SHARE
from sumrate.traces.scene_commands import refusing
from sumrate.traces.trace import write


@dataclass(frozen=True)
class PlayedLink(Link):
    """A link whose loss and delay follow a link trace too."""

    entries: str = ""
    """Schedule entries in the emulator's configuration."""

    def toml(self, sharing: Sequence[Link] = ()) -> str:
        """The link in the emulator's configuration."""
        return f"{super().toml(sharing)}\n{self.entries}"


@refusing
def play(
    file: Path,
    /,
    *,
    seconds: float | None = None,
    rtt_ms: float = 2.0,
    congestion_control: str = "cubic",
    seed: Seed = 1,
    as_json: Json = False,
) -> int:
    """Measure one TCP stream over an emulated link that follows a trace.

    Exit status 1 if something failed or the emulator was late, 2 for wrong input.

    Example: sumrate-lab trace play x.parquet --seconds 20

    Args:
        file: Parquet file of `trace make`.
        seconds: Seconds to play (all, at most 60).
        rtt_ms: RTT of the idle link.
        congestion_control: Of the TCP stream.

    """
    trace = read_link_trace(file)
    trace.rate_trace()
    length = _length(seconds, trace)
    if not 0 <= rtt_ms <= 10_000:
        raise ParameterError("--rtt-ms", rtt_ms, "0 to 10000")
    require("ip", "nsenter", "sysctl", "iperf3", "ss")
    program("sumrate-link")
    how = Playing(length, rtt_ms, congestion_control, seed)
    return run_isolated(lambda: play_isolated(trace, how, as_json=as_json))


@dataclass(frozen=True)
class Playing:
    """How a trace is played."""

    seconds: float
    rtt_ms: float = 2.0
    congestion_control: str = "cubic"
    seed: int = 1


def _length(wanted: float | None, trace: LinkTrace) -> float:
    seconds = min(60.0, trace.seconds) if wanted is None else wanted
    if not 1.0 <= seconds <= trace.seconds:
        raise ParameterError("--seconds", seconds, f"1 to the trace's {trace.seconds:g}")
    return float(seconds)


def played_link(trace: LinkTrace, rate_file: Path, rtt_ms: float) -> PlayedLink:
    """A link that follows a trace, whose rate is in a file already, towards the client and back."""
    plain = radio("wigig", 1, 1.0, rtt_ms).with_trace(rate_file)
    values = {field.name: getattr(plain, field.name) for field in fields(Link)}
    return PlayedLink(**values, entries=schedule(trace, delay_ms=rtt_ms / 2))


def play_isolated(trace: LinkTrace, how: Playing, *, as_json: bool) -> int:
    """Plays a trace inside private namespaces."""
    folder = Path("/run/sumrate-lab")  # on the private tmpfs: gone with the processes
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rate_file = folder / "rate.trace"
    write(trace.rate_trace(), rate_file)
    link = played_link(trace, rate_file, how.rtt_ms)
    try:
        with scene(
            [link], seed=how.seed, folder=folder, congestion_control=how.congestion_control
        ) as built:
            built.emulator.trigger()
            measured = iperf(built, link.server_ip, seconds=how.seconds, warmup_s=0)
            stats = built.emulator.stats()
    except (ProcessFailedError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    found = report_document(trace, how.seconds, measured.details["series_mbps"], stats)
    return _report(found, as_json=as_json)


def allowed_mbps(trace: LinkTrace, seconds: float) -> list[float]:
    """TCP goodput that the trace allows in each whole second of the first ones, Mbit/s."""
    per_second = round(1.0 / trace.step_s)
    whole = min(int(seconds), trace.steps // per_second)
    rates = trace.rate_mbps[: whole * per_second].reshape(whole, per_second)
    return [float(value) for value in rates.mean(axis=1) * GOODPUT_SHARE]


def report_document(
    trace: LinkTrace, seconds: float, series: list[float], stats: dict[str, Any]
) -> dict[str, Any]:
    """What was measured beside what the trace allows, as plain JSON values."""
    allowed = allowed_mbps(trace, seconds)
    return {
        "schema": "sumrate.trace-play.v1",
        "origin": dict(trace.metadata),
        "seconds": seconds,
        "goodput_mbps": round(float(np.mean(series)), 3),
        "allowed_mbps": round(float(np.mean(allowed)), 3),
        "series_mbps": [round(value, 3) for value in series],
        "allowed_series_mbps": [round(value, 3) for value in allowed],
        "emulator_late": is_late(stats),
        "worst_lateness_ms": worst_lateness_ms(stats),
    }


def _report(found: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{'second':>6}{'goodput':>10}{'allowed':>10}  Mbit/s")
        pairs = zip(found["series_mbps"], found["allowed_series_mbps"], strict=False)
        for second, (got, could) in enumerate(pairs):
            print(f"{second:6}{got:10.1f}{could:10.1f}")
        print(f"{'mean':>6}{found['goodput_mbps']:10.1f}{found['allowed_mbps']:10.1f}")
    if found["emulator_late"]:
        print(
            "error: this machine is too busy to emulate these rates, so the result is not valid: "
            "try again when it is idle",
            file=sys.stderr,
        )
        return 1
    return 0
