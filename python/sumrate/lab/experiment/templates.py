"""Checks that are written once for many rows: `each` names the rows, `{WORD}` stands for a value.

A study of three algorithms in nine cells has its check once, with `each = ["algorithm", "cell"]`,
and is judged as if it had all 27.
"""

import itertools
import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from sumrate.lab.experiment.model import Check, Experiment

WORD = re.compile(r"\{(\w+)\}")


def problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Rows and references to rows that do not match: the word, and a sentence about it."""
    used = {name for check in experiment.checks for name in check.each}
    for name in used - experiment.each.keys():
        known = ", ".join(experiment.each) or "none"
        yield name, f"a check is for each `{name}`, which `each` does not have; it has {known}"
    for name, rows in experiment.each.items():
        if name not in used:
            yield name, f"no check is for each `{name}`"
        if not rows or any(row.keys() != rows[0].keys() for row in rows):
            yield name, f"the rows of `{name}` must be some, and all have the same words"
    for check in experiment.checks:
        asked = set(WORD.findall(msgspec.json.encode(check).decode())) if check.each else set()
        words = {name: {*row} for name in check.each for row in experiment.each.get(name, ())}
        for word in asked - set().union(*words.values()):
            yield "{" + word + "}", f"`{{{word}}}` of a check is in none of its rows"
        for name, known_words in words.items():
            if not known_words & asked:
                said = f"`{check.statement}` says nothing of each `{name}`"
                yield name, f"{said}: all would be the same"


def expanded(experiment: Experiment) -> Experiment:
    """The experiment with one check for each row, or each combination of rows; no `each` is left.

    It has no problems.
    """
    checks = tuple(made for check in experiment.checks for made in _made(check, experiment))
    return replace(experiment, checks=checks, each={})


def _made(check: Check, experiment: Experiment) -> Iterator[Check]:
    if not check.each:
        yield check
        return
    entry = msgspec.to_builtins(replace(check, each=()))
    for rows in itertools.product(*(experiment.each[name] for name in check.each)):
        words = {word: value for row in rows for word, value in row.items()}
        yield msgspec.convert(_filled(entry, words), Check)


def _filled(entry: object, words: Mapping[str, str]) -> object:
    """The same with every word's value in its place."""
    if isinstance(entry, str):
        return WORD.sub(lambda found: words[found[1]], entry)
    if isinstance(entry, dict):
        return {_filled(key, words): _filled(value, words) for key, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [_filled(part, words) for part in entry]
    return entry
