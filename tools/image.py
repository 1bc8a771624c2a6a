"""Writes a container image without a container engine.

The archive is an OCI image layout that also has the `manifest.json` of `docker save`. `docker
load`, `podman load` and `skopeo copy oci-archive:` read it. The image runs `sumrate serve` as a
user without rights. Its layer holds the static program, licences, and that user's directories.

Run: tools/image.py --program FILE --documents DIRECTORY --architecture amd64 --version 0.2.0 \
         --revision COMMIT --output FILE
Times are those of the environment variable SOURCE_DATE_EPOCH: the same input gives the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAME = "sumrate"
USER = 65532
"""User and group of the server, as in other images without rights."""
STATE = "/var/lib/sumrate"
PORT = 7443
CONFIGURATION = f"""\
# Read by `sumrate serve`. Mount another file here, or give flags behind the image's name.
[serve]
listen = "0.0.0.0:{PORT}"
"""
ENVIRONMENT = {
    "PATH": "/usr/bin",
    "HOME": STATE,
    "XDG_STATE_HOME": "/var/lib",
    "XDG_RUNTIME_DIR": "/run/sumrate",
}


class Archive:
    """A tar archive with fixed times, in the order of the calls."""

    def __init__(self, time: int) -> None:
        """Starts an empty archive whose entries all have this time."""
        self._time = time
        self._bytes = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._bytes, mode="w", format=tarfile.USTAR_FORMAT)

    def directory(self, name: str, mode: int = 0o755, owner: int = 0) -> None:
        """Adds a directory."""
        entry = tarfile.TarInfo(name)
        entry.type = tarfile.DIRTYPE
        self._add(entry, mode, owner)

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Adds a file of root's."""
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        self._add(entry, mode, 0, content)

    def _add(self, entry: tarfile.TarInfo, mode: int, owner: int, content: bytes = b"") -> None:
        entry.mode = mode
        entry.uid = entry.gid = owner
        entry.mtime = self._time
        self._tar.addfile(entry, io.BytesIO(content))

    def finish(self) -> bytes:
        """The archive; nothing can be added any more."""
        self._tar.close()
        return self._bytes.getvalue()


def layer(program: Path, documents: Path, time: int) -> bytes:
    """The file system of the image, as a tar archive."""
    archive = Archive(time)
    for name in ("etc", "etc/sumrate"):
        archive.directory(name)
    archive.file("etc/group", f"root:x:0:\n{NAME}:x:{USER}:\n".encode())
    users = f"root:x:0:0::/:/none\n{NAME}:x:{USER}:{USER}::{STATE}:/none\n"
    archive.file("etc/passwd", users.encode())
    archive.file("etc/sumrate/config.toml", CONFIGURATION.encode())
    archive.directory("run")
    archive.directory("run/sumrate", 0o700, USER)
    archive.directory("tmp", 0o1777)
    for name in ("usr", "usr/bin", "usr/share", "usr/share/doc", f"usr/share/doc/{NAME}"):
        archive.directory(name)
    archive.file(f"usr/bin/{NAME}", program.read_bytes(), 0o755)
    for document in sorted(documents.iterdir()):
        archive.file(f"usr/share/doc/{NAME}/{document.name}", document.read_bytes())
    for name in ("var", "var/lib"):
        archive.directory(name)
    archive.directory(STATE.removeprefix("/"), 0o700, USER)
    return archive.finish()


def configuration(arguments: argparse.Namespace, layer_digest: str, time: int) -> dict[str, Any]:
    """The image configuration (OCI image specification 1.0; `Healthcheck` is Docker's)."""
    created = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "title": NAME,
        "description": "Server of Sumrate, which carries programs over several networks at once",
        "version": arguments.version,
        "revision": arguments.revision,
        "created": created,
        "licenses": "MIT OR Apache-2.0",
    }
    return {
        "created": created,
        "architecture": arguments.architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {f"{PORT}/tcp": {}},
            "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "Entrypoint": [f"/usr/bin/{NAME}"],
            "Cmd": ["serve"],
            "Volumes": {STATE: {}},
            "WorkingDir": "/",
            "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items()},
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", f"/usr/bin/{NAME}", "status", "--json"],
                "Interval": 30_000_000_000,
                "Timeout": 5_000_000_000,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        "history": [{"created": created, "created_by": "tools/image.py"}],
    }


def digest(content: bytes) -> str:
    """The name of a blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def document(value: object) -> bytes:
    """JSON whose bytes depend on nothing but the value."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def descriptor(kind: str, content: bytes) -> dict[str, Any]:
    """A reference to a blob."""
    media_type = f"application/vnd.oci.image.{kind}"
    return {"mediaType": media_type, "digest": digest(content), "size": len(content)}


def image(arguments: argparse.Namespace, time: int) -> bytes:
    """The whole archive."""
    files = layer(arguments.program, arguments.documents, time)
    packed = gzip.compress(files, compresslevel=9, mtime=0)
    config = document(configuration(arguments, digest(files), time))
    manifest = document(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("config.v1+json", config),
            "layers": [descriptor("layer.v1.tar+gzip", packed)],
        }
    )
    blobs = {digest(blob): blob for blob in (config, manifest, packed)}

    def path(blob: bytes) -> str:
        return f"blobs/{digest(blob).replace(':', '/')}"

    tag = f"{NAME}:{arguments.version}"
    entry = descriptor("manifest.v1+json", manifest)
    entry["platform"] = {"architecture": arguments.architecture, "os": "linux"}
    entry["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/{tag}",
        "org.opencontainers.image.ref.name": arguments.version,
    }
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    }
    saved = [{"Config": path(config), "RepoTags": [tag], "Layers": [path(packed)]}]
    archive = Archive(time)
    archive.directory("blobs")
    archive.directory("blobs/sha256")
    for _, blob in sorted(blobs.items()):
        archive.file(path(blob), blob)
    archive.file("index.json", document(index))
    archive.file("manifest.json", document(saved))
    archive.file("oci-layout", document({"imageLayoutVersion": "1.0.0"}))
    return archive.finish()


def main() -> None:
    """Writes the archive that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write a container image of sumrate")
    for name in ("program", "documents", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--architecture", choices=("amd64", "arm64"), required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True)
    arguments = parser.parse_args()
    arguments.output.write_bytes(image(arguments, int(os.environ["SOURCE_DATE_EPOCH"])))


if __name__ == "__main__":
    main()
