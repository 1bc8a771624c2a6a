"""Delay and loss of a link trace as schedule entries of the emulator."""

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

    An entry follows each change of delay or loss by more than its step.

    Args:
        trace: to follow.
        delay_ms: one-way delay of the link without the trace's extra delay.
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
