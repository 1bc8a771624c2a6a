"""Waiting times until a client wins its A-BFT, for traces."""

from dataclasses import replace

import numpy as np

from sumrate.access.budget import make_pool
from sumrate.access.errors import AccessError, whole
from sumrate.access.scenes import Scene, scene_named
from sumrate.access.simulation import DOT11AD_BASELINE, Protocol, Setting, run
from sumrate.phy.parameters import Floats, Integers

INTERVAL_S = 0.1
MOST_INTERVALS = 200
"""Longest wait: 200 beacon intervals, 20 s."""
SETTINGS: dict[Protocol, Setting] = {"dot11ad": DOT11AD_BASELINE, "jpoc": Setting()}


class SimulatedAccessDelay:
    """Samples of the time from losing the link to winning an A-BFT.

    A wait is the rest of the current beacon interval, one beacon interval for each lost A-BFT, and
    the A-BFT that the client wins. The number of lost A-BFTs is drawn from simulated ones, in which
    `contenders` clients of a scene compete in every A-BFT. Each client keeps its place, so near
    clients wait for a shorter time than far ones.
    """

    def __init__(
        self,
        protocol: Protocol,
        contenders: int,
        seed: int,
        *,
        scene: str | Scene = "office-aligned",
        setting: Setting | None = None,
    ) -> None:
        """Simulates the A-BFTs in about a second, or a few seconds for a new scene.

        Args:
            protocol: `dot11ad` or `jpoc`.
            contenders: clients in each A-BFT, this one included.
            seed: of the simulation.
            scene: a scene or its name.
            setting: of the protocol; its defaults if None.

        Raises:
            AccessError: a protocol or scene that does not exist, or fewer than one contender.

        """
        if protocol not in SETTINGS:
            raise AccessError(f"protocol must be {' or '.join(SETTINGS)}, not {protocol}")
        whole("contenders", contenders, 1, 500)
        chosen = scene_named(scene) if isinstance(scene, str) else scene
        base = setting or SETTINGS[protocol]
        contest = replace(
            base, protocol=protocol, intervals=MOST_INTERVALS, always_compete=True, warm_up=0
        )
        outcomes = run(
            make_pool(chosen, 1000), contest, clients=contenders, realisations=40, seed=seed
        )
        self._lost = np.concatenate([_lost(o.attempts - o.failures) for o in outcomes])
        length_us = contest.abft.duration_us
        if protocol == "jpoc":
            length_us = float(np.mean([o.mini_slots.mean() for o in outcomes])) * 16.0
        self._length_s = length_us * 1e-6
        self._name = protocol

    @property
    def name(self) -> str:
        """The protocol."""
        return self._name

    def delay_s(self, generator: np.random.Generator) -> float:
        """One wait of a client at a random place, in seconds."""
        return float(self.sample(1, generator)[0])

    def sample(self, count: int, generator: np.random.Generator) -> Floats:
        """Draws waits in seconds, (count,)."""
        whole("samples", count, 1)
        start = generator.integers(0, self._lost.shape[1] // 2, count)
        client = generator.integers(0, self._lost.shape[0], count)
        rest = generator.random(count)
        return np.asarray((rest + self._lost[client, start]) * INTERVAL_S + self._length_s)

    def quantiles(self, shares: tuple[float, ...] = (0.5, 0.95)) -> Floats:
        """Quantiles of the waits over clients and times, seconds, (shares,)."""
        lost = self._lost[:, : self._lost.shape[1] // 2]
        return np.asarray(np.quantile((lost + 0.5) * INTERVAL_S + self._length_s, shares))


def _lost(won: Integers) -> Floats:
    """Number of lost A-BFTs by the interval of the first attempt, (clients, intervals)."""
    clients, intervals = won.shape
    found = np.full((clients, intervals), float(MOST_INTERVALS))
    until = np.full(clients, float(MOST_INTERVALS))
    for at in range(intervals - 1, -1, -1):
        until = np.where(won[:, at] > 0, 0.0, np.minimum(until + 1, MOST_INTERVALS))
        found[:, at] = until
    return found
