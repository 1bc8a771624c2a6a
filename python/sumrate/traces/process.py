"""Semi-Markov processes over a link's states: rate, dwell time and next state."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

Range = tuple[float, float]
"""Lowest and highest value; drawn uniformly."""


class Segment(NamedTuple):
    """A time without a change of the link's state."""

    seconds: float
    goodput_mbps: float


@dataclass(frozen=True)
class State:
    """A state of a link: a beam with its MCS, or an occupation of the channel."""

    goodput_mbps: Range
    """TCP goodput of the state; drawn at each visit."""
    dwell_s: Range
    """Dwell time; drawn at each visit."""
    then: Mapping[str, float] = field(default_factory=dict)
    """Next states with weights; empty: the state repeats."""
    gap_ms: Range = (0.0, 0.0)
    """Time without data on entering the state from another one, during beam training."""


def walk(states: Mapping[str, State], random: Random) -> Iterator[Segment]:
    """Endless visits of states, from the first state on."""
    name = before = next(iter(states))
    while True:
        state = states[name]
        if name != before and state.gap_ms[1] > 0:
            yield Segment(random.uniform(*state.gap_ms) / 1e3, 0.0)
        yield Segment(random.uniform(*state.dwell_s), random.uniform(*state.goodput_mbps))
        before = name
        if state.then:
            (name,) = random.choices(list(state.then), list(state.then.values()))


@dataclass(frozen=True)
class Leg:
    """One side of the rectangle and its beams."""

    feet: float
    beams: Mapping[str, State]


@dataclass(frozen=True)
class Course:
    """Laps of a robot around a rectangle, with a quarter turn after each leg."""

    legs: tuple[Leg, ...]
    lap_s: Range
    """Time of a lap; drawn once."""
    unevenness: float
    """Largest deviation of a leg's time, as a share."""
    turn_gap_ms: Range
    """Time without data after a turn, until a beam is found."""

    def drive(self, random: Random) -> Iterator[Segment]:
        """Endless laps."""
        lap_s = random.uniform(*self.lap_s)
        whole = sum(leg.feet for leg in self.legs)
        while True:
            for leg in self.legs:
                pace = 1 + random.uniform(-self.unevenness, self.unevenness)
                gap_s = random.uniform(*self.turn_gap_ms) / 1e3
                yield Segment(gap_s, 0.0)
                rest = lap_s * leg.feet / whole * pace - gap_s
                yield from cut(walk(leg.beams, random), rest)


def cut(segments: Iterator[Segment], seconds: float) -> Iterator[Segment]:
    """The first seconds of a process."""
    left = seconds
    for segment in segments:
        if segment.seconds >= left:
            if left > 0:
                yield segment._replace(seconds=left)
            return
        left -= segment.seconds
        yield segment


def skip(segments: Iterator[Segment], seconds: float) -> Iterator[Segment]:
    """A process without its first seconds."""
    left = seconds
    for segment in segments:
        if segment.seconds > left:
            yield segment._replace(seconds=segment.seconds - left)
            break
        left -= segment.seconds
    yield from segments


def sample(segments: Iterator[Segment], step_s: float, steps: int) -> Iterator[float]:
    """Mean goodput of each of `steps` steps."""
    duration, goodput = next(segments)
    for _ in range(steps):
        left, done = step_s, 0.0
        while duration < left:
            done += duration * goodput
            left -= duration
            duration, goodput = next(segments)
        duration -= left
        yield (done + left * goodput) / step_s


@dataclass(frozen=True)
class Variation:
    """Variation within a state: small fading and air time of other devices."""

    slow: float
    """Standard deviation of the correlated part, as a share of the rate."""
    slow_s: float
    """Time in which its autocorrelation falls to 1/e."""
    fast: float
    """Standard deviation of the independent part of every step, as a share of the rate."""

    def factors(self, step_s: float, random: Random) -> Iterator[float]:
        """Endless factors, one for each step; their mean is 1."""
        kept = math.exp(-step_s / self.slow_s)
        new = self.slow * math.sqrt(1 - kept * kept)
        slow = random.gauss(0.0, self.slow)
        while True:
            yield max(0.0, 1 + slow + random.gauss(0.0, self.fast))
            slow = kept * slow + random.gauss(0.0, new)
