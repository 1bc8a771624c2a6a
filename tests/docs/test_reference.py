"""The reference is what the code says."""

import shutil
from pathlib import Path

import msgspec

import reference
from sumrate.lab.cli import command_line
from sumrate.lab.experiment import model


def test_the_pages_are_in_step(repository: Path) -> None:
    assert reference.out_of_step(repository) == []


def test_a_change_of_the_code_or_of_a_page_is_seen(repository: Path, tmp_path: Path) -> None:
    for name in ("docs/reference", *reference.SCHEMAS):
        shutil.copytree(repository / name, tmp_path / name)
    (tmp_path / reference.MODEL).parent.mkdir(parents=True)
    text = (repository / reference.MODEL).read_text(encoding="utf-8")
    (tmp_path / reference.MODEL).write_text(text)
    workloads = tmp_path / reference.WORKLOADS
    workloads.parent.mkdir(parents=True)
    shutil.copyfile(repository / reference.WORKLOADS, workloads)
    assert reference.out_of_step(tmp_path) == []
    (tmp_path / reference.MODEL).write_text(text.replace("quick_seconds:", "hasty_seconds:"))
    schema = tmp_path / "docs/schemas/cc.v1.json"
    schema.write_text(schema.read_text().replace('"title": "', '"title": "Another '))
    assert reference.out_of_step(tmp_path) == ["experiment.md", "json.md"]


def test_every_key_of_an_experiment_is_there(repository: Path) -> None:
    page = (repository / "docs/reference/experiment.md").read_text(encoding="utf-8")
    tables = [
        t for t in vars(model).values() if isinstance(t, type) and t.__module__ == model.__name__
    ]
    assert len(tables) > 10
    for table in tables:
        for field in msgspec.structs.fields(table):
            assert f"| `{field.name}` |" in page


def test_every_command_of_the_lab_is_there(repository: Path) -> None:
    page = (repository / "docs/reference/lab.md").read_text(encoding="utf-8")
    for name, command in reference.subcommands(command_line()).items():
        below = reference.subcommands(command) or {"": command}
        for inner in below:
            assert f"## `{f'sumrate-lab {name} {inner}'.strip()}`\n" in page
