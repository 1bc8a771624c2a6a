"""A certificate authority for one run, and certificates of servers, made by openssl."""

import base64
import hashlib
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.namespaces import run

DAYS = "7"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")


@dataclass(frozen=True)
class Authority:
    """The authority's certificate, and one key that all its servers share."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """What clients trust."""
        return self.folder / "authority.pem"

    @property
    def server_key(self) -> Path:
        """The servers' private key."""
        return self.folder / "server.key"

    def chain(self, name: str) -> Path:
        """A server's certificate for this one name, with the authority's behind it."""
        return self.folder / f"{name}.pem"

    def key_hash(self) -> str:
        """SHA-256 of the servers' public key, base64: as browsers pin it (RFC 7469, section 2.4).

        Raises:
            RuntimeError: openssl cannot read the key.

        """
        argv = ["openssl", "pkey", "-in", str(self.server_key), "-pubout", "-outform", "DER"]
        done = subprocess.run(argv, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl cannot read {self.server_key}: {done.stderr!r}")
        return base64.b64encode(hashlib.sha256(done.stdout).digest()).decode("ascii")


def authority(folder: Path, names: Iterable[str]) -> Authority:
    """Makes what is not there yet: the authority, the servers' key, a certificate for each name.

    Each name has a certificate of its own, so that HTTP/2 connections are not shared between
    origins that are different hosts.

    Raises:
        RuntimeError: openssl failed.

    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Authority(folder)
    own_key = folder / "authority.key"
    if not made.certificate.exists():
        subject = ("-subj", "/CN=Sumrate laboratory", "-addext", "keyUsage=critical,keyCertSign")
        out = ("-keyout", str(own_key), "-out", str(made.certificate))
        run(["openssl", "req", "-x509", *CURVE, *out, "-days", DAYS, *subject])
        run(
            [
                *("openssl", "genpkey", "-algorithm", "EC", "-out", str(made.server_key)),
                *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
            ]
        )
    for name in names:
        if not made.chain(name).exists():
            signed = ("-CA", str(made.certificate), "-CAkey", str(own_key), "-days", DAYS)
            asked = ("-key", str(made.server_key), "-subj", f"/CN={name}")
            extra = (
                "-addext",
                f"subjectAltName=DNS:{name}",
                "-addext",
                "basicConstraints=CA:FALSE",
            )
            text = run(["openssl", "req", "-x509", *asked, *signed, *extra])
            made.chain(name).write_text(
                text + made.certificate.read_text(encoding="ascii"), encoding="ascii"
            )
    return made
