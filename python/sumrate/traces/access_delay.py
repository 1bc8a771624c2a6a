"""Waiting times until a client wins its A-BFT: the effect of initial access on a trace."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sumrate.access.equations import exact_failure_probability, optimal_mini_slots
from sumrate.phy.parameters import ParameterError, one_of, positive, whole, within

BEACON_INTERVAL_S = 0.1


class AccessDelay(Protocol):
    """Draws waiting times from the start of the competition to the end of the training."""

    @property
    def name(self) -> str:
        """Name of the protocol."""
        ...

    def delay_s(self, generator: np.random.Generator) -> float:
        """Time until the client has its best beam, seconds."""
        ...


@dataclass(frozen=True)
class Alone:
    """No other client competes and a sweep starts at once: only the time of the sweeps."""

    sweep_s: float = 0.002
    name: str = "alone"

    def delay_s(self, generator: np.random.Generator) -> float:
        """The time of both sweeps."""
        return self.sweep_s


@dataclass(frozen=True)
class BeaconIntervals:
    """One attempt in every beacon interval, with equal probability of success.

    Raises:
        ParameterError: a probability or a time is out of range.

    """

    name: str
    success: float
    """Probability that an attempt succeeds."""
    beacon_interval_s: float = BEACON_INTERVAL_S
    training_s: float = 0.005
    """Time from the start of the A-BFT to its feedback."""
    retry_limit: int | None = None
    """RSSRetryLimit: consecutive failures after which each further one causes a pause; or None."""
    backoff: int = 8
    """RSSBackoff: a pause lasts 0 to `backoff` - 1 beacon intervals, uniform."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("success", self.success, 0.0, 1.0, open_low=True)
        positive("beacon_interval_s", self.beacon_interval_s)
        within("training_s", self.training_s, 0.0)
        whole("backoff", self.backoff)
        if self.retry_limit is not None:
            whole("retry_limit", self.retry_limit, 0)

    def delay_s(self, generator: np.random.Generator) -> float:
        """Rest of the current beacon interval, failed attempts, pauses, and the training."""
        attempts = int(generator.geometric(self.success))
        intervals = float(generator.random()) + attempts - 1
        if self.retry_limit is not None:
            pauses = max(0, attempts - 1 - self.retry_limit)
            intervals += float(generator.integers(0, self.backoff, pauses).sum())
        return intervals * self.beacon_interval_s + self.training_s


@dataclass(frozen=True)
class Contention:
    """Number of competing clients, slots and good beams.

    Raises:
        ParameterError: a number is not whole, or out of range.

    """

    clients: int = 16
    """Clients in the same A-BFT, this one included."""
    slots: int = 8
    """Slots of the 802.11ad A-BFT."""
    good_beams: int = 6
    """K: beams of a client that the access point decodes under power control."""
    target_failure: float = 0.1
    """P0, for which JPOC chooses its mini-slots."""
    least_mini_slots: int = 36

    def __post_init__(self) -> None:
        """Checks the parameters."""
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
        """802.11ad without capture: an attempt succeeds if no other client picked the slot.

        RSSRetryLimit and RSSBackoff are 8, the standard's defaults.
        """
        alone = (1 - 1 / self.slots) ** (self.clients - 1)
        return BeaconIntervals("dot11ad", alone, retry_limit=8, backoff=8)

    def jpoc(self) -> BeaconIntervals:
        """JPOC: an attempt succeeds if one of the good beams is alone in its mini-slot."""
        failed = exact_failure_probability(self.good_beams, self.clients, self.mini_slots)
        return BeaconIntervals("jpoc", 1 - float(failed))

    def named(self, name: str) -> AccessDelay:
        """The protocol of a name: `dot11ad`, `jpoc` or `alone`.

        Raises:
            ParameterError: the name is unknown, or several clients share a single slot.

        """
        one_of("access", name, PROTOCOLS)
        if name == "alone":
            return Alone()
        if name == "dot11ad" and self.slots == 1 and self.clients > 1:
            raise ParameterError("slots", 1, "at least 2 where several clients compete")
        return self.dot11ad() if name == "dot11ad" else self.jpoc()


PROTOCOLS = ("dot11ad", "jpoc", "alone")
