"""The Debian package, installed, upgraded, removed and purged by the real dpkg.

The root file system is this machine's, seen through an overlay in a mount namespace: maintainer
scripts run as they would, with real users and a real package database, and nothing of it stays.
There is no systemd as process 1 in it: the units' command lines are run as their user;
`test_services.py` starts the units.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.system.debian import COPY_OF_ROOT, REFUSED, package, with_version

SCRIPT = (
    COPY_OF_ROOT
    + r"""
mount -t proc proc "$1/root/proc"
mount --bind /dev "$1/root/dev"
mount -t tmpfs none "$1/root/run"
place=$1 script=$2
shift 2
cp "$@" "$place/root/"
ip link set lo up
chroot "$place/root" /bin/sh -e -c "$script"
"""
)


def inside(folder: Path, packages: Sequence[Path], script: str) -> str:
    """Runs a script as root on a copy of this machine that has the packages in /; its output."""
    place = folder / "place"
    place.mkdir()
    arguments = ["unshare", "--mount", "--net", "sh", "-c", SCRIPT, "sh"]
    done = subprocess.run(
        [*arguments, str(place), script, *map(str, packages)],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
        timeout=120,
    )
    if done.returncode == REFUSED:
        pytest.skip(f"an overlay of / is refused here: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PROGRAMS = ("dpkg", "dpkg-shlibdeps", "strip", "man", "systemd-analyze", "setpriv")
LACKING = [program for program in PROGRAMS if shutil.which(program) is None]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or bool(LACKING), reason=f"needs root and {', '.join(LACKING or PROGRAMS)}"
)


@pytest.fixture(name="made", scope="module")
def package_of_this_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the programs under test."""
    return package(tmp_path_factory.mktemp("package"))


@needs_root
def test_the_package_installs_works_and_goes(made: Path, tmp_path: Path) -> None:
    """From nothing to installed, used, upgraded, removed and purged."""
    first = made
    later = with_version(made, "9.9.9", tmp_path)
    script = rf"""
export HOME=/root XDG_RUNTIME_DIR=/run
dpkg -i /{first.name} 2>&1
[ "$(command -v sumrate)" = /usr/bin/sumrate ] && sumrate --version
echo user: $(getent passwd sumrate)
sumrate config check
systemd-analyze verify /usr/lib/systemd/system/sumrate-*.service 2>&1
man -l /usr/share/man/man1/sumrate-cp.1.gz | grep -c -- --limit
bash -c '. /usr/share/bash-completion/completions/sumrate && complete -p sumrate'
# The units' command lines, as their user.
as="setpriv --reuid sumrate --regid sumrate --init-groups"
install -d -o sumrate -g sumrate -m 0700 /var/lib/sumrate /var/lib/sumrate-up /run/one /run/two
start() {{ sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/$1.service; }}
sed -i 's/0.0.0.0:7443/127.0.0.1:7443/' /etc/sumrate/config.toml
export STATE_DIRECTORY=/var/lib/sumrate RUNTIME_DIRECTORY=/run/one
eval exec $as $(start sumrate-serve) > /dev/null & serve=$!
for i in $(seq 100); do [ -s /var/lib/sumrate/link.txt ] && break; sleep 0.1; done
install -o sumrate -m 0600 /var/lib/sumrate/link.txt /etc/sumrate/link
RUNTIME_DIRECTORY=/run/two; eval exec $as $(start sumrate-up) & up=$!
for i in $(seq 100); do
  [ -S /run/two/up.sock ] && sumrate status --socket /run/two/up.sock && break
  sleep 0.1
done
$as sumrate reload --socket /run/two/up.sock
kill $up; wait $up; echo up ended with $?
kill $serve; wait $serve; echo serve ended with $?
# A changed configuration survives an upgrade.
dpkg -i --force-confold /later.deb 2>&1
grep -q 127.0.0.1:7443 /etc/sumrate/config.toml && echo kept the configuration
dpkg-query -W -f '${{Version}}\n' sumrate
dpkg -r sumrate 2>&1
[ ! -e /usr/bin/sumrate ] && [ -e /etc/sumrate/config.toml ] && [ -d /var/lib/sumrate ]
echo removed
dpkg -P sumrate 2>&1
[ ! -e /etc/sumrate ] && [ ! -e /var/lib/sumrate ] && [ ! -e /var/lib/sumrate-up ] && echo purged
"""
    said = inside(tmp_path, (first, later), script)
    for expected in (
        "user: sumrate:x:",
        "config.toml is valid",
        "-F _sumrate sumrate",
        "applied nothing",
        "up ended with 0",
        "serve ended with 0",
        "kept the configuration",
        "9.9.9",
        "\nremoved\n",
        "\npurged\n",
    ):
        assert expected in said, f"{expected!r} is not in:\n{said}"
    assert "warning" not in said.lower(), said
    # Nothing of it happened to this machine.
    assert shutil.which("sumrate") != "/usr/bin/sumrate"


@needs_root
def test_the_package_holds_what_it_should_and_is_the_same_twice(made: Path, tmp_path: Path) -> None:
    """Contents, owners, modes, and the same bytes from the same input."""
    assert made.read_bytes() == package(tmp_path).read_bytes()
    listed = subprocess.run(
        ["dpkg-deb", "-c", str(made)], check=True, capture_output=True, text=True
    ).stdout
    for path in (
        "./usr/bin/sumrate",
        "./usr/bin/sumrate-link",
        "./usr/lib/systemd/system/sumrate-serve.service",
        "./usr/lib/sysusers.d/sumrate.conf",
        "./usr/share/man/man1/sumrate-credential-add.1.gz",
        "./usr/share/zsh/vendor-completions/_sumrate",
        "./etc/sumrate/config.toml",
        "./usr/share/doc/sumrate/copyright",
    ):
        assert f" {path}\n" in listed, listed
    for line in listed.splitlines():
        assert line.split()[1] == "root/root", line
        assert "w" not in (line[5], line[8]), line
    info = subprocess.run(
        ["dpkg-deb", "-I", str(made)], check=True, capture_output=True, text=True
    ).stdout
    assert "/usr/local" not in info
    assert "libc6" in info or "passwd" in info
