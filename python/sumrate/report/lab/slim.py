"""The SVG of a page's figures without what need not be repeated; none of them looks different.

matplotlib writes into every figure each hatch as a tile of hundreds of shapes, at every element its
whole style, and around every element a group with a name. A page of a hundred figures would be five
times as large with all that.
"""

import re
from collections.abc import Mapping

HATCH = re.compile(r'<pattern id="(?P<name>[^"]+)".*?</pattern>', re.DOTALL)
STYLE = re.compile(r' style="([^"]*)"')
IDENTIFIER = re.compile(r' id="([^"]+)"')
REFERENCE = re.compile(r'(href="#|url\(#)([^")]+)')
GROUP = re.compile(r"<g\b([^>]*?)(/?)>|</g>")
NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')
EMPTY = re.compile(r"<defs>\s*</defs>|<defs/>")
INDENTED = re.compile(r"\n\s+")
POSITIONS = re.compile(r'(?<= [dxy]=")[^"]*')
DIGITS = re.compile(r"(\.\d\d)\d+")


class Shared:
    """What the figures of one page have in common; each of it stands in the page once."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._hatches: dict[str, str] = {}
        """The identifier of each on the page, by that which matplotlib made of what it is."""
        self._looks: dict[str, str] = {}
        """Classes by their style."""

    def shorten(self, svg: str, prefix: str) -> str:
        """A figure less what earlier ones have defined; identifiers of its own get the prefix."""
        svg = POSITIONS.sub(_shortened, HATCH.sub(self._hatch, svg))
        svg = _identified(svg, prefix, self._hatches)
        svg = _ungrouped(NO_TURN.sub("", svg))
        svg = STYLE.sub(self._look, EMPTY.sub("", svg))
        return INDENTED.sub("\n", svg)

    def css(self) -> str:
        """The styles of all figures so far."""
        return "".join(f".{name} {{ {style} }}\n" for style, name in self._looks.items())

    def _hatch(self, found: re.Match[str]) -> str:
        """The definition where it is the page's first of this hatch; else nothing."""
        known = found["name"] in self._hatches
        self._hatches.setdefault(found["name"], f"hatch-{len(self._hatches) + 1}")
        return "" if known else found[0]

    def _look(self, found: re.Match[str]) -> str:
        name = self._looks.setdefault(found[1], f"s{len(self._looks) + 1}")
        return f' class="{name}"'


def alone(svg: str) -> str:
    """A picture that keeps its own styles and hatches, less what says nothing."""
    svg = _identified(POSITIONS.sub(_shortened, svg), "i", {})
    return INDENTED.sub("\n", _ungrouped(NO_TURN.sub("", svg)))


def _shortened(numbers: re.Match[str]) -> str:
    """Positions to a hundredth of a point, in one line; after a line, the next needs no L."""
    text = DIGITS.sub(r"\1", numbers[0]).replace("\n", "")
    return text if "C" in text or "Q" in text else text.replace(" L ", " ")


def _identified(svg: str, prefix: str, shared: Mapping[str, str]) -> str:
    """Short identifiers for what is referred to, none for the rest."""
    own = dict.fromkeys(name for _, name in REFERENCE.findall(svg) if name not in shared)
    names = {**shared, **{name: f"{prefix}-{place}" for place, name in enumerate(own, start=1)}}

    def identifier(found: re.Match[str]) -> str:
        return f' id="{names[found[1]]}"' if found[1] in names else ""

    svg = IDENTIFIER.sub(identifier, svg)
    return REFERENCE.sub(lambda found: found[1] + names[found[2]], svg)


def _ungrouped(svg: str) -> str:
    """Without the groups that change nothing about what is in them."""
    kept: list[bool] = []

    def tag(found: re.Match[str]) -> str:
        if found[0] == "</g>":
            return found[0] if kept.pop() else ""
        keep = bool(found[1].strip())
        if not found[2]:
            kept.append(keep)
        return found[0] if keep else ""

    return GROUP.sub(tag, svg)
