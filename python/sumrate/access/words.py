"""Units and meanings of the results, and tables of them for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Meaning(NamedTuple):
    """Unit and description of a value."""

    unit: str
    text: str


INPUTS = ("protocol", "scene", "clients", "blockage", "capture", "realisations", "intervals",
          "rounds", "good_beams", "seed")  # fmt: skip
"""Fields of a document that repeat the command's options."""
MEANINGS = {
    "failure_probability": Meaning("of sweeps", "that the AP did not decode"),
    "standard_error": Meaning("of sweeps", "standard error of the failure probability"),
    "worst_client": Meaning("of sweeps", "failed by the client that fails most often"),
    "never_served": Meaning("of clients", "that never won an A-BFT"),
    "first_success": Meaning("beacon intervals", "until a client first wins an A-BFT, mean"),
    "jain": Meaning("index", "Jain's index of the clients' air time: 1 is fair"),
    "jain_standard_error": Meaning("index", "standard error of Jain's index"),
    "jain_delivered": Meaning("index", "Jain's index of the air time while not blocked"),
    "mini_slots": Meaning("mini-slots", "length of the A-BFT, mean"),
    "competitors": Meaning("clients", "that compete in an A-BFT, mean"),
    "estimated_clients": Meaning("clients", "that the AP expects to compete, mean"),
    "collisions": Meaning("frames / interval", "lost to other clients' frames"),
    "captures": Meaning("frames / interval", "decoded in spite of other clients' frames"),
    "beam_loss_db": Meaning("dB", "by which the beam that won is weaker than the best"),
    "mean_good_beams": Meaning("beams", "of a client that the AP can decode, mean"),
    "starved_by_power_control": Meaning("of clients", "that power control makes too weak"),
    "equation_3_6": Meaning("of sweeps", "failed, by the thesis's equation (3.6)"),
    "exact_without_capture": Meaning("of sweeps", "failed without capture, exact"),
}
"""In the order of the table."""
NOTHING = "-"


def table(documents: Sequence[Mapping[str, Any]]) -> str:
    """One run, or several side by side: a row for each value with its unit and meaning."""
    names = [str(document["protocol"]) for document in documents]
    asked = ", ".join(
        f"{name.replace('_', ' ')} {documents[0][name]}"
        for name in INPUTS[1:]
        if name in documents[0]
    )
    rows = [
        (_title(name), *(_value(document, name) for document in documents), *meaning)
        for name, meaning in MEANINGS.items()
        if any(name in document for document in documents)
    ]
    return f"{asked}\n\n{_columns([('', *names, 'unit', 'meaning'), *rows], len(names))}"


def sweep(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> str:
    """A row for each condition and metric of a sweep, with its 95 % interval and unit."""
    head = ("scene", "protocol", "result", "clients", "blockage", "mean", "95 % interval", "unit")
    lines = [
        (row["panel"], row["curve"], _title(row["metric"]), str(row["clients"]), f"{row['x']:.2f}",
         f"{row['mean']:.4f}", f"{max(row['low'], 0.0):.4f} to {row['high']:.4f}",
         MEANINGS[row["metric"]].unit)
        for row in rows if row["metric"] in metrics
    ]  # fmt: skip
    meanings = [f"{_title(name)}: {', '.join(MEANINGS[name])}" for name in metrics]
    return "\n".join([_columns([head, *lines], 4, 3), "", *meanings])


def _columns(rows: Sequence[Sequence[str]], numbers: int, first: int = 1) -> str:
    """The rows in columns, of which `numbers` from `first` on are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = range(first, first + numbers)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _title(name: str) -> str:
    return name.removesuffix("_db").replace("_", " ")


def _value(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if value is None or (name == "estimated_clients" and document["protocol"] == "dot11ad"):
        return NOTHING  # 802.11ad's AP estimates nothing
    return f"{value:.4g}" if isinstance(value, float) else str(value)
