"""Scenes: places of APs and clients, orientation of clients, and channel model."""

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
    """A codebook of 9 x 4 beams, swept row by row instead of column by column."""
    order = np.arange(codebook.beams).reshape(9, 4).T.ravel()
    return Codebook(codebook.array, codebook.weights[order], f"{codebook.name}, by rows")


DEVICES: dict[str, Callable[[], Codebook]] = {
    "36-beams": codebook_36,
    "64-beams": codebook_64,
    "36-beams-by-rows": lambda: transposed(codebook_36()),
    "36-beams-12x3": lambda: sector_grid(PlanarArray(), 12, 3),
    "36-beams-6x6": lambda: sector_grid(PlanarArray(), 6, 6),
}
"""Device models: codebooks on an array of 8 x 4 elements, in the order of the sweep."""
FROM_FILE = "patterns:"
"""Prefix of a device name that is the path of a pattern file."""


@lru_cache(maxsize=16)
def device(name: str) -> Codebook | MeasuredPattern:
    """The beams of a device model or of a pattern file.

    Raises:
        AccessError: there is no such model or file.
        PatternError: the file is malformed.

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
    """G_T - G_R of a client in dB: gain of its strongest beam over one element, at the peak."""
    if isinstance(book, Codebook):
        return float(book.array.array_gain_db)
    _, column, row = np.unravel_index(int(book.gains_dbi.argmax()), book.gains_dbi.shape)
    element = PlanarArray().element.gain_dbi(book.azimuth[column], book.elevation[row])
    return float(book.gains_dbi.max() - element)


@dataclass(frozen=True)
class Scene:
    """One cell or several, with their clients."""

    name: str
    title: str
    channel: Channel
    radius_m: float = 25.0
    """Clients are uniform over a disc around their AP; not used in the conference room."""
    turned: float = 0.0
    """Largest angle between a client's boresight and its AP, uniform, radians."""
    devices: tuple[str, ...] = ("36-beams",)
    """Models of the clients, in equal shares."""
    power_dbm: float = 20.0
    """Transmit power of AP and clients."""
    environment: str = "mixed"
    """Environment of the office: `mixed` or `open`."""
    aps: int = 1
    """Number of cells, 2 radii apart, on one channel."""
    height_m: float = 1.5
    """Height of the AP above the clients."""
    nearest_m: float = 1.0

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("radius", self.radius_m, 1.0, 70.0, "m")
        within("turned", self.turned, 0.0, float(np.pi), "radians")
        within("power", self.power_dbm, -30.0, 40.0, "dBm")
        whole("APs", self.aps, 1, 8)
        for name in self.devices:
            device(name)
        if self.channel == "conference-room" and self.aps > 1:
            raise AccessError("the conference room has 1 AP, not several")


ALIGNED, SPREAD, ANY = 0.0, float(np.deg2rad(60.0)), float(np.pi)
"""Largest angle between a client and its AP: none, 60 degrees, any."""

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


def scene_named(name: str, patterns: Path | None = None) -> Scene:
    """The scene of this name, with the beams of a pattern file for all clients if one is given.

    Raises:
        AccessError: there is no such scene or no such file.
        PatternError: the file is malformed.

    """
    if name not in SCENES:
        raise AccessError(f"scene must be one of {', '.join(SCENES)}, not {name}")
    if patterns is None:
        return SCENES[name]
    return replace(SCENES[name], devices=(f"{FROM_FILE}{patterns.resolve()}",))
