"""How schemes look in every plot.

Okabe and Ito's colours, and a hatch, a dash and a marker each, so that they can be told apart in
grey and with any colour vision.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

INK, PAPER, RULE, SHADE = "#1d2329", "#ffffff", "#d9dee3", "#eceff2"
"""As on the light page; in an inline plot each stands for the page's variable of this name."""
PAGE_COLOURS = {
    INK: "var(--ink)",
    PAPER: "var(--paper)",
    RULE: "var(--rule)",
    SHADE: "var(--shade)",
}

Dash = tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Style:
    """Fill and stroke colour, hatch of bars, dashes and marker of lines."""

    colour: str
    hatch: str
    dash: Dash
    marker: str
    line_colour: str = ""
    """Of lines, where the fill would be too pale for one."""

    @property
    def line(self) -> str:
        """The colour of lines."""
        return self.line_colour or self.colour


SOLID: Dash = (0, ())
STYLES = (
    Style("#009e73", "", SOLID, "o"),
    Style("#0072b2", "////", (0, (5, 1.5)), "s"),
    Style("#d55e00", "\\\\\\\\", (0, (3, 1.2, 1, 1.2)), "^"),
    Style("#cc79a7", "||||", (0, (1.2, 1.2)), "D"),
    Style("#e69f00", "xxxx", (0, (8, 2)), "v"),
    Style("#56b4e9", "----", (0, (5, 1.2, 1, 1.2, 1, 1.2)), "P"),
    Style(INK, "//", (0, (2.5, 2.5)), "X"),
    Style("#f0e442", "++++", (0, (2, 1)), "h", "#807600"),
    Style("#7fceb8", "....", (0, (6, 1, 1, 1)), "<", "#00664a"),
    Style("#00503b", "oo", (0, (1, 2.5)), ">"),
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
    """The same colour with a dash, a marker and a hatch that no style has."""
    return replace(
        style,
        dash=(0, (1.0, 1.0, *(6.0, 1.0) * rounds)),
        marker=AGAIN[(rounds - 1) % len(AGAIN)],
        hatch=style.hatch * 2 or "*" * rounds,
    )
