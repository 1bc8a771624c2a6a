"""Faults of processes: killed and started again, suspended and resumed."""

import signal
import time
from collections.abc import Mapping
from functools import partial

from sumrate.lab.endpoints.sumrate import status
from sumrate.lab.faults.fault import BYSTANDER, REDIALS, SERVER, VICTIM, Fault, proven
from sumrate.lab.faults.world import PATIENCE_S, World


def _sessions(world: World) -> set[str]:
    """The sessions that the clients have."""
    return {s["id"] for name in world.clients for s in status(world.bench, name)["sessions"]}


def server_killed(world: World, hold_s: float) -> Mapping[str, int]:
    """The server is killed with SIGKILL and started again with the state that it had."""
    before = _sessions(world)
    world.server.kill()
    time.sleep(hold_s)
    world.start_server()
    for client in world.clients.values():
        client.daemon.wait_until(
            partial(_has_new_session, world, client.name, before),
            f"{client.name} has a new session",
            PATIENCE_S,
        )
    return proven(sessions_replaced=len(_sessions(world) - before))


def _has_new_session(world: World, name: str, before: set[str]) -> bool:
    return bool({s["id"] for s in status(world.bench, name)["sessions"]} - before)


def client_suspended(world: World, hold_s: float) -> Mapping[str, int]:
    """A client is suspended with SIGSTOP and resumed; its kernel goes on."""
    daemon = world.clients[VICTIM].daemon
    daemon.send_signal(signal.SIGSTOP)
    try:
        time.sleep(hold_s)
        stopped = _state(daemon.pid) == "T"
    finally:
        daemon.send_signal(signal.SIGCONT)
    return proven(suspended=int(stopped))


def server_suspended(world: World, hold_s: float) -> Mapping[str, int]:
    """The server is suspended with SIGSTOP and resumed."""
    world.server.send_signal(signal.SIGSTOP)
    try:
        time.sleep(hold_s)
        stopped = _state(world.server.pid) == "T"
    finally:
        world.server.send_signal(signal.SIGCONT)
    return proven(suspended=int(stopped))


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123  (a file of the kernel)
        return file.read().rpartition(")")[2].split()[0]


EVERYBODY = dict.fromkeys((VICTIM, BYSTANDER, "short-flows"), REDIALS)
"""Without a server all clients dial anew."""
BACKLOG = {SERVER: sum(EVERYBODY.values())}
"""A server that runs again accepts what all of them have dialled meanwhile."""

FAULTS = (
    Fault("server-killed", "the server gets SIGKILL and is started again", server_killed,
          may_break="everything", stops_everybody="no server runs", opens=EVERYBODY),
    Fault("client-suspended", "a client gets SIGSTOP and, later, SIGCONT", client_suspended),
    Fault("server-suspended", "the server gets SIGSTOP and, later, SIGCONT", server_suspended,
          stops_everybody="the server does not run", opens=EVERYBODY | BACKLOG),
)  # fmt: skip
