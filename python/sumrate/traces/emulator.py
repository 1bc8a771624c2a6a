"""What the emulator needs of a link trace beyond the rate: delay and loss, as schedule entries."""

from sumrate.phy.parameters import one_of, within
from sumrate.traces.link_trace import LinkTrace

DIRECTIONS = ("both", "a_to_b", "b_to_a")


def schedule(
    trace: LinkTrace,
    *,
    delay_ms: float,
    direction: str = "both",
    delay_step_ms: float = 0.2,
    loss_step: float = 0.001,
) -> str:
    """Entries of `[[link.schedule]]` that follow the trace's extra delay and loss.

    A new entry is made where one of them has changed by more than its step, so that a trace that
    hardly varies has few.

    Args:
        trace: what to follow.
        delay_ms: the link's own one-way delay, to which the extra one is added.
        direction: `both`, `a_to_b` or `b_to_a`.
        delay_step_ms: least change of delay.
        loss_step: least change of loss.

    """
    one_of("direction", direction, DIRECTIONS)
    within("delay_ms", delay_ms, 0.0)
    entries: list[str] = []
    delay, loss = 0.0, 0.0
    for at_s, extra, lost in zip(
        trace.time_s.tolist(), trace.extra_delay_ms.tolist(), trace.loss.tolist(), strict=True
    ):
        if abs(extra - delay) > delay_step_ms or abs(lost - loss) > loss_step:
            delay, loss = extra, lost
            entries.append(
                f'[[link.schedule]]\nat_s = {at_s:.9g}\ndirection = "{direction}"\n'
                f"delay_ms = {delay_ms + delay:.6g}\nloss = {loss:.6g}"
            )
    return "\n".join(entries)
