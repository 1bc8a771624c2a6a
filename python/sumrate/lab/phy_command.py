"""`sumrate-lab phy`: published 60 GHz measurements done again on the model."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from sumrate.lab.options import Json, Positive, Seed
from sumrate.lab.results import steps
from sumrate.phy.studies import module_claims, wlan, wlan_claims
from sumrate.phy.studies.finding import Finding, over_seeds

Study = Literal["module", "wlan"]


def phy(
    studies: list[Study],
    /,
    *,
    seed: Annotated[Seed, Parameter(validator=Number(gte=0))] = 1,
    seeds: Positive = 10,
    output: Path | None = None,
    as_json: Json = False,
) -> int:
    """Compare the 60 GHz model with published measurements.

    A claim that does not hold is a result, not a failure.

    Example: sumrate-lab phy module wlan --output out/phy

    Args:
        studies: Studies: module, wlan.
        seeds: Number of seeds; the majority decides.
        output: Folder for figures and findings.json.

    """
    makers: dict[str, Callable[[int, Path | None], list[Finding]]] = {
        "module": _module, "wlan": _wlan,
    }  # fmt: skip
    try:
        if output:
            output.mkdir(parents=True, exist_ok=True)
        found = {
            name: _over_seeds(makers[name], seed, seeds, output) for name in dict.fromkeys(studies)
        }
        document: dict[str, Any] = {
            "schema": "sumrate.phy-findings.v1",
            "seed": seed,
            "seeds": seeds,
            "findings": {name: [f.document() for f in each] for name, each in found.items()},
        }
        if output:
            text = json.dumps(document, indent=1) + "\n"
            (output / "findings.json").write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(document, indent=1) if as_json else _text(found))
    return 0


def _over_seeds(
    make: Callable[[int, Path | None], list[Finding]], seed: int, seeds: int, output: Path | None
) -> list[Finding]:
    """Verdicts over all seeds; figures are those of the first."""
    runs = [
        make(seed + number, output if number == 0 else None)
        for number in steps(range(seeds), "seeds")
    ]
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


def _text(found: Mapping[Study, list[Finding]]) -> str:
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
