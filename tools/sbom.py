"""Writes the crates that are linked into the programs, as one CycloneDX file.

cargo-cyclonedx describes each program in files beside the manifests. This runs it on a copy of the
sources, and joins what it says of `sumrate` and `sumrate-link` for both architectures. The folder
of the copy, the random serial number and the time of the run are replaced by fixed values.

Run: tools/sbom.py --cyclonedx target/tools/bin/cargo-cyclonedx --output FILE
"""

import argparse
import json
import os
import subprocess
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("sumrate-cli", "sumrate-link")
TARGETS = ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl")


def copy_sources(folder: Path) -> None:
    """Copies the files that git has."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "Cargo.toml", "Cargo.lock", "crates", "fuzz"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    packed = subprocess.run(
        ["tar", "-c", "--null", "--files-from=-"],
        cwd=ROOT,
        input=listed,
        check=True,
        capture_output=True,
    ).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=packed, check=True)


def described(cyclonedx: Path, folder: Path, target: str) -> list[dict[str, Any]]:
    """What cargo-cyclonedx says of both programs for a target."""
    command = [str(cyclonedx), "cyclonedx", "--format", "json", "--spec-version", "1.5"]
    command += ["--no-build-deps", "--target", target]
    subprocess.run(command, cwd=folder, check=True)
    found = []
    for package in PACKAGES:
        file = folder / "crates" / package / f"{package}.cdx.json"
        said = file.read_text(encoding="utf-8").replace(f"file://{folder}", "file://.")
        found.append(json.loads(said))
        file.unlink()
    return found


def joined(documents: list[dict[str, Any]], time: int) -> dict[str, Any]:
    """One document of several: each crate and each dependency once."""
    components: dict[str, dict[str, Any]] = {}
    dependencies: dict[str, set[str]] = {}
    programs = []
    for document in documents:
        program = document["metadata"]["component"]
        if program not in programs:
            programs.append(program)
        for component in document["components"]:
            components[component["bom-ref"]] = component
        for entry in document["dependencies"]:
            dependencies.setdefault(entry["ref"], set()).update(entry.get("dependsOn", []))
    for program in programs:
        components.pop(program["bom-ref"], None)
    version = programs[0]["version"]
    parts = [components[name] for name in sorted(components)]
    content = json.dumps(parts, sort_keys=True)
    product = {
        "type": "application",
        "bom-ref": "sumrate",
        "name": "sumrate",
        "version": version,
        "components": programs,
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": documents[0]["metadata"]["tools"],
            "component": product,
        },
        "components": parts,
        "dependencies": [
            {"ref": name, "dependsOn": sorted(dependencies[name])} for name in sorted(dependencies)
        ],
    }


def main() -> None:
    """Writes the file that the command line asks for."""
    parser = argparse.ArgumentParser(description="List the crates that are linked into sumrate")
    parser.add_argument("--cyclonedx", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    cyclonedx = arguments.cyclonedx.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_sources(folder)
        documents = [part for target in TARGETS for part in described(cyclonedx, folder, target)]
    text = json.dumps(joined(documents, int(os.environ["SOURCE_DATE_EPOCH"])), indent=1)
    arguments.output.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
