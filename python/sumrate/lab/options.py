"""Options that several commands of `sumrate-lab` share."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sumrate.lab.programs import REPOSITORY

Positive = Annotated[int, Parameter(validator=Number(gte=1))]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
Quick = Annotated[bool, Parameter(help="Run one repetition.")]
Repetitions = Annotated[
    int | None,
    Parameter(validator=Number(gte=1), help="Repetitions of every condition (the file's)."),
]
Seed = Annotated[int, Parameter(help="Seed of all random choices.")]
Runs = Annotated[Path, Parameter(help="Folder of results.")]
Kept = Annotated[Path, Parameter(help="Folder of kept tables.")]
Report = Annotated[Path, Parameter(help="File of the report.")]
Several = Parameter(consume_multiple=True)
"""Of an option that takes several values: `--clients 4 16`."""


def shown(default: object) -> str | None:
    """The default of an option in a help text; None for one that is empty."""
    if default in (None, False, ()):
        return None
    if isinstance(default, Path) and default.is_relative_to(REPOSITORY):
        return str(default.relative_to(REPOSITORY))
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
