"""A machine whose way to the world is Sumrate alone: directly it reaches nothing."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sumrate.lab.endpoints.sumrate import serve, up
from sumrate.lab.faults.bench import Bench, bench, wire
from sumrate.lab.namespaces import Host, run
from sumrate.lab.process import Process
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import SERVICE_IP
from tests.system.programs import HTTP_PROXY_PORT, MARK, SSH_PORT

SERVICE_IP6 = "fd77::1"
PUBLIC_IP, PUBLIC_IP6 = "203.0.113.77", "2001:db8:77::1"
"""The same services at addresses that are taken without being named; only the server has them."""
NOBODY = "10.1.1.254"
WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
ONLY_TO = ("--only-to", f"{SERVICE_IP}/32", "--only-to", f"{SERVICE_IP6}/128")
REFUSED = """
import socket, sys
s = socket.create_connection((sys.argv[1], 9), timeout=None if len(sys.argv) > 2 else 10)
s.sendall(b"x")
print(s.recv(1))
"""
"""A program that connects where nobody listens, and says what comes of it."""


def prepare(folder: Path) -> None:
    """Keys, a certificate, the token and a repository that has it."""
    www = folder / "www"
    www.mkdir()
    (www / "token.html").write_text(f"<p>{MARK}</p>\n", encoding="utf-8")
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(folder / "key.pem")]
    certificate = [
        "-x509",
        "-days",
        "30",
        "-subj",
        "/CN=service",
        "-out",
        str(folder / "certificate.pem"),
    ]
    run(["openssl", "req", *key, *certificate])
    work = folder / "work"
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    run(["git", "init", "-q", str(work)])
    (work / "token.html").write_text(MARK, encoding="utf-8")
    run(["git", "-C", str(work), "add", "token.html"])
    run(["git", "-C", str(work), *identity, "commit", "-qm", "token"])
    run(["git", "clone", "-q", "--bare", str(work), str(www / "project.git")])
    run(["git", "-C", str(www / "project.git"), "update-server-info"])
    for name in ("ssh-client", "ssh-host"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)])


def ssh_server(built: Bench) -> Process:
    """An sshd for this user, if there is one on this machine."""
    folder = built.folder
    options = {
        "ListenAddress": SERVICE_IP,
        "Port": str(SSH_PORT),
        "HostKey": str(folder / "ssh-host"),
        "AuthorizedKeysFile": str(folder / "ssh-client.pub"),
        "StrictModes": "no",
        "PidFile": "none",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
    }
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *flags]
    return Process(argv, log=folder / "sshd.log", host=built.server)


@contextlib.contextmanager
def far_services(built: Bench) -> Iterator[None]:
    """Web server, name server and, where it is installed, sshd."""
    built.server.run(["ip", "address", "add", f"{PUBLIC_IP}/32", "dev", "lo"])
    for address in (SERVICE_IP6, PUBLIC_IP6):
        built.server.run(["ip", "address", "add", f"{address}/128", "dev", "lo", "nodad"])
    prepare(built.folder)
    module = [sys.executable, "-m", "tests.system.far_services"]
    argv = [*module, str(built.folder), SERVICE_IP, SERVICE_IP6, PUBLIC_IP, PUBLIC_IP6]
    path = {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'python'}"}
    with contextlib.ExitStack() as stack:
        web = Process(argv, log=built.folder / "web.log", host=built.server, env=path)
        stack.enter_context(web)
        web.wait_until((built.folder / "serving").exists, "the services listen")
        if os.access("/usr/sbin/sshd", os.X_OK):
            stack.enter_context(ssh_server(built))
        yield


def settled(host: Host) -> bool:
    """Whether every address can be used: the kernel first looks for others that have it.

    An address that comes into use while a page loads is a change of the network to Chromium: it
    gives the page up.
    """
    found = json.loads(host.run(["ip", "-json", "address", "show", "tentative"]))
    return not any(interface.get("addr_info") for interface in found)


@contextlib.contextmanager
def captured(
    scratch: Path, *options: str, served: tuple[str, ...] = ()
) -> Iterator[tuple[Bench, Process]]:
    """The two hosts, services behind the server, and `sumrate up` with these options.

    Args:
        scratch: a folder for everything.
        options: further flags of `sumrate up`.
        served: further flags of `sumrate serve`.

    """
    resolv = scratch / "resolv.conf"
    resolv.write_text(f"nameserver {SERVICE_IP}\noptions timeout:2 attempts:1\n", encoding="utf-8")
    run(["mount", "--bind", str(resolv), os.path.realpath("/etc/resolv.conf")])
    with bench(scratch, WIFI, WIGIG) as built, far_services(built):
        # There are routes, as on every machine that is on the net, and nobody at their end.
        via = ["via", NOBODY, "dev", WIFI.interface, "onlink"]
        built.client.run(["ip", "route", "add", "default", *via])
        built.client.run(["ip", "address", "add", "fd10::1/64", "dev", WIFI.interface, "nodad"])
        built.client.run(["ip", "-6", "route", "add", "default", "dev", WIFI.interface])
        http = f"127.0.0.1:{HTTP_PROXY_PORT}"
        allowed = (SERVICE_IP6, PUBLIC_IP, PUBLIC_IP6)
        with (
            serve(built, *(word for ip in allowed for word in ("--allow", ip)), *served),
            up(built, "--http", http, *options) as daemon,
        ):
            daemon.wait_until(lambda: settled(built.client), "the client's addresses are in use")
            yield built, daemon


def fetch(built: Bench, *options: str, url: str = f"http://{SERVICE_IP}:8080/token.html") -> str:
    """What curl on the client gets; empty if it gets nothing."""
    argv = ["curl", "-s", "--noproxy", "*", "--max-time", "8", *options, url]
    done = subprocess.run(built.client.command(argv), capture_output=True, text=True, check=False)
    return done.stdout


def python(host: Host, code: str, *words: str, prefix: tuple[str, ...] = ()) -> str:
    """What a Python program on the host prints, its error if it fails."""
    argv = [*prefix, sys.executable, "-c", code, *words]
    done = subprocess.run(host.command(argv), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
