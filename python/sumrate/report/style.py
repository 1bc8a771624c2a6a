"""Colours, type and the frame of every report page: light and dark, legible, self-contained."""

from html import escape

COLOURS = {
    "wifi": "var(--wifi)",
    "wigig": "var(--wigig)",
    "mptcp": "var(--mptcp)",
    "sumrate": "var(--sumrate)",
}
"""Okabe and Ito's palette, which readers with any colour vision can tell apart."""

CSS = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2329; --soft: #5a6570;
  --rule: #d9dee3; --shade: #eceff2; --wifi: #0072b2; --wigig: #b35900; --mptcp: #8f4a7a;
  --sumrate: #007a5a; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #e8ecef; --soft: #9aa5af;
  --rule: #323a42; --shade: #22292f; --wifi: #56b4e9; --wigig: #f0a03c; --mptcp: #e09ac4;
  --sumrate: #2fd3a5; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.125rem; margin: 2.5rem 0 .5rem; }
p { max-width: 44rem; margin: .5rem 0; }
.headline { font-size: 1.125rem; }
.void { border-left: 4px solid var(--wigig); padding: .25rem .75rem; }
figure { margin: 1.5rem 0; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 36rem; height: auto; }
svg text { font: 13px system-ui, sans-serif; fill: var(--soft); }
svg text.name { font-weight: 600; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; stroke-linejoin: round; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
th, td { text-align: right; padding: .375rem .75rem; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: nowrap; }
thead th { color: var(--soft); font-weight: 500; vertical-align: bottom; }
tr.own td { font-weight: 600; }
pre { background: var(--shade); padding: .75rem; overflow-x: auto; font-size: .8125rem;
  border-radius: 4px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
"""


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
