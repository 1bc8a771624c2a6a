"""Ready-made scenes of the published measurements.

Parameters that a paper lacks (rooms, budgets, passing people) were fitted to its statistics;
docs/channel.md lists them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from sumrate.phy.blockage.process import BlockageProcess
from sumrate.phy.blockage.screen import Person
from sumrate.phy.channel.box_room import OFFICE, BoxRoom
from sumrate.phy.directions import Orientation
from sumrate.phy.hardware import radio
from sumrate.phy.mobility import Rectangle, Track, random_waypoint, rotating, stationary
from sumrate.phy.parameters import Floats, ParameterError, within
from sumrate.phy.rate_adaptation import TrialAndError
from sumrate.traces.access_delay import Contention
from sumrate.traces.scene import Fluctuation, Passers, Scene, Training

FOOT_M = 0.3048
MEETING_ROOM_M = (5.0, 4.0, 2.8)
GLASS_WALLS = OFFICE | dict.fromkeys(("west", "east", "south", "north"), "glass")
LOBBY_M = (60.0, 20.0, 8.0)
HALL = OFFICE | {"floor": "marble", "west": "concrete", "east": "glass"}
_ACCESS_POINT = (1.0, 2.0, 1.3)
_TABLE_M = 1.0


def _still(position: tuple[float, float, float], yaw: float) -> Callable[..., Track]:
    def drive(instants: Floats, generator: np.random.Generator) -> Track:
        return stationary(instants, position, yaw)

    return drive


def _los() -> Scene:
    place = (_ACCESS_POINT[0] + 8 * FOOT_M, _ACCESS_POINT[1], _TABLE_M)
    crowd = BlockageProcess(
        1 / 330.0, 36.0, depth_db=23.33, depth_deviation_db=0.2, law="lognormal",
        lognormal_sigma=0.3, edge_s=0.3,
    )  # fmt: skip
    return Scene(
        "thesis-los",
        "thesis, line of sight: still, 8 ft from the access point; rarely a person stands close",
        BoxRoom(MEETING_ROOM_M, GLASS_WALLS),
        radio("qca9500"),
        _ACCESS_POINT,
        Orientation(),
        _still(place, np.pi),
        passers=(Passers(crowd, "all"),),
        fluctuation=Fluctuation(0.8, 0.15),
        contention=Contention(clients=1),
    )


def _nlos() -> Scene:
    person = Person(_ACCESS_POINT[0] + 3 * FOOT_M, _ACCESS_POINT[1], width_m=0.375)
    return replace(
        _los(),
        name="thesis-nlos",
        title="thesis, no line of sight: a person 3 ft in front of the access point",
        people=(person,),
        passers=(),
        fluctuation=Fluctuation(1.3, 2.0, period_s=10.0),
        training=Training(drop_db=3.0),
    )


def _mobility() -> Scene:
    return replace(
        _los(),
        name="thesis-mobility",
        title="thesis, moving: laps of 6 by 2 ft with quarter turns",
        drive=_laps,
        passers=(),
        fluctuation=Fluctuation(0.8, 0.5),
        training=Training(periodic_s=17.5, drop_db=4.5),
    )


def _laps(instants: Floats, generator: np.random.Generator) -> Track:
    """Laps along the line to the access point and back; the first side leads towards it."""
    corner = (_ACCESS_POINT[0] + 8 * FOOT_M + 2 * FOOT_M, _ACCESS_POINT[1] + 1 * FOOT_M, _TABLE_M)
    lap_s = float(generator.uniform(15.0, 16.5))
    course = Rectangle(corner, 6 * FOOT_M, 2 * FOOT_M, lap_s, turn_s=0.8, heading=np.pi)
    return course.track(instants, float(generator.uniform(0.0, lap_s)))


TURNING_RAD_PER_S = float(np.deg2rad(37.0))
"""Rotation of the robot in the thesis, read as degrees per second."""


def _rotation() -> Scene:
    place = (_ACCESS_POINT[0] + 8 * FOOT_M, _ACCESS_POINT[1], _TABLE_M)

    def drive(instants: Floats, generator: np.random.Generator) -> Track:
        return rotating(instants, place, float(generator.uniform(-np.pi, np.pi)), TURNING_RAD_PER_S)

    title = "thesis, turning on the spot at 37 degrees a second"
    return replace(_mobility(), name="thesis-rotation", title=title, drive=drive)


def _walk() -> Scene:
    area = ((1.8, MEETING_ROOM_M[0] - 0.4), (0.4, MEETING_ROOM_M[1] - 0.4))

    def drive(instants: Floats, generator: np.random.Generator) -> Track:
        return random_waypoint(instants, area, _TABLE_M, generator)

    return replace(
        _mobility(),
        name="walk",
        title="a person carries the client through the room, others walk about",
        drive=drive,
        passers=(Passers(BlockageProcess(0.1, 0.5, depth_db=14.0)),),
        held="portrait",
    )


def _hall(name: str, title: str, make: str, distance_m: float) -> Scene:
    """Two devices that face each other along a hall."""
    start = (3.0, LOBBY_M[1] / 2, 1.2)
    return Scene(
        name,
        title,
        BoxRoom(LOBBY_M, HALL),
        radio(make),
        start,
        Orientation(),
        _still((start[0] + distance_m, start[1], _TABLE_M), np.pi),
        fluctuation=Fluctuation(0.3, 0.5),
        contention=Contention(clients=1),
    )


def _strong() -> Scene:
    return _hall("strong", "802.11ad module, strong signal: about -42 dBm", "panasonic", 1.0)


def _weak() -> Scene:
    scene = _hall("weak", "802.11ad module, weak signal: about -67 dBm", "panasonic", 18.0)
    return replace(scene, fluctuation=Fluctuation(1.0, 1.0))


def _lobby(feet: float) -> Scene:
    title = f"dual-band laptop in a lobby, {feet:g} ft from the router"
    return _hall(f"lobby-{feet:g}ft", title, "qca9500-long", feet * FOOT_M)


def indoor_wlan(feet: float) -> Scene:
    """Laptop and dock of the indoor WLAN study at a distance of 2 to 155 ft.

    Raises:
        ParameterError: the distance is out of range.

    """
    within("feet", feet, 2.0, 155.0)
    title = f"laptop and dock in a lobby, {feet:g} ft apart, behind Gigabit Ethernet"
    scene = _hall(f"wlan-{feet:g}ft", title, "wil6210", feet * FOOT_M)
    return replace(
        scene,
        fluctuation=Fluctuation(1.5, 0.8),
        rate_adaptation=TrialAndError(),
    )


WLAN_FEET = (2, 10, 20, 35, 60, 80, 100, 120, 135, 145, 155)
"""Distances of the named scenes."""
SCENES: dict[str, Callable[[], Scene]] = {
    "thesis-los": _los,
    "thesis-nlos": _nlos,
    "thesis-mobility": _mobility,
    "thesis-rotation": _rotation,
    "walk": _walk,
    "strong": _strong,
    "weak": _weak,
    "lobby-10ft": partial(_lobby, 10.0),
    "lobby-70ft": partial(_lobby, 70.0),
    **{f"wlan-{feet}ft": partial(indoor_wlan, float(feet)) for feet in WLAN_FEET},
}
"""Makers of all scenes, by name."""


def scene(name: str) -> Scene:
    """The scene of a name.

    Raises:
        ParameterError: the scene is unknown.

    """
    if name not in SCENES:
        raise ParameterError("scenario", repr(name), ", ".join(SCENES))
    return SCENES[name]()
