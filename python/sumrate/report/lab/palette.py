"""How schemes look in every plot.

Okabe and Ito's colours, and a dash and a marker each, so that they can be told apart in
grey and with any colour vision.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

INK, PAPER, RULE, SHADE, SOFT = "#1d2329", "#ffffff", "#d9dee3", "#eceff2", "#5a6570"
OTHER = "#98a2ab"
"""Schemes beside the one that a picture is about."""
TEXT = {"#009e73": "#007a5a", "#d55e00": "#b34700", "#cc79a7": "#96427a", "#e69f00": "#8a5d00",
        "#56b4e9": "#1f6f9f", "#f0e442": "#807600", OTHER: SOFT}  # fmt: skip
"""Darker forms of pale colours, in which words are legible on white."""
AT_NIGHT = {
    INK: "#e8ecef", PAPER: "#14181c", RULE: "#323a42", SHADE: "#22292f", SOFT: "#9aa5af",
    OTHER: "#828d97",
    "#009e73": "#2fd3a5", "#007a5a": "#2fd3a5", "#0072b2": "#4aa3e0", "#d55e00": "#f2854a",
    "#b34700": "#f2854a", "#cc79a7": "#e09ac4", "#96427a": "#e09ac4", "#e69f00": "#f0b840",
    "#8a5d00": "#f0b840", "#56b4e9": "#a3d8f7", "#1f6f9f": "#a3d8f7", "#f0e442": "#efe670",
    "#807600": "#d6c93a", "#7fceb8": "#a8e6d5", "#00664a": "#7fceb8", "#00503b": "#58b09a",
}  # fmt: skip
"""Replacements of the colours on a dark system."""

Dash = tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Style:
    """Fill and stroke colour, dashes and marker of lines."""

    colour: str
    dash: Dash
    marker: str
    line_colour: str = ""
    """Of lines, where the fill would be too pale for one."""

    @property
    def line(self) -> str:
        """The colour of lines."""
        return self.line_colour or self.colour

    @property
    def text(self) -> str:
        """The colour of words."""
        return TEXT.get(self.line, self.line)


SOLID: Dash = (0, ())
STYLES = (
    Style("#009e73", SOLID, "o"),
    Style("#0072b2", (0, (5, 1.5)), "s"),
    Style("#d55e00", (0, (3, 1.2, 1, 1.2)), "^"),
    Style("#cc79a7", (0, (1.2, 1.2)), "D"),
    Style("#e69f00", (0, (8, 2)), "v"),
    Style("#56b4e9", (0, (5, 1.2, 1, 1.2, 1, 1.2)), "P"),
    Style(INK, (0, (2.5, 2.5)), "X"),
    Style("#f0e442", (0, (2, 1)), "h", "#807600"),
    Style("#7fceb8", (0, (6, 1, 1, 1)), "<", "#00664a"),
    Style("#00503b", (0, (1, 2.5)), ">"),
)
AGAIN = ("*", "d", "p", "8")
"""Markers of those that come after the ten."""
KNOWN = {"sumrate": 0, "wifi": 1, "wigig": 2, "mptcp": 3, "aggligator": 4, "tquic": 5,
         "mptcp-backup": 6, "sumrate-two-ended": 8, "sumrate-thesis": 9}  # fmt: skip
"""Schemes that look the same in every report."""


OWN = "sumrate"
"""Nothing else has its look, also where it is not there."""


def styles(names: Iterable[str]) -> dict[str, Style]:
    """A look for each scheme; of more than ten, later ones have a colour with another dash."""
    wanted = list(dict.fromkeys(names))
    taken = {KNOWN[name] for name in wanted if name in KNOWN}
    free = [place for place in range(len(STYLES)) if place not in taken | {KNOWN[OWN]}]
    found = {name: STYLES[KNOWN[name]] for name in wanted if name in KNOWN}
    others = [name for name in wanted if name not in KNOWN]
    again = [place for place in range(len(STYLES)) if place not in KNOWN.values()]
    again += [place for place in range(1, len(STYLES)) if place not in again]
    for index, name in enumerate(others):
        if index < len(free):
            found[name] = STYLES[free[index]]
        else:
            rounds, place = divmod(index - len(free), len(again))
            found[name] = _again(STYLES[again[place]], rounds + 1)
    return found


def _again(style: Style, rounds: int) -> Style:
    """A style of this colour with a dash and a marker that no other style has."""
    return replace(
        style,
        dash=(0, (1.0, 1.0, *(6.0, 1.0) * rounds)),
        marker=AGAIN[(rounds - 1) % len(AGAIN)],
    )
