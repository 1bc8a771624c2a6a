"""Scenes: where APs and clients stand, how clients are turned, what channel lies between them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from sumrate.access.errors import AccessError, whole, within
from sumrate.phy.arrays import PlanarArray
from sumrate.phy.codebook import (
    Codebook,
    MeasuredPattern,
    codebook_36,
    codebook_64,
    read_patterns,
    sector_grid,
)

Channel = Literal["free-space", "office", "conference-room"]


def transposed(codebook: Codebook) -> Codebook:
    """The same beams, swept row by row instead of column by column (for 9 x 4 beams)."""
    order = np.arange(codebook.beams).reshape(9, 4).T.ravel()
    return Codebook(codebook.array, codebook.weights[order], f"{codebook.name}, by rows")


DEVICES: dict[str, Callable[[], Codebook]] = {
    "36-beams": codebook_36,
    "64-beams": codebook_64,
    "36-beams-by-rows": lambda: transposed(codebook_36()),
    "36-beams-12x3": lambda: sector_grid(PlanarArray(), 12, 3),
    "36-beams-6x6": lambda: sector_grid(PlanarArray(), 6, 6),
}
"""Device models: codebooks on an array of 8 x 4 elements, by the order in which they are swept."""
FROM_FILE = "patterns:"
"""Before the path of a file of patterns, in place of a device model's name."""


@lru_cache(maxsize=16)
def device(name: str) -> Codebook | MeasuredPattern:
    """The beams of a device model, or those of a file.

    Raises:
        AccessError: there is no such model, or no such file.
        PatternError: the file cannot be used.

    """
    if name in DEVICES:
        return DEVICES[name]()
    path = name.removeprefix(FROM_FILE)
    if path == name:
        raise AccessError(f"device must be one of {', '.join(DEVICES)}, not {name}")
    try:
        return read_patterns(Path(path))
    except OSError as error:
        raise AccessError(f"cannot read patterns from {path}: {error.strerror}") from None


def array_gain_db(book: Codebook | MeasuredPattern) -> float:
    """G_T - G_R, dB: what the best beam has more at its peak than one element, which listens."""
    if isinstance(book, Codebook):
        return float(book.array.array_gain_db)
    ahead = np.zeros(1)
    element = float(PlanarArray().element.gain_dbi(ahead, ahead)[0])
    return float(book.gains_dbi.max()) - element


@dataclass(frozen=True)
class Scene:
    """A cell, or several, with its clients."""

    name: str
    title: str
    channel: Channel
    radius_m: float = 25.0
    """Clients are spread evenly over a disc around their AP; not used in the conference room."""
    turned: float = 0.0
    """Clients face their AP, turned away by up to this, evenly, radians."""
    devices: tuple[str, ...] = ("36-beams",)
    """Models of the clients, in equal shares."""
    power_dbm: float = 20.0
    """Of AP and clients."""
    environment: str = "mixed"
    """Of the office."""
    aps: int = 1
    """Cells beside each other, 2 radii apart, on one channel."""
    height_m: float = 1.5
    """Of the AP above the clients."""
    nearest_m: float = 1.0

    def __post_init__(self) -> None:
        """Checks the numbers."""
        within("radius", self.radius_m, 1.0, 70.0, "m")
        within("turned", self.turned, 0.0, float(np.pi), "radians")
        within("power", self.power_dbm, -30.0, 40.0, "dBm")
        whole("APs", self.aps, 1, 8)
        for name in self.devices:
            device(name)
        if self.channel == "conference-room" and self.aps > 1:
            raise AccessError("the conference room has 1 AP, not several")


ALIGNED, SPREAD, ANY = 0.0, float(np.deg2rad(60.0)), float(np.pi)
"""All clients face the AP; they are turned away by up to 60 degrees; they face anywhere."""

SCENES = {
    scene.name: scene
    for scene in (
        Scene("los-aligned", "line of sight, facing the AP", "free-space"),
        Scene("los-spread", "line of sight, turned by up to 60°", "free-space", turned=SPREAD),
        Scene("los-random", "line of sight, turned anywhere", "free-space", turned=ANY),
        Scene("office-aligned", "office, facing the AP", "office"),
        Scene("office-spread", "office, turned by up to 60°", "office", turned=SPREAD),
        Scene("office-random", "office, turned anywhere", "office", turned=ANY),
        Scene("near-aligned", "office of 5 m, facing the AP", "office", 5.0),
        Scene("near-random", "office of 5 m, turned anywhere", "office", 5.0, ANY),
        Scene("conference-aligned", "conference room, facing the AP", "conference-room"),
        Scene(
            "conference-random", "conference room, turned anywhere", "conference-room", turned=ANY
        ),
    )
}


def scene_named(name: str) -> Scene:
    """The scene of this name.

    Raises:
        AccessError: there is none.

    """
    if name not in SCENES:
        raise AccessError(f"scene must be one of {', '.join(SCENES)}, not {name}")
    return SCENES[name]


def with_patterns(scene: Scene, path: Path) -> Scene:
    """The scene with clients whose beams are those of a file.

    Raises:
        AccessError: there is no such file.
        PatternError: the file cannot be used.

    """
    return replace(scene, devices=(f"{FROM_FILE}{path.resolve()}",))
