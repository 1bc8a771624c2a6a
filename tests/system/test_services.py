"""The units of the package under a real systemd, as process 1 of a copy of this machine.

The copy has its own process, mount, network and control group namespaces, reads the kernel's
settings only, and lacks the capabilities that reach beyond: what its systemd does ends with it.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.debian import COPY_OF_ROOT, REFUSED, package

SYSTEMD = Path("/lib/systemd/systemd")
LACKING = [
    name
    for name in ("dpkg", "dpkg-shlibdeps", "nsenter", "setpriv", "curl")
    if shutil.which(name) is None
]
if not SYSTEMD.exists():
    LACKING.append("systemd")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        os.geteuid() != 0 or bool(LACKING), reason=f"needs root, and lacks {LACKING or 'nothing'}"
    ),
]

BOOT = (
    COPY_OF_ROOT
    + r"""
cp "$2" "$1/root/package.deb"
# systemd gets a control group of its own, and sees nothing above it.
mkdir "$1/cgroup"
mount -t cgroup2 none "$1/cgroup" || exit 77
mkdir "$1/cgroup/$3"
echo $$ > "$1/cgroup/$3/cgroup.procs"
exec unshare --pid --fork --kill-child --cgroup --uts --ipc --mount sh -e -c '
  cd "$1"
  mount -t proc proc proc
  mount --bind proc/sys proc/sys
  mount -o remount,bind,ro proc/sys
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  for directory in dev run tmp; do mount -t tmpfs tmpfs "$directory"; done
  for node in null zero full random urandom tty; do
    touch "dev/$node"
    mount --bind "/dev/$node" "dev/$node"
  done
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ip link set lo up
  mkdir -p old
  pivot_root . old
  umount -l /old
  exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set=-sys_module,-sys_time,-sys_boot,-sys_rawio,-syslog,-sys_tty_config \
    /lib/systemd/systemd --unit=basic.target --show-status=0
' sh "$1/root"
"""
)
PATIENCE_S = 60.0
AGAIN = ("RestartUSec", "StartLimitIntervalUSec")
WRONG_USAGE = 2
NO_PRIVILEGE = 3


class Machine:
    """A copy of this machine that systemd runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def attempt(self, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a shell script in it as root."""
        argv = ["nsenter", "--target", str(self.pid), "--all", "sh", "-e", "-c", script]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        return subprocess.run(
            argv, check=False, capture_output=True, text=True, env=environment, timeout=PATIENCE_S
        )

    def run(self, script: str) -> str:
        """What the script prints; it must succeed."""
        done = self.attempt(script)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}\n{self.journal()}"
        return done.stdout

    def journal(self) -> str:
        """The last that the services have said."""
        return self.attempt("journalctl --no-pager -n 40 -u 'sumrate-*'").stdout

    def wait(self, script: str) -> str:
        """What the script prints once it succeeds; the limit only ends a test that would hang."""
        deadline = time.monotonic() + PATIENCE_S
        while (done := self.attempt(script)).returncode != 0:
            assert time.monotonic() < deadline, f"{script}\n{done.stderr}\n{self.journal()}"
            time.sleep(0.2)
        return done.stdout

    def property(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run(f"systemctl show -P {name} {unit}").strip()


def child_of(pid: int) -> int | None:
    """The only child of a process, once there is one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


@contextlib.contextmanager
def machine(folder: Path, deb: Path) -> Iterator[Machine]:
    """Starts systemd as process 1 of a copy of this machine, which has the package as a file."""
    place = folder / "place"
    place.mkdir()
    group = f"sumrate-test-{os.getpid()}"
    argv = ["unshare", "--mount", "--net", "sh", "-c", BOOT, "sh", str(place), str(deb), group]
    log = (folder / "systemd.log").open("wb")
    booting = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def said() -> str:
        return (folder / "systemd.log").read_text(encoding="utf-8", errors="replace")

    try:
        deadline = time.monotonic() + PATIENCE_S
        ready = ["systemctl", "is-active", "basic.target"]
        while True:
            if (ended := booting.poll()) is not None:
                if ended == REFUSED:
                    pytest.skip(f"this kernel refuses a copy of the machine: {said()}")
                pytest.fail(f"systemd ended with {ended}: {said()}")
            found = child_of(booting.pid)
            if found is not None and Machine(found).attempt(" ".join(ready)).returncode == 0:
                break
            assert time.monotonic() < deadline, f"systemd does not start: {said()}"
            time.sleep(0.2)
        yield Machine(found)
    finally:
        # The child, which is process 1 of its namespace, ends with it, and all else with that.
        booting.kill()
        booting.wait()
        log.close()
        tidy = (
            'mount -t cgroup2 none "$1"; for n in $(seq 100); do '
            'find "$1/$2" -depth -type d -exec rmdir {} + && break; sleep 0.1; done'
        )
        argv = ["unshare", "--mount", "sh", "-c", tidy, "sh", str(place), group]
        subprocess.run(argv, check=False, capture_output=True)


def privileges(built: Machine, unit: str) -> dict[str, str]:
    """What the kernel says of a unit's main process."""
    pid = built.property(unit, "MainPID")
    lines = built.run(f"cat /proc/{pid}/status").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def start_both(built: Machine) -> None:
    """Starts the far and the near end on the loopback interface."""
    built.run("""
        sed -i 's/^listen = .*/listen = "127.0.0.1:7443"\\nallow = ["127.0.0.1"]/' \
          /etc/sumrate/config.toml
        systemctl enable --now sumrate-serve
        install -o sumrate -m 0600 /var/lib/sumrate/link.txt /etc/sumrate/link
        sed -i 's/^# path = .*/path = "lo=127.0.0.1"/' /etc/sumrate/config.toml
        systemctl enable --now sumrate-up
    """)


def test_the_units_start_reload_restart_and_stop(tmp_path: Path) -> None:
    """From installing the package to a fetch through both services, a crash, and removal."""
    (tmp_path / "deb").mkdir()
    with machine(tmp_path, package(tmp_path / "deb")) as built:
        built.run("dpkg -i /package.deb")
        assert built.attempt("systemctl is-enabled sumrate-serve").stdout.strip() == "disabled"
        start_both(built)
        built.run("""
            mkdir /tmp/www && echo far end > /tmp/www/index.html
            systemd-run --quiet --unit web python3 -m http.server -b 127.0.0.1 -d /tmp/www 8000
        """)
        for unit in ("sumrate-serve", "sumrate-up"):
            process = privileges(built, unit)
            assert process["Uid"].split() == [built.run("id -u sumrate").strip()] * 4
            assert int(process["CapEff"], 16) == int(process["CapBnd"], 16) == 0, process
            assert (process["NoNewPrivs"], process["Seccomp"]) == ("1", "2")
            again = [built.property(unit, name) for name in AGAIN]
            assert again == ["5s", "0"], "it is tried for as long as it takes"
        fetch = "curl -sSf --proxy socks5h://127.0.0.1:1080 http://127.0.0.1:8000/"
        assert built.wait(fetch) == "far end\n"

        built.run("systemctl reload sumrate-up sumrate-serve")
        built.run("echo 'nonsense = 1' >> /etc/sumrate/config.toml")
        for unit in ("sumrate-up", "sumrate-serve"):
            assert built.attempt(f"systemctl reload {unit}").returncode != 0
            assert "nonsense" in built.run(f"journalctl -u {unit}"), "the reason is in the journal"
            assert built.property(unit, "ActiveState") == "active"
        built.run("sed -i '$d' /etc/sumrate/config.toml; systemctl reload sumrate-up")

        built.run("systemctl kill --signal=KILL --kill-whom=main sumrate-serve")
        built.wait('[ "$(systemctl show -P NRestarts sumrate-serve)" = 1 ]')
        assert built.wait(fetch) == "far end\n", "the client finds the new server by itself"

        secret = built.run("cat /var/lib/sumrate/link.txt").strip().rsplit("c=", 1)[1]
        entries = built.run("journalctl -o json --no-pager -u 'sumrate-*'").splitlines()
        assert entries
        assert secret not in "".join(entries), "a link is a password"
        transports = {json.loads(entry).get("_TRANSPORT") for entry in entries}
        assert "journal" in transports, "the services speak journald's own protocol"

        built.run("systemctl stop sumrate-up sumrate-serve")
        for unit in ("sumrate-up", "sumrate-serve"):
            assert built.property(unit, "Result") == "success", built.journal()
            assert built.property(unit, "ExecMainStatus") == "0"
        built.run("systemctl start sumrate-serve; dpkg -r sumrate")
        assert built.attempt("systemctl is-active sumrate-serve").stdout.strip() == "inactive"


def test_files_go_to_the_unit_and_both_units_are_found(tmp_path: Path) -> None:
    """The example of `files` as the configuration documents it, `sumrate status`, and the page."""
    (tmp_path / "deb").mkdir()
    with machine(tmp_path, package(tmp_path / "deb")) as built:
        built.run("""
            dpkg -i /package.deb
            sed -i 's/^# files = .*/&\\nweb = "127.0.0.1:8081"/; s/^# files = /files = /' \
              /etc/sumrate/config.toml
            install -d -o sumrate -g sumrate -m 0750 /srv/sumrate
        """)
        start_both(built)
        built.run("""
            umask 077
            setpriv --reuid sumrate --regid sumrate --init-groups \
              sumrate credential add --state /var/lib/sumrate --advertise 127.0.0.1:7443 \
              --name files --files rw > /root/files.link
            mkdir -p /root/tree/sub && echo content > /root/tree/sub/file
            sumrate cp --path lo=127.0.0.1 /root/tree @/root/files.link:new
        """)
        assert built.run("cat /srv/sumrate/new/sub/file") == "content\n"

        both = built.run("sumrate status")
        assert "Client (process " in both and "Server (process " in both, both
        ambiguous = built.attempt("sumrate status --json")
        assert ambiguous.returncode == WRONG_USAGE, ambiguous.stderr
        for socket in ("/run/sumrate/serve.sock", "/run/sumrate-up/up.sock"):
            assert f"--socket {socket}" in ambiguous.stderr, ambiguous.stderr
            assert built.run(f"sumrate status --socket {socket}")
        built.run("systemctl stop sumrate-up")
        as_sumrate = "setpriv --reuid sumrate --regid sumrate --init-groups"
        for who in ("", as_sumrate):
            assert json.loads(built.run(f"{who} sumrate status --json"))["role"] == "server"
        denied = built.attempt("setpriv --reuid 65534 --regid 65534 --clear-groups sumrate status")
        assert denied.returncode == NO_PRIVILEGE, denied.stderr
        assert "permission denied" in denied.stderr
        assert "sudo" in denied.stderr

        page = "/run/sumrate/serve.web-url"
        assert built.run(f"stat -c %a {page}").strip() == "600"
        address, token = built.run(f"cat {page}").strip().split("#token=")
        assert built.run(f"curl -sSf {address}")
        said = built.run("journalctl --no-pager -u sumrate-serve")
        assert page in said, "the journal says where the address is"
        assert token not in said, "the address is a password"
