"""Places of schedulers in what they wait for, in the simulated tournament and on sockets alike."""

from collections.abc import Iterable

TIE = 0.1
TIE_MS = 1.0
"""Waits within this share of the own one, or this close in ms, are a tie: the simulation steps by
1 ms."""
ENOUGH = 0.9
"""Of the best goodput: who delivers less waits for little, and is in no comparison of waits."""


def place(own_ms: float, waits_ms: Iterable[float]) -> int:
    """1 is the least wait; others count as better only beyond a tie."""
    better = own_ms - max(TIE_MS, TIE * own_ms)
    return 1 + sum(wait < better for wait in waits_ms)
