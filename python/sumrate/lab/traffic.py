"""Which TCP connections carry data on a host, with which congestion control (from `ss`)."""

import re
import subprocess
from typing import Any

from sumrate.lab.namespaces import Host

MIN_BYTES = 100_000


def parse(text: str) -> list[dict[str, Any]]:
    """Connections that have sent something, from the output of `ss -tniH`.

    Each has `local`, `remote`, `congestion_control`, `bytes_acked` and `mptcp` (whether the
    connection is a subflow of one).
    """
    found = []
    addresses: list[str] = []
    for line in text.splitlines():
        if line[:1].strip():
            addresses = line.split()[3:5]  # state, two queues, local, remote
            continue
        acked = re.search(r"bytes_acked:(\d+)", line)
        algorithm = re.search(r"\b(cubic|bbr|reno|dctcp|vegas)\b", line)
        if acked and algorithm and int(acked[1]) >= MIN_BYTES and len(addresses) == 2:
            found.append(
                {
                    "local": addresses[0],
                    "remote": addresses[1],
                    "congestion_control": algorithm[1],
                    "bytes_acked": int(acked[1]),
                    "mptcp": "tcp-ulp-mptcp" in line,
                }
            )
    return found


class Probe:
    """An `ss` that waits on a host until it is fired, so that firing costs the driver nothing."""

    def __init__(self, host: Host) -> None:
        """Starts the waiting process."""
        self._popen = subprocess.Popen(
            host.command(["sh", "-c", "read _ && exec ss -tniH"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def fire(self) -> None:
        """Looks at the connections now; a second call does nothing."""
        if self._popen.stdin and not self._popen.stdin.closed:
            self._popen.stdin.write("\n")
            self._popen.stdin.close()

    def connections(self) -> list[dict[str, Any]]:
        """The connections that had carried at least 100 kB when it was fired, if it was."""
        if self._popen.stdin and not self._popen.stdin.closed:
            self._popen.stdin.close()  # never fired: the shell ends
        text = self._popen.stdout.read() if self._popen.stdout else ""
        self._popen.wait()
        return parse(text)
