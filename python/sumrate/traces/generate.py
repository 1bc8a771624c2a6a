"""Generates traces; equal kind, seed and length give equal traces."""

from itertools import islice
from random import Random

from sumrate.traces.kinds import KINDS
from sumrate.traces.measure import GOODPUT_SHARE
from sumrate.traces.process import sample, skip
from sumrate.traces.trace import Trace

STEP_MS = 10


def generate(kind: str, seed: int, seconds: float) -> Trace:
    """A trace of a kind of link.

    Each kind has its own random generators, so WiGig and WiFi traces of one seed are independent.

    Args:
        kind: one of `KINDS`.
        seed: of all random numbers.
        seconds: length, in whole steps of 10 ms.

    Raises:
        ValueError: the kind is unknown, or the length less than a step.

    """
    if kind not in KINDS:
        raise ValueError(f"no kind of trace is called {kind!r}: use {', '.join(KINDS)}")
    steps = round(seconds * 1e3 / STEP_MS)
    if steps < 1:
        raise ValueError(f"a trace is at least {STEP_MS} ms long, not {seconds} s")
    chosen = KINDS[kind]
    states = Random(f"{kind} states {seed}")
    variation = Random(f"{kind} variation {seed}")
    process = skip(chosen.process(states), states.uniform(*chosen.settling_s))
    step_s = STEP_MS / 1e3
    goodputs = sample(process, step_s, steps)
    factors = islice(chosen.variation.factors(step_s, variation), steps)
    rates = tuple(
        round(goodput * factor / GOODPUT_SHARE, 1)
        for goodput, factor in zip(goodputs, factors, strict=True)
    )
    origin = f"{chosen.title}: generated, kind {kind}, seed {seed}, {seconds:g} s"
    return Trace(float(STEP_MS), rates, origin)
