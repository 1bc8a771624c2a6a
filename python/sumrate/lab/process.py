"""Programs under test: started on a host, awaited, stopped, their CPU time counted."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

from sumrate.lab.namespaces import Host

POLL_S = 0.01
STOP_TIMEOUT_S = 5.0


class ProcessFailedError(RuntimeError):
    """A program ended before it should have; the message has its command and its last words."""


class Process:
    """One running program, its log file and, once it has ended, its CPU seconds."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        host: Host | None = None,
        env: dict[str, str] | None = None,
        stdout: Path | int | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """Starts `argv` (on `host` if given).

        Both outputs go to `log`, or standard output to the file or descriptor `stdout`; standard
        input comes from the descriptor `stdin`, else there is none.
        """
        self.argv = list(argv)
        self.log = log
        self.cpu_seconds: float | None = None
        self.kernel_cpu_seconds: float | None = None
        full = host.command(argv) if host else list(argv)
        with ExitStack() as stack:
            errors = stack.enter_context(log.open("ab"))
            out: int | IO[bytes] = errors
            if isinstance(stdout, Path):
                out = stack.enter_context(stdout.open("ab"))
            elif stdout is not None:
                out = stdout
            self._popen = subprocess.Popen(
                full,
                stdin=stdin,
                stdout=out,
                stderr=errors,
                env={**os.environ, **(env or {})},
                # A session of its own is a scheduling group of its own: no program under test
                # takes processor time from the driver that measures it, or gets Ctrl-C before it.
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """The process itself; it is stopped on leaving."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the process."""
        self.stop()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._popen.pid

    @property
    def command_line(self) -> str:
        """The command as a shell would take it, without the part that enters the host."""
        return shlex.join(self.argv)

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self, timeout_s: float) -> int:
        """Waits for the end.

        Raises ProcessFailedError: it still runs after `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise ProcessFailedError(f"`{self.command_line}` still runs after {timeout_s} s")
            time.sleep(POLL_S)
        return status

    def stop(self) -> None:
        """Ends it: SIGTERM, and SIGKILL when it has not ended within five seconds."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            try:
                self.wait(STOP_TIMEOUT_S)
            except ProcessFailedError:
                self.kill()

    def send_signal(self, number: int) -> None:
        """Sends it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once with SIGKILL."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)

    def wait_until(self, ready: Callable[[], bool], what: str, timeout_s: float = 15.0) -> None:
        """Waits for a readiness event.

        Raises ProcessFailedError: the process ended first, or `what` did not happen in
        time.
        """
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self.poll() is not None:
                raise ProcessFailedError(
                    f"`{self.command_line}` ended with {self.poll()} before {what}: {self.tail()}"
                )
            if time.monotonic() > deadline:
                raise ProcessFailedError(
                    f"`{self.command_line}`: no {what} within {timeout_s} s: {self.tail()}"
                )
            time.sleep(POLL_S)

    def tail(self, characters: int = 1500) -> str:
        """The end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-characters:].strip()

    def _reap(self, options: int) -> int | None:
        if self._popen.returncode is None:
            pid, status, usage = os.wait4(self.pid, options)
            if pid != 0:
                self._popen.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds = round(usage.ru_utime + usage.ru_stime, 3)
                self.kernel_cpu_seconds = round(usage.ru_stime, 3)
        return self._popen.returncode


def processor_time(**ends: Sequence[Process]) -> dict[str, dict[str, float]]:
    """Seconds that the processes of each end took until they ended, and the kernel's part of it."""
    return {
        "cpu_seconds": {end: sum(p.cpu_seconds or 0.0 for p in of) for end, of in ends.items()},
        "kernel_cpu_seconds": {
            end: sum(p.kernel_cpu_seconds or 0.0 for p in of) for end, of in ends.items()
        },
    }


def listening(host: Host, port: int) -> bool:
    """Whether a TCP socket on this host listens on `port`."""
    return bool(host.run(["ss", "-Hltn", f"sport = :{port}"]).strip())
