"""What both ends of a run are given: a file with sizes, errors, policy and seed."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Task:
    """One run. GOPs last 1 s; the clip repeats."""

    policy: str
    seed: int
    gops: int
    """How many are sent."""
    margin: float
    """The share of the estimated rate that is planned for."""
    sizes: NDArray[np.int64]
    """Bytes by GOP of the clip, level and tile, scaled."""
    errors: NDArray[np.float64]
    """Squared errors by GOP of the clip, level and tile."""

    def write(self, path: Path) -> None:
        """Keeps it in a file."""
        with path.open("wb") as file:
            np.savez(
                file, policy=self.policy, seed=self.seed, gops=self.gops, margin=self.margin,
                sizes=self.sizes, errors=self.errors,
            )  # fmt: skip

    @classmethod
    def read(cls, path: Path) -> "Task":
        """From its file.

        Raises OSError: there is none.
        """
        with np.load(path, allow_pickle=False) as found:
            return cls(
                str(found["policy"]),
                int(found["seed"]),
                int(found["gops"]),
                float(found["margin"]),
                found["sizes"],
                found["errors"],
            )
