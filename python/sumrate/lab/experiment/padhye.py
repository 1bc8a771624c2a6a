"""TCP throughput as a function of loss and round trip, beside what the kernel's TCP reaches.

Source: Padhye, Firoiu, Towsley and Kurose, "Modeling TCP throughput", SIGCOMM 1998: the square-root
form, and the full form with retransmission timeouts. b is the number of segments that one
acknowledgement covers.
"""

import math

from sumrate.lab.experiment.record import Run
from sumrate.lab.links import Link

MSS_BYTES = 1460
SEGMENTS_PER_ACK = 2.0
"""Delayed acknowledgements: one for two segments."""
LEAST_TIMEOUT_S = 0.2
HEADER_BYTES = 52
"""IP, TCP and its timestamps, of each packet: what a full link leaves of its rate."""


def sqrt_mbps(
    rtt_s: float, loss: float, *, b: float = SEGMENTS_PER_ACK, mss: int = MSS_BYTES
) -> float:
    """MSS / RTT x sqrt(3 / (2 b p)) in Mbit/s; infinite without loss.

    Args:
        rtt_s: round trip, seconds, above 0.
        loss: p, the share of segments lost, 0 to 1.
        b: segments per acknowledgement.
        mss: payload of a segment, bytes.

    Raises:
        ValueError: a value is out of range.

    """
    _check(rtt_s, loss)
    return mss * 8e-6 / rtt_s * math.sqrt(3 / (2 * b * loss)) if loss else math.inf


def full_mbps(
    rtt_s: float, loss: float, *, b: float = SEGMENTS_PER_ACK, mss: int = MSS_BYTES
) -> float:
    """The same with timeouts of max(0.2 s, RTT + 0.2 s), in Mbit/s; infinite without loss.

    Raises:
        ValueError: a value is out of range.

    """
    _check(rtt_s, loss)
    if not loss:
        return math.inf
    timeout_s = max(LEAST_TIMEOUT_S, rtt_s + LEAST_TIMEOUT_S)
    again = min(1.0, 3 * math.sqrt(3 * b * loss / 8)) * loss * (1 + 32 * loss**2)
    return mss * 8e-6 / (rtt_s * math.sqrt(2 * b * loss / 3) + timeout_s * again)


def _check(rtt_s: float, loss: float) -> None:
    if not rtt_s > 0 or not 0 <= loss <= 1:
        raise ValueError(f"RTT {rtt_s} s must be above 0 and loss {loss} within 0 to 1")


def add_padhye(run: Run, link: Link) -> None:
    """Goodput of a TCP alone on a link, over both forms, neither above what the link carries.

    The RTT is that of the empty link, as the model's users put it in. b is 2, and 1 with `b1` in
    the metric's name: what a TCP that counts acknowledged bytes comes to.
    """
    goodput = run.value("goodput_mbps")
    rtt_s = (link.down.delay_ms + link.up.delay_ms) / 1e3
    if goodput is None or rtt_s <= 0:
        return
    most = link.down.rate_mbps * (1 - HEADER_BYTES / link.mtu)
    simple = min(most, sqrt_mbps(rtt_s, link.down.loss))
    full = min(most, full_mbps(rtt_s, link.down.loss))
    run.add("padhye_mbps", simple, "Mbit/s")
    run.add("padhye_ratio", goodput / simple, "ratio")
    run.add("padhye_full_ratio", goodput / full, "ratio")
    counted = min(most, sqrt_mbps(rtt_s, link.down.loss, b=1.0))
    run.add("padhye_b1_ratio", goodput / counted, "ratio")
