"""Verdicts of a study on published claims."""

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
    """Parameters that were fitted to this claim; empty: the finding is a prediction."""
    cause: str = ""
    """Cause of a failure."""
    agreement: float = 1.0
    """Share of the seeds with this verdict."""

    def document(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        return asdict(self)


def over_seeds(runs: Sequence[Sequence[Finding]]) -> list[Finding]:
    """The majority verdict on each claim over runs with different seeds; a tie fails.

    Numbers and cause come from the first run with that verdict.
    """
    found = []
    for same in zip(*runs, strict=True):
        holds = 2 * sum(finding.holds for finding in same) > len(same)
        agreeing = [finding for finding in same if finding.holds == holds]
        found.append(replace(agreeing[0], agreement=round(len(agreeing) / len(same), 4)))
    return found
