"""`python -m sumrate.lab.tiles sender|viewer`: the two ends as processes of their own."""

import argparse
import sys

from sumrate.lab.tiles import sender, viewer


def main() -> int:
    """Runs one end."""
    top = argparse.ArgumentParser(
        prog="sumrate.lab.tiles",
        description="Sends the tiles of a 360-degree video, or receives them.",
        epilog="example: python -m sumrate.lab.tiles sender --port 5202 --task tiles.npz",
    )
    commands = top.add_subparsers(dest="command", required=True)
    sender.add_arguments(commands.add_parser("sender", help="plan and send each GOP"))
    viewer.add_arguments(commands.add_parser("viewer", help="look around and receive"))
    args = top.parse_args()
    status: int = args.run(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
