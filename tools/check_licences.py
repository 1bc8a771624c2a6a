"""Checks the licences of Python packages.

Each one that is installed and that `sumrate[lab,ghz,cluster,qoe]` needs, as its metadata say, has a
licence that deny.toml allows for crates, or one of two more (ALLOWED). Known vulnerabilities are
another matter: their lists have to be fetched (SECURITY.md).

Run: .venv/bin/python tools/check_licences.py
"""

import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from license_expression import ExpressionError, get_spdx_licensing
from packaging.requirements import Requirement

DENY = Path(__file__).parent.parent / "deny.toml"
"""Holds the licences that crates may have. Packages may have the same."""

ALLOWED = {
    *tomllib.loads(DENY.read_text(encoding="utf-8"))["licenses"]["allow"],
    "MIT-CMU",
    "PSF-2.0",
}
"""Permissive ones: those of crates, and two that only Python packages have."""

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


def main() -> int:
    """Prints the findings; the exit status is 1 if there are any."""
    packages: dict[str, Distribution] = {}
    needed("sumrate", EXTRAS, packages)
    found = list(package_findings(packages))
    for line in found:
        print(line)
    what = f"{len(packages)} Python packages"
    print(f"licences: {len(found)} findings in {what}" if found else f"licences: {what}: allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
