"""The container images, run without a container engine.

The layer is unpacked with its owners. The image's own command runs in it as the image's own user,
as the first process of a PID namespace, with nothing of this machine but the network and /dev.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.process import Process
from tests.dist.artefacts import (
    ARCHITECTURES,
    EMULATED_CONTROL,
    EMULATOR,
    FILES,
    READY_S,
    SERVER,
    download,
    launcher,
    loopback_up,
    needs_dist,
    one,
    runs_here,
    unpack_archive,
    wait_for,
)
from tests.system.scenario import isolated

PROGRAMS = ("unshare", "chroot", "setpriv")
LACKING = [program for program in PROGRAMS if shutil.which(program) is None]
SIZE_MAX = 40_000_000
pytestmark = [
    pytest.mark.system,
    needs_dist,
    pytest.mark.skipif(
        os.geteuid() != 0 or bool(LACKING),
        reason=f"needs root and {', '.join(LACKING or PROGRAMS)}",
    ),
]
MOUNTS = r"""
mkdir -p "$1/dev" "$1/proc"
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
shift
exec "$@"
"""
"""Shell: what engines mount, too; then the command."""
each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


def unpack(architecture: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The image's file system, with its owners, and its configuration."""
    root = folder / "root"
    root.mkdir()
    with tarfile.open(one(f"sumrate-*-image-{architecture}.tar")) as image:

        def member(name: str) -> bytes:
            content = image.extractfile(name)
            assert content is not None
            return content.read()

        (saved,) = json.loads(member("manifest.json"))
        for name in saved["Layers"]:
            command = ["tar", "-xpz", "--numeric-owner", "-C", str(root)]
            subprocess.run(command, input=member(name), check=True)
        return root, json.loads(member(saved["Config"]))["config"]


def container(
    root: Path, config: dict[str, Any], arguments: list[str], architecture: str
) -> list[str]:
    """The command line that runs the image; `arguments` replace its own as with `docker run`."""
    # Engines write this file, too.
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    emulator = [] if runs_here(architecture) else ["/emulator"]
    if emulator and not (root / "emulator").exists():
        shutil.copy(str(shutil.which(EMULATOR)), root / "emulator")
        with (root / "etc/sumrate/config.toml").open("a", encoding="utf-8") as settings:
            settings.write(f'cc = "{EMULATED_CONTROL}"\n')
    command = [*config["Entrypoint"], *(arguments or config["Cmd"])]
    inside = ["env", "-i", *config["Env"], "setpriv", "--no-new-privs"]
    inside += [str(shutil.which("chroot")), f"--userspec={config['User']}", "--groups=", str(root)]
    namespaces = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child"]
    return [*namespaces, "sh", "-c", MOUNTS, "sh", str(root), *inside, *emulator, *command]


def wait_for_listener(process: Process) -> None:
    """Waits until the server accepts connections."""
    host, port = SERVER.split(":")
    deadline = time.monotonic() + READY_S
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            assert process.poll() is None, process.tail()
            assert time.monotonic() < deadline, process.tail()
            time.sleep(0.05)
        else:
            return


@each_architecture
def test_the_image_is_small_and_says_how_it_is_used(architecture: str) -> None:
    file = one(f"sumrate-*-image-{architecture}.tar")
    assert file.stat().st_size < SIZE_MAX
    with tarfile.open(file) as image:
        layout = image.extractfile("oci-layout")
        assert layout is not None
        assert json.loads(layout.read()) == {"imageLayoutVersion": "1.0.0"}


@each_architecture
def test_its_own_command_serves_and_stops(architecture: str) -> None:
    launcher(architecture)

    def scenario(scratch: Path) -> None:
        loopback_up()
        root, config = unpack(architecture, scratch)
        assert config["ExposedPorts"] == {"7443/tcp": {}}
        assert config["Volumes"] == {"/var/lib/sumrate": {}}
        command = container(root, config, [], architecture)
        printed = scratch / "printed"
        with Process(command, log=scratch / "serve.log", stdout=printed) as server:
            wait_for_listener(server)
            wait_for(printed, server)
            assert "sumrate://" in printed.read_text(encoding="utf-8")
            state = root / next(iter(config["Volumes"])).removeprefix("/")
            kept = list(state.iterdir())
            assert kept
            assert {entry.stat().st_uid for entry in kept} == {65532}
            healthy = config["Healthcheck"]["Test"][1:]
            health = container(root, config | {"Entrypoint": []}, healthy, architecture)
            asked = subprocess.run(health, check=False, capture_output=True, text=True)
            assert asked.returncode == 0, asked.stderr + server.tail()
            stop(server)

    isolated(scenario)


def stop(server: Process) -> None:
    """Ends the server as an engine does, by SIGTERM to the first process of the container."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="utf-8")
    (first,) = children.split()
    os.kill(int(first), signal.SIGTERM)
    assert server.wait(READY_S) == 0, server.tail()


@each_architecture
def test_a_client_downloads_through_the_image(architecture: str, tmp_path: Path) -> None:
    launcher(architecture)
    native = next(name for name in ARCHITECTURES if runs_here(name))
    client = [str(unpack_archive(native, tmp_path) / "bin/sumrate")]

    def scenario(scratch: Path) -> None:
        loopback_up()
        root, config = unpack(architecture, scratch)
        arguments = ["serve", "--advertise", SERVER, "--allow", FILES]
        command = container(root, config, arguments, architecture)
        printed = scratch / "printed"
        with Process(command, log=scratch / "serve.log", stdout=printed) as server:
            wait_for(printed, server)
            words = printed.read_text(encoding="utf-8").split()
            join_link = next(word for word in words if word.startswith("sumrate://"))
            download(client, [], join_link, scratch)

    isolated(scenario)
