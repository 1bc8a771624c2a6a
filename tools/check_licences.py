"""Checks what this repository depends on: licences, sources, and what must not come in.

1. Every crate in Cargo.lock has a licence that ALLOWED satisfies, comes from crates.io or from this
   workspace, and is none of BANNED.
2. So has every installed Python package that `sumrate[lab,ghz,cluster,qoe]` needs, as its metadata
   say.

Known vulnerabilities are another matter: their lists have to be fetched (docs/security.md).

Run: .venv/bin/python tools/check_licences.py [REPOSITORY]
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing
from packaging.requirements import Requirement

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause",
    "CC0-1.0", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip
"""Permissive ones: what is built may be passed on under this repository's own licences."""

BANNED = {
    "openssl-sys": "TLS is rustls's",
    "native-tls": "TLS is rustls's",
    "ring": "cryptography is aws-lc-rs's",
}
"""Crates that must not come in, and why."""

SOURCE = "registry+https://github.com/rust-lang/crates.io-index"
EXTRAS = ("lab", "ghz", "cluster", "qoe")

CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
"""What packages mean that say it by a trove classifier alone."""

NAMED = {"Apache 2.0": "Apache-2.0", "BSD": "BSD-3-Clause"}
"""What older packages write into a field that had no syntax then."""


@cache
def is_allowed(expression: str) -> bool:
    """Whether licences of ALLOWED satisfy an SPDX expression; `/` is an old way to write OR."""
    licensing = get_spdx_licensing()
    try:
        parsed = licensing.parse(expression.replace("/", " OR "), validate=True)
    except ExpressionError:
        return False
    if parsed is None:
        return False
    held = {
        symbol: licensing.TRUE if str(symbol) in ALLOWED else licensing.FALSE
        for symbol in licensing.license_symbols(parsed, unique=True, decompose=False)
    }
    return bool(parsed.subs(held).simplify() == licensing.TRUE)


def crate_findings(metadata: dict[str, Any], built: set[str]) -> Iterator[str]:
    """What is wrong with crates of `cargo metadata`, which not all are `built`."""
    for package in metadata["packages"]:
        name = f"crate {package['name']} {package['version']}"
        licence = package["license"] or ""
        if not is_allowed(licence):
            yield f"{name}: licence `{licence}` is not allowed"
        if package["source"] not in (None, SOURCE):
            yield f"{name}: comes from {package['source']}, only crates.io is allowed"
        if package["name"] in BANNED and package["name"] in built:
            yield f"{name}: must not come in: {BANNED[package['name']]}"


def licence_of(package: Distribution) -> str:
    """A package's licence expression; empty where its metadata say nothing that is understood."""
    fields = package.metadata
    if "License-Expression" in fields:
        return fields["License-Expression"]
    text = fields["License"].strip() if "License" in fields else ""
    if text and len(text.splitlines()) == 1:
        return NAMED.get(text, text)
    classifiers = fields.get_all("Classifier") or []
    last = [line.split(" :: ")[-1] for line in classifiers if line.startswith("License ::")]
    return " OR ".join(CLASSIFIED[name] for name in last if name in CLASSIFIED)


def needed(name: str, extras: tuple[str, ...], seen: dict[str, Distribution]) -> None:
    """Adds a package and what it needs, as far as it is installed."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return
    seen[name.lower()] = package
    for line in package.requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        wanted = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if wanted and requirement.name.lower() not in seen:
            needed(requirement.name, tuple(requirement.extras), seen)


def package_findings(packages: dict[str, Distribution]) -> Iterator[str]:
    """What is wrong with Python packages."""
    for name, package in sorted(packages.items()):
        licence = licence_of(package)
        if not is_allowed(licence):
            yield f"package {name} {package.version}: licence `{licence}` is not allowed"


def cargo(root: Path, *arguments: str) -> str:
    """What cargo prints, with the versions of Cargo.lock."""
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    """Prints the findings; the exit status is 1 if there are any."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    metadata = json.loads(cargo(root, "metadata", "--format-version", "1"))
    tree = cargo(
        root, "tree", "--workspace", "--target", "all", "--edges", "all", "--prefix", "none"
    )
    built = {line.split(" ")[0] for line in tree.splitlines()}
    packages: dict[str, Distribution] = {}
    needed("sumrate", EXTRAS, packages)
    found = [*crate_findings(metadata, built), *package_findings(packages)]
    for line in found:
        print(line)
    crates = len(metadata["packages"])
    what = f"{crates} crates, {len(packages)} Python packages"
    print(f"licences: {len(found)} findings in {what}" if found else f"licences: {what}: allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
