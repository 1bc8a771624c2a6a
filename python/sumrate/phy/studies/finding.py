"""What a study found about a published claim."""

from dataclasses import asdict, dataclass
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

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)
