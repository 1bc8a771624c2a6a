"""Checks that imports point down only; a finding is a line that says where and what to do.

1. Crates: each depends only on the crates of this workspace below it, and the sans-IO crates
   (`SANS_IO`) on nothing outside their allow-list.
2. They are sans-IO: unconditionally `no_std`, no `extern crate` but alloc (std in tests
   only), no build script. That it then cannot name a socket, clock or environment is the
   compiler's proof; tests/layering shows that a planted `std::time::Instant::now()` does not build.
3. Modules of `fbdt-proto`: `crate::X` is allowed only for X below the module it stands in.

Imports of Python are checked by ruff (`banned-api` in pyproject.toml and ruff.toml of folders).

Run: python3 tools/check_layering.py [REPOSITORY]
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CRATES: dict[str, set[str]] = {
    "fbdt-units": set(),
    "fbdt-wire": {"fbdt-units"},
    "fbdt-coupling": {"fbdt-units"},
    "fbdt-proto": {"fbdt-coupling", "fbdt-units", "fbdt-wire"},
    "fbdt-baselines": {"fbdt-proto"},
    "fbdt-sim": {"fbdt-baselines", "fbdt-proto"},
    "fbdt-model": set(),
    "fbdt-tournament": {"fbdt-proto", "fbdt-sim", "sumrate-link"},
    "fbdt": {"fbdt-baselines", "fbdt-proto"},
    "fbdt-world": {"fbdt-proto", "fbdt-sim"},
    "sumrate-link": set(),
    "sumrate-cc": set(),
    "sumrate-preload": set(),
    "sumrate-capture": {"sumrate-preload"},
    "sumrate-cli": {
        "fbdt",
        "fbdt-proto",
        "sumrate-capture",
        "sumrate-cc",
        "sumrate-link",
        "sumrate-preload",
    },
    "test-skip": set(),
}
"""What each crate may depend on, of this workspace."""

FOR_TESTS = {"test-skip"}
"""Crates on which the tests of every crate that is not sans-IO may depend, and nothing else."""


class Dependency(NamedTuple):
    """A dependency of a crate, its features, and whether only its tests have it."""

    name: str
    for_tests: bool
    features: frozenset[str]


SANS_IO = {
    "fbdt-units": set(),
    "fbdt-wire": {"bytes", "fbdt-units", "thiserror", "unicode-general-category"},
    "fbdt-coupling": {"fbdt-units", "libm"},
    "fbdt-proto": {"bytes", "fbdt-coupling", "fbdt-units", "fbdt-wire", "libm", "thiserror"},
    "fbdt-baselines": {"fbdt-proto"},
}
"""The crates without sockets, clocks and threads, and all that each may depend on."""

MODULES = (
    ("ranges", "message", "scale", "dialling"),
    ("config",),
    ("error",),
    ("path", "stats"),
    ("event", "window"),
    ("schedule",),
    ("stream", "receive"),
    ("session",),
    ("testing",),
)
"""Modules of fbdt-proto from the bottom up; a module may use those in lower rows and its own row's
earlier ones."""


def dependencies(manifest: dict[str, Any], shared: dict[str, Any]) -> Iterator[Dependency]:
    """All dependencies of a manifest, for every target; renamed ones by their real name."""
    for table in [manifest, *manifest.get("target", {}).values()]:
        for kind in ("dependencies", "build-dependencies", "dev-dependencies"):
            for key, own in table.get(kind, {}).items():
                parts = [part for part in (shared.get(key), own) if isinstance(part, dict)]
                name = next((part["package"] for part in parts if "package" in part), key)
                features = [f for part in parts for f in part.get("features", [])]
                yield Dependency(name, kind == "dev-dependencies", frozenset(features))


def crate_findings(root: Path) -> Iterator[str]:
    """Dependencies that point up or sideways, and what sans-IO crates must not have."""
    workspace = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    for manifest_path in sorted((root / "crates").glob("*/Cargo.toml")):
        manifest = tomllib.loads(manifest_path.read_text(encoding="utf-8"))
        name = manifest["package"]["name"]
        where = f"{manifest_path}: {name}"
        if name not in CRATES:
            yield f"{where} has no place in CRATES of {Path(__file__).name}: say what it may use"
            continue
        for dependency in dependencies(manifest, workspace.get("dependencies", {})):
            if dependency.name in FOR_TESTS and dependency.for_tests and name not in SANS_IO:
                continue
            if dependency.name in CRATES and dependency.name not in CRATES[name]:
                yield f"{where} must not depend on {dependency.name}, which is not below it"
            if name not in SANS_IO or dependency.for_tests:
                continue
            if dependency.name not in SANS_IO[name]:
                yield f"{where} must not depend on {dependency.name}: it is sans-IO"
            elif "std" in dependency.features:
                yield f"{where} must not switch on the feature std of {dependency.name}"


def without_comments(source: str) -> str:
    """Rust source without line comments and documentation; line numbers stay."""
    return re.sub(r"//[^\n]*", "", source)


def sans_io_findings(crate: Path) -> Iterator[str]:
    """Ways for a sans-IO crate to reach std without the compiler's saying so."""
    root = without_comments((crate / "src/lib.rs").read_text(encoding="utf-8"))
    if not re.search(r"^\s*#!\[no_std\]\s*$", root, re.MULTILINE):
        yield f"{crate}/src/lib.rs: `#![no_std]` is missing or conditional"
    if (crate / "build.rs").exists():
        yield f"{crate}/build.rs: a build script can read the environment; remove it"
    for path in sorted((crate / "src").rglob("*.rs")):
        source = without_comments(path.read_text(encoding="utf-8"))
        for match in re.finditer(r"(#\[cfg\(test\)\]\s*)?extern\s+crate\s+(\w+)", source):
            in_tests, name = match[1] is not None, match[2]
            if name != "alloc" and not (name == "std" and in_tests):
                line = source.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: a sans-IO crate must not have `extern crate {name}`"


def module_order() -> dict[str, int]:
    """Position of each module, bottom first."""
    return {name: i for i, name in enumerate(name for row in MODULES for name in row)}


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Line number and name of every module (or item) named as `crate::X` or `crate::{X, Y}`."""
    text = without_comments(source)
    for match in re.finditer(r"\bcrate::(?:(\w+)|\{)", text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1]:
            yield line, match[1]
            continue
        depth, start, position = 1, match.end(), match.end()
        while depth and position < len(text):
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            position += 1
        group = re.sub(r"\{[^{}]*\}", "", text[start : position - 1])
        for part in group.split(","):
            if name := re.match(r"\s*(\w+)", part):
                yield line, name[1]


def reexports(lib: str) -> dict[str, str]:
    """The module behind each item that lib.rs offers at the crate's root."""
    found = {}
    for match in re.finditer(r"pub use (\w+)::(?:\{([^}]*)\}|(\w+))", without_comments(lib)):
        for item in (match[2] or match[3]).split(","):
            found[item.split(" as ")[-1].strip()] = match[1]
    return found


def module_findings(proto: Path) -> Iterator[str]:
    """Uses of a module that stands higher."""
    order = module_order()
    source_folder = proto / "src"
    behind = reexports((source_folder / "lib.rs").read_text(encoding="utf-8"))
    for path in sorted(source_folder.rglob("*.rs")):
        module = path.relative_to(source_folder).parts[0].removesuffix(".rs")
        if module in ("lib", "tests"):
            continue
        if module not in order:
            yield f"{path}: module {module} has no place in MODULES of {Path(__file__).name}"
            continue
        for line, named in imported_modules(path.read_text(encoding="utf-8")):
            used = behind.get(named, named)
            where = f"{path}:{line}: {module} uses {used}"
            if used not in order:
                yield f"{where}, which is no module here"
            elif order[used] > order[module]:
                yield f"{where}, which stands above it"


def findings(root: Path) -> list[str]:
    """Everything that is wrong, in all three respects."""
    proto = root / "crates/fbdt-proto"
    return [
        *crate_findings(root),
        *(line for name in SANS_IO for line in sans_io_findings(root / "crates" / name)),
        *module_findings(proto),
    ]


def main() -> int:
    """Prints the findings; the exit status is 1 if there are any."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = findings(root)
    for line in found:
        print(line)
    print(f"layering: {len(found)} violations" if found else "layering: imports point down only")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
