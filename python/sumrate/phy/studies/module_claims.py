"""The claims of the module study's figures 1 to 8, on the model."""

from dataclasses import dataclass

import numpy as np

from sumrate.phy.parameters import Floats
from sumrate.phy.studies.finding import Finding
from sumrate.phy.studies.module import (
    MTUS,
    SIGNALS,
    Interfered,
    Sweep,
    interfered,
    sweep,
    usable_down_to_dbm,
)

AIRTIME = "size of the aggregate and exchanges per acknowledgement (airtime)"
HOST = "packets per second of the host"
NOISE = "noise figure of 5.75 dB: with 7 dB MCS 8 fails at the weak end as well"
COUPLING = "SINR and deference of the second link"


@dataclass(frozen=True, eq=False)
class Study:
    """All quantities of figures 1 to 8."""

    sweeps: dict[tuple[int, str, str], Sweep]
    """By MTU, signal and transport."""
    links: dict[str, Interfered]
    """By `aci` and `cci`."""

    def mean(self, mtu: int, signal: str, transport: str) -> Floats:
        """Mean goodput by MCS, Mbit/s, shape (MCS,)."""
        return self.sweeps[mtu, signal, transport].mean


def study(seed: int = 1, runs: int = 10) -> Study:
    """Runs all sweeps and interfered links."""
    sweeps = {
        (mtu, signal, transport): sweep(mtu, signal, transport, seed=seed, runs=runs)
        for mtu in MTUS
        for signal in SIGNALS
        for transport in ("udp", "tcp")
    }
    return Study(sweeps, {kind: interfered(kind) for kind in ("aci", "cci")})


def findings(done: Study) -> list[Finding]:
    """A verdict on every claim."""
    return [_usable(), *_small_packets(done), *_large_packets(done), *_interference(done)]


def _usable() -> Finding:
    found = usable_down_to_dbm()
    return Finding(
        "W-rssi",
        abs(found["sensitivity"] + 69) <= 1.5,
        f"slowest MCS works down to {found['sensitivity']:.0f} dBm by the standard's sensitivity, "
        f"{found['noise']:.0f} dBm by additive noise, control frames {found['control']:.0f} dBm",
        "usable from -41 to about -69 dBm",
    )


def _text(values: Floats) -> str:
    return "MCS 1-9: " + ", ".join(f"{value:.0f}" for value in values) + " Mbit/s"


def _small_packets(done: Study) -> list[Finding]:
    udp, tcp = (done.mean(1500, "strong", transport) for transport in ("udp", "tcp"))
    weak_udp, weak_tcp = (done.mean(1500, "weak", transport) for transport in ("udp", "tcp"))
    spread = done.sweeps[1500, "weak", "tcp"].spread / np.maximum(tcp, 1.0)
    near = weak_udp / udp
    return [
        Finding(
            "W-1-udp", bool((np.abs(udp[7:] - 1000) < 50).all()), _text(udp),
            "about 1 Gbit/s at MCS 8 and 9", fitted=HOST,
        ),
        Finding(
            "W-1-tcp", bool((tcp < 0.85 * udp)[4:].all() and tcp.max() < 1000), _text(tcp),
            "well below UDP, below 1 Gbit/s at all MCS", fitted=HOST,
        ),
        Finding(
            "W-2-udp", bool((near > 0.9).all()),
            "weak over strong: " + ", ".join(f"{share:.2f}" for share in near),
            "comparable to strong at equal MCS",
            fitted=NOISE,
            cause="" if (near > 0.9).all() else "the fastest schemes lose frames in additive noise "
            "at -69 dBm, whatever the transport",
        ),
        Finding(
            "W-2-tcp", bool((weak_tcp < tcp)[-2:].all() and spread[-2:].min() > 0.05),
            f"{_text(weak_tcp)}; spread of runs at MCS 8, 9: {spread[7]:.2f}, {spread[8]:.2f}",
            "lower than strong, visible spread at high MCS",
        ),
    ]  # fmt: skip


def _large_packets(done: Study) -> list[Finding]:
    udp, tcp = (done.mean(7912, "strong", transport) for transport in ("udp", "tcp"))
    weak_udp, weak_tcp = (done.mean(7912, "weak", transport) for transport in ("udp", "tcp"))
    best = float(done.sweeps[7912, "strong", "tcp"].goodput_mbps.max())
    udp_kept, tcp_kept = weak_udp / udp, weak_tcp / tcp
    only_top = bool((udp_kept[:8] > 0.9).all() and udp_kept[8] < 0.95)
    return [
        Finding(
            "W-3-udp", bool((np.diff(udp) > 0).all() and udp[4] <= 1000 < udp[5]), _text(udp),
            "monotone; above 1 Gbit/s from MCS 6", fitted=AIRTIME,
        ),
        Finding(
            "W-3-tcp", bool((np.diff(tcp) > 0).all() and tcp[5] <= 1000 < tcp[6]), _text(tcp),
            "monotone; above 1 Gbit/s from MCS 7", fitted=AIRTIME,
        ),
        Finding(
            "W-tcp-max", abs(best - 1316) < 30, f"{best:.0f} Mbit/s", "1316 Mbit/s",
            fitted=AIRTIME,
        ),
        Finding(
            "W-4-udp", only_top, "weak over strong: " + ", ".join(f"{x:.2f}" for x in udp_kept),
            "like strong except a drop at MCS 9",
            fitted=NOISE,
            cause="" if only_top else "weak signals reach below the 6.2 dB that MCS 8 needs",
        ),
        Finding(
            "W-4-tcp", bool((tcp_kept[:6] > 0.9).all() and (tcp_kept[7:] < 0.9).all()),
            "weak over strong: " + ", ".join(f"{x:.2f}" for x in tcp_kept),
            "clear degradation from MCS 8",
            fitted=NOISE,
        ),
    ]  # fmt: skip


def _interference(done: Study) -> list[Finding]:
    links, alone = done.links, done.mean(7912, "strong", "tcp")
    aci, cci = links["aci"], links["cci"]
    shares = {kind: ", ".join(f"{x:.2f}" for x in link.share) for kind, link in links.items()}
    losses = {kind: ", ".join(f"{x:.2%}" for x in link.loss) for kind, link in links.items()}
    carried = {kind: link.share * link.expected_mbps for kind, link in links.items()}
    return [
        Finding(
            "W-5-aci",
            bool((aci.share < 1).all() and (aci.share[5:] < 0.8).all())
            and bool((np.abs(carried["aci"][7:] - 1000) < 100).all()),
            f"share by MCS: {shares['aci']}; {carried['aci'][7]:.0f} and {carried['aci'][8]:.0f} "
            "Mbit/s at MCS 8, 9",
            "below 1 always, below 0.8 above MCS 5, about 1 Gbit/s at MCS 8 and 9",
            fitted=COUPLING,
        ),
        Finding(
            "W-5-cci", bool(cci.share[1] < 0.8 and carried["cci"].max() < 1000),
            f"share by MCS: {shares['cci']}", "below 0.8 from MCS 2, below 1 Gbit/s at all",
            fitted=COUPLING,
        ),
        Finding(
            "W-6-aci", bool(aci.loss[:5].max() < 0.002 and 0.005 < aci.loss.max() < 0.015),
            f"loss by MCS: {losses['aci']}", "none up to MCS 5, at most about 1 %",
            fitted=COUPLING,
        ),
        Finding(
            "W-6-cci", bool(cci.loss[:5].max() < 0.005 and 0.03 < cci.loss.max() < 0.06),
            f"loss by MCS: {losses['cci']}", "none up to MCS 5, at most nearly 5 %",
            fitted=COUPLING,
        ),
        *(
            Finding(
                claim,
                abs(link.late_udp_share[8] - share) < 0.05
                and bool(link.late_tcp_mbps[8] < 1.1 * share * alone[8]),
                f"UDP share {link.late_udp_share[8]:.2f} at MCS 9, "
                f"TCP {link.late_tcp_mbps[8]:.0f} of {alone[8]:.0f} Mbit/s",
                f"the later link's UDP is {share:g} of that without the other, its TCP poor "
                "(taken as: no larger share than UDP)",
                fitted=f"{COUPLING}; how much the later link waits",
            )
            for claim, link, share in (("W-7", aci, 0.5), ("W-8", cci, 0.25))
        ),
    ]  # fmt: skip
