"""A few horizontal bars as a small SVG that follows a dark system, for docs/results.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, ROW, BAR = 720, 34, 22
LEFT, RIGHT, TOP, BOTTOM = 230, 90, 34, 12
STYLE = """
:root{--paper:#fff;--ink:#1d2329;--soft:#5a6570;--other:#98a2ab;--own:#007a5a}
@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e8ecef;--soft:#9aa5af;
--other:#828d97;--own:#2fd3a5}}
text{font:15px system-ui,sans-serif;fill:var(--ink)}.unit{font-size:13px;fill:var(--soft)}
.own{font-weight:600}rect.bar{fill:var(--other)}rect.own{fill:var(--own)}
"""


@dataclass(frozen=True)
class Bar:
    """A bar with its label and its value; `own` is the one that the picture is about."""

    label: str
    value: float
    text: str
    own: bool


def picture(title: str, unit: str, bars: Sequence[Bar]) -> str:
    """The bars below their unit; the longest fills the width."""
    height = TOP + ROW * len(bars) + BOTTOM
    longest = max(bar.value for bar in bars)
    rows = [_row(bar, TOP + ROW * place, longest) for place, bar in enumerate(bars)]
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE.strip()}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="var(--paper)"/>',
            f'<text class="unit" x="{LEFT}" y="20">{escape(unit)}</text>',
            *rows,
            "</svg>\n",
        ]
    )


def _row(bar: Bar, top: int, longest: float) -> str:
    length = max(1.0, bar.value / longest * (WIDTH - LEFT - RIGHT)) if longest > 0 else 1.0
    own = " own" if bar.own else ""
    middle = top + BAR / 2 + 5
    return (
        f'<text class="label{own}" x="{LEFT - 10}" y="{middle:g}" text-anchor="end">'
        f"{escape(bar.label)}</text>"
        f'<rect class="bar{own}" x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR}"/>'
        f'<text class="value{own}" x="{LEFT + length + 8:.1f}" y="{middle:g}">'
        f"{escape(bar.text)}</text>"
    )
