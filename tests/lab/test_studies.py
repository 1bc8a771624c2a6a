"""What the studies of published figures are made of: benefit, formula, handover, captures."""

import importlib
import itertools
import struct
import tomllib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sumrate.lab.capture import FRAME, NANOSECONDS, PCAP_HEAD, PCAP_PACKET, RAW_IP
from sumrate.lab.endpoints import Handover, KernelMptcp, Sumrate, Unavailable
from sumrate.lab.endpoints.base import Measurement
from sumrate.lab.endpoints.handover import moves
from sumrate.lab.endpoints.sumrate import path_options
from sumrate.lab.experiment import methods
from sumrate.lab.experiment.benefit import add_benefits, aggregation_benefit
from sumrate.lab.experiment.captured import add_subflows, connections_by_link
from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.padhye import add_padhye, full_mbps, sqrt_mbps
from sumrate.lab.experiment.record import Bins, Run, add_carried, add_phases, add_sleep
from sumrate.lab.experiment.run import check_carried, check_congestion_control
from sumrate.lab.experiment.store import manifest
from sumrate.lab.experiment.tcp_model import rates_of, round_trips_of
from sumrate.lab.experiment.timetable import PhaseCounters
from sumrate.lab.experiment.topology import links_of, schemes_of, sized_buffers
from sumrate.lab.links import AckDelay, Blackout, configuration
from sumrate.lab.scene import Scene, Site
from sumrate.lab.subflows import CaptureError, full_rate_after_s, read, subflows, variation
from tests.lab.test_experiment_files import GOOD, written
from tests.lab.test_experiment_judge import experiment
from tests.samples import WIFI, WIGIG


def run_of(scheme: str, goodput: float, repetition: int = 0, control: str = "cubic") -> Run:
    made = Run(scheme, "normal", control, "default", repetition, 1, detail={"title": scheme})
    made.add("goodput_mbps", goodput, "Mbit/s")
    return made


@pytest.mark.parametrize(
    ("goodput", "benefit"),
    [(0.0, -1.0), (46.16, -0.965), (1000.0, -0.240), (1316.0, 0.0), (1362.16, 1.0)],
)
def test_the_aggregation_benefit_of_the_802_11ad_study(goodput: float, benefit: float) -> None:
    assert aggregation_benefit(goodput, [1316.0, 46.16]) == pytest.approx(benefit, abs=5e-4)


def test_without_two_links_there_is_nothing_to_gain() -> None:
    for capacities in ([1316.0], [1316.0, 0.0], [], [10.0, -1.0, 5.0]):
        with pytest.raises(ValueError, match="capacities"):
            aggregation_benefit(1.0, capacities)


def test_the_benefit_is_over_the_largest_and_over_the_mean_of_the_links_alone(
    tmp_path: Path,
) -> None:
    second = '[[links]]\nname = "wigig"\ntitle = "WiGig"\nrate_mbps = 300.0\nrtt_ms = 2.0\n\n'
    text = GOOD.replace(
        "seconds = 1.0", 'seconds = 1.0\nbenefit = true\ncongestion_control = ["cubic", "reno"]'
    )
    text = text.replace("[[schemes]]\n", second + "[[schemes]]\n", 1)
    trial = load("trial", written(tmp_path, text))
    runs = [run_of("wifi", 100.0), run_of("wifi", 80.0, 1), run_of("wigig", 300.0)]
    ours, other = run_of("sumrate", 390.0), run_of("sumrate", 200.0, control="reno")
    ours.add("path_wifi_mbps", 45.0, "Mbit/s")
    late = replace(run_of("sumrate", 1.0, 1), void=True)
    add_benefits(trial, [*runs, ours, other, late])
    assert ours.value("aggregation_benefit") == pytest.approx(0.9)
    assert ours.value("aggregation_benefit_mean") == pytest.approx(1.0)
    assert ours.value("over_best_link") == pytest.approx(1.3)
    assert ours.value("additive_run") == 1.0
    assert ours.value("path_wifi_ratio") == pytest.approx(0.5)
    assert other.value("aggregation_benefit") == pytest.approx(-1 / 3), "cubic stands for reno"
    assert other.value("additive_run") == 0.0
    assert late.value("additive_run") is None


@pytest.mark.parametrize(
    ("delay_ms", "simple", "delayed", "full", "full_delayed"),
    [
        (5, 8.43, 5.96, 4.67, 3.30),
        (20, 2.41, 1.70, 1.91, 1.35),
        (60, 0.83, 0.59, 0.74, 0.52),
        (100, 0.50, 0.35, 0.46, 0.33),
    ],
)
def test_the_tcp_formula_at_two_per_cent(
    delay_ms: float, simple: float, delayed: float, full: float, full_delayed: float
) -> None:
    rtt = 2 * (delay_ms + 1) / 1e3
    assert sqrt_mbps(rtt, 0.02, b=1) == pytest.approx(simple, abs=0.006)
    assert sqrt_mbps(rtt, 0.02) == pytest.approx(delayed, abs=0.006)
    assert full_mbps(rtt, 0.02, b=1) == pytest.approx(full, abs=0.006)
    assert full_mbps(rtt, 0.02) == pytest.approx(full_delayed, abs=0.006)


def test_the_tcp_formula_ends_at_the_links_rate_and_refuses_what_cannot_be() -> None:
    made = run_of("wifi", 300.0)
    add_padhye(made, WIFI)
    assert made.value("padhye_mbps") == pytest.approx(630 * 1448 / 1500)
    assert sqrt_mbps(0.1, 0.0) == full_mbps(0.1, 0.0) == float("inf")
    for rtt, loss in ((0.0, 0.1), (0.1, 1.5), (-1.0, 0.0)):
        with pytest.raises(ValueError, match="RTT"):
            full_mbps(rtt, loss)


def test_a_session_moves_when_its_radio_goes_dark_and_returns() -> None:
    dark = replace(WIGIG, blackouts=(Blackout(2.0, 5.0), Blackout(8.0, 9.0, "a_to_b")))
    assert moves((dark, WIFI), dark) == [(2.0, WIFI), (5.0, dark)]
    assert moves((dark, WIFI), WIFI) == []
    both = replace(WIFI, blackouts=(Blackout(3.0, 4.0),))
    assert moves((dark, both), dark) == [(2.0, both), (5.0, dark)], "it stays where all are dark"
    late = replace(WIFI, blackouts=(Blackout(1.0, 4.0),))
    assert moves((dark, late), dark) == [(4.0, late), (5.0, dark)]


def test_a_handover_changes_the_route_of_both_ends(tmp_path: Path) -> None:
    said: list[str] = []
    host = SimpleNamespace(run=lambda argv: said.append(" ".join(argv)))
    site = cast(
        Site,
        SimpleNamespace(
            client=host, server=host, links=(WIGIG, WIFI), folder=tmp_path, congestion_control="bbr"
        ),
    )
    with Handover().stream(site) as reach:
        assert reach.address == "192.168.77.1"
    Handover().move(site, WIFI)
    assert said[0] == "ip address add 192.168.77.2/32 dev lo"
    assert "192.168.77.1/32 via 10.1.2.2 dev wigig0 src 192.168.77.2 congctl bbr" in said[1]
    assert "192.168.77.2/32 via 10.1.1.1 dev wifi0 src 192.168.77.1 congctl bbr" in said[4]


def test_a_backup_is_a_word_behind_its_path() -> None:
    options = path_options((WIGIG, WIFI), backup="wifi")
    assert options[1] == "wigig=10.1.2.1@10.1.2.2:4433"
    assert options[3] == "wifi=10.1.1.1@10.1.1.2:4433,backup"


def test_mtu_and_delayed_acks_reach_the_emulator() -> None:
    link = replace(WIGIG, mtu=7912, ack_delay=AckDelay(0.045, 0.046))
    (found,) = tomllib.loads(configuration([link], seed=1))["link"]
    assert (found["mtu"], found["schedule_every_s"], found["schedule_start"]) == (
        7912,
        0.046,
        "trigger",
    )
    assert [(s["at_s"], s["direction"], s["hold"]) for s in found["schedule"]] == [
        (0.0, "a_to_b", True),
        (0.045, "a_to_b", False),
    ]
    assert "mtu" not in tomllib.loads(configuration([WIFI], seed=1))["link"][0]


def test_a_condition_changes_mtu_and_buffers_have_sizes() -> None:
    study = load("dual-band")
    mtus = {c.name: links_of(study, c)[0].mtu for c in study.conditions[:5]}
    assert mtus == {f"mtu-{size}": size for size in (7912, 6000, 4500, 3000, 1500)}
    assert sized_buffers(51_200) == {
        "net.ipv4.tcp_rmem": "4096 51200 51200",
        "net.ipv4.tcp_wmem": "4096 16384 51200",
    }


def test_the_rates_of_802_11ad_are_what_the_model_of_the_module_says() -> None:
    pytest.importorskip("numpy")
    sender = importlib.import_module("sumrate.phy.studies.module").sender

    rates = [385, 770, 962.5, 1155, 1251.25, 1540, 1925, 2310, 2502.5]
    by_mcs = load("dual-band-mcs")
    for condition, rate in zip(by_mcs.conditions, rates, strict=True):
        link = links_of(by_mcs, condition)[0]
        assert link.down.rate_mbps == pytest.approx(float(sender(7912).ip_rate_mbps(rate)), abs=0.1)
    by_mtu = load("dual-band")
    for condition in by_mtu.conditions[:5]:
        link = links_of(by_mtu, condition)[0]
        said = float(sender(link.mtu).ip_rate_mbps(rates[-1]))
        assert link.down.rate_mbps == pytest.approx(said, abs=0.1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("links.wifi.ack_delay = { hold_ms = 9.0, every_ms = 9.0 }", "less than every_ms"),
        (
            "links.wifi.ack_delay = { hold_ms = 1.0, every_ms = 9.0 }\n"
            "links.wifi.blackouts = [[0.1, 0.2]]",
            "excludes blackouts",
        ),
        ("links.wifi.mtu = 100", "Expected `int` >= 576"),
        ("links.wifi.ssthresh = 1", "Expected `int` >= 2"),
        ("links.wifi.unplugged = [[2.0, 1.0]]", "ends before it starts"),
    ],
)
def test_what_a_link_cannot_do_is_refused(tmp_path: Path, change: str, said: str) -> None:
    text = GOOD.replace('title = "normal"\n', f'title = "normal"\n{change}\n')
    with pytest.raises(ExperimentError, match=said):
        load("trial", written(tmp_path, text))


def test_a_backup_must_be_a_link_of_a_scheme_that_has_one(tmp_path: Path) -> None:
    for scheme, said in (
        ('kind = "sumrate"\nbackup = "lte"\n', "is no link"),
        ('kind = "mptcp"\nbackup = "wifi"\n', "has no `backup`"),
    ):
        text = GOOD.replace('kind = "sumrate"\n', scheme)
        with pytest.raises(ExperimentError, match=said):
            load("trial", written(tmp_path, text))


def test_a_congestion_control_that_is_not_loaded_is_missing(tmp_path: Path) -> None:
    known = tmp_path / "available"
    known.write_text("reno cubic\n")
    check_congestion_control("reno", known)
    with pytest.raises(
        Unavailable, match=r"sumrate_lia is not loaded; this kernel has reno, cubic"
    ):
        check_congestion_control("sumrate_lia", known)


def test_a_peer_of_which_hardly_a_run_counts_is_named_with_the_reason() -> None:
    made = [Run("aggligator", "los", "cubic", "default", i, 1) for i in range(5)]
    for run in made:
        run.detail["title"] = "aggligator"
        run.void = run.repetition in (0, 1)
    made[2].detail["error"] = "the tunnel was closed"
    (entry,) = manifest(load("lap"), made, {})["schemes"]
    assert entry["missing_in_part"] == [
        "los: 2 of 5 runs count: the emulator was late beside it; the tunnel was closed"
    ]
    made[2].detail.pop("error")
    (entry,) = manifest(load("lap"), made, {})["schemes"]
    assert "missing_in_part" not in entry, "most of them count"


def test_what_is_missing_in_part_is_said_and_hides_nothing() -> None:
    there, gone = run_of("mptcp", 1.0), run_of("mptcp", 1.0, control="sumrate_lia")
    gone.detail["missing"] = "not loaded"
    never = run_of("tquic", 1.0)
    never.detail["missing"] = "not installed"
    mptcp, tquic = manifest(experiment(), [there, gone, never], {})["schemes"]
    assert (mptcp.get("missing"), mptcp["missing_in_part"]) == (None, ["not loaded"])
    assert tquic["missing"] == "not installed"


def test_phases_and_what_links_carried() -> None:
    made = run_of("mptcp", 1.0)
    add_phases(made, Bins(0.005, [1250] * 200 + [0] * 200), [(0.0, 1.0), (1.0, 2.0)])
    assert made.value("phase_1_mbps") == pytest.approx(2.0)
    assert made.value("phase_2_mbps") == 0.0
    add_carried(made, {"links": [carried("wifi", 3_000_000)]})
    assert made.value("carried_wifi_mbytes") == 3.0


def carried(name: str, count: int, *, asleep_s: float = 0.0) -> dict[str, Any]:
    """A link in the emulator's counters."""
    radio = {"wakes": 4, "asleep_ns": round(asleep_s * 1e9)}
    return {"name": name, "radio": radio, "b_to_a": {"counters": {"bytes_out": count}}}


def test_how_long_radios_sleep() -> None:
    made = run_of("sumrate", 1.0)
    links = [carried("wifi", 1, asleep_s=5.0), carried("lte", 1)]
    add_sleep(made, {"uptime_s": 20.0, "links": links}, ["wifi"])
    assert made.value("asleep_wifi_share") == 0.25
    assert made.value("wakes_wifi") == 4
    assert made.value("wakes_lte") is None, "it never sleeps"


def test_kernel_mptcp_over_one_link_only_is_a_failed_run() -> None:
    daily, made = load("daily"), run_of("mptcp", 1.0)
    both = {"links": [carried("wifi", 9), carried("wigig", 9)]}
    one = {"links": [carried("wifi", 9), carried("wigig", 0)]}
    check_carried(daily, KernelMptcp(), made, both)
    check_carried(daily, Sumrate(), made, one)
    check_carried(daily, KernelMptcp(), made, {})
    check_carried(load("blackout"), KernelMptcp(), made, one)
    with pytest.raises(RuntimeError, match=r"left a link unused \(wigig\)"):
        check_carried(daily, KernelMptcp(), made, one)
    made.add("git_clone_least_link_kbytes", 0.0, "kB")
    with pytest.raises(RuntimeError, match="git_clone"):
        check_carried(daily, KernelMptcp(), made, both)


def test_round_trips_and_rates_are_of_the_busiest_connection() -> None:
    line = "0 0 10.1.1.2:5201 10.1.1.1:9\n\t cubic rtt:{} mss:1000 cwnd:10 bytes_acked:{}\n"
    text = "sample\n" + line.format("4/1", 5) + line.format("8/1", 900)
    assert round_trips_of(text) == {"10.1.1.2": [8.0]}
    assert rates_of(text)["10.1.1.2"][0].window == pytest.approx(10.0)


def packet(at_ms: float, source: str, target: str, *, seq: int = 0, ack: int = 0, size: int = 0,
           flags: int = 16, options: bytes = b"", ports: tuple[int, int] | None = None,
           ) -> bytes:  # fmt: skip
    """A packet as the capture has it: head, IP, TCP; payload is only counted."""
    head = 20 + len(options)
    addresses = [bytes(map(int, address.split("."))) for address in (source, target)]
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 6, 0, *addresses)
    ports = ports or ((5201, 9) if source.endswith(".2") else (9, 5201))
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, head // 4 << 4, flags, 0, 0, 0)
    data = ip + tcp + options
    ns = round(at_ms * 1e6)
    length = len(data) + size
    return PCAP_PACKET.pack(7 + ns // 10**9, ns % 10**9, len(data), length) + data


def capture(path: Path, *packets: bytes) -> Path:
    head = PCAP_HEAD.pack(NANOSECONDS, 2, 4, 0, 0, FRAME, RAW_IP)
    path.write_bytes(head + b"".join(packets))
    return path


CLIENT, SERVER = "10.1.1.1", "10.1.1.2"
SELECTIVE = bytes([1, 1, 5, 10]) + bytes(8)


def test_a_capture_says_what_each_subflow_carried(tmp_path: Path) -> None:
    top = 2**32 - 1000
    path = capture(
        tmp_path / "receiver.pcap",
        packet(0, CLIENT, SERVER, flags=2),
        packet(0, "10.1.2.2", "10.1.2.1", seq=1, size=4),
        packet(1, SERVER, CLIENT, seq=top, size=1000),
        packet(2, CLIENT, SERVER, ack=0),
        packet(50, SERVER, CLIENT, seq=1000, size=1000),
        packet(51, CLIENT, SERVER, ack=0, options=SELECTIVE),
        packet(120, SERVER, CLIENT, seq=0, size=1000),
        packet(121, CLIENT, SERVER, ack=2000),
        packet(130, "10.1.2.2", "10.1.2.1", seq=5, size=500),
    )
    found = subflows(read(path), [CLIENT, "10.1.2.1"])
    flow = found[CLIENT]
    assert (flow.payload, flow.repeated, flow.acks, flow.selective_acks) == (3000, 1000, 3, 1)
    assert flow.series(0.3) == [(0.05, 0.16), (0.15, 0.08), (0.25, 0.0)]
    assert found["10.1.2.1"].payload == 500
    made = run_of("mptcp", 1.0)
    rates = add_subflows(made, (WIFI, WIGIG), path, warmup_s=0.1, seconds=0.2)
    assert rates == {"wifi": pytest.approx(0.04), "wigig": pytest.approx(0.02)}
    beside = add_subflows(
        run_of("mptcp", 1.0), (WIFI, WIGIG), path, warmup_s=0.1, seconds=0.2, without=[5201]
    )
    assert not beside, "all of it came from that port"
    assert made.value("path_wifi_sack_share") == pytest.approx(1 / 3)
    assert made.value("path_wifi_kbytes_per_ack") == pytest.approx(1.0)
    assert [rate for _, rate in made.series] == pytest.approx([0.16, 0.12, 0.0])


def shared_wire(path: Path, *, second: bool) -> Path:
    """Kernel MPTCP over two links of one wire: both subflows come to the first one's address."""
    one, two = links_of(load("rfc6356"), load("rfc6356").conditions[1])
    assert (one.server_ip, two.wire) == (SERVER, "one")
    on_two = (two.server_ip, CLIENT)
    packets = [packet(0, SERVER, CLIENT, seq=1, size=60_000, ports=(5201, 8))]
    for at in range(50, 7000, 50):
        packets.append(packet(at, SERVER, CLIENT, seq=1000 * at, size=50_000, ports=(5201, 8)))
        if second:
            packets.append(packet(at, *on_two, seq=100 * at, size=3_000, ports=(5201, 9)))
    # Before the time that counts, of a control connection, and of a TCP beside.
    packets.append(packet(1000, *on_two, size=50_000, ports=(5201, 10)))
    packets.append(packet(6000, *on_two, size=2_000, ports=(5201, 7)))
    packets.append(packet(6000, *on_two, size=50_000, ports=(5300, 9)))
    return capture(path, *packets)


@pytest.mark.parametrize("second", [True, False])
def test_connections_that_share_a_wire_are_told_apart(tmp_path: Path, *, second: bool) -> None:
    path = shared_wire(tmp_path / "receiver.pcap", second=second)
    links = links_of(load("rfc6356"), load("rfc6356").conditions[1])
    found = connections_by_link(links, path, warmup_s=2.0, seconds=5.0, without=[5300])
    assert found == {"one": 1, "two": int(second)}


@pytest.mark.parametrize("second", [True, False])
def test_a_run_whose_second_subflow_never_came_is_refused_on_a_shared_wire_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, second: bool
) -> None:
    path = shared_wire(tmp_path / "receiver.pcap", second=second)
    monkeypatch.setattr(methods, "captured", lambda _: nullcontext(path))
    monkeypatch.setattr(methods, "competitors", lambda *_: nullcontext([]))
    monkeypatch.setattr(KernelMptcp, "bench", lambda *_: Measurement(9.0, "iperf3", {}))
    study = load("rfc6356")
    built = cast("Scene", SimpleNamespace(links=links_of(study, study.conditions[1])))
    traffic = methods.Traffic(study, study.conditions[1])
    never = pytest.raises(methods.MissingSubflowError, match="nothing over two: the subflow")
    with nullcontext() if second else never:
        methods.benchmark(run_of("mptcp", 9.0), KernelMptcp(), built, traffic)


def test_a_broken_capture_is_refused(tmp_path: Path) -> None:
    whole = capture(tmp_path / "a.pcap", packet(1, SERVER, CLIENT, size=10)).read_bytes()
    for cut in (3, len(whole) - 1, PCAP_HEAD.size + 4):
        (tmp_path / "b.pcap").write_bytes(whole[:cut])
        with pytest.raises(CaptureError, match=r"b\.pcap"):
            list(read(tmp_path / "b.pcap"))
    (tmp_path / "b.pcap").write_bytes(b"\0" * 40)
    with pytest.raises(CaptureError, match="unknown"):
        list(read(tmp_path / "b.pcap"))


def test_steadiness_and_the_time_to_the_full_rate() -> None:
    ramp = [(0.05 + i / 10, min(100.0, 20.0 * i)) for i in range(30)]
    assert full_rate_after_s(ramp) == pytest.approx(0.5)
    assert full_rate_after_s(ramp[:3]) is None
    assert variation([(0.0, 5.0), (0.1, 5.0)]) == 0.0
    assert variation([(0.0, 0.0), (0.1, 10.0)]) == pytest.approx(1.0)
    assert variation([]) is None


def test_what_a_subflow_has_at_first_and_once_the_other_one_has_its_full_rate(
    tmp_path: Path,
) -> None:
    """802.11ad climbs for 0.5 s and then has everything; 802.11ac falls at 0.5 s."""
    packets = []
    for step in range(20):
        at = 100.0 * step + (40.0 if step else 0.0)
        climbing = min(2_500, 500 * (step + 1))
        falling = 1_000 if step < 5 else 125
        packets.append(packet(at, "10.1.2.2", "10.1.2.1", seq=10_000 * step, size=climbing))
        packets.append(packet(at + 1, SERVER, CLIENT, seq=10_000 * step, size=falling))
    made = run_of("mptcp", 1.0)
    path = capture(tmp_path / "receiver.pcap", *packets)
    add_subflows(made, (WIFI, WIGIG), path, warmup_s=0.0, seconds=2.0)
    assert made.value("path_wigig_first_mbps") == pytest.approx((0.04 + 0.08 + 0.12) / 3)
    assert made.value("path_wigig_full_rate_after_s") == pytest.approx(0.4)
    # From 0.4 s on: once 0.08 Mbit/s, then fifteen times 0.01.
    assert made.value("path_wifi_after_others_mbps") == pytest.approx((0.08 + 15 * 0.01) / 16)


def test_what_each_link_carried_in_each_phase() -> None:
    """A link that delivers 1000 bytes at each reading: at 0, 50, 100 and 200 ms."""
    count = itertools.count(1)

    def stats() -> dict[str, object]:
        towards_client = {"counters": {"bytes_out": 1000 * next(count)}}
        return {"links": [{"name": "wifi", "b_to_a": towards_client}]}

    made, times = run_of("mptcp", 1.0), iter([0.0, 0.05, 0.1, 0.2])
    phases = [(0.0, 0.1), (0.05, 0.2)]
    with PhaseCounters(stats, phases, clock=lambda: next(times)) as counters:
        counters.start()
    counters.add(made)
    # Two readings later each: 2000 bytes in 100 and 150 ms.
    assert made.value("carried_wifi_phase_1_mbps") == pytest.approx(0.16)
    assert made.value("carried_wifi_phase_2_mbps") == pytest.approx(2000 * 8e-6 / 0.15)


def test_counters_that_cannot_be_read_fail_the_run() -> None:
    def stats() -> dict[str, object]:
        raise RuntimeError("the emulator is gone")

    counters = PhaseCounters(stats, [(0.0, 0.01)])
    with pytest.raises(RuntimeError, match="the emulator is gone"), counters:
        counters.start()


def test_without_phases_no_counter_is_read() -> None:
    made = run_of("mptcp", 1.0)
    with PhaseCounters(dict, ()) as counters:
        counters.start()
    counters.add(made)
    assert [metric.name for metric in made.metrics] == ["goodput_mbps"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "sumrate"\n', 'kind = "sumrate"\npolicy = ["lte=backup2"]\n', "of `lte`"),
        ('kind = "sumrate"\n', 'kind = "sumrate"\npolicy = ["wifi=backup2"]\n', "has no `policy`"),
    ],
)
def test_a_policy_is_of_a_link_and_of_a_client_that_takes_one(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(ExperimentError, match=said):
        load("trial", written(tmp_path, GOOD.replace(old, new)))


def test_a_policy_reaches_the_client() -> None:
    (ours,) = [
        scheme
        for scheme in schemes_of(load("switchover"), (WIFI, WIGIG), "cubic", "default")
        if scheme.name == "sumrate-priority"
    ]
    assert isinstance(ours, Sumrate)
    assert ours.policies() == ["--policy", "wifi=backup2"]
