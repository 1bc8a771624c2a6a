"""The link studies of `sumrate.phy.studies` as figures of experiments of method `simulation`.

Conditions are PANEL or PANEL@X as everywhere there: `strong-7912@9` is MCS 9 with a strong signal
and MTU 7912, `distance@35` is 35 ft, `middle` all distances from 20 to 135 ft.
"""

import numpy as np

from sumrate.access.figures.table import Effort, Figure, row
from sumrate.access.tasks import Row, Task
from sumrate.phy.parameters import Floats
from sumrate.phy.studies import wlan
from sumrate.phy.studies.module import (
    AIRS,
    MTUS,
    SIGNALS,
    interfered,
    sweep,
    usable_down_to_dbm,
)

SPANS_FT = {"near": (0.0, 20.0), "middle": (20.5, 135.0), "far": (135.0, 155.0)}
TCP_SPANS_FT = {"tcp-near": (0.0, 35.0), "tcp-middle": (35.5, 135.0)}


def sweep_rows(signal: str, mtu_bytes: int, runs: int, seed: int) -> list[Row]:
    """Goodput by MCS, and each run over the mean of the runs."""
    panel = f"{signal}-{mtu_bytes}"
    found = []
    for transport in ("udp", "tcp"):
        done = sweep(mtu_bytes, signal, transport, seed=seed, runs=runs)
        for mcs, values in zip(done.mcs, done.goodput_mbps, strict=True):
            spread = np.array([np.ptp(values) / max(values.mean(), 1e-9)])
            found.append(row(panel, transport, "goodput_mbps", values, x=mcs))
            found.append(row(panel, transport, "spread", spread, x=mcs))
        found.append(row(panel, transport, "best_goodput_mbps", np.array([done.mean.max()])))
        rises = np.array([np.diff(done.mean).min()])
        found.append(row(panel, transport, "least_rise_mbps", rises))
    return found


def interference_rows(kind: str) -> list[Row]:
    """Throughput share, losses and the later link by MCS; nothing is drawn at random."""
    done = interfered(kind)
    columns = {
        ("first link, udp", "share"): done.share,
        ("first link, udp", "loss"): done.loss,
        ("first link, udp", "goodput_mbps"): done.share * done.expected_mbps,
        ("later link, udp", "share"): done.late_udp_share,
        ("later link, tcp", "goodput_mbps"): done.late_tcp_mbps,
    }
    return [
        row(kind, curve, metric, np.array([value]), x=mcs)
        for (curve, metric), values in columns.items()
        for mcs, value in zip(done.mcs, values, strict=True)
    ]


def sensitivity_rows() -> list[Row]:
    """Least usable signal by three measures."""
    found = usable_down_to_dbm()
    return [row("usable", curve, "signal_dbm", np.array([dbm])) for curve, dbm in found.items()]


def distance_rows(sessions: int, seed: int) -> list[Row]:
    """PHY rate, signal and TCP by distance and by region, and TCP by dominant rate."""
    done = wlan.measure(seed, sessions=sessions)
    found = []
    for index, feet in enumerate(done.feet.tolist()):
        for curve, values in (("phy", done.phy_mbps), ("tcp", done.tcp_mbps)):
            per_session = values[index].mean(axis=-1)
            found.append(row("distance", curve, "rate_mbps", per_session, x=feet))
            deviation = np.array([values[index].std()])
            found.append(row("distance", curve, "deviation_mbps", deviation, x=feet))
        found.append(row("distance", "signal", "signal_dbm", done.rssi_dbm[index], x=feet))
    for panel, span in SPANS_FT.items():
        found += _region(done, done.phy_mbps, "phy", panel, span)
    for panel, span in TCP_SPANS_FT.items():
        found += _region(done, done.tcp_mbps, "tcp", panel, span)
    for share in (0.75, 0.90):
        found += _dominated(done, share)
    alike = np.round(done.rssi_dbm).ravel()
    rates = done.phy_mbps.reshape(alike.size, -1)
    largest = max(float(rates[alike == dbm].std()) for dbm in np.unique(alike))
    found.append(row("equal-signals", "phy", "deviation_mbps", np.array([largest])))
    return found


def _region(
    done: wlan.Sessions, values: Floats, curve: str, panel: str, span: tuple[float, float]
) -> list[Row]:
    mean, deviation = done.by_distance(values)
    inside = (done.feet >= span[0]) & (done.feet <= span[1])
    numbers = {
        "highest_mbps": mean[inside].max(),
        "lowest_mbps": mean[inside].min(),
        "largest_deviation_mbps": deviation[inside].max(),
        "largest_rise_mbps": np.diff(mean[inside]).max(),
        "last_over_first": mean[inside][-1] / mean[inside][0],
        "last_deviation_over_mean": deviation[inside][-1] / mean[inside][-1],
    }
    return [row(panel, curve, metric, np.array([value])) for metric, value in numbers.items()]


def _dominated(done: wlan.Sessions, share: float) -> list[Row]:
    rate, tcp = done.dominated(share)
    panel = f"dominated-{share * 100:.0f}"
    parts = {
        "above-3000": tcp[rate > 3000],
        "1500-to-2500": tcp[(rate >= 1500) & (rate <= 2500)],
        "below-1500": tcp[rate < 1500],
    }
    found = []
    for curve, values in parts.items():
        low, high = (values.min(), values.max()) if values.size else (np.nan, np.nan)
        found.append(row(panel, curve, "lowest_mbps", np.array([low])))
        found.append(row(panel, curve, "highest_mbps", np.array([high])))
        found.append(row(panel, curve, "range_mbps", np.array([high - low])))
    return found


def _sweep_tasks(effort: Effort, seed: int) -> list[Task]:
    return [
        Task(sweep_rows, {"signal": signal, "mtu_bytes": mtu, "runs": 10, "seed": seed})
        for mtu in MTUS
        for signal in SIGNALS
    ] + [Task(sensitivity_rows, {})]


def _interference_tasks(effort: Effort, seed: int) -> list[Task]:
    return [Task(interference_rows, {"kind": kind}) for kind in AIRS]


def _distance_tasks(effort: Effort, seed: int) -> list[Task]:
    return [Task(distance_rows, {"sessions": wlan.SESSIONS, "seed": seed})]


_CLAIMS = {
    "link-mcs": ("W-rssi", "W-1-udp", "W-1-tcp", "W-2-udp", "W-2-tcp", "W-3-udp", "W-3-tcp",
                 "W-tcp-max", "W-4-udp", "W-4-tcp"),
    "link-interference": ("W-5-aci", "W-5-cci", "W-6-aci", "W-6-cci", "W-7", "W-8"),
    "link-distance": ("F-2a-near", "F-2a-mid", "F-2a-far", "F-2b", "F-3a-near", "F-3a-mid", "F-3b",
                      "F-3c"),
}  # fmt: skip
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "link-mcs", "Goodput of an 802.11ad link by MCS, MTU and signal", "lines", "MCS",
            "goodput, Mbit/s", _sweep_tasks, ("goodput_mbps",), _CLAIMS["link-mcs"],
        ),
        Figure(
            "link-interference", "Throughput beside a link on the next and on the same channel",
            "lines", "MCS", "share of the throughput alone", _interference_tasks, ("share",),
            _CLAIMS["link-interference"],
        ),
        Figure(
            "link-distance", "PHY rate and TCP goodput over distance", "lines", "distance, ft",
            "Mbit/s", _distance_tasks, ("rate_mbps",), _CLAIMS["link-distance"],
        ),
    )
}  # fmt: skip
"""By name."""
