"""A real sshd on the server host, on an unprivileged port with keys of its own, and ssh to it."""

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.namespaces import run
from sumrate.lab.process import Process, listening
from sumrate.lab.scene import Site
from sumrate.qoe.carriage import Carriage

SSH_PORT = 2222
ALIAS = "sumrate-lab"
PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Debian's sshd insists on it; /run is private here."""


@dataclass(frozen=True)
class Keys:
    """A host key and a client key, made for the run, in a folder."""

    folder: Path

    @property
    def host(self) -> Path:
        """The server's private key."""
        return self.folder / "host"

    @property
    def client(self) -> Path:
        """The client's private key."""
        return self.folder / "client"

    @property
    def known_hosts(self) -> Path:
        """What the client knows."""
        return self.folder / "known_hosts"


def make_keys(folder: Path) -> Keys:
    """Makes both keys, once.

    Raises:
        RuntimeError: ssh-keygen failed.

    """
    keys = Keys(folder)
    if not keys.known_hosts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for path in (keys.host, keys.client):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", ALIAS, "-f", str(path)])
        public = keys.host.with_suffix(".pub").read_text(encoding="ascii")
        keys.known_hosts.write_text(f"{ALIAS} {public}", encoding="ascii")
    return keys


def server_configuration(keys: Keys, folder: Path) -> str:
    """The whole file: keys only, nobody but who runs the laboratory."""
    return "\n".join(
        [
            f"Port {SSH_PORT}",
            "ListenAddress 0.0.0.0",
            f"HostKey {keys.host}",
            f"AuthorizedKeysFile {keys.client}.pub",
            f"PidFile {folder}/sshd.pid",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PrintMotd no",
            "UseDNS no",
            "",
        ]
    )


@contextmanager
def sshd(site: Site, keys: Keys, carriage: Carriage) -> Iterator[Process]:
    """An sshd that accepts connections.

    Raises:
        ProcessFailedError: it did not start; the message has what it said.

    """
    PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    path = site.folder / "sshd_config"
    path.write_text(server_configuration(keys, site.folder), encoding="ascii")
    program = shutil.which("sshd") or "/usr/sbin/sshd"  # it wants to be called by its whole path
    argv = [*carriage.prefix, program, "-D", "-e", "-f", str(path)]
    with Process(argv, log=site.folder / "sshd.log", host=site.server) as process:
        process.wait_until(lambda: listening(site.server, SSH_PORT), "sshd listens")
        yield process


def ssh_command(keys: Keys, carriage: Carriage) -> list[str]:
    """An ssh that trusts this server and no other, without its address."""
    options = {
        "Port": str(SSH_PORT),
        "User": os.environ.get("USER", "root") if os.getuid() else "root",
        "IdentityFile": str(keys.client),
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": str(keys.known_hosts),
        "HostKeyAlias": ALIAS,
        "BatchMode": "yes",
        "ConnectTimeout": "15",
        "LogLevel": "ERROR",
    }
    if carriage.socks:
        host, port = carriage.socks
        options["ProxyCommand"] = f"nc -X 5 -x {host}:{port} %h %p"
    flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    return [*carriage.prefix, "ssh", "-F", "none", *flags]


def as_words(argv: list[str]) -> str:
    """The command for a variable that a shell reads, such as GIT_SSH_COMMAND."""
    return shlex.join(argv)
