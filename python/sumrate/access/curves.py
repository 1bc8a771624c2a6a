"""The access protocols to compare, by name."""

from dataclasses import replace
from typing import NamedTuple

from sumrate.access.equations import LITERAL
from sumrate.access.errors import AccessError
from sumrate.access.power import PowerControl
from sumrate.access.simulation import (
    DOT11AD_BASELINE,
    DOT11AD_STANDARD,
    MiniSlots,
    Setting,
)


class Curve(NamedTuple):
    """A protocol with its parameters."""

    name: str
    title: str
    setting: Setting
    extension: bool = False
    """The protocol is neither in 802.11 nor in the thesis."""


_JPOC = Setting()
CURVES = {
    curve.name: curve
    for curve in (
        Curve("jpoc", "JPOC", _JPOC),
        Curve("dot11ad", "802.11ad, 8 slots of 36", DOT11AD_BASELINE),
        Curve(
            "dot11ad-random", "802.11ad, random beam order",
            replace(DOT11AD_BASELINE, beam_order="random"), extension=True,
        ),
        Curve("dot11ad-standard", "802.11ad, 8 slots of 16, backoff", DOT11AD_STANDARD),
        Curve(
            "dot11ad-power", "802.11ad with power control",
            replace(DOT11AD_BASELINE, power_control=PowerControl()), extension=True,
        ),
        Curve("mini-slots", "mini-slots at full power", replace(_JPOC, power_control=None)),
        Curve("jpoc-literal", "JPOC, margins as printed",
              replace(_JPOC, power_control=PowerControl(margins=LITERAL))),
        Curve("jpoc-10", "JPOC, target 10 dB", replace(_JPOC, power_control=PowerControl(10.0))),
        Curve("jpoc-two-k", "JPOC, two-K estimator",
              replace(_JPOC, mini_slots=MiniSlots(two_k=True)), extension=True),
        Curve("jpoc-ramp", "JPOC, 3 dB more after a failure",
              replace(_JPOC, power_control=PowerControl(ramp_db=3.0)), extension=True),
        Curve("jpoc-10-ramp", "JPOC, target 10 dB, then 10 dB more",
              replace(_JPOC, power_control=PowerControl(10.0, ramp_db=10.0)), extension=True),
        Curve("jpoc-feedback", "JPOC, two-K, ramp, M by failures",
              replace(_JPOC, power_control=PowerControl(ramp_db=3.0),
                      mini_slots=MiniSlots(two_k=True, feedback=0.1)), extension=True),
        Curve("jpoc-7-bits", "JPOC, at most 128 mini-slots",
              replace(_JPOC, mini_slots=MiniSlots(maximum=128))),
    )
}  # fmt: skip


def curve_named(name: str) -> Curve:
    """The curve of this name.

    Raises:
        AccessError: no curve has this name.

    """
    if name not in CURVES:
        raise AccessError(f"protocol must be one of {', '.join(CURVES)}, not {name}")
    return CURVES[name]
