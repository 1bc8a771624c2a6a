"""`sumrate-lab` loads what the wanted command needs, and lists the others all the same."""

import os
import subprocess
import sys

import pytest

from sumrate.lab.cli import OPTIONAL, command_line
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


def test_help_of_all_loads_no_simulation() -> None:
    assert not {"numba", "matplotlib", "sumrate.traces.course"} & loaded_by("--help")


def test_what_is_not_loaded_is_listed_as_it_is() -> None:
    whole, brief = command_line().format_help(), command_line("").format_help()
    assert whole == brief
    assert all(optional.help.split(",")[0].split(":")[0] in whole for optional in OPTIONAL)
