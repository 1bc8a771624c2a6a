"""Arrays and element patterns against what antenna theory says."""

import numpy as np
import pytest

from sumrate.phy.arrays import TR38901_ELEMENT, Isotropic, PatchElement, PlanarArray, radiated_share
from sumrate.phy.parameters import ParameterError


def test_steered_gain_has_all_elements_in_phase() -> None:
    array = PlanarArray(8, 4, element=Isotropic())
    azimuth = np.deg2rad([-60, -17, 0, 33])
    elevation = np.deg2rad([20, -45, 0, 7])
    weights = array.weights_towards(azimuth, elevation)
    gains = array.gain_dbi(weights, azimuth, elevation)
    assert gains.shape == (4, 4)
    assert np.diag(gains) == pytest.approx(10 * np.log10(32))
    assert (gains <= 10 * np.log10(32) + 1e-9).all()


def test_array_factor_of_a_line_is_closed_form() -> None:
    array = PlanarArray(8, 1, element=Isotropic())
    azimuth = np.deg2rad(np.linspace(-89, 89, 250))
    psi = np.pi * np.sin(azimuth)
    expected = np.abs(np.sin(4 * psi) / np.sin(psi / 2)) / np.sqrt(8)
    factor = array.array_factor(np.ones((1, 8), dtype=complex), azimuth, 0.0)
    assert np.abs(factor[0]) == pytest.approx(expected, abs=1e-9)


def test_half_wavelength_line_loses_no_power() -> None:
    array = PlanarArray(6, 1, element=Isotropic())
    elevation = np.linspace(-np.pi / 2, np.pi / 2, 301)
    azimuth = np.linspace(-np.pi, np.pi, 601)
    az, el = np.meshgrid(azimuth, elevation, indexing="ij")
    gain = 10 ** (array.gain_dbi(array.weights_towards(0.4, 0.0), az, el)[0] / 10)
    mean = np.trapezoid(np.trapezoid(gain, azimuth, axis=0) * np.cos(elevation), elevation)
    assert mean / (4 * np.pi) == pytest.approx(1.0, abs=2e-3)


def test_element_has_peak_width_and_floor() -> None:
    width = float(np.deg2rad(65))
    angles = np.array([0.0, width / 2, np.pi])
    assert TR38901_ELEMENT.gain_dbi(angles, np.zeros(3)) == pytest.approx([8.0, 5.0, -22.0])
    assert radiated_share(Isotropic()) == pytest.approx(1.0, abs=1e-4)
    assert 0.6 < radiated_share(PatchElement()) < 0.72
    assert 0.6 < radiated_share(TR38901_ELEMENT) < 0.72


def test_default_array_has_32_elements_and_15_db() -> None:
    array = PlanarArray()
    assert (array.elements, array.positions().shape) == (32, (32, 2))
    assert array.array_gain_db == pytest.approx(15.05, abs=0.01)
    assert array.peak_dbi == pytest.approx(20.05, abs=0.01)
    assert array.steering(np.zeros((3, 5)), np.zeros((3, 5))).shape == (3, 5, 32)


def test_angles_in_degrees_and_impossible_arrays_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"azimuth is 45.0.*radians"):
        PlanarArray().steering(45.0, 0.0)
    with pytest.raises(ParameterError, match="columns is 0: allowed is a whole number from 1"):
        PlanarArray(0, 4)
    with pytest.raises(ParameterError, match=r"columns is 2\.5"):
        PlanarArray(2.5, 4)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="spacing"):
        PlanarArray(8, 4, spacing=-0.5)
    with pytest.raises(ParameterError, match=r"shape of weights is \(1, 31\).*\(beams, 32\)"):
        PlanarArray().gain_dbi(np.ones((1, 31), dtype=complex), 0.0, 0.0)
    with pytest.raises(ParameterError, match="all zero"):
        PlanarArray().gain_dbi(np.zeros((1, 32), dtype=complex), 0.0, 0.0)
