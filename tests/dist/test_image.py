"""The writer of container images, with a small program in the place of sumrate."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

TIME = 1_700_000_000


def write(repository: Path, folder: Path, name: str) -> Path:
    """Writes an image; its file."""
    program = folder / "program"
    program.write_bytes(b"\x7fELF and so on")
    documents = folder / "documents"
    documents.mkdir(exist_ok=True)
    (documents / "LICENSE-MIT").write_text("MIT", encoding="utf-8")
    output = folder / name
    arguments = ["--program", program, "--documents", documents, "--output", output]
    arguments += ["--architecture", "arm64", "--version", "1.2.3", "--revision", "abc"]
    subprocess.run(
        [sys.executable, "tools/image.py", *map(str, arguments)],
        cwd=repository,
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(TIME)},
    )
    return output


@pytest.fixture(name="members")
def members_of_one(repository: Path, tmp_path: Path) -> dict[str, bytes]:
    """The files in an image."""
    with tarfile.open(write(repository, tmp_path, "image.tar")) as archive:
        return {
            entry.name: content.read()
            for entry in archive
            if (content := archive.extractfile(entry)) is not None
        }


def follow(members: dict[str, bytes], reference: dict[str, Any]) -> bytes:
    """The blob that a reference names; its size and digest are right."""
    content = members[f"blobs/{reference['digest'].replace(':', '/')}"]
    assert len(content) == reference["size"]
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == reference["digest"]
    return content


def test_both_indexes_lead_to_the_same_blobs(members: dict[str, bytes]) -> None:
    (entry,) = json.loads(members["index.json"])["manifests"]
    assert entry["platform"] == {"architecture": "arm64", "os": "linux"}
    manifest = json.loads(follow(members, entry))
    config = follow(members, manifest["config"])
    (layer,) = manifest["layers"]
    files = gzip.decompress(follow(members, layer))
    rootfs = json.loads(config)["rootfs"]
    assert rootfs["diff_ids"] == [f"sha256:{hashlib.sha256(files).hexdigest()}"]
    (saved,) = json.loads(members["manifest.json"])
    assert saved["RepoTags"] == ["sumrate:1.2.3"]
    assert members[saved["Config"]] == config
    assert gzip.decompress(members[saved["Layers"][0]]) == files


def test_the_layer_has_the_owners_and_modes_of_the_server(members: dict[str, bytes]) -> None:
    (saved,) = json.loads(members["manifest.json"])
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(members[saved["Layers"][0]]))) as layer:
        entries = {entry.name: entry for entry in layer}
    assert {entry.mtime for entry in entries.values()} == {TIME}
    owned = {name for name, entry in entries.items() if (entry.uid, entry.gid) == (65532, 65532)}
    assert owned == {"run/sumrate", "var/lib/sumrate"}
    assert {entries[name].mode for name in owned} == {0o700}
    assert entries["usr/bin/sumrate"].mode == 0o755
    assert entries["tmp"].mode == 0o1777
    assert not [name for name, entry in entries.items() if entry.mode & 0o6000]
    for name in entries:
        parent = str(Path(name).parent)
        assert parent == "." or parent in entries, f"{name} comes without its directory"


def test_the_same_input_gives_the_same_image(repository: Path, tmp_path: Path) -> None:
    images = [write(repository, tmp_path, name).read_bytes() for name in ("one", "two")]
    assert images[0] == images[1]
