"""The kinds of links: states, dwell times and goodputs in Mbit/s.

WiGig's levels are those of MCS 1 to 8, with TCP goodput at about two thirds of the PHY rate. All
dwell times and shares were fitted to the measured statistics (calibration.py).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from sumrate.traces.process import Course, Leg, Range, Segment, State, Variation, walk

Process = Callable[[Random], Iterator[Segment]]
"""Makes an endless process from a random generator."""


@dataclass(frozen=True)
class Kind:
    """A kind of link."""

    title: str
    process: Process
    variation: Variation
    settling_s: Range
    """Time that is skipped, so that a trace begins anywhere in the process."""


def _retrained(shares: Mapping[str, float], kept: float) -> dict[str, dict[str, float]]:
    """Next beams of each beam: a training keeps it with a probability, or draws by shares."""
    return {
        beam: {
            other: (1 - kept) * share + (kept if other == beam else 0.0)
            for other, share in shares.items()
        }
        for beam in shares
    }


CLEAR_BEAM = {
    "direct": State((1530, 1568), (230, 500), {"blocked": 1}),
    "blocked": State((50, 130), (4, 16), {"reflected": 1}, gap_ms=(50, 300)),
    "reflected": State((520, 830), (4, 12), {"blocked": 0.62, "direct": 0.38}, gap_ms=(50, 300)),
}
"""Line of sight: minutes on the direct beam, then most of a minute without it.

In such an episode the lowest MCS alternates with short reflections.
"""

_AFTER = _retrained({"far wall": 0.34, "near wall": 0.46, "edge": 0.15, "direct": 0.05}, kept=0.3)
BEHIND_A_PERSON = {
    "far wall": State((480, 600), (0.5, 2), _AFTER["far wall"], gap_ms=(30, 150)),
    "near wall": State((710, 810), (0.5, 2), _AFTER["near wall"], gap_ms=(30, 150)),
    "edge": State((1050, 1180), (0.5, 2), _AFTER["edge"], gap_ms=(30, 150)),
    "direct": State((1350, 1500), (0.5, 2), _AFTER["direct"], gap_ms=(30, 150)),
}
"""No line of sight: a training every 0.5 to 2 s keeps or changes the reflection.

Some trainings use diffraction at the person's edge, a few find the direct beam free.
"""

FACING = {
    "direct": State((1550, 1580), (1, 3), {"straying": 1}),
    "straying": State((1150, 1350), (0.3, 0.8), {"direct": 1}, gap_ms=(0, 100)),
}
SIDEWAYS = {
    "grazing": State((1100, 1350), (0.3, 0.8), {"direct": 1}, gap_ms=(0, 60)),
    "direct": State((1350, 1560), (0.3, 1), {"grazing": 1}, gap_ms=(0, 60)),
}
TURNED_AWAY = {
    "near wall": State((550, 900), (0.5, 1.5), {"far wall": 0.7, "ahead": 0.3}, gap_ms=(0, 100)),
    "far wall": State((110, 260), (0.5, 1.5), {"near wall": 0.7, "ahead": 0.3}, gap_ms=(0, 100)),
    "ahead": State((1000, 1400), (0.3, 1), {"far wall": 0.5, "near wall": 0.5}, gap_ms=(0, 60)),
}
RECTANGLE = Course(
    legs=(Leg(6, FACING), Leg(2, SIDEWAYS), Leg(6, TURNED_AWAY), Leg(2, SIDEWAYS)),
    lap_s=(15, 16.5),
    unevenness=0.05,
    turn_gap_ms=(50, 300),
)
"""A robot with the laptop on a rectangle of 6 by 2 ft.

It faces the base station on one long side. On the other its body blocks the direct beam. Each
quarter turn loses the beam.
"""

CHANNEL = {
    "free": State(
        (484, 490), (0.5, 3), {"free": 0.60, "burst": 0.30, "shared": 0.082, "busy": 0.018}
    ),
    "burst": State((420, 460), (0.4, 1), {"free": 1}),
    "shared": State((448, 475), (1, 4), {"free": 0.6, "shared": 0.4}),
    "busy": State((335, 420), (0.5, 4), {"free": 0.4, "busy": 0.6}),
}
"""WiFi: a mostly free channel with bursts of other devices, at times shared, rarely busy."""

KINDS = {
    "wigig-los": Kind(
        "WiGig, line of sight",
        partial(walk, CLEAR_BEAM),
        Variation(slow=0.013, slow_s=1.0, fast=0.03),
        settling_s=(1000, 2000),
    ),
    "wigig-nlos": Kind(
        "WiGig, person in the way",
        partial(walk, BEHIND_A_PERSON),
        Variation(slow=0.02, slow_s=1.0, fast=0.03),
        settling_s=(10, 30),
    ),
    "wigig-mobility": Kind(
        "WiGig, moving",
        RECTANGLE.drive,
        Variation(slow=0.01, slow_s=1.0, fast=0.03),
        settling_s=(0, 165),
    ),
    "wifi-los": Kind(
        "WiFi",
        partial(walk, CHANNEL),
        Variation(slow=0.022, slow_s=0.4, fast=0.05),
        settling_s=(60, 90),
    ),
}
"""All kinds by name. WiFi is the same without line of sight and in motion."""
