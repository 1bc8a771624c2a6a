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
WITNESS_PORT = "8099"
GATEWAY6 = "fd10::2"
WITNESS = """
import select, socket, sys
from pathlib import Path
ready, seen, *places = sys.argv[1:]
listeners, talkers = [], []
for host, port in zip(places[::2], places[1::2]):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for kind, sockets in ((socket.SOCK_STREAM, listeners), (socket.SOCK_DGRAM, talkers)):
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((host, int(port)))
        if kind == socket.SOCK_STREAM:
            s.listen(64)
        sockets.append(s)
Path(seen).touch()
Path(ready).touch()
while True:
    for s in select.select(listeners + talkers, [], [])[0]:
        if s in listeners:
            c, source = s.accept()
        else:
            _, source = s.recvfrom(65535)
        with open(seen, "a") as file:
            file.write(source[0] + " to " + s.getsockname()[0] + chr(10))
        if s in listeners:
            c.sendall(source[0].encode())
            c.close()
        else:
            s.sendto(source[0].encode(), source)
"""
"""A server that tells whoever asks, over TCP or UDP, from which address that is, and notes it."""
ASK_WITNESS = """
import socket, sys
kind, host, port, *device = sys.argv[1:]
family = socket.AF_INET6 if ":" in host else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
if device:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device[0].encode())
s.settimeout(5)
try:
    s.connect((host, int(port)))
    if kind == "udp":
        s.send(b"?")
    print(s.recv(100).decode() or "nobody: closed")
except OSError as error:
    print("nobody:", error)
"""


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


@contextlib.contextmanager
def open_world(built: Bench, *more: tuple[str, str]) -> Iterator[Path]:
    """Gives the client a direct way to everything, with a witness there; yields what that notes.

    Args:
        built: the two hosts.
        more: further addresses and ports of the witness, on the server.

    """
    client, server, wifi = built.client, built.server, built.links[0]
    server.run(["ip", "address", "add", f"{GATEWAY6}/64", "dev", wifi.interface, "nodad"])
    client.run(["ip", "route", "replace", "default", "via", wifi.server_ip])
    if has_ipv6(client):
        way = ["default", "via", GATEWAY6, "dev", wifi.interface]
        client.run(["ip", "-6", "route", "replace", *way])
    ready, seen = built.folder / "witnessing", built.folder / "seen"
    own = [(host, WITNESS_PORT) for host in (PUBLIC_IP, PUBLIC_IP6, wifi.server_ip, GATEWAY6)]
    places = [word for place in (*own, *more) for word in place]
    argv = [sys.executable, "-c", WITNESS, str(ready), str(seen), *places]
    with Process(argv, log=built.folder / "witness.log", host=server) as witness:
        witness.wait_until(ready.exists, "the witness listens")
        yield seen


def has_ipv6(client: Host) -> bool:
    """Whether the client has an IPv6 address of its own."""
    return "fd10::1" in client.run(["ip", "-6", "address", "show"])


def seen_as(
    host: Host,
    target: str,
    kind: str = "tcp",
    *,
    port: str = WITNESS_PORT,
    device: str = "",
    prefix: tuple[str, ...] = (),
) -> str:
    """The address as which a witness sees a program on the host; `nobody: REASON` if none."""
    words = [kind, target, port, *([device] if device else [])]
    return python(host, ASK_WITNESS, *words, prefix=prefix).strip()


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
