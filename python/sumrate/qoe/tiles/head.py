"""Where a viewer looks: a seeded model of head movement. No recorded traces ship with any package.

A viewer looks at something, and after a while at something else. Targets last exponentially
distributed times and lie around the last one in yaw, around the horizon in pitch; the head follows
its target as a critically damped spring does. What counts is how far off a prediction is after a
second or two; the model is stated with every result.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

STEP_S = 1 / 60
"""Resolution of the movement."""
TARGET_MEAN_S = 2.5
"""Mean time between targets."""
TURN_DEG = 45.0
"""Standard deviation of a turn to the next target, in yaw."""
PITCH_DEG = 15.0
"""Standard deviation of targets above and below the horizon."""
MOST_PITCH_DEG = 60.0
FOLLOW_S = 0.2
"""Time constant of the head's spring: a turn of 45 degrees is mostly done in half a second."""


@dataclass(frozen=True)
class Movement:
    """Orientation in steps of `STEP_S`, in degrees; yaw is not wrapped."""

    yaw_deg: NDArray[np.float64]
    pitch_deg: NDArray[np.float64]

    def at(self, time_s: float) -> tuple[float, float]:
        """Yaw and pitch at a time; the last one after the end."""
        index = min(len(self.yaw_deg) - 1, max(0, round(time_s / STEP_S)))
        return float(self.yaw_deg[index]), float(self.pitch_deg[index])


@lru_cache(maxsize=256)
def movement(seed: int, seconds: float) -> Movement:
    """The movement of one viewer; the same seed gives the same."""
    source = np.random.default_rng([seed, 360])
    steps = round(seconds / STEP_S) + 1
    position = np.array([source.uniform(-180, 180), 0.0])
    velocity = np.zeros(2)
    target = position.copy()
    until = 0.0
    found = np.empty((steps, 2))
    for step in range(steps):
        if step * STEP_S >= until:
            until += source.exponential(TARGET_MEAN_S)
            pitch = source.normal(0.0, PITCH_DEG)
            target = np.array([position[0] + source.normal(0.0, TURN_DEG), pitch])
            target[1] = np.clip(target[1], -MOST_PITCH_DEG, MOST_PITCH_DEG)
        pull = (target - position) / FOLLOW_S**2 - 2 * velocity / FOLLOW_S
        velocity = velocity + pull * STEP_S
        position = position + velocity * STEP_S
        found[step] = position
    return Movement(found[:, 0], found[:, 1])


@lru_cache
def displacements(
    horizon_s: tuple[float, ...], viewers: int = 60, seconds: float = 30.0
) -> NDArray[np.float64]:
    """How far heads are from where they were, after each of these times (s).

    From viewers of the same model whose seeds no experiment uses. Rows of yaw and pitch, degrees.
    """
    rows = []
    for viewer in range(viewers):
        found = movement(1_000_000 + viewer, seconds)
        both = np.stack([found.yaw_deg, found.pitch_deg], axis=1)
        for horizon in horizon_s:
            lag = round(horizon / STEP_S)
            rows.append((both[lag:] - both[: len(both) - lag])[:: round(1.0 / STEP_S)])
    return np.concatenate(rows)
