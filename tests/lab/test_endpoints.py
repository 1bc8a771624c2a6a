"""How the schemes' commands are built and their answers read; nothing is started."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sumrate.lab.endpoints import (
    Aggligator,
    KernelMptcp,
    KernelMptcpBackup,
    Scheme,
    SinglePath,
    Sumrate,
    Tquic,
    Unavailable,
    aggligator,
    mptcp,
    tquic,
)
from sumrate.lab.endpoints import sumrate as sumrate_endpoint
from sumrate.lab.endpoints.sumrate import ALLOWANCE_BYTES, CLASSES, copies_by_class
from sumrate.lab.namespaces import Host
from sumrate.lab.payload import Payload
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Site
from tests.samples import WIFI, WIGIG

BLUE, YELLOW = "\x1b[38;5;12m", "\x1b[38;5;8m"


class FakeHost:
    """Notes the commands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.commands: list[str] = []

    def run(self, argv: list[str]) -> str:
        self.commands.append(" ".join(argv))
        return ""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = SimpleNamespace(
        client=FakeHost("client"),
        server=FakeHost("server"),
        links=(WIFI, WIGIG),
        folder=tmp_path,
        congestion_control="cubic",
    )
    return cast(Site, made)


def commands(host: Host) -> list[str]:
    return cast(FakeHost, host).commands


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which every peer is installed."""
    folder = tmp_path / "peers" / "bin"
    folder.mkdir(parents=True)
    for name in ("agg-speed", "agg-tunnel", "tquic_server", "tquic_client"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    return folder


def test_missing_peers_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    with pytest.raises(Unavailable, match="make peers"):
        Aggligator().check()
    with pytest.raises(Unavailable, match="make peers"):
        Tquic().check()


def test_installed_peers_are_there(peers: Path) -> None:
    Aggligator().check()
    (peers / "agg-tunnel").unlink()
    with pytest.raises(Unavailable, match="agg-tunnel"):
        Aggligator().check()


def test_tquic_has_its_own_schedulers_only(peers: Path) -> None:
    Tquic(options=("roundrobin",)).check()
    with pytest.raises(Unavailable, match="minrtt or roundrobin, not 'blest'"):
        Tquic(options=("blest",)).check()


def test_names_are_different_and_can_be_chosen() -> None:
    schemes: list[Scheme] = [KernelMptcp(), KernelMptcpBackup(), Sumrate(), Aggligator(), Tquic()]
    assert len({s.name for s in schemes}) == len(schemes)
    thesis = Sumrate("thesis", "Thesis", ("--window-mode", "thesis"))
    assert (thesis.name, thesis.options) == ("thesis", ("--window-mode", "thesis"))


def test_sumrate_options_reach_both_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class FakeProcess:
        command_line = "fake"

        def __init__(self, argv: list[str], **_: object) -> None:
            started.append(argv)

        def wait_until(self, *_: object) -> None:
            pass

        def __enter__(self) -> "FakeProcess":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(sumrate_endpoint, "Process", FakeProcess)
    monkeypatch.setattr(sumrate_endpoint, "program", Path)
    options = ("--window-mode", "thesis", "--redundancy", "rtt-wait", "--scheduler", "two-ended")
    with Sumrate(options=options).stream(site) as reach:
        assert reach.socks == ("127.0.0.1", 1080)
        assert reach.listen_address == reach.address == "192.168.77.1"
        assert set(reach.processes) == {"sumrate serve", "sumrate up"}
    assert [argv[1] for argv in started] == ["serve", "up"]
    assert all(tuple(argv[-6:]) == options for argv in started)


def test_single_path_is_a_plain_connection(site: Site) -> None:
    with SinglePath(WIGIG, "WiGig alone").stream(site) as reach:
        assert (reach.address, reach.listen_address) == ("10.1.2.2", "10.1.2.2")
        assert (reach.mptcp, reach.socks) == (False, None)


def test_full_mesh_announces_the_other_links(site: Site) -> None:
    with KernelMptcp().stream(site) as reach:
        assert (reach.address, reach.mptcp) == ("10.1.1.2", True)
    assert commands(site.server)[1:] == ["ip mptcp endpoint add 10.1.2.2 signal"]


@pytest.mark.parametrize(
    ("scheme", "address", "endpoint"),
    [
        (KernelMptcpBackup(), "10.1.1.2", "10.1.2.2 signal backup"),
        (KernelMptcpBackup(backup="wifi"), "10.1.2.2", "10.1.1.2 signal backup"),
        (KernelMptcp(first="wigig"), "10.1.2.2", "10.1.1.2 signal"),
    ],
)
def test_the_connection_does_not_begin_on_the_backup(
    site: Site, scheme: KernelMptcp, address: str, endpoint: str
) -> None:
    with scheme.stream(site) as reach:
        assert reach.address == address
    assert commands(site.server)[1:] == [f"ip mptcp endpoint add {endpoint}"]


def test_one_link_has_no_backup(site: Site) -> None:
    site.links = (WIFI,)
    assert KernelMptcpBackup().prepare(site)[0] == WIFI.server_ip
    with pytest.raises(Unavailable, match="no link 'wigig'"):
        mptcp.link_named(site, "wigig")


@pytest.mark.parametrize(
    ("line", "mbps"),
    [
        ("Downstream:  210.5 MB/s", 210.5 * 2**20 * 8e-6),
        (f"Downstream: {BLUE}   1.2\x1b[39m {YELLOW}GB/s\x1b[39m", 1.2 * 2**30 * 8e-6),
        ("Downstream:     12 B/s ", 12 * 8e-6),
        ("Upstream:  210.5 MB/s", None),
    ],
)
def test_aggligator_speed_is_read(line: str, mbps: float | None) -> None:
    assert aggligator.downstream_mbps(f"starting\n{line}\nExiting...\n") == pytest.approx(mbps)


@pytest.mark.usefixtures("peers")
def test_aggligator_uses_every_link_and_only_what_was_received() -> None:
    argv = aggligator.speed_command((WIFI, WIGIG), 9.2)
    assert argv[1:] == [
        *("client", "-4", "-n", "-r", "-t", "10"),
        *("--tcp", "10.1.1.2:5700", "--tcp", "10.1.2.2:5700"),
    ]


def test_aggligator_crosses_no_links(site: Site) -> None:
    aggligator.keep_to_links(site)
    made = commands(site.server)
    assert made[0] == "ip rule add lookup local priority 101"
    assert "ip rule add iif wifi0 to 10.1.2.2/32 unreachable priority 100" in made
    assert "ip rule add iif wigig0 to 10.1.1.2/32 unreachable priority 100" in made
    assert made[-1] == "ip rule delete lookup local priority 0"


@pytest.mark.usefixtures("peers")
def test_tquic_gets_the_scene_congestion_control(tmp_path: Path) -> None:
    argv = tquic.client_command((WIFI, WIGIG), "bbr", "roundrobin", tmp_path)
    text = " ".join(argv)
    assert "--local-addresses 10.1.1.1,10.1.2.1 --congestion-control-algor BBR" in text
    assert "--enable-multipath --multipath-algor roundrobin" in text
    with pytest.raises(Unavailable, match="vegas"):
        tquic.congestion_control("vegas")


def test_tquic_paths_have_routes_of_their_own(site: Site) -> None:
    assert len(tquic.add_routes(site)) == 4
    assert commands(site.client)[-2:] == [
        "ip route replace 192.168.77.1 via 10.1.2.2 table 101",
        "ip rule add from 10.1.2.1 table 101",
    ]


def test_tquic_intervals_come_from_the_bins() -> None:
    bins = {"step_s": 0.005, "bytes": [1000 * (i + 1) for i in range(45)]}
    found = tquic.intervals(bins)
    assert [(i["start_s"], i["end_s"]) for i in found] == [(0.0, 0.1), (0.1, 0.2)]
    assert [i["goodput_mbps"] for i in found] == pytest.approx([1.6, 1.6])


def test_tquic_file_fits_the_time() -> None:
    assert tquic.file_bytes((WIFI,), 7) == 630 * 125_000 * 10
    assert tquic.file_bytes((WIFI, WIGIG), 7) == 800 * 125_000 * 10


def test_tquic_carries_no_other_programs(site: Site) -> None:
    with pytest.raises(Unavailable, match="no other program"):
        Tquic().stream(site)
    with pytest.raises(Unavailable, match="curl"):
        Tquic().download(site, Payload(Path(), 0, ""))


def carried(name: str, sent: int, copies: int, chosen: int) -> dict[str, object]:
    return {
        "class": name,
        "sent_bytes": sent,
        "redundant_bytes": copies,
        "chosen_bytes": chosen,
    }


def test_copies_of_a_class_are_of_both_ends_and_the_allowance_is_each_senders() -> None:
    server = {"classes": [carried("background", 9_000_000, 200_000, 100_000)]}
    client = {"classes": [carried("background", 1_000_000, 60_000, 60_000)]}
    found = copies_by_class([server, client])
    assert found["sent_background_mbytes"] == (10.0, "MB")
    assert found["redundant_background_share"][0] == pytest.approx(0.026)
    assert found["chosen_background_share"][0] == pytest.approx(0.016)
    beyond = (100_000 - 65_536) / 10_000_000
    assert found["unallowed_background_share"][0] == pytest.approx(beyond)


def test_a_class_that_sent_nothing_has_shares_of_nothing() -> None:
    found = copies_by_class([{"classes": []}])
    assert found["sent_streaming_mbytes"] == (0.0, "MB")
    assert found["redundant_streaming_share"] == (0.0, "ratio")
    assert found["unallowed_streaming_share"] == (0.0, "ratio")


def test_the_allowances_are_those_of_the_transport() -> None:
    source = REPOSITORY / "crates" / "fbdt-proto" / "src" / "config" / "budget.rs"
    default = source.read_text(encoding="utf-8").partition("pub const DEFAULT")[2]
    said = re.findall(r"allowance: (\d+) << (\d+)", default)[: len(CLASSES)]
    assert [int(number) << int(shift) for number, shift in said] == [
        ALLOWANCE_BYTES[name] for name in CLASSES
    ]
