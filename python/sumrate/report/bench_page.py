"""The benchmark's report: the sum ratio in every condition, the numbers behind it, the commands."""

from collections.abc import Mapping
from html import escape
from typing import Any

from sumrate.report.style import COLOURS, page, table
from sumrate.report.svg import Axes, Bar, bar_chart

TITLES = {"mptcp": "Kernel MPTCP", "sumrate": "Sumrate"}
Entry = Mapping[str, Any]


def _bars(entry: Entry) -> list[Bar]:
    bars = []
    for name, values in entry["sum_ratio"].items():
        if values is not None:
            bars.append(
                Bar(
                    name,
                    TITLES[name],
                    COLOURS[name],
                    values["median"],
                    values["min"],
                    values["max"],
                )
            )
    return bars


def _chart(document: Entry) -> str:
    groups = [(entry["title"], _bars(entry)) for entry in document["conditions"].values()]
    axes = Axes(
        x_max=1.0,
        y_max=max([1.1] + [bar.high * 1.05 for _, bars in groups for bar in bars]),
        x_label="",
        y_label="goodput / sum of the links",
        height=380,
    )
    return bar_chart("plot-ratio", "Sum ratio in every condition", groups, axes)


def _text(values: Entry | None, digits: int) -> str:
    if values is None:
        return "none"
    shown = [f"{values[key]:.{digits}f}" for key in ("median", "min", "max")]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _table(document: Entry) -> str:
    head = ["", "links alone, Mbit/s", "MPTCP, Mbit/s", "MPTCP / sum", "Sumrate, Mbit/s"]
    head += ["Sumrate / sum", "repetitions"]
    rows = []
    for entry in document["conditions"].values():
        goodput, ratio = entry["goodput_mbps"], entry["sum_ratio"]
        alone = " + ".join(_text(goodput[link["name"]], 0) for link in entry["links"])
        count = len(entry["repetitions"])
        void = entry["void_repetitions"]
        cells = [entry["title"], alone]
        for name in ("mptcp", "sumrate"):
            cells += [_text(goodput[name], 0), _text(ratio[name], 3)]
        rows.append(("", [*cells, f"{count}, {void} void" if void else str(count)]))
    return table(head, rows)


def _settings(document: Entry) -> dict[str, str]:
    for entry in document["conditions"].values():
        for repetition in entry["repetitions"]:
            for run in repetition["runs"].values():
                if "settings" in run:
                    found: dict[str, str] = run["settings"]
                    return found
    return {}


def _commands(document: Entry) -> str:
    for entry in document["conditions"].values():
        runs = entry["repetitions"][0]["runs"]
        lines = [run["command"] for run in runs.values() if "command" in run]
        if lines:
            return f"<pre>{escape(chr(10).join(lines))}</pre>"
    return ""


def bench_page(document: Entry) -> str:
    """The whole page for a result of the benchmark (schema sumrate.lab.bench.v1)."""
    facts = {
        **_settings(document),
        "warm-up left out": f"{document['warmup_s']:g} s",
        "kernel": document["kernel"],
        "commit": document["commit"],
        "started": document["started"],
        "command": " ".join(document["argv"]),
    }
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    body = f"""<h1>How much of the sum arrives</h1>
<p>Goodput over the sum of the two links alone in the same run; 1 is everything. Bars are medians,
the line on each bar spans the lowest and the highest repetition.</p>
<figure>{_chart(document)}</figure>
<h2>Numbers</h2>
<p>Median (lowest to highest).</p>
{_table(document)}
<h2>How it is measured</h2>
<p>{escape(document["definition"])}</p>
<dl>{listed}</dl>
<h2>Commands</h2>
{_commands(document)}"""
    return page("Sumrate: how much of the sum arrives", body)
