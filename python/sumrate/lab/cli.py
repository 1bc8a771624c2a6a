"""The command `sumrate-lab`."""

import argparse

from sumrate import __version__
from sumrate.lab import bench, demo


def main() -> int:
    """Parses the command line and runs one experiment; returns the exit status."""
    parser = argparse.ArgumentParser(prog="sumrate-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"sumrate-lab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module, text in (
        ("demo", demo, "one real file over two radios, one of them blocked for two seconds"),
        ("bench", bench, "the sum ratio in five conditions, kernel MPTCP beside it"),
    ):
        sub = commands.add_parser(
            name,
            help=text,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    try:
        from sumrate.lab.experiment.commands import add_commands  # noqa: PLC0415
    except ModuleNotFoundError as missing:  # demo and bench run on the standard library alone
        if missing.name and missing.name.startswith("sumrate"):
            raise
        parser.epilog = f"list, run, report and verdicts need `pip install .[lab]` ({missing})"
    else:
        add_commands(commands)
    args = parser.parse_args()
    status: int = args.run(args)
    return status
