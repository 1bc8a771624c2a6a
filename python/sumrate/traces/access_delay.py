"""How long a client waits until it wins its A-BFT: what initial access does to a trace."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sumrate.access.equations import exact_failure_probability, optimal_mini_slots
from sumrate.phy.parameters import ParameterError, one_of, positive, whole, within

BEACON_INTERVAL_S = 0.1


class AccessDelay(Protocol):
    """Draws how long it takes from wanting a training to having one."""

    @property
    def name(self) -> str:
        """Name of the protocol."""
        ...

    def delay_s(self, generator: np.random.Generator) -> float:
        """Time until the client has its best beam, seconds."""
        ...


@dataclass(frozen=True)
class Alone:
    """Nobody else competes, and a sweep is possible at once: the time of the sweeps only."""

    sweep_s: float = 0.002
    name: str = "alone"

    def delay_s(self, generator: np.random.Generator) -> float:
        """The time of both sweeps."""
        return self.sweep_s


@dataclass(frozen=True)
class BeaconIntervals:
    """One attempt in every beacon interval, each with the same chance.

    Raises:
        ParameterError: a chance that is none.

    """

    name: str
    success: float
    """Probability that an attempt is heard."""
    beacon_interval_s: float = BEACON_INTERVAL_S
    training_s: float = 0.005
    """From the beginning of the A-BFT until its answer."""
    retry_limit: int | None = None
    """RSSRetryLimit: after each failure beyond so many in a row the client pauses; None: never."""
    backoff: int = 8
    """RSSBackoff: a pause has 0 to so many beacon intervals less one, drawn uniformly."""

    def __post_init__(self) -> None:
        """Refuses what is no chance."""
        within("success", self.success, 0.0, 1.0, open_low=True)
        positive("beacon_interval_s", self.beacon_interval_s)
        within("training_s", self.training_s, 0.0)
        whole("backoff", self.backoff)
        if self.retry_limit is not None:
            whole("retry_limit", self.retry_limit, 0)

    def delay_s(self, generator: np.random.Generator) -> float:
        """Rest of the running beacon interval, failed ones, pauses, and the training."""
        attempts = int(generator.geometric(self.success))
        intervals = float(generator.random()) + attempts - 1
        if self.retry_limit is not None:
            pauses = max(0, attempts - 1 - self.retry_limit)
            intervals += float(generator.integers(0, self.backoff, pauses).sum())
        return intervals * self.beacon_interval_s + self.training_s


@dataclass(frozen=True)
class Contention:
    """How many compete, and with what they are heard.

    Raises:
        ParameterError: no whole numbers of clients, slots or beams.

    """

    clients: int = 16
    """That take part in the same A-BFT, this one among them."""
    slots: int = 8
    """Of the 802.11ad A-BFT."""
    good_beams: int = 6
    """K: beams of a client that the access point decodes under power control."""
    target_failure: float = 0.1
    """P0, for which JPOC chooses its mini-slots."""
    least_mini_slots: int = 36

    def __post_init__(self) -> None:
        """Refuses what is no contention."""
        whole("clients", self.clients)
        whole("slots", self.slots)
        whole("good_beams", self.good_beams)

    @cached_property
    def mini_slots(self) -> int:
        """M that JPOC announces: equation 3.7, not below the floor."""
        if self.clients == 1:
            return self.least_mini_slots
        wanted = optimal_mini_slots(self.good_beams, self.clients, self.target_failure)
        return max(self.least_mini_slots, wanted)

    def dot11ad(self) -> BeaconIntervals:
        """802.11ad without capture: heard if no other client picked the slot.

        RSSRetryLimit and RSSBackoff are 8, the standard's defaults.
        """
        alone = (1 - 1 / self.slots) ** (self.clients - 1)
        return BeaconIntervals("dot11ad", alone, retry_limit=8, backoff=8)

    def jpoc(self) -> BeaconIntervals:
        """JPOC: heard if one of the good beams is alone in its mini-slot."""
        failed = exact_failure_probability(self.good_beams, self.clients, self.mini_slots)
        return BeaconIntervals("jpoc", 1 - float(failed))

    def named(self, name: str) -> AccessDelay:
        """The protocol of a name: `dot11ad`, `jpoc` or `alone`.

        Raises:
            ParameterError: there is none, or with one slot nobody of several is ever heard.

        """
        one_of("access", name, PROTOCOLS)
        if name == "alone":
            return Alone()
        if name == "dot11ad" and self.slots == 1 and self.clients > 1:
            raise ParameterError("slots", 1, "at least 2 where several clients compete")
        return self.dot11ad() if name == "dot11ad" else self.jpoc()


PROTOCOLS = ("dot11ad", "jpoc", "alone")
