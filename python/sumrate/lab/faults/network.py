"""Faults of the network: silence, resets, another address, large packets that vanish."""

import time
from collections.abc import Callable, Mapping

from sumrate.lab.endpoints.sumrate import SERVER_PORT
from sumrate.lab.faults.bench import Bench
from sumrate.lab.faults.fault import REDIALS, VICTIM, Fault, proven
from sumrate.lab.faults.world import World
from sumrate.lab.links import Link

BLACK_HOLE_BYTES = 1000
"""Packets that are larger vanish, without word to the sender."""
OTHER_HOST = 77
"""Fourth octet of the address that a client's interface changes to."""


def _filtered(world: World, links: tuple[Link, ...], rule: str, hold_s: float) -> int:
    """Filters for a while; gives the number of packets that it concerned."""
    world.bench.filter(links, rule)
    try:
        time.sleep(hold_s)
    finally:
        concerned = world.bench.pass_all()
    return concerned


def _links(world: World) -> tuple[Link, ...]:
    return world.clients[VICTIM].member.links


def blackout(world: World, hold_s: float) -> Mapping[str, int]:
    """One path carries nothing."""
    return proven(packets=_filtered(world, _links(world)[-1:], "counter drop", hold_s))


def blackout_of_all(world: World, hold_s: float) -> Mapping[str, int]:
    """No path carries anything."""
    return proven(packets=_filtered(world, _links(world), "counter drop", hold_s))


def reset_injection(world: World, hold_s: float) -> Mapping[str, int]:
    """Somebody on the way answers every packet of a path with a reset that TCP believes.

    The packet is dropped, so that an end learns of it only when it sends.
    """
    rule = "meta l4proto tcp counter reject with tcp reset"
    return proven(packets=_filtered(world, _links(world)[:1], rule, hold_s))


def mtu_black_hole(world: World, hold_s: float) -> Mapping[str, int]:
    """Large packets of one path vanish; acknowledgements and handshakes still pass."""
    rule = f"meta length > {BLACK_HOLE_BYTES} counter drop"
    return proven(packets=_filtered(world, _links(world)[-1:], rule, hold_s))


def mtu_black_hole_of_all(world: World, hold_s: float) -> Mapping[str, int]:
    """Large packets of all paths vanish."""
    rule = f"meta length > {BLACK_HOLE_BYTES} counter drop"
    return proven(packets=_filtered(world, _links(world), rule, hold_s))


def address_change(world: World, hold_s: float) -> Mapping[str, int]:
    """An interface gets another address, and later its old one back; connections go silent."""
    link = _links(world)[0]
    other = link.client_ip.rpartition(".")[0] + f".{OTHER_HOST}"
    _readdress(world.bench, link, link.client_ip, other)
    try:
        world.clients[VICTIM].daemon.wait_until(
            lambda: _connections(world.bench, other) > 0, "a connection from the new address", 60
        )
        time.sleep(hold_s)
        connections = _connections(world.bench, other)
    finally:
        _readdress(world.bench, link, other, link.client_ip)
    return proven(connections_from_the_new_address=connections)


def _readdress(built: Bench, link: Link, old: str, new: str) -> None:
    address: Callable[[str, str], str] = lambda action, ip: built.client.run(  # noqa: E731
        ["ip", "address", action, f"{ip}/24", "dev", link.interface]
    )
    address("delete", old)
    address("add", new)


def _connections(built: Bench, address: str) -> int:
    query = ["ss", "-Htn", "state", "established", "src", address, "dport", "=", f":{SERVER_PORT}"]
    return len(built.client.run(query).splitlines())


FAULTS = (
    Fault("blackout", "one path carries nothing for a while", blackout,
          opens={VICTIM: REDIALS}),
    Fault("blackout-of-all", "no path carries anything", blackout_of_all,
          opens={VICTIM: REDIALS}),
    Fault("reset-injection", "every packet of a path is answered with a reset", reset_injection,
          opens={VICTIM: REDIALS}),
    Fault("address-change", "an interface gets another address and its old one back",
          address_change, opens={VICTIM: REDIALS}),
    Fault("mtu-black-hole", "large packets of one path vanish", mtu_black_hole,
          opens={VICTIM: REDIALS}),
    Fault("mtu-black-hole-of-all", "large packets of all paths vanish", mtu_black_hole_of_all,
          opens={VICTIM: REDIALS}),
)  # fmt: skip
