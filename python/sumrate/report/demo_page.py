"""The demo's report: goodput against time for every scheme, the table, the commands."""

from collections.abc import Mapping
from html import escape
from typing import Any

from sumrate.report.style import COLOURS, page, table
from sumrate.report.svg import Axes, Line, line_chart

TITLES = {
    "wifi": "WiFi alone",
    "wigig": "WiGig alone",
    "mptcp": "Kernel MPTCP",
    "sumrate": "Sumrate",
}
Entry = Mapping[str, Any]


def _finished(document: Entry) -> dict[str, Entry]:
    return {name: entry for name, entry in document["schemes"].items() if "series" in entry}


def _axes(document: Entry, *, height: int) -> Axes:
    entries = _finished(document).values()
    blockage = document["blockage"]
    highest = max((point[1] for e in entries for point in e["series"]), default=1.0)
    return Axes(
        x_max=max((e["duration_s"] for e in entries), default=1.0),
        y_max=highest * 1.06 or 1.0,
        x_label="seconds since the first byte",
        y_label="goodput, Mbit/s",
        shade=(blockage["start_s"], blockage["end_s"]),
        shade_label="WiGig blocked",
        height=height,
    )


def _line(name: str, entry: Entry) -> Line:
    points = [(point[0], point[1]) for point in entry["series"]]
    own = name == "sumrate"
    return Line(name, TITLES[name], COLOURS[name], points, 2.5 if own else 1.5)


def demo_chart(document: Entry) -> str:
    """The chart of all schemes together, as SVG."""
    lines = [_line(name, entry) for name, entry in _finished(document).items()]
    return line_chart(
        "plot-all", "Goodput against time, all schemes", lines, _axes(document, height=400)
    )


def _charts(document: Entry) -> str:
    lines = [_line(name, entry) for name, entry in _finished(document).items()]
    together = demo_chart(document)
    parts = [f"<figure>{together}</figure>", "<h2>Each scheme by itself</h2>"]
    for line in lines:
        title = f"Goodput against time, {line.label}"
        chart = line_chart(f"plot-{line.key}", title, [line], _axes(document, height=210))
        parts.append(f"<figure>{chart}</figure>")
    return "\n".join(parts)


def _whole(value: float | None) -> str:
    return "not reached" if value is None else f"{value:.0f}"


def _table(document: Entry) -> str:
    head = [
        "",
        "goodput, Mbit/s",
        "outside the blockage",
        "while blocked",
        "longest stall, ms",
        "file",
    ]
    rows = []
    for name, entry in document["schemes"].items():
        kind = "own" if name == "sumrate" else ""
        problem = entry.get("missing") or entry.get("error")
        if problem:
            state = "not available: " if "missing" in entry else "failed: "
            rows.append((kind, [TITLES[name], state + problem, "", "", "", ""]))
            continue
        file = "checksum right" if entry["sha256_ok"] else "DIFFERS"
        cells = [
            TITLES[name] + (" (void)" if entry["void"] else ""),
            _whole(entry["goodput_mbps"]),
            _whole(entry["goodput_outside_blockage_mbps"]),
            _whole(entry["goodput_during_blockage_mbps"]),
            _whole(entry["longest_stall_ms"]),
            file,
        ]
        rows.append((kind, cells))
    return table(head, rows)


def _headline(document: Entry) -> str:
    ratio = document["sum_ratio"]
    if ratio is None:
        return "<p class='headline'>A scheme is missing, so there is no sum ratio.</p>"
    own = document["schemes"]["sumrate"]
    return (
        f"<p class='headline'>Outside the blockage Sumrate carried <b>{ratio:.1%}</b> of the sum "
        f"of the two links; its longest stall was <b>{own['longest_stall_ms']:.0f} ms</b>.</p>"
    )


def _void(document: Entry) -> str:
    late = [
        f"{TITLES[name]}: {entry['void_reason']}"
        for name, entry in document["schemes"].items()
        if entry.get("void")
    ]
    if not late:
        return ""
    return f"<p class='void'>Void: {escape('; '.join(late))}. Run it again on an idle machine.</p>"


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
        "file": f"{document['file']['bytes'] / 2**20:.0f} MiB, seed {document['seed']}",
        "congestion control": document["congestion_control"] + ", in every scheme, on both ends",
        "kernel": document["kernel"],
        "commit": document["commit"],
        "started": document["started"],
        "command": " ".join(document["argv"]),
    }
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()) + "</dl>"


def demo_page(document: Entry) -> str:
    """The whole page for a result of the demo (schema sumrate.lab.demo.v1)."""
    blockage = document["blockage"]
    ratio = document["sum_ratio_without_margin"]
    bare = "" if ratio is None else f"<p>Without any margin the ratio is {ratio:.3f}.</p>"
    body = f"""<h1>One file over two radios</h1>
{_headline(document)}
{_void(document)}
<p>A plain curl downloads the same file over each scheme. WiGig carries nothing between seconds
{blockage["start_s"]:g} and {blockage["end_s"]:g} of each transfer.</p>
{_charts(document)}
<h2>Numbers</h2>
{_table(document)}
<p>A stall is an interval in which curl wrote nothing to its file, sampled every 5 ms.</p>
<h2>How the ratio is counted</h2>
<p>{escape(document["sum_ratio_definition"])}</p>
{bare}
<h2>Conditions</h2>
{_conditions(document)}
<h2>Commands</h2>
<p>Each ran on the emulated client or server host.</p>
{_commands(document)}"""
    return page("Sumrate: one file over two radios", body)
