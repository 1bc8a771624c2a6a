"""Constants of the core and of its settings, compared with the tables of the documentation.

A constant is a `const NAME: TYPE = VALUE` with a number or a time, in crates/fbdt-proto/src outside
tests, or in one of `BESIDE`. A setting is such a value of `Config` or `Limits` by default. Left out
are sizes of what only people look at. Each of the others stands in exactly one table of
docs/sender.md or docs/wire.md.

Run: python3 tools/constants.py [ROOT]
ROOT is another checkout whose code is read. Prints every constant and setting with its value and
comment, their number, and what differs from the tables.
Exit status: 0, or 1 if something differs.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = "crates/fbdt-proto/src"
BESIDE = ("crates/fbdt-wire/src/limits.rs", "crates/fbdt-wire/src/policy.rs")
"""Limits of this implementation that are no part of the core."""
PAGES = ("docs/sender.md", "docs/wire.md")
LEFT_OUT = {
    "session/picture.rs": "a picture for people",
    "session/memory.rs": "how memory is counted",
    "receive/assembler.rs": "how memory is counted",
    "stream/buffer.rs": "how memory is allocated",
}
"""Files and folders whose constants are no rule of the sender or receiver, and why."""
CONSTANT = re.compile(
    r"((?:^ *///.*\n)*)^ *(?:pub(?:\([a-z]+\))? )?const "
    r"([A-Z_\d]+): (\[[^\]]*\]|[^=;]+) =\s*([^;]+);",
    re.MULTILINE,
)
FIELD = re.compile(r"^            (\w+): ([^\n]+),$", re.MULTILINE)
DEFAULT = re.compile(r"^impl Default for (?:Config|Limits) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
NUMBER_TYPES = re.compile(r"[uif]\d+|usize|Duration|\(.*\)|\[(?:Self|Duration); .*\]")
SECONDS = {"from_micros": 1e-6, "from_millis": 1e-3, "from_secs": 1.0}
UNITS = {
    "": 1.0, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "µs": 1e-6, "ms": 1e-3, "s": 1.0, "%": 1e-2, "share": 1.0,
}  # fmt: skip
"""Factors of the units that change a value; all others are names of what is counted."""
ROW = re.compile(r"^\|\s*`(\w+)`\s*\|([^|]*)\|([^|]*)\|\s*`([\w/.]+)`\s*\|", re.MULTILINE)
NUMBER = re.compile(r"\d+(?:\.\d+)?")

Values = tuple[float, ...]
Key = tuple[str, str]
"""File below `CORE`, or the name of one of `BESIDE`, and name."""


@dataclass(frozen=True)
class Constant:
    """A constant or a setting of the code; times are in seconds, sizes in bytes."""

    file: str
    name: str
    values: Values
    comment: str = ""


def product_code(path: Path) -> str:
    """A file without its unit tests."""
    return re.split(r"^#\[cfg\(test\)\]\nmod \w+ \{", path.read_text(encoding="utf-8"), maxsplit=1,
                    flags=re.MULTILINE)[0]  # fmt: skip


def files(root: Path) -> Iterator[tuple[str, str]]:
    """The product's files of the core, by their path below it, and those beside; their text."""
    core = root / CORE
    for path in sorted(core.rglob("*.rs")):
        name = str(path.relative_to(core))
        is_test = re.search(r"(^|[/_])(tests|testing)\.rs$", name)
        if not is_test and not any(name == out or name.startswith(f"{out}/") for out in LEFT_OUT):
            yield name, product_code(path)
    for path in (root / beside for beside in BESIDE):
        if path.is_file():
            yield path.name, product_code(path)


def calculated(node: ast.expr, known: dict[str, Values]) -> float:
    """A number of an expression that Python reads as Rust does.

    Raises ValueError: it has something else than numbers, known names and operators.
    """
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name) if name in known:
            return known[name][0]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return calculated(left, known) * calculated(right, known)
        case ast.BinOp(left=left, op=ast.LShift(), right=right):
            return calculated(left, known) * 2 ** calculated(right, known)
    raise ValueError(ast.unparse(node))


def evaluated(expression: str, known: dict[str, Values]) -> Values | None:
    """The numbers of a Rust expression: one, or those of a tuple or array; None if it has none."""
    text = re.sub(r"\b(?:Self|Limits)::(?=[A-Z])", "", expression)
    text = re.sub(r"Self \{ share: ([^,]+), allowance: ([^}]+) \}", r"\1, \2", text)
    for call, factor in SECONDS.items():
        text = re.sub(rf"Duration::{call}\(([^()]+)\)", rf"((\1) * {factor})", text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        parts = tree.elts if isinstance(tree, ast.Tuple | ast.List) else [tree]
        return tuple(calculated(part, known) for part in parts)
    except (SyntaxError, ValueError):
        return None


def constants(root: Path = ROOT) -> list[Constant]:
    """Every constant of the core, in the order of files and lines."""
    found = []
    for file, text in files(root):
        known: dict[str, Values] = {}
        for comment, name, kind, expression in CONSTANT.findall(text):
            if not NUMBER_TYPES.fullmatch(kind.strip()):
                continue
            values = evaluated(expression, known)
            if values is not None:
                known[name] = values
                words = " ".join(re.sub(r"^ *///", "", comment, flags=re.MULTILINE).split())
                found.append(Constant(file, name, values, words))
    return found


def settings(root: Path = ROOT) -> list[Constant]:
    """Settings with a number, as they are by default."""
    fields = [(file, *field) for file, text in files(root) for body in DEFAULT.findall(text)
              for field in FIELD.findall(body)]  # fmt: skip
    found = [(file, name, evaluated(expression, {})) for file, name, expression in fields]
    return [Constant(file, name, values) for file, name, values in found if values is not None]


def written(page: str) -> list[tuple[Key, Values]]:
    """Rows of a page's tables of constants: name, value, unit, file."""
    rows = []
    for name, value, unit, file in ROW.findall(page):
        numbers = NUMBER.findall(value.replace(",", ""))
        factors = [UNITS[part] for part in unit.split() if part in UNITS] or [1.0]
        factors = factors * len(numbers) if len(factors) == 1 else factors
        values = tuple(
            float(number) * factors[i % len(factors)] for i, number in enumerate(numbers)
        )
        rows.append(((file, name), values))
    return rows


def shown(values: Values) -> str:
    """Values as text: bytes or seconds."""
    return ", ".join(f"{value:.10g}" for value in values)


def is_same(one: Values, other: Values) -> bool:
    """Whether two values are equal, up to rounding."""
    pairs = zip(one, other, strict=False)
    close = all(abs(a - b) <= 1e-9 * max(abs(a), abs(b)) for a, b in pairs)
    return len(one) == len(other) and close


def differences(code: Sequence[Constant], rows: Sequence[tuple[Key, Values]]) -> list[str]:
    """What tables and code do not have in common, a line each; empty if they agree."""
    in_code = {(c.file, c.name): c.values for c in code}
    counts = Counter(key for key, _ in rows)
    found = [f"{file}: {name} = {shown(in_code[file, name])} is in no table"
             for file, name in in_code if (file, name) not in counts]  # fmt: skip
    for (file, name), values in dict(rows).items():
        if counts[file, name] > 1:
            found.append(f"{file}: {name} has {counts[file, name]} rows")
        if (file, name) not in in_code:
            found.append(f"{file}: {name} has a row and is not in the code")
        elif not is_same(values, in_code[file, name]):
            found.append(
                f"{file}: {name} is {shown(in_code[file, name])}, its row has {shown(values)}"
            )
    return found


def compared(root: Path = ROOT) -> list[str]:
    """What the tables of the pages here and the code of `root` do not have in common."""
    rows = [row for page in PAGES for row in written((ROOT / page).read_text(encoding="utf-8"))]
    return differences(constants(root) + settings(root), rows)


def main() -> int:
    """Prints what there is and what differs; returns the exit status."""
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    of_code, by_default = constants(root), settings(root)
    for constant in of_code + by_default:
        print(f"{constant.file}: {constant.name} = {shown(constant.values)}: {constant.comment}")
    print(f"{len(of_code)} constants, {len(by_default)} settings")
    found = compared(root)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
