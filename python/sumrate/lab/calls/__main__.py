"""`python -m sumrate.lab.calls far|near`: the two ends as processes of their own."""

import argparse
import sys

from sumrate.lab.calls import far, near


def main() -> int:
    """Runs one end."""
    top = argparse.ArgumentParser(
        prog="sumrate.lab.calls",
        description="Echoes small messages, or sends them at a steady pace and times the echoes.",
        epilog="example: python -m sumrate.lab.calls near --address 10.0.0.1 --port 5202",
    )
    commands = top.add_subparsers(dest="command", required=True)
    far.add_arguments(commands.add_parser("far", help="send every message back"))
    near.add_arguments(commands.add_parser("near", help="send messages and time their echoes"))
    args = top.parse_args()
    status: int = args.run(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
