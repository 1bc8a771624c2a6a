"""Public functions over arrays say which shapes these have."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("phy", "access", "traces")
ARRAYS = ("Floats", "ArrayLike", "Integers", "Booleans", "NDArray")
WORDS = ("shape", "(", "[")


def public(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions of the module and methods of its public classes."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and node.name[0] != "_" else []
        for found in [node, *inner]:
            if isinstance(found, ast.FunctionDef) and not found.name.startswith("_"):
                yield found


def takes_or_gives_arrays(function: ast.FunctionDef) -> bool:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    hints = [a.annotation for a in arguments] + [function.returns]
    return any(name in ast.unparse(hint) for hint in hints if hint for name in ARRAYS)


def without_shapes(path: Path) -> list[str]:
    return [
        function.name
        for function in public(ast.parse(path.read_text(encoding="utf-8")))
        if takes_or_gives_arrays(function)
        and not any(word in (ast.get_docstring(function) or "").lower() for word in WORDS)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_shapes_are_in_every_public_docstring(repository: Path, package: str) -> None:
    files = sorted((repository / "python/sumrate" / package).rglob("*.py"))
    files = [path for path in files if path.name != "kernel.py"]  # compiled, on whole states
    assert len(files) > 5
    lacking = {path.name: names for path in files if (names := without_shapes(path))}
    assert not lacking


def test_a_docstring_without_shapes_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text('def gain(az: ArrayLike) -> Floats:\n    """Gain in dB."""\n')
    assert without_shapes(path) == ["gain"]
