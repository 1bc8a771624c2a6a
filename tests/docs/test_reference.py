"""The reference pages, written when the site is built, have every key, command and field."""

import json
from pathlib import Path

import msgspec
import pytest

import reference
import site_hooks
from sumrate.lab.cli import COMMANDS, GROUPS


@pytest.fixture(scope="module")
def pages(repository: Path) -> dict[str, str]:
    """The generated pages by their address on the site."""
    return {uri: page(repository) for uri, page in site_hooks.GENERATED.items()}


def test_no_generated_page_is_committed(repository: Path, pages: dict[str, str]) -> None:
    assert len(pages) > 4
    assert not [uri for uri in pages if (repository / "docs" / uri).exists()]
    assert not (repository / "docs/reference").exists()


def test_every_generated_page_is_in_the_navigation(repository: Path) -> None:
    text = (repository / "mkdocs.yml").read_text(encoding="utf-8")
    assert not [uri for uri in site_hooks.GENERATED if f": {uri}\n" not in text]


def test_a_page_of_the_navigation_is_found() -> None:
    nav = [{"Start": "index.md"}, {"Reference": [{"Lab": "reference/lab.md"}]}]
    assert site_hooks.named(nav) == {"index.md", "reference/lab.md"}
    assert site_hooks.named(None) == set()


def test_every_key_of_an_experiment_is_there(pages: dict[str, str]) -> None:
    modules = {module.__name__ for module in reference.MODULES}
    tables = [
        t
        for module in reference.MODULES
        for t in vars(module).values()
        if isinstance(t, type) and issubclass(t, msgspec.Struct) and t.__module__ in modules
    ]
    assert len(tables) > 30
    for table in tables:
        for field in msgspec.structs.fields(table):
            assert f"| `{field.name}` |" in pages["reference/experiment.md"]


def test_every_command_and_flag_of_the_lab_is_there(pages: dict[str, str]) -> None:
    page = pages["reference/lab.md"]
    names = [*COMMANDS, *(f"{group} {name}" for group, (_, of) in GROUPS.items() for name in of)]
    assert not [name for name in names if f"## `sumrate-lab {name}`\n" not in page]
    assert all(f"`{flag}`" in page for flag in ("--quick", "--json", "--simulated-access"))


def test_every_field_of_a_schema_is_there(repository: Path, pages: dict[str, str]) -> None:
    page = pages["reference/json.md"]
    schemas = sorted((repository / "docs/schemas").glob("*.json"))
    assert len(schemas) > 20
    for path in schemas:
        schema = json.loads(path.read_text(encoding="utf-8"))
        assert f"## `{path.name.removesuffix('.json')}`\n" in page
        assert not [name for name in schema.get("properties", {}) if f"| `{name}` |" not in page]


def test_the_commands_are_what_cargo_printed(
    pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "make docs" in pages[site_hooks.CLI_PAGE]
    (tmp_path / "cli.md").write_text("# Printed\n")
    monkeypatch.setenv(site_hooks.CLI_FOLDER, str(tmp_path))
    assert site_hooks.cli_page(tmp_path) == "# Printed\n"


def test_make_docs_prints_the_commands(repository: Path) -> None:
    text = (repository / "Makefile").read_text(encoding="utf-8")
    recipe = text.partition("\ndocs:")[2].partition("\n\n")[0]
    assert "--example reference >out/reference/cli.md" in recipe
    assert f"{site_hooks.CLI_FOLDER}=out/reference" in recipe
