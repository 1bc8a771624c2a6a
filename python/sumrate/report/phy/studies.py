"""Figures of the two studies: bars of ranges over MCS, curves over distance."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.phy.parameters import Floats
from sumrate.phy.studies.module import Interfered, Sweep
from sumrate.phy.studies.module_claims import Study
from sumrate.phy.studies.wlan import Sessions
from sumrate.report.lab.canvas import WIDTH_IN, drawing
from sumrate.report.lab.palette import INK, STYLES

UDP, TCP = STYLES[0], STYLES[1]
LINKS = {"aci": (STYLES[4], "next channel"), "cci": (STYLES[2], "same channel")}


def draw_sweeps(done: Study, path: Path) -> None:
    """Goodput over MCS, four panels: MTU and signal; mean with least and largest run."""
    with drawing():
        figure = Figure(figsize=(WIDTH_IN, 5.4), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey="row")
        for row, mtu in zip(panels, (1500, 7912), strict=True):
            for axes, signal in zip(row, ("strong", "weak"), strict=True):
                for style, transport in ((UDP, "udp"), (TCP, "tcp")):
                    _ranged(axes, done.sweeps[mtu, signal, transport], style.line, style.marker)
                axes.axhline(1000, color=INK, lw=0.6, ls=":")
                axes.set_title(f"{signal} signal, MTU {mtu}")
                axes.set_ylim(bottom=0)
                axes.grid(visible=True)
        for axes in panels[1]:
            axes.set_xlabel("MCS")
        for axes in panels[:, 0]:
            axes.set_ylabel("goodput, Mbit/s")
        panels[0, 0].legend(loc="upper left", frameon=False)
        figure.savefig(path, dpi=150)


def _ranged(axes: Axes, sweep: Sweep, colour: str, marker: str) -> None:
    mean = sweep.mean
    low, high = sweep.goodput_mbps.min(axis=1), sweep.goodput_mbps.max(axis=1)
    axes.fill_between(sweep.mcs, low, high, color=colour, alpha=0.2, lw=0)
    axes.plot(sweep.mcs, mean, color=colour, marker=marker, ms=4, label=sweep.transport.upper())


def draw_interference(done: Study, path: Path) -> None:
    """Normalised throughput, lost packets, and the link that starts later, over MCS."""
    with drawing():
        figure = Figure(figsize=(WIDTH_IN, 2.9), layout="constrained")
        share, loss, late = figure.subplots(1, 3)
        for kind, (style, title) in LINKS.items():
            link: Interfered = done.links[kind]
            look = {"color": style.line, "marker": style.marker, "ms": 4, "label": title}
            share.plot(link.mcs, link.share, **look)
            loss.plot(link.mcs, 100 * link.loss, **look)
            late.plot(link.mcs, link.late_udp_share, **look)
        share.axhline(0.8, color=INK, lw=0.6, ls=":")
        titles = ("UDP over that without\nthe other link", "packets lost, %")
        for axes, title in zip(
            (share, loss, late), (*titles, "UDP share of the\nlater link"), strict=True
        ):
            axes.set_title(title)
            axes.set_xlabel("MCS")
            axes.set_xticks(range(1, 10))
            axes.set_ylim(bottom=0)
            axes.grid(visible=True)
        loss.legend(loc="upper left", frameon=False)
        figure.savefig(path, dpi=150)


def draw_distance(found: Sessions, path: Path) -> None:
    """PHY rate, signal and TCP over distance, mean with one deviation; TCP by dominant rate."""
    with drawing():
        figure = Figure(figsize=(WIDTH_IN, 5.4), layout="constrained")
        (rate, signal), (tcp, dominated) = figure.subplots(2, 2)
        _band(rate, found.feet, *found.by_distance(found.phy_mbps))
        rate.set_ylabel("PHY rate, Mbit/s")
        _band(signal, found.feet, found.rssi_dbm.mean(axis=1), found.rssi_dbm.std(axis=1))
        signal.set_ylabel("signal, dBm")
        _band(tcp, found.feet, *found.by_distance(found.tcp_mbps))
        tcp.set_ylabel("TCP goodput, Mbit/s")
        for axes in (rate, signal, tcp):
            axes.set_xlabel("distance, ft")
            for edge in (20, 135):
                axes.axvline(edge, color=INK, lw=0.6, ls=":")
            axes.grid(visible=True)
        for axes in (rate, tcp):
            axes.set_ylim(bottom=0)
        for share, style, size in ((0.75, STYLES[4], 7), (0.9, STYLES[1], 4)):
            phy, goodput = found.dominated(share)
            dominated.plot(
                phy, goodput, style.marker, ms=size, mfc="none", color=style.line,
                label=f"above {share:.0%} of the session",
            )  # fmt: skip
        dominated.set_xlabel("dominant PHY rate, Mbit/s")
        dominated.set_ylabel("TCP goodput, Mbit/s")
        dominated.set_ylim(bottom=0)
        dominated.grid(visible=True)
        dominated.legend(loc="lower right", frameon=False)
        figure.savefig(path, dpi=150)


def _band(axes: Axes, x: Floats, mean: Floats, deviation: Floats) -> None:
    style = STYLES[1]
    axes.fill_between(x, mean - deviation, mean + deviation, color=style.colour, alpha=0.2, lw=0)
    axes.plot(x, np.asarray(mean), color=style.line, marker=style.marker, ms=3)
