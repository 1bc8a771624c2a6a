"""The command `sumrate-lab` as a program among others."""

import subprocess
import sys

from sumrate.lab.cli import BROKEN_PIPE


def test_a_reader_that_leaves_early_is_no_error_to_see() -> None:
    """As in `sumrate-lab list | head -1`."""
    argv = [sys.executable, "-m", "sumrate.lab", "list"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == BROKEN_PIPE
