"""The core with one constant or one rule changed, as edits of its source.

A constant of a table in docs/sender.md is multiplied by a factor. A rule is switched off by the
edits of tools/ablation.toml. Each edit replaces text that stands exactly once in its file.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import constants

PAGE = "docs/sender.md"
RULES = "tools/ablation.toml"
FACTORS = {0.5: "halved", 2.0: "doubled"}
LEAST = {"copy_margin": 1.0}
"""Settings that a session refuses below this value."""
INTEGERS = re.compile(r"\(?(?:[ui]\d+|usize)\b")


@dataclass(frozen=True)
class Edit:
    """Text of a file below the core's source, and what takes its place."""

    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The file with the edit.

        Raises ValueError: the old text does not stand there exactly once.
        """
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.file} has {found} times, instead of once: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Variant:
    """A constant or rule, and how it is changed."""

    name: str
    change: str
    edits: tuple[Edit, ...] = ()

    @property
    def title(self) -> str:
        """Both in words."""
        return f"{self.name} {self.change}"

    def is_named(self, name: str) -> bool:
        """Whether `name` is its name, with or without the file."""
        return name in (self.name, self.name.rpartition(":")[2])


UNMODIFIED = Variant("unmodified", "code")


def literal(value: float, is_integer: bool) -> str:
    """A number as Rust writes it; integers are at least 1, so that none of them vanishes."""
    return str(max(1, int(value))) if is_integer else repr(float(value))


def expression_of(values: Sequence[float], kind: str, old: str) -> str:
    """A Rust expression of the values, of the same type as `old`."""
    if "Self {" in old:
        pairs = zip(values[::2], values[1::2], strict=True)
        texts = [
            f"Self {{ share: {literal(min(share, 1.0), False)}, "
            f"allowance: {literal(bytes_, True)} }}"
            for share, bytes_ in pairs
        ]
        return f"[{', '.join(texts)}]"
    if "Duration" in old:
        texts = [f"Duration::from_micros({max(1, round(value * 1e6))})" for value in values]
    else:
        is_integer = bool(INTEGERS.match(kind)) if kind else not re.search(r"\d\.\d", old)
        texts = [literal(value, is_integer) for value in values]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def declared(root: Path, file: str, name: str) -> tuple[str, str, str]:
    """The declaration of a constant or setting, its type (of a setting: none) and its expression.

    Raises ValueError: there is none, or several.
    """
    text = constants.product_code(root / constants.CORE / file)
    found = [(whole.group(), kind.strip(), expression)
             for whole in constants.CONSTANT.finditer(text)
             for _, known, kind, expression in [whole.groups()] if known == name]  # fmt: skip
    for body in constants.DEFAULT.findall(text):
        found += [(whole.group(), "", whole[2]) for whole in constants.FIELD.finditer(body)
                  if whole[1] == name]  # fmt: skip
    if len(found) != 1:
        raise ValueError(f"{file} declares {name} {len(found)} times")
    return found[0]


def of_constant(root: Path, file: str, name: str, factor: float) -> Variant:
    """The constant times a factor.

    Raises ValueError: it is not found, or keeps its value.
    """
    all_of_code = constants.constants(root) + constants.settings(root)
    matches = [c.values for c in all_of_code if (c.file, c.name) == (file, name)]
    if not matches:
        raise ValueError(f"{file} has no constant {name}")
    old, kind, expression = declared(root, file, name)
    values = [max(value * factor, LEAST.get(name, 0.0)) for value in matches[0]]
    head, _, tail = old.rpartition(expression)
    new = head + expression_of(values, kind, expression) + tail
    if expression_of(values, kind, expression) == expression_of(matches[0], kind, expression):
        raise ValueError(f"{file}: {name} times {factor} is {name}")
    change = FACTORS.get(factor, f"times {factor:g}")
    return Variant(f"{file.removesuffix('.rs')}:{name}", change, (Edit(file, old, new),))


def of_constants(root: Path, factors: Sequence[float] = tuple(FACTORS)) -> Iterator[Variant]:
    """Every constant of the page's tables, times each factor."""
    for (file, name), _ in constants.written((root / PAGE).read_text(encoding="utf-8")):
        for factor in factors:
            yield of_constant(root, file, name, factor)


def of_rules(root: Path) -> Iterator[Variant]:
    """Every rule, switched off."""
    listed = tomllib.loads((root / RULES).read_text(encoding="utf-8"))
    for rule in listed["rule"]:
        yield Variant(rule["name"], "off", tuple(Edit(**edit) for edit in rule["edits"]))


def edited(root: Path, variant: Variant) -> dict[str, str]:
    """Files below the root that the variant changes, with their new text.

    Raises ValueError: an edit does not apply.
    """
    texts: dict[str, str] = {}
    for edit in variant.edits:
        path = f"{constants.CORE}/{edit.file}"
        text = texts.get(path) or (root / path).read_text(encoding="utf-8")
        texts[path] = edit.applied(text)
    return texts
