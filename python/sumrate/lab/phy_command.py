"""`sumrate-lab phy`: published 60 GHz measurements done again on the model."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sumrate.phy.studies import module_claims, wlan, wlan_claims
from sumrate.phy.studies.finding import Finding, over_seeds

STUDIES = ("module", "wlan")


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `phy`."""
    sub = commands.add_parser(
        "phy",
        help="compare the 60 GHz model with published measurements",
        epilog="example: sumrate-lab phy module wlan --output out/phy",
    )
    sub.add_argument(
        "studies", nargs="+", choices=STUDIES, metavar="STUDY", help="study: module or wlan"
    )
    sub.add_argument("--seed", type=int, default=1, help="first seed (1)")
    sub.add_argument(
        "--seeds", type=int, default=10, help="number of seeds; the majority decides (10)"
    )
    sub.add_argument("--output", type=Path, help="folder for figures and findings.json")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs studies; 2 for wrong input. A claim that does not hold is a result, not a failure."""
    for name, value, least in (("--seed", args.seed, 0), ("--seeds", args.seeds, 1)):
        if value < least:
            print(f"error: {name} is {value}: allowed is at least {least}", file=sys.stderr)
            return 2
    makers: dict[str, Callable[[int, Path | None], list[Finding]]] = {
        "module": _module, "wlan": _wlan,
    }  # fmt: skip
    try:
        if args.output:
            args.output.mkdir(parents=True, exist_ok=True)
        found = {name: _over_seeds(makers[name], args) for name in dict.fromkeys(args.studies)}
        document: dict[str, Any] = {
            "schema": "sumrate.phy-findings.v1",
            "seed": args.seed,
            "seeds": args.seeds,
            "findings": {name: [f.document() for f in each] for name, each in found.items()},
        }
        if args.output:
            text = json.dumps(document, indent=1) + "\n"
            (args.output / "findings.json").write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    print(json.dumps(document, indent=1) if args.json else _text(found))
    return 0


def _over_seeds(
    make: Callable[[int, Path | None], list[Finding]], args: argparse.Namespace
) -> list[Finding]:
    """Verdicts over all seeds; figures are those of the first."""
    runs = []
    for number in range(args.seeds):
        if sys.stderr.isatty():
            print(f"\rseed {number + 1} of {args.seeds}", end="", file=sys.stderr, flush=True)
        runs.append(make(args.seed + number, args.output if number == 0 else None))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return over_seeds(runs)


def _module(seed: int, folder: Path | None) -> list[Finding]:
    _draw(("link-mcs", "link-interference"), seed, folder)
    return module_claims.findings(module_claims.study(seed))


def _wlan(seed: int, folder: Path | None) -> list[Finding]:
    _draw(("link-distance",), seed, folder)
    return wlan_claims.findings(wlan.measure(seed))


def _draw(names: tuple[str, ...], seed: int, folder: Path | None) -> None:
    """The figures of a study, where a folder is wanted."""
    if folder is None:
        return
    from sumrate.access.figures import Effort  # noqa: PLC0415 (compiles kernels)
    from sumrate.access.tasks import evaluate  # noqa: PLC0415
    from sumrate.lab.link_figures import FIGURES  # noqa: PLC0415
    from sumrate.report.access import draw  # noqa: PLC0415 (loads matplotlib)

    for name in names:
        rows = FIGURES[name].table(Effort(), seed, partial(evaluate, workers=1))
        draw(FIGURES[name], rows, folder)


def _text(found: dict[str, list[Finding]]) -> str:
    lines = []
    for each in found.values():
        for finding in each:
            verdict = "holds" if finding.holds else "fails"
            fitted = ", fitted" if finding.fitted else ""
            lines.append(f"{finding.claim:11}{verdict} ({finding.agreement:.0%} of seeds{fitted})")
            lines.append(f"    published: {finding.expected}")
            lines.append(f"    model:     {finding.measured}")
            lines += [f"    fitted:    {finding.fitted}"] if finding.fitted else []
            lines += [f"    cause:     {finding.cause}"] if finding.cause else []
    return "\n".join(lines)
