"""What a study found about a published claim."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One claim against the model."""

    claim: str
    """Its identifier in the catalogue of claims."""
    holds: bool
    measured: str
    expected: str
    fitted: str = ""
    """Which parameters were chosen so that this comes out; empty if none: then it is a result."""
    cause: str = ""
    """Why it does not hold."""
    agreement: float = 1.0
    """Share of the seeds with this verdict."""

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def over_seeds(runs: Sequence[Sequence[Finding]]) -> list[Finding]:
    """One verdict for each claim of runs with different seeds: that of most of them.

    Numbers and cause are those of the first run with that verdict; a tie does not hold.
    """
    found = []
    for same in zip(*runs, strict=True):
        holds = 2 * sum(finding.holds for finding in same) > len(same)
        agreeing = [finding for finding in same if finding.holds == holds]
        found.append(replace(agreeing[0], agreement=round(len(agreeing) / len(same), 4)))
    return found
