"""`sumrate run`: one program that knows nothing of Sumrate."""

import subprocess
from pathlib import Path

import pytest

from sumrate.lab.faults.bench import Bench
from sumrate.lab.programs import program
from sumrate.lab.scene import SERVICE_IP
from tests.system.capture_scene import PUBLIC_IP, PUBLIC_IP6, REFUSED, SERVICE_IP6, captured, python
from tests.system.programs import MARK, NAME, run_prefix
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

PEER = """
import os, socket, sys
host, port = sys.argv[1], int(sys.argv[2])
def go(label, blocking, protocol=0):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM, protocol)
    s.settimeout(None if blocking else 20)
    s.connect((host, port))
    copy = s.dup()
    s.sendall(b"GET /token.html HTTP/1.0\\r\\n\\r\\n")
    text = b""
    while part := s.recv(4096):
        text += part
    print(label, copy.getpeername()[:2] == (host, port), MARK.encode() in text)
MARK = sys.argv[3]
go("blocking", True)
go("not blocking", False)
if os.path.exists("/proc/sys/net/mptcp/enabled"):
    go("MPTCP", True, 262)
else:
    print("MPTCP True True")
if os.fork() == 0:
    go("child", True)
    os._exit(0)
os.wait()
"""


def test_run_keeps_addresses_truthful_and_follows_children() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, daemon):
            prefix = run_prefix(scratch)
            for host in (SERVICE_IP, SERVICE_IP6):
                said = python(built.client, PEER, host, "8080", MARK, prefix=prefix)
                lines = sorted(said.strip().splitlines())
                expected = [
                    f"{label} True True" for label in ("MPTCP", "blocking", "child", "not blocking")
                ]
                assert lines == expected, (said, daemon.tail())
            said = python(built.client, REFUSED, SERVICE_IP, "blocking", prefix=prefix)
            assert "ConnectionRefusedError" in said, "a blocking program learns the reason"
            said = python(built.client, REFUSED, SERVICE_IP, prefix=prefix)
            assert "ConnectionResetError" in said or "BrokenPipeError" in said, said

    isolated(scenario)


SOCKET_NAMES = """
import socket, sys
for timeout in (None, 20):
    for host in sys.argv[1:]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(timeout)
        s.connect((host, 8080))
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        print(s.getsockname()[0], s.getpeername()[0], s.getpeername()[1], len(s.recv(5)))
"""


def test_run_tells_whom_was_asked_and_the_truth_about_itself() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, daemon):
            hosts = (SERVICE_IP, PUBLIC_IP, SERVICE_IP6, PUBLIC_IP6)
            said = python(built.client, SOCKET_NAMES, *hosts, prefix=run_prefix(scratch))
            expected = [
                f"{'::ffff:127.0.0.1' if ':' in host else '127.0.0.1'} {host} 8080 5"
                for host in hosts
            ]
            assert said.splitlines() == expected * 2, (said, daemon.tail())

    isolated(scenario)


def test_run_with_a_password_and_with_names_of_this_machine() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, "--socks-auth", "me:secret") as (built, daemon):
            run = [str(program("sumrate")), "run", "--socks", "127.0.0.1:1080"]
            right = (*run, "--socks-auth", "me:secret", "--")
            said = python(built.client, PEER, SERVICE_IP, "8080", MARK, prefix=right)
            assert said.count("True True") == 4, (said, daemon.tail())
            for words, reason in (
                ((), "wants a password"),
                (("--socks-auth", "me:wrong"), "does not take this user and password"),
            ):
                refused = built.client.command([*run, *words, "--", "true"])
                done = subprocess.run(refused, capture_output=True, text=True, check=False)
                assert done.returncode == 2 and reason in done.stderr, done
            reach = f"import socket; socket.create_connection(('{NAME}', 8080)); print('reached')"
            assert "reached" in python(built.client, reach, prefix=right)
            local = (*run, "--socks-auth", "me:secret", "--local-names", "--")
            assert "gaierror" in python(built.client, reach, prefix=local)

    isolated(scenario)


def sumrate_run(built: Bench, *words: str) -> subprocess.CompletedProcess[str]:
    binary = str(program("sumrate"))
    socket = ("--socket", str(built.folder / "up.sock"))
    argv = built.client.command([binary, "run", *socket, *words])
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_run_says_what_it_cannot_reach() -> None:
    static = Path("/bin/busybox-static")
    candidates = [Path("/bin/busybox"), static, Path("/usr/sbin/ldconfig"), Path("/sbin/ldconfig")]

    def scenario(scratch: Path) -> None:
        found = next((path for path in candidates if path.exists() and _is_static(path)), None)
        assert found, "every Debian machine has a static ldconfig"
        with captured(scratch) as (built, _daemon):
            refused = sumrate_run(built, "--", str(found))
            assert refused.returncode == 2, refused
            assert "is statically linked" in refused.stderr, refused.stderr
            command = f"{found} --version; echo went on"
            said = sumrate_run(built, "--", "sh", "-c", command)
            assert "do not go through Sumrate" in said.stderr and "went on" in said.stdout, said
            strict = sumrate_run(built, "--strict", "--", "sh", "-c", command)
            assert "not started" in strict.stderr and "ldconfig (" not in strict.stdout, strict
            assert sumrate_run(built, "--", "no-such-program").returncode == 127
            assert sumrate_run(built, "--", "sh", "-c", "exit 7").returncode == 7

    isolated(scenario)


def _is_static(path: Path) -> bool:
    head = path.read_bytes()[:4096]
    return head.startswith(b"\x7fELF") and b"ld-linux" not in head and b"/lib64/ld" not in head
