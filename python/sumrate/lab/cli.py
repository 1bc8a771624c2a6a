"""The command `sumrate-lab`."""

import argparse

from sumrate import __version__
from sumrate.lab import demo


def main() -> int:
    """Parses the command line and runs one experiment; returns the exit status."""
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
    try:
        from sumrate.lab.experiment.commands import add_commands  # noqa: PLC0415
    except ModuleNotFoundError as missing:  # the demo runs on the standard library alone
        if missing.name and missing.name.startswith("sumrate"):
            raise
        parser.epilog = f"everything but demo needs `pip install .[lab]` ({missing})"
    else:
        add_commands(commands)
    args = parser.parse_args()
    status: int = args.run(args)
    return status
