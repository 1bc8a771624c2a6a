"""The README's numbers of the demo are those of the result that is kept."""

import json
from pathlib import Path
from typing import Any

ALONE = ("wifi", "wigig")
"""Schemes that use one link."""


def rows(demo: dict[str, Any]) -> list[str]:
    """The table's rows: the best single link, kernel MPTCP and Sumrate."""
    schemes = demo["schemes"]
    best = max(ALONE, key=lambda name: float(schemes[name]["goodput_mbps"]))
    lines = []
    for title, name in (("best single link", best), ("kernel MPTCP", "mptcp"), ("", "sumrate")):
        entry = schemes[name]
        keys = ("goodput_mbps", "goodput_during_blockage_mbps")
        cells = [f"{entry[key] / 1e3:.1f} Gbit/s" for key in keys]
        stall_ms = entry["longest_stall_ms"]
        stall = f"{stall_ms:.0f} ms" if stall_ms < 1000 else f"{stall_ms / 1e3:.1f} s"
        cells = [title or "Sumrate", *cells, stall]
        marked = [cell if title else f"**{cell}**" for cell in cells]
        lines.append("| " + " | ".join(marked) + " |")
    return lines


def test_the_readme_has_the_numbers_of_the_demo(repository: Path) -> None:
    demo = json.loads((repository / "docs/results/demo.json").read_text(encoding="utf-8"))
    text = (repository / "README.md").read_text(encoding="utf-8")
    wanted = rows(demo)
    assert [row for row in wanted if row not in text] == [], "README.md lacks these rows"
    assert not any(entry.get("void") for entry in demo["schemes"].values())
