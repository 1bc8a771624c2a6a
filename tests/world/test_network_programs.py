"""Real programs that manage the firewall and the networks of the client do not undo capture."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sumrate.lab.process import Process
from tests.world.scene import ECHO_PORT, EXIT_IP, INTERNET_IP, LTE, WIFI, World
from tests.world.test_captured_traffic import DATAGRAM, installed, source_seen
from tests.world.test_servers import needs

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>{address}</listen>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""
"""A bus that belongs to no other user, as there may be none in the namespaces."""
START_S = 40.0
"""The programs take seconds to start on a busy machine."""
UFW_FILES = ("/etc/ufw", "/etc/default/ufw")
"""What the program keeps; tests have copies."""
PROFILE = """[connection]
id={name}
type=ethernet
interface-name={name}

[ipv4]
method=manual
address1=10.{number}.0.2/24,10.{number}.0.1
route-metric={metric}

[ipv6]
method=disabled
"""
"""A network as NetworkManager knows it (`nm-settings-keyfile`(5))."""
MANAGED = """[main]
plugins=keyfile
rc-manager=unmanaged
auth-polkit=false

[keyfile]
path={folder}
"""


def ufw(world: World, *words: str) -> str:
    """Runs `ufw` on the client, with files of its own."""
    lines = []
    for place in UFW_FILES:
        copy = world.folder / place.strip("/").replace("/", "-")
        if not copy.exists():
            (shutil.copytree if Path(place).is_dir() else shutil.copy)(place, copy)
        lines.append(f"mount --bind {copy} {place}")
    lines += ["mount -t tmpfs none /run", f"exec ufw {' '.join(words)}"]
    return world.client.run(["sh", "-ec", "\n".join(lines)])


@contextmanager
def bus(world: World) -> Iterator[Callable[..., str]]:
    """A system bus on the client; gives what runs a command that uses it."""
    address = f"unix:path={world.folder}/bus"
    settings = world.folder / "bus.conf"
    settings.write_text(BUS.format(address=address), encoding="ascii")
    argv = ["dbus-daemon", f"--config-file={settings}", "--nofork"]
    daemon = world.start(world.client, argv, "dbus")
    daemon.wait_until((world.folder / "bus").exists, "the bus listens")

    def on_bus(*words: str) -> str:
        return world.client.run(["env", f"DBUS_SYSTEM_BUS_ADDRESS={address}", *words])

    yield on_bus
    daemon.stop()


def start_on_bus(world: World, words: str, name: str) -> Process:
    """Starts a program that has the system bus."""
    line = f"export DBUS_SYSTEM_BUS_ADDRESS=unix:path={world.folder}/bus\n{words}"
    return world.start(world.client, ["sh", "-ec", line], name)


def answers(on_bus: Callable[..., str], *words: str) -> Callable[[], bool]:
    """Whether a command succeeds now."""

    def does() -> bool:
        try:
            on_bus(*words)
        except RuntimeError:
            return False
        return True

    return does


def is_captured(world: World, mode: str) -> None:
    """TCP, and where the mode captures it UDP, leaves at the server."""
    assert source_seen(world) == EXIT_IP
    if mode == "--tun":
        argv = [sys.executable, "-c", DATAGRAM, INTERNET_IP, str(ECHO_PORT)]
        assert world.client.run(argv).strip() == "answered"


@needs("ufw")
@pytest.mark.parametrize("mode", ["--redirect", "--tproxy", "--tun"])
@pytest.mark.situation("ufw denies what comes in, and is reloaded", plain="works")
def test_programs_stay_captured_beside_ufw(world: World, mode: str) -> None:
    ufw(world, "--force", "enable")
    assert "deny (incoming)" in ufw(world, "status", "verbose")
    world.web()
    world.echo()
    world.serve()
    world.wait_for_paths(world.up(mode), WIFI, LTE)
    is_captured(world, mode)
    before = installed(world)
    ufw(world, "reload")
    is_captured(world, mode)
    assert installed(world) == before
    world.measured(f"{mode}: captured, before and after")


@needs("firewalld", "firewall-cmd", "dbus-daemon")
@pytest.mark.parametrize("mode", ["--redirect", "--tproxy", "--tun"])
@pytest.mark.situation("firewalld rejects what comes in, and is reloaded", plain="works")
def test_programs_stay_captured_beside_firewalld(world: World, mode: str) -> None:
    with bus(world) as on_bus:
        shutil.copytree("/etc/firewalld", world.folder / "firewalld")
        start = f"exec firewalld --nofork --nopid --system-config {world.folder}/firewalld"
        daemon = start_on_bus(
            world, f"{start} --log-file {world.folder}/firewalld.log", "firewalld"
        )
        daemon.wait_until(answers(on_bus, "firewall-cmd", "--state"), "firewalld runs", START_S)
        world.web()
        world.echo()
        world.serve()
        world.wait_for_paths(world.up(mode), WIFI, LTE)
        is_captured(world, mode)
        before = installed(world)
        for how in ("--reload", "--complete-reload"):
            on_bus("firewall-cmd", how)
            is_captured(world, mode)
        assert installed(world) == before
        world.measured(f"{mode}: captured, before and after")


@needs("NetworkManager", "nmcli", "dbus-daemon")
@pytest.mark.situation("NetworkManager takes networks away and back", plain="connections hang")
def test_networks_of_networkmanager_come_and_go(world: World) -> None:
    profiles, state, settings = (world.folder / name for name in ("nets", "kept", "nm.conf"))
    profiles.mkdir()
    state.mkdir()
    settings.write_text(MANAGED.format(folder=profiles), encoding="ascii")
    for radio in world.radios.values():
        file = profiles / f"{radio.name}.nmconnection"
        values = {"name": radio.name, "number": radio.number, "metric": radio.metric}
        file.write_text(PROFILE.format(**values), encoding="ascii")
        file.chmod(0o600)
    with bus(world) as on_bus:
        # Without udev it waits for none where /sys cannot be written.
        own = f"mount --bind {state} /var/lib/NetworkManager; mount -o remount,ro,bind /sys"
        start = f"{own}; exec NetworkManager --no-daemon --config {settings}"
        manager = start_on_bus(world, start, "manager")
        manager.wait_until(answers(on_bus, "nmcli", "general"), "NetworkManager runs", START_S)
        for name in world.radios:
            on_bus("nmcli", "device", "set", name, "managed", "yes")
            on_bus("nmcli", "connection", "up", name)
        world.web()
        world.echo()
        world.serve()
        up = world.up("--tun")
        world.wait_for_paths(up, WIFI, LTE)
        is_captured(world, "--tun")
        before = installed(world)
        on_bus("nmcli", "device", "disconnect", WIFI)
        world.wait_for_paths(up, LTE)
        is_captured(world, "--tun")
        on_bus("nmcli", "connection", "up", WIFI)
        world.wait_for_paths(up, WIFI, LTE)
        on_bus("nmcli", "networking", "off")
        up.wait_until(lambda: source_seen(world).startswith("curl:"), "nothing leaves")
        on_bus("nmcli", "networking", "on")
        world.wait_for_paths(up, WIFI, LTE)
        up.wait_until(lambda: installed(world) == before, "everything is there again")
        is_captured(world, "--tun")
        world.measured("captured over what is left; refused without a network; then captured")
