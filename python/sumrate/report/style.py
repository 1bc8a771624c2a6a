"""The frame of the demo's page: light and dark, legible, self-contained."""

from html import escape
from pathlib import Path

CSS = (Path(__file__).parent / "lab" / "templates" / "style.css").read_text(encoding="utf-8")
"""The style of all pages; the demo needs no template engine."""


def page(title: str, body: str, css: str = "") -> str:
    """A whole HTML document without any reference to the outside; `css` adds to the style."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}{css}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def table(head: list[str], rows: list[tuple[str, list[str]]]) -> str:
    """A table; each row is its CSS class and its cells (text, escaped here)."""
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = []
    for kind, cells in rows:
        mark = f' class="{kind}"' if kind else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
