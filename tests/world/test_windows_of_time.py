"""Suspended machines, clocks that jump, full disks, upgrades under load, and crowds of clients."""

import json
import os
import resource
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sumrate.lab.namespaces import run
from sumrate.lab.process import Process, listening
from sumrate.lab.programs import program
from tests.world.scene import ECHO_PORT, INTERNET_IP, SERVER_IP, SERVER_PORT, SOCKS_PORT, World

LIBFAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
YEAR_S = 31_557_600
URL = f"http://{INTERNET_IP}/"
CROWD = 20
ADDRESS = f"{SERVER_IP}:{SERVER_PORT}"
SHORT_CONNECTIONS, SHORT_RATE = 10_000, 900
IDLE_CONNECTIONS = 2_000
SPEAKER_PORT = 8900
SLOWEST_MS = 2000.0
"""A connection takes milliseconds here; a busy machine is given this time."""


def answered(world: World, *options: str) -> bool:
    """Whether a request by the proxy gets its answer."""
    said = world.curl(URL, *options)
    return said.startswith("{") and json.loads(said)["path"] == "/"


def within(world: World, seconds: float, *options: str) -> float:
    """Seconds until a request by the proxy gets its answer."""
    begun = time.monotonic()
    while not answered(world, "--connect-timeout", "2", "--max-time", "3", *options):
        assert time.monotonic() - begun < seconds, world.curl(URL)
        time.sleep(0.1)
    return time.monotonic() - begun


def clock(world: World, name: str, offset_s: int) -> dict[str, str]:
    """Environment of a program whose wall clock is off by what the file of this name says."""
    (world.folder / name).write_text(f"{offset_s:+d}", encoding="ascii")
    return {
        "LD_PRELOAD": str(LIBFAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(world.folder / name),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Programs that start here inherit these."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.situation("the wall clock jumps by 20 years, either way", plain="goes on")
def test_a_clock_that_jumps_ends_no_session(world: World) -> None:
    if not LIBFAKETIME.exists():
        pytest.skip("libfaketime not found")
    world.web()
    with environment(clock(world, "server-clock", 0)):
        world.serve()
    with environment(clock(world, "client-clock", 0)):
        up = world.up()
    world.wait_for_paths(up)
    session = world.status()["sessions"][0]["id"]
    for years in (20, -20, 0):
        for name in ("client-clock", "server-clock"):
            (world.folder / name).write_text(f"{years * YEAR_S:+d}", encoding="ascii")
            assert answered(world), f"{name} {years:+d} years"
            world.wait_for_paths(up)
    assert world.status()["sessions"][0]["id"] == session, "it is the first session"
    up.stop()
    with environment(clock(world, "client-clock", -YEAR_S * 50)):
        world.up(name="old")
    assert answered(world), "a client without a battery for its clock connects"
    world.measured("the session goes on; a client whose clock is at 1976 connects")


@pytest.mark.situation(
    "a laptop sleeps, NATs forget its connections, the server forgets the session",
    plain="hangs for minutes",
)
def test_a_suspended_client_is_back_soon(world: World) -> None:
    world.web()
    server = world.serve()
    up = world.up()
    world.wait_for_paths(up)
    os.kill(up.pid, signal.SIGSTOP)
    for radio in world.radios.values():
        # Packets of connections that the router does not know vanish.
        radio.router.sysctl("net.netfilter.nf_conntrack_tcp_loose", "0")
        radio.router.filter("unknown", {"forward": "ct state invalid drop"}, priority=-5)
        radio.router.run(["conntrack", "--flush"])
    server.stop()
    world.serve()
    os.kill(up.pid, signal.SIGCONT)
    took = within(world, 12.0)
    world.wait_for_paths(up)
    world.measured(f"a request is answered {took:.1f} s after the machine wakes")


def asleep(world: World) -> dict[str, str]:
    """Environment of a program for which a machine sleeps as long as the file `slept` says."""
    library = world.folder / "boottime.so"
    run(["cc", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).parent / "boottime.c")])
    (world.folder / "slept").write_text("0", encoding="ascii")
    return {"LD_PRELOAD": str(library), "BOOTTIME_FILE": str(world.folder / "slept")}


@pytest.mark.situation(
    "a laptop sleeps for 40 s with a connection on which only the other end sends",
    plain="hears nothing any more",
)
def test_what_waits_for_a_suspended_client_arrives(world: World) -> None:
    world.serve()
    with environment(asleep(world)):
        up = world.up()
    world.wait_for_paths(up)
    go, heard = world.folder / "go", world.folder / "heard"
    speaker = world.python(world.internet, "load", "speak", str(SPEAKER_PORT), str(go))
    speaker.wait_until(lambda: listening(world.internet, SPEAKER_PORT), "it listens")
    words = (str(SOCKS_PORT), INTERNET_IP, str(SPEAKER_PORT), str(heard))
    hearer = world.python(world.client, "load", "hear", *words, name="hearer")
    hearer.wait_until(heard.exists, "the connection is there", 10.0)
    # Since then no timer of the client has been due, as its processor did not run.
    os.kill(up.pid, signal.SIGSTOP)
    for radio in world.radios.values():
        radio.router.sysctl("net.netfilter.nf_conntrack_tcp_loose", "0")
        radio.router.filter("unknown", {"forward": "ct state invalid drop"}, priority=-5)
        radio.router.run(["conntrack", "--flush"])
    (world.folder / "slept").write_text("40", encoding="ascii")
    go.touch()
    os.kill(up.pid, signal.SIGCONT)
    # The radio connects again, as it does after each suspension.
    world.client.run(["ip", "link", "set", "lo", "mtu", "65000"])
    begun = time.monotonic()
    # Without that news the client finds out after 5 s.
    hearer.wait_until(lambda: heard.read_text(encoding="ascii") != "", "it hears", 3.5)
    world.measured(
        f"what was sent meanwhile arrives {time.monotonic() - begun:.1f} s after it wakes"
    )


@contextmanager
def small_disk(folder: Path, *options: str) -> Iterator[Path]:
    """A file system of 256 KiB in memory."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    run(["mount", "-t", "tmpfs", "-o", ",".join(["size=256k", *options]), "tmpfs", str(disk)])
    try:
        yield disk
    finally:
        run(["umount", "--lazy", str(disk)])


@pytest.mark.situation("the disk of the state directory is full, then read-only", plain="works")
def test_a_full_or_read_only_state_directory_harms_no_session(world: World) -> None:
    world.web()
    with small_disk(world.folder) as disk:
        server = world.serve(state="disk/server")
        quota = ("--state", str(disk / "client"), "--policy", "lte0=quota=1G")
        up = world.up(*quota)
        world.wait_for_paths(up)
        with suppress(OSError), (disk / "fill").open("wb", buffering=0) as fill:
            while fill.write(bytes(4096)):
                pass
        add = [
            str(program("sumrate")),
            "credential",
            "add",
            "--name",
            "late",
            "--advertise",
            ADDRESS,
        ]
        where = ["--state", str(disk / "server")]
        full = world.run(world.server, [*add, *where])
        assert full.returncode == 2 and "No space left" in full.stderr, full.stderr
        assert str(disk / "server") in full.stderr, full.stderr
        assert answered(world), "with a full disk"
        up.stop()
        server.stop()
        run(["mount", "-o", "remount,ro", str(disk)])
        readonly = world.run(world.server, [*add, *where])
        assert readonly.returncode == 2 and "Read-only file system" in readonly.stderr
        world.serve(state="disk/server", name="later")
        world.up(*quota, link=world.link_file())
        assert answered(world), "both ends start with a read-only disk"
    world.measured(f"sessions go on; `credential add` fails: {full.stderr.strip()[-60:]}")


@pytest.mark.situation("either end is upgraded during a download", plain="the download breaks")
def test_an_upgrade_of_either_end_costs_seconds(world: World) -> None:
    world.web()
    server = world.serve()
    up = world.up()
    world.wait_for_paths(up)
    gaps = []
    for end in ("server", "client"):
        flood = world.python(
            world.client, "load", "connect", str(SOCKS_PORT), "20", "9", str(ECHO_PORT), "0",
            INTERNET_IP, name=f"load-{end}",
        )  # fmt: skip
        time.sleep(1.0)
        begun = time.monotonic()
        if end == "server":
            server.stop()
            world.serve()
        else:
            up.stop()
            up = world.up()
        within(world, 10.0)
        gaps.append(time.monotonic() - begun)
        flood.stop()
    world.wait_for_paths(up)
    world.measured(f"requests are answered again {gaps[0]:.1f} s after the server's restart began, "
                   f"{gaps[1]:.1f} s after the client's")  # fmt: skip


@pytest.mark.situation(
    f"{CROWD} clients behind one address restart at once", plain="all connect at once"
)
def test_a_crowd_behind_one_address_connects(world: World) -> None:
    world.web()
    world.serve()
    begun = time.monotonic()
    crowd = [
        world.up(name=f"up{number}", socks_port=SOCKS_PORT + number, wait=False)
        for number in range(CROWD)
    ]
    for number, up in enumerate(crowd):
        ready = world.folder / f"up{number}.ready"
        up.wait_until(ready.exists, f"client {number} is ready", 15.0)
    took = time.monotonic() - begun
    for number in range(CROWD):
        proxy = f"socks5h://127.0.0.1:{SOCKS_PORT + number}"
        assert world.curl(URL, proxy=proxy).startswith("{"), f"client {number}"
    world.measured(f"the last of {CROWD} was ready after {took:.1f} s")


def proportion(world: World, rate: int, seconds: float, hold: bool, name: str) -> list[object]:
    """Connections at a rate by the proxy to the echo server; milliseconds or failures."""
    words = [str(SOCKS_PORT), str(rate), str(seconds), str(ECHO_PORT), str(int(hold)), INTERNET_IP]
    process = world.python(world.client, "load", "connect", *words, name=name)
    assert process.wait(60.0) == 0, process.tail()
    found: list[object] = json.loads(process.log.read_text(encoding="utf-8").splitlines()[-1])
    return found


def descriptors(process: Process) -> int:
    """Descriptors that a program has open."""
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


@pytest.mark.situation("10,000 short connections", plain="all are made")
def test_ten_thousand_short_connections_leave_nothing_behind(world: World) -> None:
    world.echo()
    server, up = world.serve(), world.up()
    world.wait_for_paths(up)
    proportion(world, 50, 1.0, hold=False, name="warm")
    before = descriptors(server), descriptors(up)
    took: list[object] = []
    while (left := SHORT_CONNECTIONS - len(took)) > 0:
        took += proportion(world, SHORT_RATE, left / SHORT_RATE, hold=False, name="short")
    failed = [ms for ms in took if not isinstance(ms, float)]
    assert not failed, (len(failed), failed[:3])
    up.wait_until(
        lambda: descriptors(server) <= before[0] + 8 and descriptors(up) <= before[1] + 8,
        "descriptors are closed", 15.0,
    )  # fmt: skip
    world.measured(f"all of {len(took)} are made; no descriptor is left open")


@pytest.mark.situation("2,000 idle connections beside one that is used", plain="no effect")
def test_two_thousand_idle_connections_slow_nobody(world: World) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    world.echo()
    world.web()
    world.serve()
    up = world.up()
    world.wait_for_paths(up)
    alone = proportion(world, 20, 1.0, hold=False, name="alone")
    rate, seconds = 300, IDLE_CONNECTIONS / 300 + 2.5
    words = [str(SOCKS_PORT), str(rate), str(seconds), str(ECHO_PORT), "1", INTERNET_IP]
    idle = world.python(world.client, "load", "connect", *words, name="idle")
    idle.wait_until(
        lambda: descriptors(up) > IDLE_CONNECTIONS, f"{IDLE_CONNECTIONS} are open", seconds + 5
    )
    beside = proportion(world, 20, 1.0, hold=False, name="beside")
    made = [[ms for ms in took if isinstance(ms, float)] for took in (alone, beside)]
    assert len(made[1]) == len(beside), beside
    assert max(made[1]) < SLOWEST_MS, beside
    medians = [statistics.median(ms) for ms in made]
    world.measured(f"a new connection takes {medians[1]:.1f} ms ({medians[0]:.1f} ms without them)")
