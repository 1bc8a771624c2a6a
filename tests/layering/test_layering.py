"""The layering check passes on the repository and sees each kind of planted violation."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import check_layering

PROTO = Path("crates/fbdt-proto")
BASELINES = Path("crates/fbdt-baselines")


@pytest.fixture
def copy(repository: Path, tmp_path: Path) -> Path:
    """A copy of the sources, to plant violations in."""
    for name in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml"):
        shutil.copy(repository / name, tmp_path / name)
    shutil.copytree(repository / "crates", tmp_path / "crates")
    shutil.copytree(repository / "fuzz", tmp_path / "fuzz")
    shutil.copytree(
        repository / "python", tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def replace(path: Path, old: str, new: str) -> None:
    source = path.read_text(encoding="utf-8")
    assert old in source
    path.write_text(source.replace(old, new, 1), encoding="utf-8")


def test_repository_is_layered(repository: Path) -> None:
    assert check_layering.findings(repository) == []


def depend_upwards(root: Path) -> None:
    replace(root / "crates/fbdt/Cargo.toml", "[dependencies]", "[dependencies]\nsumrate-cli = '1'")


def link_depends_on_transport(root: Path) -> None:
    manifest = root / "crates/sumrate-link/Cargo.toml"
    replace(manifest, "[dependencies]", "[dependencies]\nfbdt.workspace = true")


def proto_depends_on_tokio(root: Path) -> None:
    manifest = root / PROTO / "Cargo.toml"
    replace(manifest, "[dependencies]", "[dependencies]\ntokio.workspace = true")


def proto_depends_on_tokio_renamed(root: Path) -> None:
    manifest = root / PROTO / "Cargo.toml"
    replace(manifest, "[dependencies]", '[dependencies]\nbytes2 = { package = "tokio" }')


def proto_depends_on_std_feature(root: Path) -> None:
    manifest = root / PROTO / "Cargo.toml"
    replace(manifest, "bytes.workspace = true", 'bytes = { workspace = true, features = ["std"] }')


def proto_has_target_dependency(root: Path) -> None:
    append(root / PROTO / "Cargo.toml", '\n[target."cfg(unix)".dependencies]\nlibc = "0.2"\n')


def unknown_crate(root: Path) -> None:
    shutil.copytree(root / "crates/fbdt-sim", root / "crates/new")
    replace(root / "crates/new/Cargo.toml", "fbdt-sim", "new")


def proto_without_no_std(root: Path) -> None:
    replace(root / PROTO / "src/lib.rs", "#![no_std]\n", "#![cfg_attr(test, no_std)]\n")


def proto_with_std(root: Path) -> None:
    append(root / PROTO / "src/ranges.rs", "\nextern crate std;\n")


def proto_with_renamed_std(root: Path) -> None:
    append(root / PROTO / "src/ranges.rs", "\nextern crate std as core2;\n")


def proto_with_build_script(root: Path) -> None:
    append(root / PROTO / "build.rs", "fn main() {}\n")


def proto_depends_on_baselines(root: Path) -> None:
    manifest = root / PROTO / "Cargo.toml"
    replace(manifest, "[dependencies]", "[dependencies]\nfbdt-baselines.workspace = true")


def wire_depends_on_proto(root: Path) -> None:
    manifest = root / "crates/fbdt-wire/Cargo.toml"
    replace(manifest, "[dependencies]", "[dependencies]\nfbdt-proto.workspace = true")


def wire_depends_on_skips(root: Path) -> None:
    manifest = root / "crates/fbdt-wire/Cargo.toml"
    replace(manifest, "[dev-dependencies]", "[dev-dependencies]\ntest-skip.workspace = true")


def units_with_std(root: Path) -> None:
    append(root / "crates/fbdt-units/src/time.rs", "\nextern crate std;\n")


def baselines_depend_on_clock(root: Path) -> None:
    manifest = root / BASELINES / "Cargo.toml"
    replace(manifest, "[dependencies]", "[dependencies]\ntime.workspace = true")


def baselines_without_no_std(root: Path) -> None:
    replace(root / BASELINES / "src/lib.rs", "#![no_std]\n", "")


def leaf_uses_session(root: Path) -> None:
    append(root / PROTO / "src/ranges.rs", "\nuse crate::session::Session;\n")


def window_uses_schedule_in_group(root: Path) -> None:
    append(
        root / PROTO / "src/window.rs",
        "\nuse crate::{\n    config::{Config, WindowMode},\n    schedule::Scheduler,\n};\n",
    )


def path_uses_session_by_reexport(root: Path) -> None:
    append(root / PROTO / "src/path/mod.rs", "\nfn planted(_: &crate::Session) {}\n")


def new_module_without_place(root: Path) -> None:
    append(root / PROTO / "src/unplaced.rs", "//! Nothing.\n")


def lab_plots(root: Path) -> None:
    append(root / "python/sumrate/lab/demo/command.py", "\nimport matplotlib.pyplot as plt\n")


def report_uses_lab(root: Path) -> None:
    append(root / "python/sumrate/report/svg.py", "\nfrom sumrate.lab import links\n")


def workload_uses_experiment(root: Path) -> None:
    append(root / "python/sumrate/qoe/files.py", "\nfrom sumrate.lab.experiment import model\n")


def system_calls_elsewhere(root: Path) -> None:
    append(root / "python/sumrate/lab/links.py", "\nimport ctypes\n")


def relative_import(root: Path) -> None:
    append(root / "python/sumrate/report/svg.py", "\nfrom ..lab import links\n")


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (depend_upwards, "fbdt must not depend on sumrate-cli"),
        (link_depends_on_transport, "sumrate-link must not depend on fbdt"),
        (proto_depends_on_tokio, "fbdt-proto must not depend on tokio"),
        (proto_depends_on_tokio_renamed, "fbdt-proto must not depend on tokio"),
        (proto_depends_on_std_feature, "feature std of bytes"),
        (proto_has_target_dependency, "fbdt-proto must not depend on libc"),
        (unknown_crate, "new has no place"),
        (proto_without_no_std, "`#![no_std]` is missing"),
        (proto_with_std, "`extern crate std`"),
        (proto_with_renamed_std, "`extern crate std`"),
        (proto_with_build_script, "build script"),
        (proto_depends_on_baselines, "fbdt-proto must not depend on fbdt-baselines"),
        (wire_depends_on_proto, "fbdt-wire must not depend on fbdt-proto"),
        (wire_depends_on_skips, "fbdt-wire must not depend on test-skip"),
        (units_with_std, "`extern crate std`"),
        (baselines_depend_on_clock, "fbdt-baselines must not depend on time"),
        (baselines_without_no_std, "`#![no_std]` is missing"),
        (leaf_uses_session, "ranges uses session"),
        (window_uses_schedule_in_group, "window uses schedule"),
        (path_uses_session_by_reexport, "path uses session"),
        (new_module_without_place, "module unplaced has no place"),
    ],
)
def test_planted_violation_is_found(
    copy: Path, plant: Callable[[Path], None], expected: str
) -> None:
    plant(copy)
    found = check_layering.findings(copy)
    assert len(found) >= 1, found
    assert all(expected in line for line in found), found


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (lab_plots, "only sumrate.report draws"),
        (report_uses_lab, "reports read results"),
        (workload_uses_experiment, "workloads stand below experiments"),
        (system_calls_elsewhere, "system calls belong"),
        (relative_import, "TID252"),
    ],
)
def test_planted_import_of_python_is_found(
    copy: Path, repository: Path, plant: Callable[[Path], None], expected: str
) -> None:
    shutil.copy(repository / "pyproject.toml", copy)
    check = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID", "python"]
    clean = subprocess.run(check, cwd=copy, capture_output=True, text=True, check=False)
    assert clean.returncode == 0, clean.stdout
    plant(copy)
    found = subprocess.run(check, cwd=copy, capture_output=True, text=True, check=False)
    assert found.returncode == 1 and expected in found.stdout, found.stdout


def cargo_check(root: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cargo", "check", "--quiet", "-p", "fbdt-proto"],
        cwd=root,
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "planted",
    [
        "std::time::Instant::now()",
        "std::net::UdpSocket::bind(address)",
        "std::env::var(name)",
        "std::thread::current()",
    ],
)
def test_compiler_keeps_clock_socket_and_environment_out(
    copy: Path, planted: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.getbasetemp() / "proto-check"  # shared by the cases: built once
    clean = cargo_check(copy, target)
    assert clean.returncode == 0, clean.stderr
    append(copy / PROTO / "src/ranges.rs", f"\nfn planted() {{ let _ = {planted}; }}\n")
    refused = cargo_check(copy, target)
    assert refused.returncode != 0
    assert "std" in refused.stderr
