"""The blockage of the demo, and how the sum ratio outside it is defined.

The goodput of Sumrate is taken over fixed clock intervals: 0.5 s to 2.0 s, and 4.5 s (half a second
after the blockage) to the end of its transfer. It is divided by the sum of the links, each measured
alone in the same run over its own undisturbed time: 0.5 s to 2.0 s, and from half a second after
its first byte that came after the blockage to its end. So the time that a lone TCP needs to wake up
after a blockage does not make the sum of the links smaller and the ratio larger. The same ratio
without any margin (0 to 2.0 s, 4.0 s to the end; links alone 0 to 2.0 s, and from their first byte
after the blockage) is reported beside it.
"""

from typing import Any

from sumrate.lab.links import Blackout
from sumrate.lab.measure import Curve, Interval
from sumrate.lab.results import rounded

BLOCKAGE = Blackout(2.0, 4.0)
MARGIN_S = 0.5
DEFINITION = " ".join((__doc__ or "").split("\n\n", 1)[1].split())


def undisturbed(curve: Curve, *, blocked: bool, margin_s: float) -> list[Interval]:
    """The time of a transfer that the blockage does not touch.

    Args:
        curve: the transfer.
        blocked: whether the blockage hits this scheme's only link, so that its own recovery
            is left out as well.
        margin_s: seconds left out at the start and after the blockage (or the recovery).

    """
    end = curve.duration_s
    restart = BLOCKAGE.end_s
    if blocked and end > restart:
        restart = max(restart, curve.resumed_after(restart))
    intervals = [(margin_s, BLOCKAGE.start_s), (restart + margin_s, end)]
    return [(start, min(stop, end)) for start, stop in intervals if start < min(stop, end)]


def sum_ratio(curves: dict[str, Curve], margin_s: float) -> float | None:
    """Sumrate's goodput over the sum of the links alone, outside the blockage; None without all."""
    if not {"wifi", "wigig", "sumrate"} <= curves.keys():
        return None
    sumrate, wifi, wigig = (
        goodput_in(
            curves[name],
            *undisturbed(curves[name], blocked=name == "wigig", margin_s=margin_s),
        )
        for name in ("sumrate", "wifi", "wigig")
    )
    if sumrate is None or wifi is None or wigig is None or wifi + wigig == 0:
        return None
    return rounded(sumrate / (wifi + wigig), 4)


def goodput_in(curve: Curve, *intervals: Interval) -> float | None:
    """Goodput in Mbit/s over the part of the intervals that the transfer reached; None if none."""
    reached = [(a, min(b, curve.duration_s)) for a, b in intervals if a < curve.duration_s]
    return rounded(curve.goodput_mbps(*reached)) if reached else None


def describe(curve: Curve, name: str) -> dict[str, Any]:
    """The measured part of a scheme's entry."""
    stall = curve.longest_stall()
    around = curve.longest_stall((BLOCKAGE.start_s, BLOCKAGE.end_s + MARGIN_S))
    outside = undisturbed(curve, blocked=name == "wigig", margin_s=MARGIN_S)
    return {
        "goodput_mbps": rounded(curve.goodput_mbps()),
        "goodput_during_blockage_mbps": goodput_in(curve, (BLOCKAGE.start_s, BLOCKAGE.end_s)),
        "goodput_outside_blockage_mbps": goodput_in(curve, *outside),
        "longest_stall_ms": rounded(stall.length_s * 1e3, 1),
        "longest_stall_at_s": rounded(stall.at_s),
        "longest_stall_around_blockage_ms": rounded(around.length_s * 1e3, 1),
        "duration_s": rounded(curve.duration_s),
        "worst_sampling_gap_ms": rounded(curve.worst_gap_s * 1e3, 1),
        "series": [[rounded(t), rounded(g, 1)] for t, g in curve.series()],
    }
