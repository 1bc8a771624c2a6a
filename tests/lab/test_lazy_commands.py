"""`sumrate-lab` loads what the wanted command needs, and lists the others all the same."""

import importlib
import os
import subprocess
import sys

import pytest

from sumrate.lab.cli import COMMANDS, GROUPS
from sumrate.lab.programs import REPOSITORY


def loaded_by(*words: str) -> set[str]:
    """Modules that a run of the command line has loaded when it ends."""
    program = (
        "import sys\nfrom sumrate.lab import cli\n"
        f"sys.argv = ['sumrate-lab', *{words!r}]\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("access", "run"), ("access", "figure"), ("access",)])
def test_help_of_initial_access_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    heavy = {"numpy", "numba", "matplotlib", "pyarrow"}
    assert not heavy & loaded_by(*words, "--help")


def test_help_of_all_loads_no_command() -> None:
    loaded = loaded_by("--help")
    assert not {"numba", "matplotlib", "numpy", "pyarrow", "msgspec"} & loaded
    assert not [name for name in loaded if name.startswith("sumrate.lab.experiment")]


def test_every_command_is_where_it_is_said_to_be() -> None:
    places = [f"sumrate.lab.{place}" for place, _ in COMMANDS.values()]
    places += [place for _, commands in GROUPS.values() for place, _ in commands.values()]
    for place in places:
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), place
