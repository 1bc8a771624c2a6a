"""Which programs of this project a result is made with, and whether they are of this source."""

import hashlib
from pathlib import Path

from sumrate.lab.programs import REPOSITORY, binary_folder

PROGRAMS = ("sumrate", "sumrate-link")
EXAMPLES = ("message_relay", "tls_pump")
"""Of the crate `fbdt`: what some schemes are run with."""
OWN = dict.fromkeys(PROGRAMS, "run `make build`") | {
    f"examples/{name}": f"run `cargo build --release --locked -p fbdt --example {name}`"
    for name in EXAMPLES
}
"""Each by its place among what is built, with how it is built."""


def digests() -> dict[str, str]:
    """SHA-256 of each of this project's programs that is built, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name in OWN
        if (path := binary_folder() / name).is_file()
    }


def behind() -> list[str]:
    """What of the programs is not what this repository's source says, in words.

    By the list of sources that Cargo leaves beside each program; nothing is said without one.
    """
    places = ((binary_folder() / name, advice) for name, advice in OWN.items())
    return [f"{said}: {advice}" for place, advice in places if (said := _behind(place))]


def _behind(program: Path) -> str:
    listed = program.with_name(f"{program.name}.d")
    if not (program.is_file() and listed.is_file()):
        return ""
    made = program.stat().st_mtime
    # Backslashes stand before spaces of names.
    words = listed.read_text(encoding="utf-8").partition(": ")[2].replace("\\ ", "\0").split()
    every = [Path(word.replace("\0", " ")).resolve() for word in words]
    here, made_here = REPOSITORY.resolve(), program.parent.resolve()
    sources = [path for path in every if not path.is_relative_to(made_here)]
    if not all(path.is_relative_to(here) for path in sources):
        return f"{program.name} was built from another folder's source"
    for path in sources:
        # A build script may name a folder.
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
        if any(not file.is_file() or file.stat().st_mtime > made for file in files):
            changed = path.relative_to(here)
            return f"{program.name} was built before {changed} was changed"
    return ""
