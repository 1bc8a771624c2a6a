"""The files of `make dist`, unpacked for tests, and sessions between programs out of them."""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sumrate.lab.process import Process

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("SUMRATE_DIST", ROOT / "dist"))
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
BUILT = (DIST / "SHA256SUMS").is_file()
needs_dist = pytest.mark.skipif(not BUILT, reason=f"{DIST} is not built: make dist")
EMULATOR = "qemu-aarch64-static"
SERVER = "127.0.0.1:7443"
FILES = "127.0.0.1:8080"
PROXY = "127.0.0.1:1080"
EMULATED_CONTROL = "reno"
"""qemu takes the value of TCP_CONGESTION for a number: a name of four bytes arrives whole."""
READY_S = 60.0
"""Emulated processors are slow."""


def runs_here(architecture: str) -> bool:
    """Whether programs for this architecture need no emulator."""
    return os.uname().machine == ARCHITECTURES[architecture]


def launcher(architecture: str) -> list[str]:
    """What a command line for this architecture begins with; skips where nothing can run it."""
    if runs_here(architecture):
        return []
    if architecture != "arm64" or shutil.which(EMULATOR) is None:
        pytest.skip(f"{EMULATOR} is not installed, and this machine is no {architecture}")
    return [EMULATOR]


def flags(architecture: str) -> list[str]:
    """What `serve` and `up` need beside other flags."""
    return [] if runs_here(architecture) else ["--cc", EMULATED_CONTROL]


def one(pattern: str) -> Path:
    """The only file of that name in dist/."""
    (found,) = DIST.glob(pattern)
    return found


def unpack_archive(architecture: str, folder: Path) -> Path:
    """The folder in a tarball."""
    machine = ARCHITECTURES[architecture]
    archive = one(f"sumrate-*-{machine}-linux.tar.gz")
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder / archive.name.removesuffix(".tar.gz")


def unpack_package(architecture: str, folder: Path) -> Path:
    """The file system in a Debian package."""
    package = one(f"sumrate_*_{architecture}.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    return folder


def wait_for(path: Path, process: Process) -> None:
    """Waits until a file has content."""
    deadline = time.monotonic() + READY_S
    while not (path.is_file() and path.stat().st_size):
        assert process.poll() is None, process.tail()
        assert time.monotonic() < deadline, f"no {path.name} after {READY_S} s: {process.tail()}"
        time.sleep(0.05)


def answers(command: Sequence[str], process: Process, env: Mapping[str, str]) -> str:
    """Repeats a command until it succeeds; its output."""
    deadline = time.monotonic() + READY_S
    while True:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, **env}
        )
        if done.returncode == 0:
            return done.stdout
        assert process.poll() is None, process.tail()
        assert time.monotonic() < deadline, f"{command}: {done.stderr}\n{process.tail()}"
        time.sleep(0.2)


@contextmanager
def serving(program: Sequence[str], options: Sequence[str], scratch: Path) -> Iterator[str]:
    """`sumrate serve` on loopback; gives the join link."""
    state = scratch / "state"
    state.mkdir(mode=0o700)
    link = scratch / "link.txt"
    command = [*program, "serve", "--config", "none", "--listen", SERVER, "--advertise", SERVER]
    command += ["--allow", FILES, "--state", str(state), "--link-file", str(link), *options]
    with Process(command, log=scratch / "serve.log") as server:
        wait_for(link, server)
        yield link.read_text(encoding="utf-8").strip()


def download(program: Sequence[str], options: Sequence[str], join_link: str, scratch: Path) -> None:
    """Downloads a file by name, over two paths through a client, and compares it."""
    runtime = scratch / "runtime"
    runtime.mkdir(mode=0o700)
    (scratch / "www").mkdir()
    content = os.urandom(3_000_000)
    (scratch / "www/file").write_bytes(content)
    host, port = FILES.split(":")
    files = ["python3", "-m", "http.server", "--bind", host, "--directory", str(scratch / "www")]
    client = [*program, "up", "--config", "none", join_link, "--socks", PROXY, *options]
    client += ["--path", f"one=127.0.0.1@{SERVER}", "--path", f"two=127.0.0.2@{SERVER}"]
    env = {"XDG_RUNTIME_DIR": str(runtime)}
    with (
        Process([*files, port], log=scratch / "files.log"),
        Process(client, log=scratch / "up.log", env=env) as up,
    ):
        status = answers([*program, "status", "--json"], up, env)
        assert '"one"' in status and '"two"' in status, status
        url = f"http://localhost:{port}/file"
        curl = ["curl", "-sf", "--max-time", "60", "--proxy", f"socks5h://{PROXY}", url]
        received = scratch / "received"
        answers([*curl, "--output", str(received)], up, {})
        assert digest(received.read_bytes()) == digest(content)


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def loopback_up() -> None:
    """Loopback of this namespace works."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
