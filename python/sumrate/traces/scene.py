"""Scenes: the parameters of a link in a room."""

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
from sumrate.phy.propagation import autoregressive
from sumrate.phy.rate_adaptation import Informed, RateAdaptation
from sumrate.traces.access_delay import Contention

Drive = Callable[[Floats, np.random.Generator], Track]
"""Makes a track for times in seconds, shape (n,)."""
TARGETS = ("direct", "all")


@dataclass(frozen=True)
class Passers:
    """People who pass and block rays.

    Raises:
        ParameterError: the target is unknown.

    """

    process: BlockageProcess
    target: str = "direct"
    """Blocked rays: `direct`, the line of sight; `all`, as by the user's body."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        one_of("target", self.target, TARGETS)


@dataclass(frozen=True)
class Fluctuation:
    """Residual fading and swaying of people: normal, in dB.

    Its autocorrelation is exp(-t / correlation) cos(2 pi t / period).

    Raises:
        ParameterError: the deviation is negative, or a time not positive.

    """

    deviation_db: float = 0.0
    correlation_s: float = 1.0
    period_s: float | None = None
    """Period of the swaying, or None."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
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
        values = autoregressive(fresh[0] + 1j * fresh[1], factor)
        return np.asarray(np.real(values), dtype=np.float64)


@dataclass(frozen=True)
class Training:
    """Conditions under which a client trains its beams.

    Raises:
        ParameterError: a time is not positive.

    """

    periodic_s: float = 60.0
    """Period of unconditional trainings: about a minute in the thesis."""
    drop_db: float = 8.0
    """Loss of signal since the last training that causes a new one."""
    lost_after_s: float = 0.03
    """Time without a working scheme after which the link is lost."""
    error_db: float = 1.0
    """Standard deviation of each beam's measured strength in a sweep."""
    refined_s: float | None = None
    """Longest time until a training in the data time, after a drop or a loss.

    No other client competes in the data time. The A-BFT serves the period and lost links only.
    None: every training is an A-BFT.
    """

    def __post_init__(self) -> None:
        """Checks the parameters."""
        positive("periodic_s", self.periodic_s)
        positive("drop_db", self.drop_db)
        positive("lost_after_s", self.lost_after_s)
        within("error_db", self.error_db, 0.0, 30.0)
        if self.refined_s is not None:
            within("refined_s", self.refined_s, 0.0, 10.0)


@dataclass(frozen=True, eq=False)
class Scene:
    """An access point and a client in a room, with people and other clients."""

    name: str
    title: str
    room: BoxRoom
    radio: Radio
    access_point_m: tuple[float, float, float]
    facing: Orientation
    """Orientation of the access point."""
    drive: Drive
    """Movement of the client."""
    people: tuple[Person, ...] = ()
    """People who never move."""
    passers: tuple[Passers, ...] = ()
    fluctuation: Fluctuation = field(default_factory=Fluctuation)
    training: Training = field(default_factory=Training)
    rate_adaptation: RateAdaptation = field(default_factory=Informed)
    contention: Contention = field(default_factory=Contention)
    held: str | None = None
    """`portrait` or `landscape`: grip of a user whose body blocks some directions; or None."""
    crowd: AngularBlockage | None = None
    """Blockers around the moving client (TR 38.901's model A), or None."""
    neighbour: SharedAir | None = None
    """A second link on the same or the next channel, or None."""
    step_s: float = 0.01
    channel_step_s: float = 0.05
    """Time step of the geometry of a moving client."""
