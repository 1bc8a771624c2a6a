"""Everything in dist/, unpacked and used: packages, archives, checksums, the list of libraries.

Programs for arm64 run under qemu's user emulation. `test_image_runs.py` runs the container image.
"""

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest

from tests.dist.artefacts import (
    ARCHITECTURES,
    DIST,
    ROOT,
    digest,
    download,
    flags,
    launcher,
    loopback_up,
    needs_dist,
    one,
    runs_here,
    serving,
    unpack_archive,
    unpack_package,
)
from tests.system.scenario import isolated
from tests.system.test_package import inside, needs_root

LINKS = """\
version = 1
[[link]]
name = "wifi"
[link.a]
netns = "client"
interface = "wifi0"
address = ["10.1.1.1/24"]
[link.b]
netns = "server"
interface = "wifi0"
address = ["10.1.1.2/24"]
[link.both]
rate_mbps = 20
"""

pytestmark = [pytest.mark.system, needs_dist]
each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
MACHINES = {"amd64": 62, "arm64": 183}
"""Processor numbers in ELF headers (e_machine)."""
PT_DYNAMIC, PT_INTERP = 2, 3


def test_every_file_has_its_checksum() -> None:
    lines = (DIST / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: value for value, name in (line.split("  ") for line in lines)}
    files = {file.name for file in DIST.iterdir() if file.name != "SHA256SUMS"}
    assert set(sums) == files
    for name, value in sums.items():
        assert digest((DIST / name).read_bytes()) == value, name
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.*)"', manifest, re.MULTILINE)
    assert version is not None
    assert not [name for name in files if version[1] not in name]


def segments(program: bytes) -> set[int]:
    """Types of the program headers of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return {struct.unpack_from("<I", program, table + index * size)[0] for index in range(count)}


@each_architecture
def test_programs_are_static_and_for_their_processor(architecture: str, tmp_path: Path) -> None:
    (tmp_path / "deb").mkdir()
    archive = unpack_archive(architecture, tmp_path)
    package = unpack_package(architecture, tmp_path / "deb")
    for name in ("sumrate", "sumrate-link"):
        program = (archive / "bin" / name).read_bytes()
        assert struct.unpack_from("<H", program, 18) == (MACHINES[architecture],)
        assert PT_INTERP not in segments(program)
        assert (package / "usr/bin" / name).is_file()
    said = subprocess.run(
        ["readelf", "-d", str(archive / "bin/sumrate")], check=True, capture_output=True, text=True
    ).stdout
    assert "NEEDED" not in said


@each_architecture
def test_both_have_what_a_user_looks_for(architecture: str, tmp_path: Path) -> None:
    (tmp_path / "deb").mkdir()
    archive = unpack_archive(architecture, tmp_path)
    package = unpack_package(architecture, tmp_path / "deb")
    documents = "share/doc/sumrate"
    for root in (archive, package / "usr"):
        for name in (
            "share/man/man1/sumrate-credential-add.1.gz",
            "share/man/man1/sumrate-link.1.gz",
            "share/bash-completion/completions/sumrate",
            "share/fish/vendor_completions.d/sumrate.fish",
            "lib/systemd/system/sumrate-serve.service",
            "lib/sysusers.d/sumrate.conf",
            f"{documents}/config.example.toml",
        ):
            assert (root / name).is_file(), root / name
    assert "Apache" in (archive / documents / "LICENSE-APACHE").read_text(encoding="utf-8")
    licences = (archive / documents / "third-party.txt").read_text(encoding="utf-8")
    for library in ("tokio ", "aws-lc-sys ", "libbpf-sys "):
        assert f"  {library}" in licences
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in licences
    assert len((archive / "README").read_text(encoding="utf-8").splitlines()) <= 10
    unit = (package / "usr/lib/systemd/system/sumrate-serve.service").read_text(encoding="utf-8")
    assert "ExecStart=/usr/bin/sumrate " in unit


@each_architecture
def test_a_client_downloads_through_the_programs_of_the_archive(
    architecture: str, tmp_path: Path
) -> None:
    prefix = launcher(architecture)
    program = [*prefix, str(unpack_archive(architecture, tmp_path) / "bin/sumrate")]

    def scenario(scratch: Path) -> None:
        loopback_up()
        with serving(program, flags(architecture), scratch) as join_link:
            download(program, flags(architecture), join_link, scratch)

    isolated(scenario)


@each_architecture
def test_the_programs_of_the_package_start(architecture: str, tmp_path: Path) -> None:
    prefix = launcher(architecture)
    root = unpack_package(architecture, tmp_path)
    for name in ("sumrate", "sumrate-link"):
        done = subprocess.run(
            [*prefix, str(root / "usr/bin" / name), "--version"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.startswith(f"{name} ")


@needs_root
def test_the_package_installs_and_goes(tmp_path: Path) -> None:
    """With no package beside it; `tests/system/test_package.py` tries the services of one."""
    native = next(name for name in ARCHITECTURES if runs_here(name))
    package = one(f"sumrate_*_{native}.deb")
    script = f"""
dpkg -i /{package.name} 2>&1
sumrate --version && sumrate-link --version && sumrate config check
[ -n "$(getent passwd sumrate)" ]
dpkg -V sumrate
dpkg -P sumrate 2>&1
[ ! -e /usr/bin/sumrate ] && [ ! -e /usr/bin/sumrate-link ] && [ ! -e /etc/sumrate ] && echo purged
"""
    said = inside(tmp_path, (package,), script)
    assert "config.toml is valid" in said
    assert said.endswith("purged\n"), said
    assert "warning" not in said.lower(), said


def test_the_emulator_of_links_carries_a_connection(tmp_path: Path) -> None:
    """For this machine's processor alone: qemu's user emulation has no packet sockets."""
    native = next(name for name in ARCHITECTURES if runs_here(name))
    program = unpack_archive(native, tmp_path) / "bin/sumrate-link"
    configuration = tmp_path / "links.toml"
    configuration.write_text(LINKS, encoding="utf-8")

    def scenario(scratch: Path) -> None:
        loopback_up()
        for name in ("client", "server"):
            subprocess.run(["ip", "netns", "add", name], check=True)
        done = subprocess.run(
            [str(program), "calibrate", str(configuration), "--duration", "0.5"],
            check=False,
            capture_output=True,
            text=True,
            cwd=scratch,
        )
        # A busy machine is late, and the command fails then: packets that passed are enough here.
        rates = re.findall(r"rate_mbps +[\d.]+ +([\d.]+)", done.stdout)
        assert len(rates) == 2, done.stdout + done.stderr
        assert min(map(float, rates)) > 1, done.stdout

    isolated(scenario)


def linked_crates(target: str) -> set[tuple[str, str]]:
    """Name and version of each crate from the registry that cargo links for a target."""
    command = ["cargo", "tree", "--locked", "--package", "sumrate-cli", "--package", "sumrate-link"]
    command += ["--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none"]
    said = subprocess.run(
        [*command, "--format", "{p}"], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    found = (line.split() for line in said.splitlines())
    return {(words[0], words[1].removeprefix("v")) for words in found if len(words) == 2}


@each_architecture
def test_the_list_of_libraries_has_each_crate_that_is_linked(architecture: str) -> None:
    said = json.loads(one("sumrate-*.cdx.json").read_text(encoding="utf-8"))
    assert said["bomFormat"] == "CycloneDX"
    listed = {(part["name"], part["version"]) for part in said["components"]}
    linked = linked_crates(f"{ARCHITECTURES[architecture]}-unknown-linux-musl")
    assert len(linked) > 100
    assert linked <= listed, sorted(linked - listed)
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r'name = "(.*)"\nversion = "(.*)"', lock))
    assert listed <= locked, sorted(listed - locked)
