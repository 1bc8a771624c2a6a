"""Experiments, faults, traces and the 60 GHz model of Sumrate."""

import argparse
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from sumrate import __version__
from sumrate.lab.demo import command as demo
from sumrate.lab.faults import commands as faults
from sumrate.lab.namespaces import INTERRUPTED, IsolationUnavailableError
from sumrate.lab.programs import MissingProgramError
from sumrate.lab.refusal import USAGE, RefusedError


def command_line(wanted: str | None = None) -> argparse.ArgumentParser:
    """Every command and flag, as far as the packages that they need are installed.

    With the name of the command that is wanted, or "" for none, only what this needs is loaded:
    the other commands of the 60 GHz model have a name and a line of help.
    """
    parser = argparse.ArgumentParser(prog="sumrate-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"sumrate-lab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    sub = commands.add_parser(
        "demo",
        help="download one file over two links, one of them blocked for two seconds",
        description=demo.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_arguments(sub)
    sub.set_defaults(run=demo.run)
    faults.add_commands(commands)
    _add_optional(parser, commands, wanted)
    return parser


def main() -> int:
    """Parses the command line and runs a command; returns the exit status.

    What any command refuses, such as an experiment file that is wrong, is said here.
    """
    given = [word for word in sys.argv[1:] if not word.startswith("-")]
    args = command_line(given[0] if given else "").parse_args()
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone, as in `sumrate-lab list | head`; nothing is flushed to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (RefusedError, MissingProgramError, IsolationUnavailableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return INTERRUPTED
    return status


BROKEN_PIPE = 141
"""Exit status of a program that SIGPIPE ended, as shells say it."""


class Optional(NamedTuple):
    """A module with commands of its own, which needs an extra."""

    module: str
    what: str
    extra: str
    package: str
    """One that the extra brings."""
    help: str = ""
    """Of its only command, named `what`; such a module is loaded when its command is wanted."""


OPTIONAL = (
    Optional("sumrate.lab.experiment.commands", "list, run and report", "lab", "pyarrow"),
    Optional("sumrate.lab.draws.command", "draws", "lab", "msgspec",
             "compare simulated draws with real sockets"),
    Optional("sumrate.lab.events_command", "events", "lab", "matplotlib",
             "summarise or plot an event log"),
    Optional("sumrate.lab.trace_play", "trace", "ghz", "numpy",
             "link traces of 60 GHz scenes: make, show, play, contention, calibrate"),
    Optional("sumrate.lab.phy_command", "phy", "ghz", "numpy",
             "compare the 60 GHz model with published measurements"),
    Optional("sumrate.access.command", "access", "ghz", "numba",
             "simulate initial access at 60 GHz: 802.11ad/ay and JPOC"),
)  # fmt: skip
"""demo runs on the standard library alone."""


def _add_optional(
    parser: argparse.ArgumentParser,
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    wanted: str | None,
) -> None:
    """Adds the commands whose packages are installed, and says which are missing."""
    single = wanted in {optional.what for optional in OPTIONAL}
    lacking = []
    for optional in OPTIONAL:
        missing = f"{optional.what}: `pip install .[{optional.extra}]`"
        if wanted is not None and optional.what != wanted and (optional.help or single):
            if optional.help and find_spec(optional.package):
                commands.add_parser(optional.what, help=optional.help)
            elif optional.help:
                lacking.append(f"{missing} (no {optional.package})")
            continue
        try:
            module = import_module(optional.module)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("sumrate"):
                raise
            lacking.append(f"{missing} ({error})")
        else:
            module.add_commands(commands)
    if lacking:
        parser.epilog = "not available: " + "; ".join(lacking)
