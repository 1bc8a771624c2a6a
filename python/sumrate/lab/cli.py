"""The command `sumrate-lab`."""

import argparse
import os
import sys
from importlib import import_module

from sumrate import __version__
from sumrate.lab import demo
from sumrate.lab.faults import commands as faults
from sumrate.lab.namespaces import INTERRUPTED
from sumrate.lab.refusal import USAGE, RefusedError


def command_line() -> argparse.ArgumentParser:
    """Every command and flag, as far as the packages that they need are installed."""
    parser = argparse.ArgumentParser(prog="sumrate-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"sumrate-lab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    sub = commands.add_parser(
        "demo",
        help="one real file over two radios, one of them blocked for two seconds",
        description=demo.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_arguments(sub)
    sub.set_defaults(run=demo.run)
    faults.add_commands(commands)
    _add_optional(parser, commands)
    return parser


def main() -> int:
    """Parses the command line and runs a command; returns the exit status.

    What any command refuses, such as an experiment file that is wrong, is said here.
    """
    args = command_line().parse_args()
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone, as in `sumrate-lab list | head`; nothing is flushed to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except RefusedError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return INTERRUPTED
    return status


BROKEN_PIPE = 141
"""Exit status of a program that SIGPIPE ended, as shells say it."""


OPTIONAL = (
    ("sumrate.lab.experiment.commands", "list, run, report and verdicts", "lab"),
    ("sumrate.lab.events_command", "events", "lab"),
    ("sumrate.lab.trace_play", "trace", "ghz"),
    ("sumrate.lab.phy_command", "phy", "ghz"),
    ("sumrate.access.command", "access", "ghz"),
)
"""Modules with commands of their own, what these are, and the extra that they need: demo and bench
run on the standard library alone."""


def _add_optional(
    parser: argparse.ArgumentParser, commands: "argparse._SubParsersAction[argparse.ArgumentParser]"
) -> None:
    """Adds the commands whose packages are installed, and says which are missing."""
    lacking = []
    for name, what, extra in OPTIONAL:
        try:
            module = import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name and missing.name.startswith("sumrate"):
                raise
            lacking.append(f"{what}: `pip install .[{extra}]` ({missing})")
        else:
            module.add_commands(commands)
    if lacking:
        parser.epilog = "not available: " + "; ".join(lacking)
