"""The demo's report: what was seen, the picture, the table, the conditions and the commands."""

from collections.abc import Mapping
from html import escape
from typing import Any

from sumrate.report.demo_words import busy, disturbed, problems, rates, rows, scale_words, seen
from sumrate.report.style import page, table
from sumrate.report.svg import NARROW, STYLE, TITLES, picture, size_words

Entry = Mapping[str, Any]
CSS = f"""
h1 {{ font-size: 1.5rem; }}
figure {{ margin: 1.25rem 0; overflow: hidden; }}
svg {{ min-width: 0; max-width: 50rem; }}
.narrow {{ display: none; }}
.note {{ color: var(--soft); }}
details {{ margin: 1rem 0; }}
.void details {{ margin: .25rem 0; }}
.void summary {{ font-weight: 400; color: var(--soft); }}
summary {{ cursor: pointer; font-weight: 600; }}
@media (max-width: 40rem) {{
  body {{ padding: 1rem .75rem 2rem; }}
  .wide {{ display: none; }}
  .narrow {{ display: block; }}
  thead {{ display: none; }}
  table, tbody, tr {{ display: block; }}
  tr {{ padding: .5rem 0; border-bottom: 1px solid var(--rule); }}
  td {{ display: flex; justify-content: space-between; border: 0; padding: .125rem 0; gap: 1rem; }}
  td:nth-child(1) {{ font-weight: 600; }}
  td::before {{ color: var(--soft); text-align: left; }}
  td:nth-child(2)::before {{ content: "overall, Mbit/s"; }}
  td:nth-child(3)::before {{ content: "not blocked, Mbit/s"; }}
  td:nth-child(4)::before {{ content: "while blocked, Mbit/s"; }}
  td:nth-child(5)::before {{ content: "longest pause, ms"; }}
  td:nth-child(6)::before {{ content: "file"; }}
  dl {{ display: block; }} dd {{ margin: 0 0 .5rem; }}
}}
{STYLE}
"""


def _table(document: Entry) -> str:
    head = [
        "",
        "overall, Mbit/s",
        "not blocked, Mbit/s",
        "while blocked, Mbit/s",
        "longest pause, ms",
        "file",
    ]
    lines = [
        ("own" if name == "sumrate" else "", [TITLES[name], *cells])
        for name, cells in rows(document)
    ]
    lacking = "".join(
        f"<p>{TITLES[name]}: {escape(why)}</p>" for name, why in problems(document).items()
    )
    return table(head, lines) + lacking


def _busy(document: Entry) -> str:
    words = busy(document)
    if not words:
        return ""
    late = "".join(
        f"<li>{TITLES[name]}: {escape(why)}</li>" for name, why in disturbed(document).items()
    )
    return (
        f"<div class='void'>{escape(words)} Close other programs and run <code>make demo</code> "
        f"again for exact numbers.<details><summary>What disturbed each download</summary>"
        f"<ul>{late}</ul></details></div>"
    )


def _commands(document: Entry) -> str:
    parts = []
    for name, entry in document["schemes"].items():
        if "command" not in entry:
            continue
        lines = [*entry["other_commands"], entry["command"]]
        parts.append(f"<h3>{TITLES[name]}</h3><pre>{escape(chr(10).join(lines))}</pre>")
    return "\n".join(parts)


def _conditions(document: Entry) -> str:
    links = "; ".join(
        f"{link['name']} {link['rate_mbps']:g} Mbit/s, RTT {link['rtt_ms']:g} ms, "
        f"queue {link['queue_ms']:g} ms"
        for link in document["links"]
    )
    facts = {
        "links": links,
        "scale": scale_words(float(document.get("scale", 1.0))),
        "file": f"{size_words(document)}, seed {document['seed']}",
        "congestion control": document["congestion_control"] + ", in every scheme, on both ends",
        "kernel": document["kernel"],
        "commit": document["commit"],
        "started": document["started"],
        "command": " ".join(document["argv"]),
    }
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()) + "</dl>"


def _ratio(document: Entry) -> str:
    ratio, bare = document["sum_ratio"], document["sum_ratio_without_margin"]
    if ratio is None or bare is None:
        return ""
    return f"<p>The ratio is {ratio:.3f}; without any margin it is {bare:.3f}.</p>"


def demo_page(document: Entry) -> str:
    """The whole page for a result of the demo (schema sumrate.lab.demo.v1)."""
    blockage = document["blockage"]
    body = f"""<h1>{escape(seen(document))}</h1>
{_busy(document)}
<p>curl downloaded the same file of {size_words(document)} over emulated links,
{escape(rates(document))}. WiGig carried nothing between seconds {blockage["start_s"]:g} and
{blockage["end_s"]:g} of each download.</p>
<figure class="wide">{picture(document)}</figure>
<figure class="narrow">{picture(document, NARROW, "plot-narrow")}</figure>
<h2>Numbers</h2>
{_table(document)}
<p class="note">A pause is an interval in which curl wrote nothing to its file, sampled every
5 ms.</p>
<details><summary>How the share of the sum is counted</summary>
<p>{escape(document["sum_ratio_definition"])}</p>
{_ratio(document)}</details>
<details><summary>Conditions</summary>
{_conditions(document)}</details>
<details><summary>Commands</summary>
<p>Each ran on the emulated client or server host.</p>
{_commands(document)}</details>"""
    return page("Sumrate: one file over two radios", body, CSS)
