"""Materials of walls and their reflection coefficients."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.arrays import Complexes
from sumrate.phy.parameters import ParameterError, positive, within
from sumrate.phy.propagation import CARRIER_HZ, wavelength


@dataclass(frozen=True)
class Material:
    """Electrical properties over frequency (ITU-R P.2040-3, table 3).

    Relative permittivity a f^b, conductivity c f^d in S/m, with f in GHz.
    """

    name: str
    a: float
    b: float
    c: float
    d: float

    def permittivity(self, frequency_hz: float = CARRIER_HZ) -> complex:
        """Complex relative permittivity."""
        ghz = float(within("frequency_hz", frequency_hz, 1e9, 450e9)) / 1e9
        return complex(self.a * ghz**self.b, -17.98 * self.c * ghz**self.d / ghz)

    def reflection(
        self,
        cos_incidence: ArrayLike,
        frequency_hz: float = CARRIER_HZ,
        thickness_m: float | None = None,
    ) -> tuple[Complexes, Complexes]:
        """Fresnel coefficients of the field across and in the plane of incidence (ITU-R P.2040).

        Args:
            cos_incidence: cosine of the angle to the wall's normal, any shape, 0 to 1.
            frequency_hz: carrier.
            thickness_m: of the wall, whose back reflects too; None: only the front reflects.

        Returns:
            Coefficients of the perpendicular (TE) and the parallel (TM) field, same shape.

        """
        cosine = within("cos_incidence", cos_incidence, 0.0, 1.0 + 1e-9)
        permittivity = self.permittivity(frequency_hz)
        inside = np.sqrt(permittivity - (1 - np.square(np.minimum(cosine, 1.0))) + 0j)
        across: Complexes = np.asarray((cosine - inside) / (cosine + inside))
        along: Complexes = np.asarray(
            (permittivity * cosine - inside) / (permittivity * cosine + inside)
        )
        if thickness_m is None:
            return across, along
        depth = 2 * np.pi * float(positive("thickness_m", thickness_m)) / wavelength(frequency_hz)
        back = np.exp(-2j * depth * inside)
        return (
            across * (1 - back) / (1 - np.square(across) * back),
            along * (1 - back) / (1 - np.square(along) * back),
        )


MATERIALS = {
    material.name: material
    for material in (
        Material("concrete", 5.24, 0.0, 0.0462, 0.7822),
        Material("brick", 3.91, 0.0, 0.0238, 0.16),
        Material("plasterboard", 2.73, 0.0, 0.0085, 0.9395),
        Material("wood", 1.99, 0.0, 0.0047, 1.0718),
        Material("glass", 6.31, 0.0, 0.0036, 1.3394),
        Material("ceiling-board", 1.48, 0.0, 0.0011, 1.0750),
        Material("chipboard", 2.58, 0.0, 0.0217, 0.7800),
        Material("floorboard", 3.66, 0.0, 0.0044, 1.3515),
        Material("marble", 7.074, 0.0, 0.0055, 0.9262),
        Material("metal", 1.0, 0.0, 1e7, 0.0),
    )
}
"""By name. Floorboard is given for 50 to 100 GHz, marble to 60 GHz, the others from 1 GHz."""


def material(name: str) -> Material:
    """The material of a name.

    Raises:
        ParameterError: the material is unknown.

    """
    if name not in MATERIALS:
        raise ParameterError("material", repr(name), ", ".join(sorted(MATERIALS)))
    return MATERIALS[name]
