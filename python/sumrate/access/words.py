"""What the numbers of a run mean, and tables of them for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Meaning(NamedTuple):
    """The unit of a value, and what it is."""

    unit: str
    text: str


INPUTS = ("protocol", "scene", "clients", "blockage", "capture", "realisations", "intervals",
          "rounds", "good_beams", "seed")  # fmt: skip
"""What was asked for; the rest was found."""
MEANINGS = {
    "failure_probability": Meaning("", "share of the sweeps that the AP did not hear"),
    "standard_error": Meaning("", "of the failure probability"),
    "worst_client": Meaning("", "failure probability of the client that fails most often"),
    "never_served": Meaning("", "share of the clients that never got through"),
    "first_success": Meaning("beacon intervals", "until a client first gets through, mean"),
    "jain": Meaning("", "Jain's index of the clients' air time: 1 is fair"),
    "jain_standard_error": Meaning("", "of Jain's index"),
    "jain_delivered": Meaning("", "Jain's index of the air time in which a client is not blocked"),
    "mini_slots": Meaning("mini-slots", "length of the A-BFT, mean"),
    "competitors": Meaning("clients", "that compete in an A-BFT, mean"),
    "estimated_clients": Meaning("clients", "that the AP expects to compete, mean"),
    "collisions": Meaning("frames / interval", "lost to other clients' frames"),
    "captures": Meaning("frames / interval", "heard in spite of other clients' frames"),
    "beam_loss_db": Meaning("dB", "by which the beam that won is weaker than the best"),
    "mean_good_beams": Meaning("beams", "of a client that the AP can decode"),
    "starved_by_power_control": Meaning("", "share of the clients whose power is set too low"),
    "equation_3_6": Meaning("", "failure probability by the thesis's equation (3.6)"),
    "exact_without_capture": Meaning("", "failure probability without capture, exact"),
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
        (name.removesuffix("_db").replace("_", " "), [_value(d, name) for d in documents], *meaning)
        for name, meaning in MEANINGS.items()
        if any(name in document for document in documents)
    ]
    widths = [max(len(names[n]), *(len(row[1][n]) for row in rows)) for n in range(len(names))]
    first = max(len(row[0]) for row in rows)
    units = max(len(row[2]) for row in rows)

    def line(name: str, values: Sequence[str], unit: str, meaning: str) -> str:
        cells = "  ".join(v.rjust(w) for v, w in zip(values, widths, strict=True))
        return f"{name:{first}}  {cells}  {unit:{units}}  {meaning}".rstrip()

    heads = [name.rjust(width) for name, width in zip(names, widths, strict=True)]
    return "\n".join([asked, "", line("", heads, "unit", "meaning"),
                      *(line(*row) for row in rows)])  # fmt: skip


def _value(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if value is None or (name == "estimated_clients" and document["protocol"] == "dot11ad"):
        return NOTHING  # 802.11ad's AP estimates nothing
    return f"{value:.4g}" if isinstance(value, float) else str(value)
