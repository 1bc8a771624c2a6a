"""Faults of the machine: no descriptor left, no room for the server's state, another time."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, islice
from pathlib import Path

from sumrate.lab.endpoints.sumrate import SERVER_PORT, link_file_of, up
from sumrate.lab.faults.fault import REDIALS, SERVER, VICTIM, Fault, break_first_path, proven
from sumrate.lab.faults.world import ORIGIN_PORT, PATIENCE_S, World
from sumrate.lab.process import POLL_S, Process, ProcessFailedError
from sumrate.lab.programs import program
from sumrate.lab.scene import SERVICE_IP

SPARE_DESCRIPTORS = 1
"""Descriptors that are left: enough to accept a connection, and not to read who may come."""

CROWD = 60
"""Connections of the crowd at once; one that was just closed may still be open."""
METERED_SOCKS = 1098


@contextmanager
def _few_descriptors(process: Process) -> Iterator[None]:
    """Lowers the limit of a running process to what it has open.

    The limit is on numbers, not on how many there are: below it `SPARE_DESCRIPTORS` are free.
    """
    soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    used = {int(entry.name) for entry in Path(f"/proc/{process.pid}/fd").iterdir()}
    free = (number for number in count() if number not in used)
    few = next(islice(free, SPARE_DESCRIPTORS, None))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (few, hard))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))


def _crowd(world: World, name: str) -> Process:
    """Programs of a client that want more streams than there are descriptors."""
    state = world.bench.folder / "crowd.json"
    state.unlink(missing_ok=True)
    client = world.clients[name]
    crowd = world.run_python(
        "attacker", "flood", "127.0.0.1", str(client.socks_port), str(state),
        "--connections", str(CROWD), "--target", f"{SERVICE_IP}:{ORIGIN_PORT}", log="crowd.log",
    )  # fmt: skip
    crowd.wait_until(state.exists, "the crowd has begun", PATIENCE_S)
    return crowd


def _refused(log: Path, words: str, before: int) -> int:
    return log.read_text(encoding="utf-8", errors="replace").count(words) - before


def server_descriptors(world: World, hold_s: float) -> Mapping[str, int]:
    """The server has no descriptor left while clients come, connections break, streams are wanted.

    The client that comes then gets its session afterwards: it is not told that it is unknown.
    """
    log, words = world.bench.folder / "serve.log", "Too many open files"
    before = _refused(log, words, 0)
    with ExitStack() as stack:
        with _few_descriptors(world.server):
            late = stack.enter_context(_latecomer(world))
            deadline = time.monotonic() + PATIENCE_S
            while _refused(log, words, before) == 0:
                # Others close theirs meanwhile: one that was served makes room for the next.
                if late.poll() is not None:
                    late = stack.enter_context(_latecomer(world))
                if time.monotonic() > deadline:
                    raise ProcessFailedError(f"no descriptor was refused in {PATIENCE_S} s: {log}")
                time.sleep(POLL_S)
            break_first_path(world)
            with _crowd(world, VICTIM):
                time.sleep(hold_s)
        served = late.wait(PATIENCE_S) == 0
    return proven(refused=_refused(log, words, before), latecomers_served=int(served))


def _latecomer(world: World) -> Process:
    """A client that comes now and transfers a little; its exit status says whether it could."""
    link = world.clients[VICTIM].member.links[0]
    argv = [
        *(str(program("sumrate")), "bench", f"@{link_file_of(world.bench)}"),
        *("--path", f"late={link.interface}@{link.server_ip}:{SERVER_PORT}"),
        *("--bytes", "1Mi", "--reverse"),
    ]
    log = world.bench.folder / "latecomer.log"
    return Process(argv, log=log, host=world.bench.client)


def client_descriptors(world: World, hold_s: float) -> Mapping[str, int]:
    """A client has no descriptor left while its programs connect and one path breaks."""
    client = world.clients[VICTIM]
    log, words = world.bench.folder / f"{VICTIM}.log", "Too many open files"
    before = _refused(log, words, 0)
    with _few_descriptors(client.daemon), _crowd(world, VICTIM):
        break_first_path(world)
        time.sleep(hold_s)
    return proven(refused=_refused(log, words, before))


def disk_full(world: World, hold_s: float) -> Mapping[str, int]:
    """No room for the server's state: what is used cannot be written, nor a credential made."""
    state = world.bench.folder / "server-state"
    link = _credential(state, world)["link"]
    link_file = world.bench.folder / "metered.link"
    link_file.write_text(f"{link}\n", encoding="ascii")
    link_file.chmod(0o600)
    log, words = world.bench.folder / "serve.log", "cannot save what credentials have used"
    before = _refused(log, words, 0)
    path = _metered_path(world)
    with up(
        world.bench, name="metered", socks_port=METERED_SOCKS, paths=path, link_file=link_file
    ) as used:
        _fill(state)
        try:
            refusal = _credential(state, world)
            with world.fetch(METERED_SOCKS) as fetched:
                used.wait_until(fetched, "a transfer is complete", PATIENCE_S)
            used.wait_until(
                lambda: _refused(log, words, before) > 0, "the server says so", PATIENCE_S
            )
            time.sleep(hold_s)
        finally:
            (state / "filler").unlink()
        usage = state / "usage"
        used.wait_until(
            lambda: any(usage.glob("*.json")) if usage.exists() else False,
            "what was used is written",
            PATIENCE_S,
        )
    return proven(
        credentials_refused=int("error" in refusal), warnings=_refused(log, words, before)
    )


def _metered_path(world: World) -> list[str]:
    link = world.clients[VICTIM].member.links[0]
    return ["--path", f"metered={link.interface}@{link.server_ip}:{SERVER_PORT}"]


def _credential(state: Path, world: World) -> dict[str, str]:
    """Makes a credential with a quota; `link`, or `error` if it could not be made."""
    server_ip = world.clients[VICTIM].member.links[0].server_ip
    argv = [
        *(str(program("sumrate")), "credential", "add", "--state", str(state), "--json"),
        *("--advertise", f"{server_ip}:{SERVER_PORT}", "--quota", "1G"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"error": done.stderr.strip()}
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def _fill(folder: Path) -> None:
    """Leaves no room in a file system."""
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(os.statvfs(folder).f_bsize))


FAULTS = (
    Fault("server-descriptors", "the server has no descriptor left", server_descriptors,
          may_break="everything", only_refuses=True, opens={VICTIM: CROWD + REDIALS}),
    Fault("client-descriptors", "a client has no descriptor left", client_descriptors,
          # The crowd's connections wait, and go through to the server when there is room again.
          may_break="victim", opens={VICTIM: CROWD + REDIALS, SERVER: CROWD}),
    Fault("disk-full", "no room for the server's state", disk_full),
)  # fmt: skip
