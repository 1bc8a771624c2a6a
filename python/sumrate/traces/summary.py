"""Statistics of a link trace, as JSON and as text."""

from typing import Any

import numpy as np

from sumrate.phy.parameters import Floats
from sumrate.traces.link_trace import STATES, LinkTrace
from sumrate.traces.measure import GOODPUT_SHARE

BARS = " .:-=+*#%@"


def summary(trace: LinkTrace) -> dict[str, Any]:
    """Statistics of a trace, as plain JSON values."""
    used = trace.ap_beam >= 0
    goodput = trace.rate_mbps * GOODPUT_SHARE
    return {
        "schema": "sumrate.link-trace-summary.v1",
        "origin": dict(trace.metadata),
        "seconds": round(trace.seconds, 6),
        "step_ms": trace.step_s * 1e3,
        "goodput_mbps": {
            "mean": round(float(goodput.mean()), 3),
            **{f"p{p}": round(float(np.percentile(goodput, p)), 3) for p in (5, 50, 95)},
        },
        "snr_db": {
            f"p{p}": round(float(np.percentile(trace.snr_db[used], p)), 2) if used.any() else None
            for p in (5, 50, 95)
        },
        "states": {name: round(float(trace.in_state(name).mean()), 5) for name in STATES},
        "contests": {
            "count": trace.contests,
            "interval_s": round(trace.seconds / trace.contests, 3) if trace.contests else None,
        },
        "outages": _durations(trace.outages_s()),
        "silences": _durations(trace.silences_s())
        | {"share": round(float((trace.rate_mbps == 0).mean()), 5)},
        "mcs": {
            str(mcs): round(float((trace.mcs == mcs).mean()), 5) for mcs in np.unique(trace.mcs)
        },
    }


def _durations(seconds: Floats) -> dict[str, Any]:
    return {
        "count": int(seconds.size),
        "mean_s": round(float(seconds.mean()), 4) if seconds.size else None,
        "longest_s": round(float(seconds.max()), 4) if seconds.size else None,
    }


def text(trace: LinkTrace) -> str:
    """The statistics with units, and the rate as a line of characters."""
    found = summary(trace)
    goodput, snr, silences = found["goodput_mbps"], found["snr_db"], found["silences"]
    lines = {
        "goodput": ", ".join(f"{key} {value:.0f} Mbit/s" for key, value in goodput.items()),
        "SNR": ", ".join(f"{key} {value:.1f} dB" for key, value in snr.items() if value is not None)
        or "no beam was in use",
        "states": ", ".join(f"{key} {value:.1%}" for key, value in found["states"].items()),
        "A-BFTs": f"{trace.contests}"
        + (f", every {found['contests']['interval_s']:.2f} s" if trace.contests else ""),
        "outages": _text(found["outages"]),
        "no data": f"{silences['share']:.1%} of the time, {_text(silences)}",
        "MCS": ", ".join(
            f"{'none' if key == '-1' else key} {value:.1%}" for key, value in found["mcs"].items()
        ),
        "rate": f"|{sparkline(trace)}| 0 to {trace.rate_mbps.max():.0f} Mbit/s",
    }
    origin = {key: value for key, value in found["origin"].items() if key != "title"}
    return "\n".join([
        str(found["origin"].get("title", "link trace")),
        ", ".join(f"{key} {value}" for key, value in origin.items()),
        *(f"{name:9}{line}" for name, line in lines.items()),
    ])  # fmt: skip


def _text(durations: dict[str, Any]) -> str:
    if not durations["count"]:
        return "none"
    mean_s, longest_s = durations["mean_s"], durations["longest_s"]
    return f"{durations['count']} times, mean {mean_s:.2f} s, longest {longest_s:.2f} s"


def sparkline(trace: LinkTrace, width: int = 72) -> str:
    """The rate in one line of characters, each the mean of its part."""
    parts = np.array_split(trace.rate_mbps, min(width, trace.steps))
    top = max(float(trace.rate_mbps.max()), 1e-9)
    return "".join(BARS[round(float(part.mean()) / top * (len(BARS) - 1))] for part in parts)
