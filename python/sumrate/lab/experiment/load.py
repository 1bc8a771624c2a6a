"""Reads experiment files; an error names the line of the file."""

import difflib
import functools
import math
import operator
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sumrate.lab.experiment import keys, references, templates
from sumrate.lab.experiment.by_method import METHODS
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import RefusedError

FOLDER = REPOSITORY / "experiments"
CATALOGUE = "claims.toml"
ANY = functools.reduce(operator.or_, METHODS.values())
"""An experiment of any method."""


class ExperimentError(RefusedError):
    """An experiment file cannot be used; the message has the file, the line and what is wrong."""


def names(folder: Path = FOLDER) -> list[str]:
    """Names of all experiments, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml") if path.name != CATALOGUE)


def load(name: str, folder: Path = FOLDER) -> Experiment:
    """Reads one experiment and checks that everything it names exists in it.

    Raises ExperimentError: there is no such file, or it is wrong.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        near = difflib.get_close_matches(name, names(folder), n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `sumrate-lab list` shows them all"
        raise ExperimentError(f"there is no experiment `{name}` in {folder}{hint}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ExperimentError(f"{path.name}:{line}: not UTF-8 text: {error.reason}") from error
    try:
        experiment = _decoded(text)
        wrong = [*templates.problems(experiment)]
        if not wrong:
            experiment = templates.expanded(experiment)
            wrong = [*references.problems(experiment, path.stem), *_claims(experiment, folder)]
    except msgspec.DecodeError as error:
        raise ExperimentError(f"{path.name}{_line_of(text, str(error))}: {error}") from error
    if wrong:
        where, what = wrong[0]
        raise ExperimentError(f"{path.name}{_line_of(text, f'`{where}`')}: {what}")
    return experiment


def _decoded(text: str) -> Experiment:
    """The experiment of its method's type.

    Raises msgspec.DecodeError: the text is no TOML, or no experiment.
    """
    found: dict[str, Any] = msgspec.toml.decode(text)
    for path in _not_finite(found):
        raise msgspec.ValidationError(f"Expected a finite number - at `${path}`")
    try:
        experiment: Experiment = msgspec.convert(found, ANY)
    except msgspec.ValidationError as error:
        hint = f"; it can be {', '.join(METHODS)}" if "`$.method`" in str(error) else ""
        hint += keys.meant(str(error), METHODS.get(str(found.get("method")), Experiment))
        raise msgspec.ValidationError(f"{error}{hint}") from error
    return experiment


def _not_finite(value: object, path: str = "") -> Iterator[str]:
    """Paths of infinities and NaN, for which bounds say nothing."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _not_finite(inner, f"{path}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield path


def _line_of(text: str, message: str) -> str:
    """`:LINE` that the message has, or of a word that it quotes or whose path it names."""
    if found := re.search(r"\(at line (\d+)", message):
        return f":{found[1]}"
    lines = text.splitlines()
    header = _header(lines, message)
    at = f":{header or 1}"
    if header and "missing required field" in message:
        return at
    first = max(header - 1, 0)
    quoted = re.findall(r"`([^`$]+)`", re.sub(r"^Expected `[^`]*`(, got `[^`]*`)?", "", message))
    path = re.findall(r"\.(\w+)", message.rpartition("`$")[2])[::-1]
    for word in (*quoted, *path):
        for number, line in enumerate(lines[first:], start=first + 1):
            if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line):
                return f":{number}"
    return at


def _header(lines: Sequence[str], message: str) -> int:
    """The line of the `[[TABLE]]` that a path in the message (`$.TABLE[N]`) begins with; else 0."""
    found = re.search(r"`\$\.(\w+)\[(\d+)\]", message)
    if found is None:
        return 0
    headers = [n for n, line in enumerate(lines, start=1) if line.strip() == f"[[{found[1]}]]"]
    return headers[int(found[2])] if int(found[2]) < len(headers) else 0


def _claims(experiment: Experiment, folder: Path) -> Iterator[tuple[str, str]]:
    """Claims that the folder's catalogue does not have; none where there is no catalogue."""
    catalogue = folder / CATALOGUE
    if not catalogue.is_file():
        return
    text = catalogue.read_text(encoding="utf-8")
    for check in experiment.checks:
        if check.claim and f'[claims."{check.claim}"]' not in text:
            yield check.claim, f"`{check.claim}` is no claim of {CATALOGUE}"
