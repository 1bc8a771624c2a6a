"""`sumrate run`: one program that knows nothing of Sumrate."""

import subprocess
import sys
from pathlib import Path

import pytest

from sumrate.lab.faults.bench import Bench
from sumrate.lab.process import Process
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


DATAGRAMS = """
import ctypes, errno, socket, sys
name, address = sys.argv[1:]
stand_in = socket.getaddrinfo(name, 8080, socket.AF_INET)[0][4]
def say(label, act):
    try:
        act()
        print(label, "sent")
    except OSError as error:
        print(label, errno.errorcode[error.errno])
def udp():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
say("connect", lambda: udp().connect(stand_in))
say("sendto", lambda: udp().sendto(b"x", stand_in))
say("sendmsg", lambda: udp().sendmsg([b"x"], [], 0, stand_in))
ping = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
say("raw", lambda: ping.sendto(b"x" * 8, stand_in))
request = b"GET /token.html HTTP/1.0\\r\\n\\r\\n"
for host in (stand_in[0], address):
    tcp = socket.socket()
    say("fast open", lambda: tcp.sendto(request, socket.MSG_FASTOPEN, (host, 8080)))
    tcp.connect((host, 8080))
    tcp.sendall(request)
    print(tcp.recv(5))
class Gaicb(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p)] + [(f"w{i}", ctypes.c_void_p) for i in range(7)]
libc = ctypes.CDLL(None)
one = Gaicb(name.encode())
requests = (ctypes.POINTER(Gaicb) * 1)(ctypes.pointer(one))
print("getaddrinfo_a", libc.getaddrinfo_a(0, requests, 1, None))
class Hostent(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("aliases", ctypes.c_void_p), ("kind", ctypes.c_int),
                ("length", ctypes.c_int), ("list", ctypes.POINTER(ctypes.POINTER(ctypes.c_ubyte)))]
libc.gethostbyname2.restype = ctypes.POINTER(Hostent)
found = libc.gethostbyname2(name.encode(), socket.AF_INET)
print("gethostbyname2", found.contents.list[0][0] if found else None)
"""


def test_run_sends_nothing_past_the_proxy() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, daemon):
            prefix = run_prefix(scratch)
            said = python(built.client, DATAGRAMS, NAME, SERVICE_IP, prefix=prefix)
            assert said.splitlines() == [
                "connect ENETUNREACH",
                "sendto ENETUNREACH",
                "sendmsg ENETUNREACH",
                "raw ENETUNREACH",
                *["fast open ENOTSUP", "b'HTTP/'"] * 2,  # the other name of EOPNOTSUPP
                "getaddrinfo_a -11",
                "gethostbyname2 198",
            ], (said, daemon.tail())

    isolated(scenario)


FULL = """
import os, socket
words = dict(word.split("=", 1) for word in os.environ["SUMRATE_PRELOAD"].split() if "=" in word)
with open(words["names"], "r+b") as names:
    names.write(b"\\1" * os.path.getsize(words["names"]))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
server.setblocking(False)
for name in ("secret-clinic.example.org", "machine"):
    try:
        print(socket.getaddrinfo(name, 80))
    except socket.gaierror as error:
        said = {socket.EAI_FAIL: "fails", socket.EAI_AGAIN: "unanswered"}[error.errno]
    heard = b""
    try:
        while True:
            heard += server.recv(512)
    except BlockingIOError:
        pass
    print(name, said, name.split(".")[0].encode() in heard)
"""
"""Fills the table of names, and looks up one name of the far end and one of this network."""


def test_run_asks_nobody_for_names_beyond_the_most() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, daemon):
            own = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
            (scratch / "resolv.conf").write_text(own, encoding="utf-8")
            said = python(built.client, FULL, prefix=run_prefix(scratch))
            assert "secret-clinic.example.org fails False" in said, (said, daemon.tail())
            assert "machine unanswered True" in said, said
            assert "asked for 65536 names" in said, said

    isolated(scenario)


NEAR_IP = "203.0.113.99"
REACH = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
for timeout in (None, 20):
    s = socket.socket()
    s.settimeout(timeout)
    try:
        s.connect((sys.argv[1], 8080))
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        print("reached", s.recv(5))
    except OSError as error:
        print(type(error).__name__)
"""
"""Waits for a line, and connects to an address."""


def test_run_reaches_nothing_without_its_daemon() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, daemon):
            built.client.run(["ip", "address", "add", f"{NEAR_IP}/32", "dev", "lo"])
            serving = ["-m", "http.server", "--bind", NEAR_IP, "8080"]
            log = scratch / "near.log"
            with Process([sys.executable, *serving], log=log, host=built.client) as near:
                reach = [sys.executable, "-c", REACH, NEAR_IP]
                near.wait_until(lambda: _reach(built, reach) != "", "it is reached directly")
                argv = built.client.command([*run_prefix(scratch), *reach])
                pipe = subprocess.PIPE
                with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as command:
                    assert command.stdout is not None
                    assert command.stdout.readline() == "ready\n"
                    daemon.kill()
                    said, _ = command.communicate("go\n")
                assert said.splitlines() == ["ConnectionRefusedError"] * 2, said

    isolated(scenario)


def _reach(built: Bench, argv: list[str]) -> str:
    command = built.client.command(argv)
    done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=False)
    return done.stdout if done.stdout.count("reached") == 2 else ""


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
