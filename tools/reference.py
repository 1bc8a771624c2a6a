"""Reference pages of the documentation site, written from the code when it is built.

`experiment.md`: the keys of an experiment file, from their types.
`lab.md`: the commands of `sumrate-lab`, from their declaration.
`json.md`: the fields of every JSON schema.
(`cli.md`, the commands of `sumrate`, is printed by crates/sumrate-cli/examples/reference.rs.)
"""

import ast
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec.inspect as types
from msgspec import NODEFAULT, Struct

from sumrate.lab.cli import COMMANDS, GROUPS, command_line
from sumrate.lab.experiment import by_method, model
from sumrate.qoe import settings

MODULES = {
    model: "python/sumrate/lab/experiment/model.py",
    by_method: "python/sumrate/lab/experiment/by_method.py",
    settings: "python/sumrate/qoe/settings.py",
}
BASES = ("Setting", "Workload")
SCHEMAS = ("docs/schemas", "python/sumrate/lab/schemas")


def cell(text: str) -> str:
    """Text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Text as code in a cell."""
    return f"`{text}`" if text else ""


# Keys of an experiment file


def keys(table: ast.ClassDef) -> dict[str, str]:
    """The fields of a class, each with the string below it."""
    return {
        ast.unparse(node.target): str(after.value.value)
        for node, after in itertools.pairwise([*table.body, ast.Pass()])
        if isinstance(node, ast.AnnAssign)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    }


BOUNDS = {"gt": "above {}", "ge": "from {}", "le": "to {}", "min_length": "at least {}"}


def value_of(kind: types.Type) -> str:  # noqa: PLR0911 (one for each kind)
    """Words for what a key takes; tables are links."""
    match kind:
        case types.Metadata(type=inner):
            return value_of(inner)
        case types.UnionType(types=some):
            return " or ".join(value_of(k) for k in some if not isinstance(k, types.NoneType))
        case types.StructType(cls=table):
            return f"[{table.__name__}](#{table.__name__.lower()})"
        case types.LiteralType(values=values):
            return ", ".join(code(str(value)) for value in values if value != "")
        case types.DictType(value_type=inner):
            return f"table of {value_of(inner)} by name"
        case types.TupleType(item_types=some):
            return f"list of {len(some)}: {', '.join(map(value_of, some))}"
    limits = [words.format(f"{limit:g}") for name, words in BOUNDS.items()
              if (limit := getattr(kind, name, None)) is not None]  # fmt: skip
    if isinstance(kind, types.VarTupleType):
        return " ".join(["list of", value_of(kind.item_type), *limits])
    return " ".join([type(kind).__name__.removesuffix("Type").lower(), *limits])


def key_rows(table: type[Struct], said: dict[str, str]) -> Iterator[str]:
    """A line for each key of a table, without those of the tables that it extends."""
    known = {name for base in table.__bases__ for name in getattr(base, "__struct_fields__", ())}
    for field in types.type_info(table).fields:  # type: ignore[attr-defined]
        own = field.name in said or field.name not in known
        if own:
            empty = field.required or field.default in (NODEFAULT, None, (), "")
            shown = "required" if field.required else "" if empty else code(f"{field.default}")
            words = cell(said.get(field.name, ""))
            yield f"| {code(field.name)} | {value_of(field.type)} | {shown} | {words} |"


def experiment_page(root: Path) -> str:
    """Keys of experiments/NAME.toml."""
    parts = [
        "# Keys of an experiment file",
        "`experiments/NAME.toml` is an `Experiment` of one of the methods; the other tables are "
        "what its keys hold. Keys that are not here are refused, with their line. "
        "[The laboratory](../laboratory.md) describes how experiments run. Written from "
        f"[the model](../../{MODULES[model]}).",
    ]
    for module, path in MODULES.items():
        for node in ast.parse((root / path).read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or node.name in BASES:
                continue
            table = getattr(module, node.name)
            words = ast.get_docstring(node) or ""
            if tag := table.__struct_config__.tag:
                words += (
                    f"\n\n`method = {json.dumps(tag)}`, with the keys of [Experiment](#experiment)."
                )
            head = "| key | value | default | |\n|---|---|---|---|\n"
            rows = "\n".join(key_rows(table, keys(node)))
            parts += [
                f"## {node.name}",
                words.replace("<", "&lt;"),
                *([head + rows] if rows else []),
            ]
    return "\n\n".join(parts) + "\n"


# Commands of sumrate-lab


def lab_page(_root: Path) -> str:
    """Commands of `sumrate-lab`, as their declaration has them."""
    words = "Experiments, faults, traces and the 60 GHz model: [the laboratory](../laboratory.md)."
    parts = [f"# Command line: `sumrate-lab`\n\n{words}\n"]
    places = [*COMMANDS, *(f"{group} {name}" for group, (_, of) in GROUPS.items() for name in of)]
    for place in places:
        app = command_line(*place.split())
        for name in place.split():
            app = app[name]
        _, _, docs = app.generate_docs(usage_name=f"sumrate-lab {place}").partition("\n")
        parts.append(f"## `sumrate-lab {place}`\n{docs}")
    return "\n".join(parts)


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
