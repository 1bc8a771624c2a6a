"""The box room against Sionna RT: as recorded from version 2.2.0, and run where it is installed."""

import os
import sys

import numpy as np
import pytest

from sumrate.phy.channel.box_room import BoxRoom
from sumrate.phy.parameters import ParameterError
from sumrate.phy.propagation import SPEED_OF_LIGHT, oxygen_loss_db
from sumrate.phy.ray_traced import RayTracerUnavailableError, traced

WALLS = {
    "west": "concrete",
    "east": "glass",
    "south": "plasterboard",
    "north": "wood",
    "floor": "floorboard",
    "ceiling": "ceiling-board",
}
ROOM = BoxRoom((8.0, 5.0, 3.0), WALLS, thickness_m=0.1)
AP, CLIENT = np.array([1.0, 2.2, 2.5]), np.array([6.3, 3.9, 1.1])
PYTHON = os.environ.get("SUMRATE_RT_PYTHON", sys.executable)
RECORDED = (
    (5.7393, -83.188),
    (6.0614, -100.069),
    (6.6287, -106.937),
    (6.7276, -94.351),
    (7.0043, -108.458),
    (7.2208, -157.203),
    (7.5007, -127.841),
    (7.6250, -93.699),
    (7.8702, -106.110),
    (8.2012, -95.823),
    (8.3150, -124.224),
    (8.3940, -101.736),
    (8.4297, -107.314),
    (8.8465, -120.922),
    (8.9744, -94.339),
    (9.1837, -104.710),
    (9.2596, -124.759),
    (9.5677, -115.502),
    (9.6156, -102.257),
    (9.6364, -101.390),
    (9.9469, -111.805),
    (10.7173, -102.086),
    (10.9243, -104.146),
    (12.9205, -115.728),
    (21.4135, -110.042),
)
"""Length in m and gain in dB of every ray, as Sionna RT 2.2.0 gave them for this link."""


def ours() -> tuple[np.ndarray, np.ndarray]:
    """Lengths and gains without oxygen, the shortest first."""
    rays = ROOM.rays(AP, CLIENT)
    length = rays.delay_s * SPEED_OF_LIGHT
    order = np.argsort(length)
    return length[order], (rays.gain_db + oxygen_loss_db(length))[order]


def test_every_ray_is_as_the_tracer_recorded_it() -> None:
    length, gain = ours()
    expected = np.array(RECORDED)
    assert length == pytest.approx(expected[:, 0], abs=1e-3)
    assert gain == pytest.approx(expected[:, 1], abs=0.05)


def test_rays_agree_with_the_tracer() -> None:
    try:
        found = traced(ROOM, AP, CLIENT, PYTHON)
    except RayTracerUnavailableError as missing:
        pytest.skip(str(missing))
    length, gain = ours()
    assert found.length_m == pytest.approx(length, abs=1e-3)
    assert found.gain_db == pytest.approx(gain, abs=0.05)


def test_what_the_tracer_cannot_have_is_refused() -> None:
    with pytest.raises(ParameterError, match="thickness_m is None"):
        traced(BoxRoom((8.0, 5.0, 3.0)), AP, CLIENT)
    with pytest.raises(ParameterError, match="materials is open"):
        traced(BoxRoom((8.0, 5.0, 3.0), WALLS | {"floor": "open"}, thickness_m=0.1), AP, CLIENT)
    with pytest.raises(RayTracerUnavailableError, match="did not run"):
        traced(ROOM, AP, CLIENT, "/nowhere/python")
