"""Participation of a client in the A-BFT: timers and thresholds of products, and restraint.

Thesis, Sec. 3.1: products repeat their training every 60 s in line of sight, whenever the signal
falls below a threshold behind an obstacle, every 15 to 20 s while moving there, and every 10 s
while not associated. This module applies these rules to varying signals. The parameters of the
signals are chosen, not measured.

A client uses one path. Each path has a margin over the threshold, in dB, that varies with position
(legs of a way), shadowing and people. Training picks the best path of the moment.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from sumrate.access.errors import AccessError, whole, within
from sumrate.phy.parameters import Booleans, Floats
from sumrate.phy.propagation import autoregressive

STEP_S = 0.1
"""A beacon interval."""
BETTER_DB = 3.0
"""Least improvement of a training that was not needless."""
Policy = Literal["product", "restrained"]


@dataclass(frozen=True)
class Situation:
    """The situation of a client; margins over the threshold in dB, times in seconds."""

    name: str
    title: str
    direct_db: float = 20.0
    """Margin of the free line of sight."""
    blocked_db: float = -10.0
    """Margin of the line of sight behind an obstacle or the client's own body."""
    reflected_db: tuple[float, float] = (6.0, 1.0)
    """Margin of each reflected path: mean, and deviation from leg to leg."""
    legs: tuple[tuple[float, bool], ...] = ((600.0, True),)
    """The way, repeated: duration of each leg, and whether it has a line of sight."""
    people_per_s: float = 0.0
    """Rate at which people step into a path."""
    people_s: float = 0.5
    people_db: float = 14.0
    """Attenuation by a person, who stays for `people_s` on average."""
    shadowing_db: float = 1.0
    shadowing_s: float = 1.0
    associated: bool = True


TURN_S = 360.0 / 37.0
"""A turn of the robot at 37 degrees per second."""
_LAP = ((9.1, True), (3.0, True), (9.1, False), (3.0, False))
"""Rectangle of 6 by 2 feet at 0.2 m/s; towards two sides the client's body blocks the path."""

SITUATIONS = {
    situation.name: situation
    for situation in (
        Situation("los", "still, line of sight"),
        Situation(
            "nlos", "still, no line of sight", direct_db=-10.0, people_per_s=0.02,
        ),
        Situation(
            "rotation", "turning, line of sight", legs=((TURN_S / 3, True), (TURN_S * 2 / 3, False))
        ),
        Situation(
            "mobile-los", "moving, line of sight", reflected_db=(7.0, 4.0), legs=_LAP,
            people_per_s=0.005,
        ),
        Situation(
            "mobile-nlos", "moving, no line of sight", direct_db=-10.0, reflected_db=(6.0, 4.0),
            legs=_LAP, people_per_s=0.025,
        ),
        Situation("disconnected", "not associated", direct_db=-30.0, reflected_db=(-20.0, 1.0),
                  associated=False),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Timers:
    """Timers of products, as measured in the thesis."""

    periodic_s: float = 60.0
    search_s: float = 10.0
    """Time between attempts while not associated, or with every path below the threshold."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("period", self.periodic_s, 1.0, 3600.0, "s")
        within("search period", self.search_s, 0.1, 3600.0, "s")


@dataclass(frozen=True, eq=False)
class Participation:
    """The trainings of one client."""

    times_s: Floats
    """Times of the trainings."""
    needless: Booleans
    """True for trainings that gained less than 3 dB, shape of `times_s`."""
    below_s: float
    """Time on a path below the threshold while another path was above it."""
    seconds: float

    @property
    def interval_s(self) -> float:
        """Mean time between trainings; the whole time without a training."""
        return self.seconds / max(1, self.times_s.size)


def margins_db(situation: Situation, seconds: float, rng: np.random.Generator) -> Floats:
    """Margin of the direct and two reflected paths over the threshold, (3, steps), dB."""
    steps = round(within("duration", seconds, 1.0, 86_400.0, "s") / STEP_S)
    time = np.arange(steps) * STEP_S
    lengths = np.array([length for length, _ in situation.legs])
    edges = np.cumsum(lengths)
    leg = np.searchsorted(edges, np.mod(time + rng.uniform(0, edges[-1]), edges[-1]), side="right")
    leg = np.minimum(leg, lengths.size - 1)
    sight = np.array([seen for _, seen in situation.legs])[leg]
    found = np.empty((3, steps))
    found[0] = np.where(sight, situation.direct_db, min(situation.direct_db, situation.blocked_db))
    mean, deviation = situation.reflected_db
    for path in (1, 2):
        found[path] = rng.normal(mean, deviation, lengths.size)[leg]
    for path in range(3):
        found[path] += _shadowing(situation, steps, rng) - _people(situation, steps, rng)
    return found


def _shadowing(situation: Situation, steps: int, rng: np.random.Generator) -> Floats:
    kept = np.exp(-STEP_S / situation.shadowing_s)
    fresh = rng.normal(0.0, situation.shadowing_db, steps) * np.sqrt(1 - kept**2)
    fresh[0] /= np.sqrt(1 - kept**2)
    return autoregressive(fresh, kept)


def _people(situation: Situation, steps: int, rng: np.random.Generator) -> Floats:
    lost = np.zeros(steps)
    for start in np.flatnonzero(rng.random(steps) < situation.people_per_s * STEP_S):
        stay = max(1, round(rng.exponential(situation.people_s) / STEP_S))
        lost[start : start + stay] = situation.people_db
    return lost


@dataclass
class _Client:
    """State of a client."""

    path: int
    trained_at: int = 0
    tried_at: int = -(10**9)
    was_above: bool = True
    times: list[int] = field(default_factory=list)
    needless: list[bool] = field(default_factory=list)


class _Now(NamedTuple):
    """Signals of a client in a beacon interval."""

    step: int
    current_db: float
    """Margin of the path in use."""
    best_db: float
    """Margin of the best path, from the AP's sweep."""


def take_part(
    situation: Situation,
    seconds: float = 600.0,
    *,
    seed: int,
    policy: Policy = "product",
    timers: Timers | None = None,
) -> Participation:
    """Simulates the trainings of one client.

    Args:
        situation: of the client.
        seconds: simulated time.
        seed: of the signals, which do not depend on the policy.
        policy: `product`, or `restrained`: the client measures the best path in the AP's sweep of
            every beacon interval. It trains by timer only for a gain of 3 dB, below the threshold
            only if the best path is above it, and unassociated only if it decodes a beacon.
        timers: periods.

    Raises:
        AccessError: an unknown policy, or a duration out of range.

    """
    if policy not in ("product", "restrained"):
        raise AccessError(f"policy must be product or restrained, not {policy}")
    rules = timers or Timers()
    margin = margins_db(situation, seconds, np.random.default_rng(whole("seed", seed, 0)))
    best = margin.max(axis=0)
    client = _Client(int(margin[:, 0].argmax()))
    below = 0
    for step in range(margin.shape[1]):
        current = float(margin[client.path, step])
        below += current < 0.0 <= best[step]
        decide = _restrained if policy == "restrained" else _product
        if decide(client, situation, rules, _Now(step, current, float(best[step]))):
            gained = float(best[step]) - current
            client.times.append(step)
            client.needless.append(gained < BETTER_DB)
            client.path = int(margin[:, step].argmax())
            client.trained_at = client.tried_at = step
            current = float(best[step])
        client.was_above = current >= 0.0
    return Participation(
        np.array(client.times, dtype=np.float64) * STEP_S,
        np.array(client.needless, dtype=np.bool_),
        below * STEP_S,
        margin.shape[1] * STEP_S,
    )


def _product(client: _Client, situation: Situation, rules: Timers, now: _Now) -> bool:
    """Training by timer, threshold and search."""
    since = (now.step - client.tried_at) * STEP_S
    if not situation.associated:
        return since >= rules.search_s
    if now.current_db < 0.0:
        return client.was_above or since >= rules.search_s
    return (now.step - client.trained_at) * STEP_S >= rules.periodic_s


def _restrained(client: _Client, situation: Situation, rules: Timers, now: _Now) -> bool:
    """Training only if the AP's sweep has a better path."""
    since = (now.step - client.tried_at) * STEP_S
    if not situation.associated:
        return now.best_db >= 0.0 and since >= rules.search_s
    better = now.best_db - now.current_db >= BETTER_DB
    if now.current_db < 0.0:
        return now.best_db >= 0.0
    return better and (now.step - client.trained_at) * STEP_S >= rules.periodic_s
