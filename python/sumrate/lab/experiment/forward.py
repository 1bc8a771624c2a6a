"""Which path sends from the front, and how soon that follows when reliability changes (S9)."""

from collections.abc import Sequence
from itertools import pairwise

from sumrate.lab.experiment.record import Run
from sumrate.traces.events import EventLog

FORWARD = "forward"


def add_forward(
    run: Run,
    log: EventLog,
    wanted: Sequence[tuple[float, str]],
    *,
    first_byte_s: float,
    end_s: float,
) -> None:
    """Notes each time until the wanted link sends forward, and how often the forward link changed.

    A link that is not forward before another is wanted, or before the end, took until then.

    Args:
        run: gets `forward_follows_s`, one for each of `wanted`, and `forward_swaps`.
        log: of the sender.
        wanted: from when on (seconds after the first byte) which link.
        first_byte_s: when the first byte was there, Unix time in seconds.
        end_s: end of the run, seconds after the first byte.

    """
    begin_s = first_byte_s - float(log.header["reference_time_s"])
    changes = forward_changes(log, begin_s)
    ends = [at for at, _ in wanted[1:]] + [end_s]
    for (at, name), end in zip(wanted, ends, strict=True):
        held = [link for time, link in changes if time <= at][-1:]
        later = [time for time, link in changes if at < time < end and link == name]
        found = at if held == [name] else min(later, default=end)
        run.add("forward_follows_s", found - at, "s")
    swaps = [after for before, after in pairwise(changes) if 0 < after[0] < end_s]
    run.add("forward_swaps", len(swaps), "")


def forward_changes(log: EventLog, begin_s: float) -> list[tuple[float, str]]:
    """When which path became the forward one, in order; times count from `begin_s` on."""
    found = [
        (time_s - begin_s, events.name)
        for events in log.paths.values()
        for time_s, direction in events.directions
        if direction == FORWARD
    ]
    found.sort()
    return [change for n, change in enumerate(found) if n == 0 or found[n - 1][1] != change[1]]
