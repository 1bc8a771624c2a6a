"""Which programs the lab needs, where they are, and which Debian packages bring them."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
BIN_DIR_VARIABLE = "SUMRATE_BIN_DIR"
"""Environment variable: the folder of `sumrate` and `sumrate-link` (default target/release)."""

RUN_FOLDER = Path("/run/sumrate-lab")
"""Where an experiment keeps what its programs need, on a private memory file system."""

PACKAGES = {
    "ip": "iproute2",
    "ss": "iproute2",
    "nsenter": "util-linux",
    "sysctl": "procps",
    "curl": "curl",
    "mptcpize": "mptcpize",
    "iperf3": "iperf3",
    "openssl": "openssl",
    "nginx": "nginx-light",
    "mount": "mount",
    "node": "nodejs",
    "git": "git",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "nc": "netcat-openbsd",
}
"""Debian package of each system program."""


class MissingProgramError(RuntimeError):
    """A program is not installed or not built; the message says what brings it."""


def target_folder() -> Path:
    """Folder of everything that Cargo builds."""
    target = os.environ.get("CARGO_TARGET_DIR")
    return Path(target) if target else REPOSITORY / "target"


def binary_folder() -> Path:
    """Folder of this project's own binaries."""
    override = os.environ.get(BIN_DIR_VARIABLE)
    return Path(override) if override else target_folder() / "release"


def peer(name: str) -> Path:
    """Path of a program of another transport.

    Raises MissingProgramError: it has not been installed.
    """
    path = target_folder() / "peers" / "bin" / name
    if not os.access(path, os.X_OK):
        raise MissingProgramError(f"{path} does not exist: run `make peers`")
    return path


def program(name: str, *, build: str = "make build") -> Path:
    """Path of one of this project's own binaries, which the command `build` makes.

    Raises MissingProgramError: it has not been built.
    """
    path = binary_folder() / name
    if not os.access(path, os.X_OK):
        raise MissingProgramError(
            f"{path} does not exist: run `{build}`, or set {BIN_DIR_VARIABLE} to its folder"
        )
    return path


def example(name: str, *, package: str) -> Path:
    """Path of a built example of one of this project's crates.

    Raises MissingProgramError: it has not been built.
    """
    path = binary_folder() / "examples" / name
    if not os.access(path, os.X_OK):
        raise MissingProgramError(
            f"{path} does not exist: run `cargo build --release -p {package} --example {name}`"
        )
    return path


def without_machine_paths(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as it would be on any machine: programs by their place in the repository.

    The interpreter becomes `python3`, the folder of a run goes.
    """
    text = json.dumps(document)
    for path, shown in _places():
        text = text.replace(path, shown)
    found: dict[str, Any] = json.loads(text)
    return found


def _places() -> list[tuple[str, str]]:
    """What stands for which folder or file, the longest first."""
    found = {
        f"{RUN_FOLDER}/": "",
        f"{binary_folder()}/": "target/release/",
        f"{target_folder()}/": "target/",
        sys.executable: "python3",
        f"{REPOSITORY}/": "",
    }
    return sorted(found.items(), key=lambda place: -len(place[0]))


def have(name: str) -> bool:
    """Whether this project's binary `name` is built."""
    return os.access(binary_folder() / name, os.X_OK)


def require(*names: str) -> None:
    """Checks that system programs are installed.

    Raises MissingProgramError: at least one is not; the message names the packages.
    """
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES.get(name, name) for name in missing}))
        raise MissingProgramError(
            f"{', '.join(missing)} not found: run `apt-get install {packages}` as root"
        )
