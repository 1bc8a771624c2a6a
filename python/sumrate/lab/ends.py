"""`python -m sumrate.lab.ends END ...`: one end of a transfer as a process of its own.

Only the code of the wanted end is imported, so that it starts fast and stays small.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

Flags = dict[str, dict[str, Any]]


def host_and_port(text: str) -> tuple[str, int]:
    """HOST:PORT as a pair."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


MPTCP: Flags = {"--mptcp": {"action": "store_true", "help": "an MPTCP socket"}}
LISTENS: Flags = {
    "--listen": {"default": "0.0.0.0"},  # noqa: S104 (in a private namespace)
    "--port": {"type": int},
    "--cc": {"default": "cubic", "help": "congestion control (cubic)"},
    **MPTCP,
    "--ready": {"type": Path, "help": "file that is made when it is ready"},
}
CONNECTS: Flags = {
    "--address": {"help": "of the other end, to connect to it"},
    "--port": {"type": int},
    "--socks": {"type": host_and_port, "metavar": "HOST:PORT", "help": "SOCKS5 proxy"},
    "--bind": {"metavar": "ADDRESS", "help": "local address"},
    **MPTCP,
}
MEASURES: Flags = {
    "--time": {"type": float, "default": 10.0, "help": "seconds that count (10)"},
    "--warmup": {"type": float, "default": 0.0, "help": "seconds before them (0)"},
    "--patience": {"type": float, "default": 30.0, "help": "seconds for a first byte (30)"},
    "--output": {"type": Path, "metavar": "FILE", "help": "of the JSON (stdout)"},
}
TASK: Flags = {"--task": {"type": Path, "required": True, "help": "file of the run"}}
SWITCH = {"action": "store_true"}
ENDS: dict[str, tuple[str, Flags]] = {
    "source": (
        "stream.ends:source",
        {
            **LISTENS,
            **CONNECTS,
            "--paced": {"type": float, "metavar": "MBPS", "help": "send blocks at this rate"},
            "--block": {"type": int, "default": 16384, "help": "bytes of a block"},
            "--hold": {**SWITCH, "help": "send when standard input ends"},
            "--pacing": {**SWITCH, "help": "TCP spreads segments over the RTT"},
        },
    ),
    "sink": (
        "stream.ends:sink",
        {
            **LISTENS,
            **CONNECTS,
            **MEASURES,
            "--window": {"type": int, "default": 0, "help": "largest receive window (any)"},
            "--fifo": {"type": Path, "help": "read this FIFO instead of connecting"},
            "--paced": {**SWITCH, "help": "the source is paced"},
        },
    ),
    "far": ("calls.far:serve", LISTENS),
    "near": (
        "calls.near:near",
        {
            **CONNECTS,
            **MEASURES,
            "--datagrams": {**SWITCH, "help": "UDP instead of TCP"},
            "--bytes": {"type": int, "default": 200, "help": "of a message, 16 to 1200 (200)"},
            "--interval": {"type": float, "default": 10.0, "help": "ms between two (10)"},
        },
    ),
    "sender": (
        "tiles.sender:run",
        {**LISTENS, **TASK, "--messages": {**SWITCH, "help": "frames messages for a relay"}},
    ),
    "viewer": ("tiles.viewer:run", {**CONNECTS, **MEASURES, **TASK}),
    "player": (
        "video.player:run",
        {
            **CONNECTS,
            **MEASURES,
            "--video": {"type": Path, "required": True, "help": "JSON file of GOPs and buffer"},
            "--counted-from": {"type": float, "default": 0.0, "help": "seconds that do not count"},
        },
    ),
    "web-server": ("video.web_server:run", {**LISTENS, "--folder": {"type": Path}}),
    "file-server": ("fileserver:run", {**LISTENS, "--file": {"type": Path}}),
}
"""The function of each end, and its flags."""


def parser() -> argparse.ArgumentParser:
    """The command line of every end."""
    top = argparse.ArgumentParser(
        prog="sumrate.lab.ends",
        description=__doc__,
        epilog="example: python -m sumrate.lab.ends sink --address 10.1.1.2 --port 5202",
    )
    commands = top.add_subparsers(dest="end", required=True)
    for name, (_, flags) in ENDS.items():
        command = commands.add_parser(name)
        for flag, how in flags.items():
            command.add_argument(flag, **how)
    return top


def main() -> int:
    """Runs one end; returns its exit status."""
    top = parser()
    args = top.parse_args()
    if not args.port and not getattr(args, "fifo", None):
        top.error("an end needs --port, and --address to connect; a sink can have --fifo instead")
    module, _, function = ENDS[args.end][0].partition(":")
    status: int = getattr(import_module(f"sumrate.lab.{module}"), function)(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
