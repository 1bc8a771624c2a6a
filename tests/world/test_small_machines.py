"""Machines with little memory and one processor."""

import re
import time
from pathlib import Path

import pytest

from sumrate.lab.links import Impairment
from sumrate.lab.namespaces import Host
from sumrate.lab.process import Process, listening
from tests.world.scene import INTERNET_IP, LTE, SOCKS_PORT, WIFI, World

MEMORY = 64 << 20
"""What the control group of each end allows."""
LONG = Impairment(rate_mbps=300.0, delay_ms=100.0)
SOURCE_PORT, SECONDS = 8000, 9.0
LEAST_MBPS = 20.0
"""A download comes in at all, also on a busy machine."""


def most_memory(process: Process) -> int:
    """The largest memory that a program has had, in bytes."""
    text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    [kibibytes] = re.findall(r"VmHWM:\s+(\d+) kB", text)
    return int(kibibytes) << 10


def in_sockets(node: Host) -> int:
    """Bytes that the kernel holds for TCP connections of a node."""
    text = node.run(["ss", "--tcp", "--memory", "--no-header", "state", "established"])
    found = re.findall(r"skmem:\(r(\d+),rb\d+,t(\d+),tb\d+,f(\d+),w(\d+)", text)
    return sum(int(received) + int(queued) for received, _, _, queued in found)


@pytest.mark.situation(
    "64 MiB and one processor, radios of 300 Mbit/s and 200 ms, a program that does not read",
    plain="works",
    shapes={WIFI: LONG, LTE: LONG},
)
def test_both_ends_keep_within_their_memory(world: World) -> None:
    group = world.folder / "group"
    group.mkdir()
    (group / "memory.max").write_text(f"{MEMORY}\n", encoding="ascii")
    small = 'mount --bind "$1" /sys/fs/cgroup && shift && exec taskset --cpu-list 0 "$@"'
    prefix = ("sh", "-c", small, "sh", str(group))
    source = world.python(world.internet, "bulk", "source", str(SOURCE_PORT))
    source.wait_until(lambda: listening(world.internet, SOURCE_PORT), "the source listens")
    server = world.serve(prefix=prefix)
    up = world.up(prefix=prefix)
    world.wait_for_paths(up)
    # asyncio stops reading at twice its limit of 64 KiB.
    words = [str(SOCKS_PORT), INTERNET_IP, str(SOURCE_PORT), str(SECONDS)]
    world.python(world.client, "bulk", "stall", *words, name="stalled")
    sink = world.python(
        world.client, "bulk", "sink", *words, name="sink"
    )  # fmt: skip
    most, end = {"server": 0, "client": 0}, time.monotonic() + SECONDS
    while time.monotonic() < end:
        for name, node, process in (
            ("server", world.server, server), ("client", world.client, up),
        ):  # fmt: skip
            most[name] = max(most[name], most_memory(process) + in_sockets(node))
        time.sleep(0.2)
    assert sink.wait(10.0) == 0, sink.tail()
    mbps = int(sink.log.read_text(encoding="ascii").split()[-1]) * 8e-6 / SECONDS
    used = {name: value / (1 << 20) for name, value in most.items()}
    world.measured(f"{mbps:.0f} Mbit/s; the server takes at most {used['server']:.0f} MiB with its "
                   f"sockets, the client {used['client']:.0f} MiB")  # fmt: skip
    assert mbps > LEAST_MBPS
    assert max(most.values()) < MEMORY, used


READ_ONLY = """
mount -o remount,ro,bind / && mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 9
touch /etc/sumrate-was-here "$1/was-here" 2>/dev/null && exit 8
shift && exec env -i PATH="$PATH" "$@"
"""
"""Runs a program where neither the root nor this folder can be written, without an environment."""


@pytest.mark.situation("a read-only root and state directory, no home, no systemd", plain="works")
def test_a_read_only_machine_is_enough(world: World) -> None:
    world.web()
    world.serve().stop()
    state = world.folder / "state"
    prefix = ("unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(state))
    server = world.serve(name="again", prefix=prefix)
    up = world.up(prefix=prefix)
    world.wait_for_paths(up)
    answer = world.curl(f"http://{INTERNET_IP}/")
    assert answer.startswith("{"), answer
    assert server.poll() is None
    said = [line for line in server.tail().splitlines() if "read-only" in line.lower()]
    world.measured("works" + (f"; the server says: {said[0]}" if said else ""))
