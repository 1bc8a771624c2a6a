"""What a fault is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sumrate.lab.endpoints.sumrate import SERVER_PORT
from sumrate.lab.faults.world import World

VICTIM = "victim"
BYSTANDER = "bystander"
SERVER = "server"
FEW_DESCRIPTORS = 64
"""Of sessions and their streams: no process here has more than about thirty open at rest."""
REDIALS = 192
"""Attempts to connect of a client whose paths are down for some seconds."""


class FaultNotMadeError(RuntimeError):
    """What was to fail did not: a run without its fault shows nothing."""


@dataclass(frozen=True)
class Fault:
    """One way to fail, made on the client `victim` or on the server."""

    name: str
    what: str
    """One line for a table."""
    inject: Callable[[World, float], Mapping[str, int]]
    """Makes the fault, lets it last for some seconds and ends it.

    Gives what was counted of it, by name, each above zero: proof that it happened. Raises
    FaultNotMadeError if it did not.
    """
    may_break: Literal["nothing", "victim", "everything"] = "nothing"
    """Whose transfers may fail, if their programs are told."""
    only_refuses: bool = False
    """Of those transfers, only such fail as were to begin: what runs is not broken."""
    stops_everybody: str = ""
    """Why the other client's goodput says nothing, where it does not: empty if it does."""
    opens: Mapping[str, int] = field(default_factory=dict)
    """By process: descriptors that the fault itself has it open."""

    def permits(self, client: str) -> bool:
        """Whether transfers of this client may fail under it."""
        return self.may_break == "everything" or (self.may_break == "victim" and client == VICTIM)

    def most_descriptors(self, process: str) -> int:
        """What a process may have open under it."""
        return FEW_DESCRIPTORS + self.opens.get(process, 0)


def proven(**counts: int) -> Mapping[str, int]:
    """The counts, if all are above zero; raises FaultNotMadeError otherwise."""
    missing = [name for name, count in counts.items() if count <= 0]
    if missing:
        raise FaultNotMadeError(f"nothing happened: {', '.join(missing)} is 0")
    return counts


def break_first_path(world: World) -> None:
    """Kills the connection of the victim's first path."""
    server_ip = world.clients[VICTIM].member.links[0].server_ip
    kill = ["ss", "-K", "dst", server_ip, "dport", "=", f":{SERVER_PORT}"]
    world.bench.client.run(kill)
