"""Writes the licence texts of the libraries that are linked into the programs.

The list of crates is that of a CycloneDX file. The texts are those in the sources of the crates.
Each text is written once, below the names of the crates that have it.

Run: tools/third_party.py SBOM > third-party.txt
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

KINDS = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT")
CODE = {".c", ".go", ".h", ".html", ".py", ".rs", ".sh"}
LINE = "=" * 79
HEAD = """\
Sumrate contains the libraries below. libelf and zlib are in the crate libbpf-sys. libelf may be
used under the GNU LGPL, version 3 or later. To replace it, change packaging/libelf/build.sh in the
sources of Sumrate, and run tools/static.sh.
"""


def linked(sbom: Path) -> set[tuple[str, str]]:
    """Name and version of each crate from a registry."""
    components = json.loads(sbom.read_text(encoding="utf-8"))["components"]
    return {
        (part["name"], part["version"])
        for part in components
        if part.get("purl", "").startswith("pkg:cargo/") and "download_url=file" not in part["purl"]
    }


def sources() -> dict[tuple[str, str], tuple[Path, str]]:
    """The folder and the licence expression of each crate of the lock file."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {
        (package["name"], package["version"]): (
            Path(package["manifest_path"]).parent,
            package["license"] or "see below",
        )
        for package in json.loads(said)["packages"]
    }


def texts(folder: Path) -> list[str]:
    """The licence files in a crate, also those of C sources in it."""
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.name.upper().startswith(KINDS)
        and file.suffix.lower() not in CODE
        and file.is_file()
    )
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in files]


def main() -> None:
    """Prints a list of crates, then each text with the crates that have it."""
    known = sources()
    having: dict[str, list[str]] = defaultdict(list)
    print(HEAD)
    for name, version in sorted(linked(Path(sys.argv[1]))):
        folder, expression = known[name, version]
        found = texts(folder)
        print(f"  {name} {version}: {expression}" + ("" if found else " (without a text)"))
        for text in dict.fromkeys(found):
            having[text].append(f"{name} {version}")
    for text, crates in having.items():
        print(f"\n{LINE}\n{', '.join(crates)}\n{LINE}\n\n{text}")


if __name__ == "__main__":
    main()
