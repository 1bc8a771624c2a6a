"""Runs a test's body in private namespaces, and a checked download for it."""

import contextlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sumrate.lab.endpoints.base import FILE_NAME, HTTP_PORT, curl, file_server
from sumrate.lab.endpoints.sumrate import SOCKS_PORT, serve, up
from sumrate.lab.faults.bench import Bench
from sumrate.lab.measure import Curve, watch
from sumrate.lab.namespaces import IsolationUnavailableError, run_isolated
from sumrate.lab.payload import Payload, Sink, make_payload
from sumrate.lab.process import Process
from sumrate.lab.programs import have
from sumrate.lab.scene import SERVICE_IP

REFUSED = 77
"""Exit status of a child that could not get private namespaces."""


def isolated(body: Callable[[Path], None]) -> None:
    """Runs `body` with a scratch folder as the first process of new namespaces.

    Skips the calling test, with the reason, where the kernel refuses such namespaces; fails it when
    the body raises. The test's own process stays outside.
    """
    with tempfile.NamedTemporaryFile("r") as reason:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            os._exit(_child(body, Path(reason.name)))
        try:
            _, status = os.waitpid(child, 0)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            raise
        code = os.waitstatus_to_exitcode(status)
        if code == REFUSED:
            pytest.skip(reason.read())
    assert code == 0, f"the scenario failed ({code}); its traceback is in the captured output"


def _child(body: Callable[[Path], None], reason: Path) -> int:
    def main() -> int:
        scratch = Path("/run/scenario")  # on the private tmpfs
        scratch.mkdir()
        body(scratch)
        return 0

    try:
        return run_isolated(main)
    except IsolationUnavailableError as error:
        reason.write_text(str(error), encoding="utf-8")
        return REFUSED
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@dataclass
class Transfer:
    """A download by curl through Sumrate, with actions at shares of the file."""

    bench: Bench
    payload: Payload
    server: Process
    daemon: Process
    actions: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def at(self, share: float, action: Callable[[], object]) -> None:
        """Runs the action once that share of the file has arrived."""
        self.actions.append((share, action))

    def run(self) -> Curve:
        """Downloads, runs the actions on their way, and checks the file."""
        sink = Sink(self.bench.folder / "received.bin", self.payload.size)
        url = f"http://{SERVICE_IP}:{HTTP_PORT}/{FILE_NAME}"
        argv = curl(url, "--proxy", f"socks5h://127.0.0.1:{SOCKS_PORT}")
        log = self.bench.folder / "curl.log"
        pending = sorted(self.actions, key=lambda item: item[0])

        def sampled(_elapsed: float, size: int) -> None:
            while pending and size >= pending[0][0] * self.payload.size:
                pending.pop(0)[1]()

        with Process(argv, log=log, host=self.bench.client, stdout=sink.file) as client:
            try:
                curve = watch(client, sink.received, timeout_s=120, on_sample=sampled)
            except BaseException:
                print(f"serve: {self.server.tail()}\nup: {self.daemon.tail()}", file=sys.stderr)
                raise
        assert not pending, "the transfer ended before every fault was made"
        assert sink.matches(self.payload), "the received file differs from the one that was sent"
        sink.close()
        assert self.server.poll() is None, self.server.tail()
        assert self.daemon.poll() is None, self.daemon.tail()
        return curve


@contextlib.contextmanager
def transfer(
    built: Bench, size: int, *, server_options: tuple[str, ...] = ()
) -> Iterator[Transfer]:
    """A file of `size` bytes behind the exit, `sumrate serve` and `sumrate up` running."""
    payload = make_payload(built.folder / "sent.bin", size, seed=11)
    with (
        file_server(built, payload, address=SERVICE_IP),
        serve(built, *server_options) as server,
        up(built) as daemon,
    ):
        yield Transfer(built, payload, server, daemon)


needs_sumrate = pytest.mark.skipif(
    not have("sumrate"), reason="the binary `sumrate` is not built (make build)"
)
needs_emulator = pytest.mark.skipif(
    not have("sumrate-link"), reason="the binary `sumrate-link` is not built (make build)"
)
