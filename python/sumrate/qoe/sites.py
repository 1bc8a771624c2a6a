"""Web pages made by rule: as many objects, as large and as unequal, as in the thesis's table 4.1.

The table has the number of objects, their mean and their standard deviation. Sizes are quantiles of
a lognormal distribution whose spread and scale are fitted so that the finite sample has exactly
that mean and deviation. What the table leaves open is chosen here: one object is the document, one
in twenty a style sheet, one in four a script, the rest images; six in ten images stand in the
document, three are inserted by scripts and one by style sheets; seven in ten objects may be
cached; objects are spread over several origins, the first of which has the document and the style
sheets (a browser tells nothing of what other origins' style sheets draw in).
"""

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

Kind = Literal["document", "style", "script", "image"]
SUFFIX: dict[Kind, str] = {"document": "html", "style": "css", "script": "js", "image": "png"}
STYLE_SHARE, SCRIPT_SHARE, CACHED_SHARE = 0.05, 0.25, 0.7
BY_SCRIPT, BY_STYLE = 0.3, 0.1
HERO_PLACE = 0.8
"""The largest picture in sight is larger than this share of the images."""
SMALLEST_BYTES = 100
"""The smallest image that is one; the table's distributions hardly reach it."""
LEAST_CODE_BYTES = 1500
"""Style sheets and scripts have room for what they refer to."""
REFERENCE_BYTES = 120
"""Room for one reference in the document."""


@dataclass(frozen=True)
class Measured:
    """A row of table 4.1, in bytes (its K are taken as 1000)."""

    objects: int
    mean: float
    deviation: float
    origins: int
    """[choice] Hosts that the page is spread over."""


TABLE = {
    "msn": Measured(33, 179e3, 389e3, 6),
    "cnn": Measured(277, 75e3, 231e3, 16),
    "amazon": Measured(325, 27e3, 121e3, 8),
    "facebook": Measured(162, 122e3, 249e3, 5),
}


@dataclass(frozen=True)
class Item:
    """One object of a page."""

    number: int
    kind: Kind
    bytes: int
    origin: int
    cached: bool
    """Whether a browser may keep it; else it comes anew with every load."""
    parent: int
    """Number of the object that refers to it; its own for the document."""


@dataclass(frozen=True)
class Page:
    """A page: the document first, then everything that it draws in."""

    name: str
    origins: int
    items: tuple[Item, ...]

    @property
    def bytes(self) -> int:
        """Size of all objects."""
        return sum(item.bytes for item in self.items)


def sizes(row: Measured) -> list[int]:
    """Bytes of all objects, ascending: count, mean and deviation (of a sample) are the row's.

    The smallest are raised to what an image needs, which the largest gives.
    """
    normal = NormalDist()
    places = [normal.inv_cdf((i + 0.5) / row.objects) for i in range(row.objects)]
    wanted = row.deviation / row.mean
    low, high = 0.0, 20.0
    for _ in range(200):
        spread = (low + high) / 2
        low, high = (spread, high) if _variation(places, spread) < wanted else (low, spread)
    shape = [math.exp(low * (place - places[-1])) for place in places]
    scale = row.mean * row.objects / math.fsum(shape)
    found = [max(SMALLEST_BYTES, round(scale * value)) for value in shape]
    found[-1] += round(row.mean * row.objects) - sum(found)
    return found


def _variation(places: list[float], spread: float) -> float:
    """Standard deviation over mean of exp(spread x place)."""
    values = [math.exp(spread * (place - places[-1])) for place in places]
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance) / mean


def page(name: str, seed: int) -> Page:
    """The page of a row of the table; another seed gives objects other roles, not other sizes.

    Raises:
        ValueError: there is no such row.

    """
    if name not in TABLE:
        raise ValueError(f"no page is called {name!r}: use {', '.join(TABLE)}")
    row = TABLE[name]
    chance = random.Random(f"{name} {seed}")
    left = sizes(row)
    needed = 2000 + REFERENCE_BYTES * row.objects
    document = next(size for size in left if size >= needed)
    left.remove(document)
    code = [size for size in left if size >= LEAST_CODE_BYTES][: -max(1, row.objects // 30)]
    styles = chance.sample(code, max(1, round(STYLE_SHARE * row.objects)))
    for size in styles:
        code.remove(size)
        left.remove(size)
    scripts = chance.sample(code, round(SCRIPT_SHARE * row.objects))
    for size in scripts:
        left.remove(size)
    hero = left.pop(round(HERO_PLACE * len(left)))
    chance.shuffle(left)
    left.insert(0, hero)
    kinds: list[tuple[Kind, int]] = [("document", document)]
    kinds += [("style", size) for size in styles] + [("script", size) for size in scripts]
    first_image = len(kinds)
    kinds += [("image", size) for size in left]
    items = tuple(
        Item(
            number,
            kind,
            size,
            origin=0 if kind in ("document", "style") else chance.randrange(row.origins),
            cached=number != 0 and chance.random() < CACHED_SHARE,
            parent=_parent(number, first_image, len(styles), chance),
        )
        for number, (kind, size) in enumerate(kinds)
    )
    return Page(name, row.origins, items)


def _parent(number: int, first_image: int, styles: int, chance: random.Random) -> int:
    """Of an image: the document, a script or a style sheet; of all else the document."""
    draw, script = chance.random(), chance.randrange(1 + styles, first_image)
    style = chance.randrange(1, 1 + styles)
    if number <= first_image:  # also the largest picture in sight, the first image
        return 0
    if draw < BY_SCRIPT:
        return script
    return style if draw < BY_SCRIPT + BY_STYLE else 0
