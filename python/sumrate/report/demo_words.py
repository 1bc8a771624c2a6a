"""Sentences about a result of the demo, for its end, its page and its table."""

from collections.abc import Mapping
from typing import Any

from sumrate.report.svg import TITLES, duration

Entry = Mapping[str, Any]
SCALES = {1.0: "the full rates", 0.5: "half of the rates", 0.25: "a quarter of the rates"}
SCALES[0.125] = "an eighth of the rates"


def rates(document: Entry) -> str:
    """The links' names and rates."""
    names = {"wifi": "WiFi", "wigig": "WiGig"}
    return " and ".join(
        f"{names.get(link['name'], link['name'])} {link['rate_mbps']:.0f} Mbit/s"
        for link in document["links"]
    )


def scale_words(scale: float) -> str:
    """A scale of the rates for people."""
    return SCALES.get(scale, f"{scale:g} of the rates")


def seen(document: Entry) -> str:
    """One sentence: the share of the sum, the pause while WiGig was blocked, WiFi's time."""
    schemes, ratio = document["schemes"], document["sum_ratio"]
    own = schemes.get("sumrate", {})
    if "goodput_mbps" not in own:
        return "Sumrate's download did not finish, so there is nothing to compare."
    about = "about " if document.get("approximate") else ""
    pause = duration(own["longest_stall_around_blockage_ms"] / 1e3)
    carried = (
        f"carried {about}{ratio:.1%} of the sum of both links".replace("%", " %")
        if ratio is not None
        else f"carried {own['goodput_mbps']:.0f} Mbit/s"
    )
    words = f"Sumrate {carried}, and stood still for {pause} while WiGig was blocked"
    wifi = schemes.get("wifi", {})
    if "duration_s" in wifi:
        words += (
            f"; WiFi alone needed {duration(wifi['duration_s'])} "
            f"for the file instead of {duration(own['duration_s'])}"
        )
    return words + "."


def busy(document: Entry) -> str:
    """Why the result is approximate; empty if it is not."""
    if not document.get("approximate"):
        return ""
    return f"Approximate: this machine was busy ({used_by(document)})."


def used_by(document: Entry) -> str:
    """Which programs, or what else, used the processors."""
    users = [
        f"{user['name']} used {user['cores']:.1f} of {document['machine']['cpus']} cores"
        for user in document.get("busy", ())
    ]
    return ", ".join(users) or (
        "no other program used much: its processors are too slow for these rates"
    )


def problems(document: Entry) -> dict[str, str]:
    """The schemes without a result, and why: `not available: ...` or `failed: ...`."""
    found = {}
    for name, entry in document["schemes"].items():
        if "missing" in entry:
            found[name] = f"not available: {entry['missing']}"
        elif "error" in entry:
            found[name] = f"failed: {entry['error']}"
    return found


def disturbed(document: Entry) -> dict[str, str]:
    """The schemes during which the emulator was late, and how late."""
    return {
        name: str(entry.get("void_reason", "the emulator was late"))
        for name, entry in document["schemes"].items()
        if entry.get("void")
    }


def number(value: float | None) -> str:
    """A number without decimals; a dash for what was not reached."""
    return "-" if value is None else f"{value:.0f}"


def rows(document: Entry) -> list[tuple[str, list[str]]]:
    """The measured schemes, slowest first as they are named: four numbers and the file's state."""
    return [
        (
            name,
            [
                number(entry["goodput_mbps"]),
                number(entry["goodput_outside_blockage_mbps"]),
                number(entry["goodput_during_blockage_mbps"]),
                number(entry["longest_stall_ms"]),
                "intact" if entry["sha256_ok"] else "DAMAGED",
            ],
        )
        for name, entry in document["schemes"].items()
        if "goodput_mbps" in entry
    ]


def summary(document: Entry) -> str:
    """The table and the sentences that are printed at the end."""
    lines = [
        f"{'':14}{'overall':>10}{'not blocked':>13}{'blocked':>10}{'longest':>10}{'file':>9}",
        f"{'':14}{'Mbit/s':>10}{'Mbit/s':>13}{'Mbit/s':>10}{'pause ms':>10}",
    ]
    for name, cells in rows(document):
        whole, outside, during, pause, file = cells
        lines.append(f"{TITLES[name]:14}{whole:>10}{outside:>13}{during:>10}{pause:>10}{file:>9}")
    lines += [f"{TITLES[name]}: {why}" for name, why in problems(document).items()]
    lines.append("")
    if words := busy(document):
        lines.append(words)
        lines += [f"  {TITLES[name]}: {why}" for name, why in disturbed(document).items()]
    lines.append(seen(document))
    return "\n".join(lines)
