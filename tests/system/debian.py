"""The Debian package, and a copy of this machine's file system to install it in."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

REFUSED = 77
"""Exit status where the kernel refuses the copy."""
COPY_OF_ROOT = r"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || exit 77
"""
"""Shell: shows / through an overlay in the directory `$1`; for a mount namespace, nothing stays."""


def binary() -> Path:
    """The program that the package is made of."""
    folder = Path(os.environ.get("SUMRATE_BIN_DIR", ROOT / "target/release"))
    return folder / "sumrate"


def package(folder: Path) -> Path:
    """Makes the package in an empty folder."""
    command = ["tools/deb.sh", "--binary", str(binary()), "--output", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("sumrate_*.deb")
    return made


def with_version(made: Path, version: str, folder: Path) -> Path:
    """Makes a package of another version out of a package."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", str(made), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines()
    lines = [f"Version: {version}" if line.startswith("Version:") else line for line in lines]
    control.write_text("\n".join(lines) + "\n")
    later = folder / "later.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", str(tree), str(later)],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(tree)
    return later
