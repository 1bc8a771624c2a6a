"""Programs that use a SOCKS5 proxy or knock at a server, in numbers; each prints JSON.

Run: python -m tests.world.load COMMAND ARGUMENTS (see the functions of `COMMANDS`)
"""

import asyncio
import json
import random
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sumrate.lab.faults.stranger import CREDENTIAL_BYTES, Knock, context, hello

CONNECT, ASSOCIATE = 1, 3
TIMEOUT_S = 15.0
ANY = "0.0.0.0"  # noqa: S104
"""The source of datagrams that a client does not know yet."""


def address(host: str, port: int) -> bytes:
    """As SOCKS5 says it (RFC 1928, section 5)."""
    try:
        return b"\x01" + socket.inet_aton(host) + struct.pack(">H", port)
    except OSError:
        return b"\x03" + bytes([len(host)]) + host.encode() + struct.pack(">H", port)


async def asked(
    proxy: int, command: int, host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, tuple[str, int]]:
    """A connection on which the proxy has granted the command, and the address that it names."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
    writer.write(b"\x05\x01\x00\x05" + bytes([command]) + b"\x00" + address(host, port))
    await reader.readexactly(2)
    _, code, _, kind = await reader.readexactly(4)
    bound = await reader.readexactly(4 if kind == 1 else 16)
    (at,) = struct.unpack(">H", await reader.readexactly(2))
    if code != 0:
        writer.close()
        raise OSError(f"refused with {code}")
    return reader, writer, (socket.inet_ntop(socket.AF_INET, bound) if kind == 1 else "", at)


async def timed(attempt: Callable[[], Awaitable[object]]) -> float | str:
    """Milliseconds that it took, or why it failed."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await attempt()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        return f"after {time.monotonic() - begun:.1f} s: {error or type(error).__name__}"
    return (time.monotonic() - begun) * 1e3


async def connect(
    proxy: str, rate: str, seconds: str, port: str, hold: str, *hosts: str
) -> list[float | str]:
    """Connects through the proxy at a rate; says how long each took. `*` in a host is a number.

    With `hold` connections stay open until so many seconds after the last one.
    """
    held = []

    async def attempt(number: int) -> None:
        host = hosts[number % len(hosts)].replace("*", str(1 + number % 250))
        _, writer, _ = await asked(int(proxy), CONNECT, host, int(port))
        if float(hold):
            held.append(writer)
        else:
            writer.close()

    tasks, begun, number = [], time.monotonic(), 0
    while time.monotonic() - begun < float(seconds):
        tasks.append(asyncio.create_task(timed(lambda number=number: attempt(number))))  # type: ignore[misc]
        number += 1
        await asyncio.sleep(max(0.0, begun + number / float(rate) - time.monotonic()))
    took = await asyncio.gather(*tasks)
    await asyncio.sleep(float(hold))
    return took


async def associate(proxy: str, count: str, seconds: str, host: str, port: str) -> list[str]:
    """Opens associations, sends a datagram on each, and keeps them open."""
    held, failed = [], []
    for _ in range(int(count)):
        try:
            async with asyncio.timeout(TIMEOUT_S):
                _, writer, relay = await asked(int(proxy), ASSOCIATE, ANY, 0)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            failed.append(str(error) or type(error).__name__)
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(b"\0\0\0" + address(host, int(port)) + b"x", relay)
        held.append(writer)
    print(json.dumps({"open": len(held)}), flush=True)
    await asyncio.sleep(float(seconds))
    return failed


async def datagrams(proxy: str, count: str, size: str, host: str, port: str) -> dict[str, float]:
    """Sends datagrams at once from one socket to one new peer that echoes; says how many came back.

    With the proxy `0` they are sent directly.
    """
    writer, relay, head = None, (host, int(port)), b""
    if int(proxy):
        _, writer, relay = await asked(int(proxy), ASSOCIATE, ANY, 0)
        head = b"\0\0\0" + address(host, int(port))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        own.setblocking(False)
        came: set[bytes] = set()
        begun, last = time.monotonic(), 0.0
        for number in range(int(count)):
            own.sendto(head + struct.pack(">I", number) + bytes(int(size) - 4), relay)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(4):
                while len(came) < int(count):
                    data = await loop.sock_recv(own, 65536)
                    came.add(data[-int(size) : len(data) - int(size) + 4])
                    last = time.monotonic() - begun
        except TimeoutError:
            pass
    if writer:
        writer.close()
    return {"back": len(came), "last_ms": last * 1e3}


async def knock(host: str, port: str, rate: str, seconds: str, credential: str = "") -> int:
    """Whole handshakes with wrong proofs; says how many were refused."""
    generator, made = random.Random(7), context()
    refused = 0

    async def one() -> None:
        nonlocal refused
        name = bytes.fromhex(credential) or generator.randbytes(CREDENTIAL_BYTES)
        reader, writer = await asyncio.open_connection(host, int(port))
        stranger = Knock(made, hello(name, generator))
        writer.write(stranger.turn())
        while data := await reader.read(65536):
            writer.write(stranger.turn(data))
        refused += stranger.refused
        writer.close()

    tasks, begun, number = [], time.monotonic(), 0
    while time.monotonic() - begun < float(seconds):
        tasks.append(asyncio.create_task(timed(one)))
        number += 1
        await asyncio.sleep(max(0.0, begun + number / float(rate) - time.monotonic()))
    await asyncio.gather(*tasks)
    return refused


async def speak(port: str, go: str) -> None:
    """Sends a line to whoever is connected once the file `go` exists."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not Path(go).exists():
            await asyncio.sleep(0.02)
        writer.write(b"news\n")
        await writer.drain()

    server = await asyncio.start_server(serve, "0.0.0.0", int(port))  # noqa: S104
    await server.serve_forever()


async def hear(proxy: str, host: str, port: str, heard: str) -> None:
    """Waits for lines, having made the file `heard`; writes them into that, and does not end."""
    connection = await asked(int(proxy), CONNECT, host, int(port))
    Path(heard).touch()
    Path(heard).write_bytes(await connection[0].readline())
    await asyncio.Event().wait()


COMMANDS: dict[str, Callable[..., Awaitable[object]]] = {
    "connect": connect,
    "associate": associate,
    "datagrams": datagrams,
    "knock": knock,
    "speak": speak,
    "hear": hear,
}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(COMMANDS[sys.argv[1]](*sys.argv[2:]))))  # type: ignore[arg-type]
