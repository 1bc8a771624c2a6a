"""A link in a room: what it is made of, before anything is drawn."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sumrate.phy.blockage.angular import AngularBlockage
from sumrate.phy.blockage.process import BlockageProcess
from sumrate.phy.blockage.screen import Person
from sumrate.phy.channel.box_room import BoxRoom
from sumrate.phy.directions import Orientation
from sumrate.phy.hardware import Radio
from sumrate.phy.interference import SharedAir
from sumrate.phy.mobility import Track
from sumrate.phy.parameters import Floats, one_of, positive, within
from sumrate.phy.rate_adaptation import Informed, RateAdaptation
from sumrate.traces.access_delay import Contention

Drive = Callable[[Floats, np.random.Generator], Track]
"""Makes a track for times in seconds, shape (n,)."""
TARGETS = ("direct", "all")


@dataclass(frozen=True)
class Passers:
    """People who come and go.

    Raises:
        ParameterError: a target that does not exist.

    """

    process: BlockageProcess
    target: str = "direct"
    """Which rays they block: `direct`, the line of sight; `all`, as who holds the device does."""

    def __post_init__(self) -> None:
        """Refuses other targets."""
        one_of("target", self.target, TARGETS)


@dataclass(frozen=True)
class Fluctuation:
    """What is left of fading and of people who do not stand quite still: normal, in dB.

    Its autocorrelation is exp(-t / correlation) cos(2 pi t / period): a swaying body comes back.

    Raises:
        ParameterError: a negative deviation or a time that is not positive.

    """

    deviation_db: float = 0.0
    correlation_s: float = 1.0
    period_s: float | None = None
    """Of the swaying, or None."""

    def __post_init__(self) -> None:
        """Refuses what is no fluctuation."""
        within("deviation_db", self.deviation_db, 0.0, 30.0)
        positive("correlation_s", self.correlation_s)
        if self.period_s is not None:
            positive("period_s", self.period_s)

    def along(self, steps: int, step_s: float, generator: np.random.Generator) -> Floats:
        """Values in dB: shape (steps,)."""
        kept = float(np.exp(-step_s / self.correlation_s))
        turned = 2 * np.pi * step_s / self.period_s if self.period_s else 0.0
        fresh = generator.normal(0.0, self.deviation_db, (2, steps))
        fresh[:, 1:] *= np.sqrt(1 - kept**2)
        factor = complex(kept * np.cos(turned), kept * np.sin(turned))
        values = (fresh[0] + 1j * fresh[1]).tolist()
        for i in range(1, steps):
            values[i] += factor * values[i - 1]
        return np.asarray(np.real(values), dtype=np.float64)


@dataclass(frozen=True)
class Training:
    """When a client trains its beams.

    Raises:
        ParameterError: a time that is not positive.

    """

    periodic_s: float = 60.0
    """Every so often in any case: about a minute in the thesis."""
    drop_db: float = 8.0
    """When the signal is so much weaker than after the last training."""
    lost_after_s: float = 0.03
    """No scheme works for so long: the link is lost."""
    error_db: float = 1.0
    """Deviation of each beam's measured strength in a sweep, so that not always the best wins."""
    refined_s: float | None = None
    """Beams are trained anew in the data time, where nobody else competes, within so long after a
    drop or a loss; the A-BFT is only for the period and for when no pair of beams carries anything.
    None: every training is an A-BFT."""

    def __post_init__(self) -> None:
        """Refuses what cannot be."""
        positive("periodic_s", self.periodic_s)
        positive("drop_db", self.drop_db)
        positive("lost_after_s", self.lost_after_s)
        within("error_db", self.error_db, 0.0, 30.0)
        if self.refined_s is not None:
            within("refined_s", self.refined_s, 0.0, 10.0)


@dataclass(frozen=True, eq=False)
class Scene:
    """An access point and a client in a room, and what happens there."""

    name: str
    title: str
    room: BoxRoom
    radio: Radio
    access_point_m: tuple[float, float, float]
    facing: Orientation
    """Of the access point."""
    drive: Drive
    """How the client moves."""
    people: tuple[Person, ...] = ()
    """Who stands there all the time."""
    passers: tuple[Passers, ...] = ()
    fluctuation: Fluctuation = field(default_factory=Fluctuation)
    training: Training = field(default_factory=Training)
    rate_adaptation: RateAdaptation = field(default_factory=Informed)
    contention: Contention = field(default_factory=Contention)
    held: str | None = None
    """`portrait` or `landscape`: whose body hides a part of the device's directions; or None."""
    crowd: AngularBlockage | None = None
    """People around the client, who change as it moves (TR 38.901's model A), or None."""
    neighbour: SharedAir | None = None
    """A second link on the same or the next channel, or None."""
    step_s: float = 0.01
    channel_step_s: float = 0.05
    """How often geometry is computed anew for a client that moves."""
