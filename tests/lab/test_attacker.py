"""What a hostile program counts is what happened: who is refused has attacked nobody."""

import argparse
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sumrate.lab.faults.attacker import PAUSE_S, Attack

AT_ONCE = 5
KINDS = ("garbage", "drip", "half-open", "silent-reader", "wrong-proof")


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def attack(kind: str, port: int, status: Path) -> Attack:
    return Attack(
        argparse.Namespace(
            kind=kind, address="127.0.0.1", port=port, status=status, connections=AT_ONCE,
            total=2 * AT_ONCE, source=[], target="", credential="", seed=1,
        )
    )  # fmt: skip


def attacked(made: Attack, name: str) -> None:
    """Attacks until so many as may be begun in all are counted."""
    deadline = time.monotonic() + 20
    while made.count[name] < 2 * AT_ONCE:
        assert time.monotonic() < deadline, made.count
        made.open_more()
        made.look(0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_refused_was_neither_connected_nor_ended(
    kind: str, port: int, tmp_path: Path
) -> None:
    made = attack(kind, port, tmp_path / "status.json")
    attacked(made, "failed")
    assert made.count == {"made": 0, "closed": 0, "answered": 0, "failed": 2 * AT_ONCE}
    assert (made.held, made.connected) == ({}, set())


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_accepted_is_made_and_who_is_ended_is_closed(kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.01)
        made = attack(kind, listener.getsockname()[1], tmp_path / "status.json")
        deadline = time.monotonic() + 20
        while made.count["made"] < AT_ONCE:
            assert time.monotonic() < deadline, made.count
            made.open_more()
            made.look(0.1)
        assert (made.count["closed"], made.begun, len(made.connected)) == (0, AT_ONCE, AT_ONCE)
        while made.count["closed"] < 2 * AT_ONCE:
            assert time.monotonic() < deadline, made.count
            made.open_more()
            made.look(0.05)
            with suppress(TimeoutError):
                end(listener.accept()[0])
    assert made.count == {"made": 2 * AT_ONCE, "closed": 2 * AT_ONCE, "answered": 0, "failed": 0}
    assert (made.held, made.connected) == ({}, set())


def end(connection: socket.socket) -> None:
    """Resets it, as a server does that ends what it does not want."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    connection.close()


def test_the_status_is_written_again_only_when_it_is_old(port: int, tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    made = attack("wrong-proof", port, status)
    made.report()
    assert '"held": 0' in status.read_text(encoding="ascii")
    status.unlink()
    made.report()
    assert not status.exists()
    made.reported -= PAUSE_S
    made.report()
    assert status.exists()
