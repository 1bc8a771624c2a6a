"""Reference pages of the documentation site, written from the code when it is built.

`experiment.md`: the keys of an experiment file, from python/sumrate/lab/experiment/model.py.
`lab.md`: the commands of `sumrate-lab`, from their declaration.
`json.md`: the fields of every JSON schema.
(`cli.md`, the commands of `sumrate`, is printed by crates/sumrate-cli/examples/reference.rs.)
"""

import argparse
import ast
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sumrate.lab.cli import command_line

MODEL = "python/sumrate/lab/experiment/model.py"
WORKLOADS = "python/sumrate/qoe/settings.py"
BASES = ("Setting", "Workload", "HasWorkloads")
SCHEMAS = ("docs/schemas", "python/sumrate/lab/schemas")
TOP = "Experiment"


def cell(text: str) -> str:
    """Text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Text as code in a cell."""
    return f"`{text}`" if text else ""


# Keys of an experiment file


def declared(tree: ast.Module) -> dict[str, str]:
    """Names of values that a key may have: `Name = Literal[...]`."""
    return {
        node.targets[0].id: ", ".join(f"`{ast.literal_eval(v)}`" for v in elements(node.value))
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
    }


def elements(node: ast.Subscript) -> list[ast.expr]:
    """What stands between the brackets."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def keys(table: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    """The fields of a class, each with the string below it."""
    for node, after in zip(table.body, [*table.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.AnnAssign):
            said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            yield node, str(after.value.value) if said else ""  # type: ignore[attr-defined]


def value_of(node: ast.expr) -> str:
    """What a key takes, in words; tables and named values are links."""
    if isinstance(node, ast.BinOp):
        return value_of(node.left)  # `X | None`
    if isinstance(node, ast.Name):
        return f"[{node.id}](#{node.id.lower()})" if node.id[0].isupper() else node.id
    return generic(node) if isinstance(node, ast.Subscript) else ast.unparse(node)


def generic(node: ast.Subscript) -> str:
    """Words for a list, a table or a choice."""
    kind, inner = ast.unparse(node.value), elements(node)
    if kind == "Literal":
        return ", ".join(code(ast.unparse(value)) for value in inner)
    if kind == "dict":
        return f"table of {value_of(inner[1])} by name"
    number = "" if ast.unparse(inner[-1]) == "..." else f"{len(inner)} "
    return f"list of {number}{value_of(inner[0])}"


def default_of(node: ast.expr | None) -> str:
    """What holds if a key is not given."""
    if node is None:
        return "required"
    shown = ast.unparse(node).replace("'", '"').replace(",)", ")")
    empty = shown in ("None", "()", '""') or shown.startswith("field(")
    return "" if empty else code(shown)


def key_row(field: ast.AnnAssign, said: str) -> str:
    """A line of the table of keys."""
    name, takes = ast.unparse(field.target), value_of(field.annotation)
    return f"| {code(name)} | {takes} | {default_of(field.value)} | {cell(said)} |"


def experiment_page(root: Path) -> str:
    """Keys of experiments/NAME.toml."""
    trees = [ast.parse((root / path).read_text(encoding="utf-8")) for path in (MODEL, WORKLOADS)]
    tables = {
        n.name: n
        for tree in trees
        for n in tree.body
        if isinstance(n, ast.ClassDef) and n.name not in BASES
    }
    parts = [
        "# Keys of an experiment file",
        "`experiments/NAME.toml` is one `Experiment`; the other tables are what its keys hold. "
        "Keys that are not here are refused, with their line. [The laboratory](../laboratory.md) "
        f"describes how experiments run. Written from [the model](../../{MODEL}).",
    ]
    for name in (TOP, *(n for n in tables if n != TOP)):
        rows = [key_row(field, said) for field, said in keys(tables[name])]
        words = ast.get_docstring(tables[name]) or ""
        head = "| key | value | default | |\n|---|---|---|---|\n"
        parts += [f"## {name}", words.replace("<", "&lt;"), head + "\n".join(rows)]
    for name, shown in {k: v for tree in trees for k, v in declared(tree).items()}.items():
        parts += [f"## {name}", f"One of {shown}."]
    return "\n\n".join(parts) + "\n"


# Commands of sumrate-lab


def flag(action: argparse.Action) -> str:
    """A flag or argument as it is written."""
    named = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    value = named if isinstance(named, str) else " ".join(named)
    if action.nargs == 0:
        value = ""
    shown = ", ".join(action.option_strings)
    return f"{shown} {value}".strip() if shown else value


def flag_row(action: argparse.Action) -> str:
    """A line of a command's table."""
    said = (action.help or "").replace("%%", "%")
    if action.choices is not None:
        said += "; one of " + ", ".join(f"`{choice}`" for choice in action.choices)
    return f"| {code(flag(action))} | {cell(said).lstrip('; ')} |"


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a command, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def command_parts(parser: argparse.ArgumentParser, path: str) -> Iterator[str]:
    """A command's part of the page, and those of the commands below it."""
    below = subcommands(parser)
    if not below:
        yield f"## `{path}`"
        if parser.description:
            yield parser.description.strip()
        shown = [
            action
            for action in parser._actions
            if not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS
        ]
        if shown:
            rows = "\n".join(flag_row(action) for action in shown)
            yield f"| argument | meaning |\n|---|---|\n{rows}"
        if parser.epilog:
            yield f"```text\n{parser.epilog.strip()}\n```"
    for name, sub in below.items():
        yield from command_parts(sub, f"{path} {name}")


def lab_page(_root: Path) -> str:
    """Commands of `sumrate-lab`."""
    words = "Experiments, faults, traces and the 60 GHz model: [the laboratory](../laboratory.md)."
    parts = ["# Command line: `sumrate-lab`", words]
    return "\n\n".join([*parts, *command_parts(command_line(), "sumrate-lab")]) + "\n"


# Fields of the JSON schemas


def kind_of(schema: dict[str, Any]) -> str:
    """What a field holds, in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return code(json.dumps(schema["const"], ensure_ascii=False))
    if "enum" in schema:
        return ", ".join(code(json.dumps(v, ensure_ascii=False)) for v in schema["enum"])
    kinds = schema.get("type", "")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def fields(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Lines of a schema's table: each field with the names of those that it lies in."""
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield f"| {code(here)} | {kind_of(inner)} | {cell(inner.get('description', ''))} |"
        yield from fields(inner, here)
    items = schema.get("items")
    if isinstance(items, dict):
        yield from fields(items, f"{path}[]")
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield from fields(more, f"{path}.*" if path else "*")


def schema_parts(path: Path, root: Path) -> Iterator[str]:
    """A schema's part of the page."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    name = path.name.removesuffix(".json")
    head = "| field | value | |\n|---|---|---|\n"
    yield f"## `{name}`"
    title = cell(schema.get("title") or schema.get("description") or "").rstrip(".")
    link = f"[Schema]({os.path.relpath(path, root / 'docs' / 'reference')})."
    yield f"{title}. {link}" if title else link
    forms = schema.get("oneOf", [schema])
    for number, form in enumerate(forms, start=1):
        if rows := list(fields(form)):
            event = form["properties"].get("event", {}).get("const") if len(forms) > 1 else None
            if len(forms) > 1:
                yield f"Event `{event}`:" if event else f"Form {number}:"
            yield head + "\n".join(rows)
    for shared, inner in schema.get("$defs", {}).items():
        if rows := list(fields(inner)):
            yield f"`{shared}`:"
            yield head + "\n".join(rows)


def json_page(root: Path) -> str:
    """Fields of what commands print."""
    words = (
        "Every field of what commands print with `--json`. `a.b` lies in `a`, `a[].b` in each of "
        "`a`. [Which command prints what](../schemas/README.md)."
    )
    paths = [path for folder in SCHEMAS for path in sorted((root / folder).glob("*.json"))]
    parts = [part for path in paths for part in schema_parts(path, root)]
    return "\n\n".join(["# JSON of the commands, field by field", words, *parts]) + "\n"


PAGES: dict[str, Callable[[Path], str]] = {
    "experiment.md": experiment_page,
    "lab.md": lab_page,
    "json.md": json_page,
}
"""Name in docs/reference, and the function that writes it from a repository."""
