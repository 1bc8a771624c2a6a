"""The sentence above each figure of initial access and of the link, computed from its table."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

import numpy as np

from sumrate.access.curves import CURVES
from sumrate.access.figures import Figure
from sumrate.access.scenes import SCENES
from sumrate.access.tasks import Row

NAMES = {"dot11ad": "802.11ad", "dot11ad-random": "802.11ad with random beam order"}


MAIN = ("jpoc", "dot11ad")
"""Curves that every sentence names; of many others it names the best and the worst."""
MOST_NAMED = 3


def sentence(figure: Figure, rows: Sequence[Row]) -> str:
    """The finding of a table; the figure's title for a table without values."""
    known = [r for r in rows if r["mean"] is not None and not np.isnan(r["mean"])]
    if not any(r["metric"] in figure.metrics for r in known):
        return figure.title
    made = SENTENCES.get(figure.name)
    if made is None and figure.metrics == ("jain",):
        made = _fairness
    return made(known) if made else figure.title


def share(index: float) -> float:
    """The other client's share of the won beams, from the competition index."""
    return 1.0 if np.isinf(index) else index / (1.0 + index)


def _percent(part: float) -> str:
    """A share in percent."""
    return f"{100 * part:.0f} %"


def _name(curve: str) -> str:
    return NAMES.get(curve) or (CURVES[curve].title if curve in CURVES else curve)


def _scene(panel: str) -> str:
    scene, _, rest = panel.partition(", ")
    return ", ".join(filter(None, (SCENES[scene].title if scene in SCENES else scene, rest)))


def _of(rows: Iterable[Row], metric: str, **wanted: object) -> list[Row]:
    return [r for r in rows if r["metric"] == metric
            and all(r[key] == value for key, value in wanted.items())]  # fmt: skip


def _with(control: str) -> str:
    """Words for a kind of power control."""
    if control.startswith("no "):
        return "without power control"
    return f"with power control to {control.removeprefix('target ')}"


def _curves(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(str(r["curve"]) for r in rows))


def _fairness(rows: Sequence[Row]) -> str:
    """The curves by their least index."""
    found = _of(rows, "jain")
    least = {c: min(_of(found, "jain", curve=c), key=lambda r: r["mean"]) for c in _curves(found)}
    ranked = sorted(least, key=lambda c: -least[c]["mean"])
    others = [c for c in ranked[1:] if c in MAIN or c == ranked[-1] or len(ranked) <= MOST_NAMED]
    falls = [f"{_name(c)} {'falls ' if c == others[0] else ''}to {least[c]['mean']:.2f}"
             for c in others]  # fmt: skip
    where = f" ({_scene(str(least[ranked[-1]]['panel']))})"
    best = f"{_name(ranked[0])} keeps Jain's index at {least[ranked[0]]['mean']:.2f} or more"
    return f"{best}; {', '.join(falls)}{where}" if falls else best


def _near_far(rows: Sequence[Row]) -> str:
    """Median difference of SNR between the near and the far client."""
    found = _of(rows, "snr_db")
    near, far = sorted(_curves(found), key=lambda c: not c.startswith("near"))
    gaps = [
        median(r["mean"] for r in _of(found, "snr_db", panel=panel, curve=near))
        - median(r["mean"] for r in _of(found, "snr_db", panel=panel, curve=far))
        for panel in dict.fromkeys(r["panel"] for r in found)
    ]
    control = str(found[0]["panel"]).partition(", ")[2]
    low, high = sorted((abs(min(gaps)), abs(max(gaps))))
    many = f"{low:.0f} to {high:.0f}" if round(low) != round(high) else f"{low:.0f}"
    more = "stronger" if fmean(gaps) > 0 else "weaker"
    return (
        f"{_with(control).capitalize()}, the near client arrives {many} dB {more} than the far one"
    ).replace(" db", " dB")


def _competition(rows: Sequence[Row]) -> str:
    """Share of beams of the client at the median place, by power control."""
    controls: dict[str, list[float]] = {}
    for r in _of(rows, "index"):
        control = str(r["panel"]).split(", ")[1]
        controls.setdefault(control, []).append(share(r["mean"]))
    shares = [(_percent(median(values)), _with(name)) for name, values in controls.items()]
    (first, how), *others = shares
    rest = "".join(f", {part} {words}" for part, words in others)
    return f"Against a client near the AP, one elsewhere wins {first} of the beams {how}{rest}"


def _good_beams(rows: Sequence[Row]) -> str:
    """Share of clients with few good beams over all scenes, by power control."""
    few = {
        curve: fmean(
            sum(r["mean"] for r in _of(rows, "share", panel=panel, curve=curve) if r["x"] < 12)
            for panel in dict.fromkeys(r["panel"] for r in rows)
        )
        for curve in _curves(_of(rows, "share"))
    }
    (first, how), *others = ((_percent(value), _with(name)) for name, value in few.items())
    rest = "".join(f", {part} {words}" for part, words in others)
    return f"Of the clients, {first} have at most 12 good beams {how}{rest}"


def _participation(rows: Sequence[Row]) -> str:
    """Trainings that a client saves by listening first."""
    total = {
        curve: fmean(r["mean"] for r in _of(rows, "trainings", curve=curve))
        for curve in _curves(_of(rows, "trainings"))
    }
    needless = {c: fmean(r["mean"] for r in _of(rows, "needless", curve=c)) for c in total}
    product, other = total
    return (
        f"Of {total[product]:.0f} trainings in ten minutes {needless[product]:.0f} are needless; "
        f"a client that listens first trains {total[other]:.0f} times"
    )


def _overhead(rows: Sequence[Row]) -> str:
    """The range of the ratio over scenes, at the largest number of clients that has a value."""
    found = _of(rows, "ratio", curve="802.11ad over JPOC")
    most = max(r["x"] for r in found)
    ratios = [r["mean"] for r in found if r["x"] == most]
    few, many = min(ratios), max(ratios)
    span = f"{few:.0f} to {many:.0f}" if len(ratios) > 1 else f"{many:.0f}"
    return f"802.11ad needs {span} times JPOC's mini-slots for 10 % failures of {most:.0f} clients"


def _estimator(rows: Sequence[Row]) -> str:
    """Time of the default estimate to follow a step."""
    found = _of(rows, "intervals_to_90_percent", curve="T = 5")
    times = [r["mean"] for r in found]
    span = (
        f"{min(times):.0f}" if min(times) == max(times) else f"{min(times):.0f} to {max(times):.0f}"
    )
    return (
        f"A mean of five rounds follows a step from 8 to 24 clients within {span} beacon intervals"
    )


def _signalling(rows: Sequence[Row]) -> str:
    bits = {r["curve"]: r["mean"] for r in _of(rows, "all_bits")}
    most = {r["curve"]: r["mean"] for r in _of(rows, "largest")}
    parts = [f"{bits[c]:.0f} bits announce up to {most[c]:.0f} mini-slots" for c in bits]
    return ", ".join(parts).capitalize()


def _power_error(rows: Sequence[Row]) -> str:
    """Loss of fairness by the largest error of otherwise exact settings."""
    found = _of(rows, "jain", curve="exact")
    most = max(r["x"] for r in found)
    costs = {
        panel: next(r["mean"] for r in _of(found, "jain", panel=panel, x=0.0))
        - next(r["mean"] for r in _of(found, "jain", panel=panel, x=most))
        for panel in dict.fromkeys(str(r["panel"]) for r in found)
    }
    panel = max(costs, key=lambda name: costs[name])
    return (
        f"Power errors of {most:g} dB cost JPOC at most {max(costs[panel], 0):.2f} of Jain's index "
        f"({_scene(panel)})"
    )


def _by_mcs(rows: Sequence[Row]) -> str:
    """MCS of the largest goodput, by signal."""
    best = {}
    for signal in ("strong", "weak"):
        mine = [r for r in _of(rows, "goodput_mbps") if str(r["panel"]).startswith(signal)]
        best[signal] = max(mine, key=lambda r: r["mean"])
    parts = [
        f"{r['mean']:.0f} Mbit/s at MCS {r['x']:.0f} with a {name} signal"
        for name, r in best.items()
    ]
    return f"Goodput peaks at {' and '.join(parts)}"


def _interference(rows: Sequence[Row]) -> str:
    words = {"aci": "next", "cci": "same"}
    least = {
        kind: min(r["mean"] for r in _of(rows, "share", panel=kind, curve="first link, udp"))
        for kind in words
    }
    parts = [f"{_percent(1 - least[kind])} on the {words[kind]} channel" for kind in words]
    return f"Another link takes up to {' and '.join(parts)} of the throughput"


def _distance(rows: Sequence[Row]) -> str:
    ends = {}
    for curve in ("phy", "tcp"):
        mine = sorted(_of(rows, "rate_mbps", curve=curve), key=lambda r: r["x"])
        ends[curve] = mine[0], mine[-1]
    (near, far), (tcp_near, tcp_far) = ends["phy"], ends["tcp"]
    return (
        f"From {near['x']:.0f} to {far['x']:.0f} ft the PHY rate falls from "
        f"{near['mean'] / 1000:.1f} to {far['mean'] / 1000:.1f} Gbit/s, TCP from "
        f"{tcp_near['mean']:.0f} to {tcp_far['mean']:.0f} Mbit/s"
    )


SENTENCES: dict[str, Callable[[Sequence[Row]], str]] = {
    "3.1b": _near_far,
    "3.3": _near_far,
    "3.1c": _competition,
    "3.5b": _competition,
    "3.5c": _competition,
    "3.6": _competition,
    "3.2a": _participation,
    "3.5a": _good_beams,
    "3.7b": _overhead,
    "estimator": _estimator,
    "signalling": _signalling,
    "power-error": _power_error,
    "link-mcs": _by_mcs,
    "link-interference": _interference,
    "link-distance": _distance,
}
