"""A long download: a server that sends zeros without end, and a program that takes them.

Run: python -m tests.world.bulk source PORT
     python -m tests.world.bulk sink PROXY HOST PORT SECONDS (prints the bytes that came)
     python -m tests.world.bulk stall PROXY HOST PORT SECONDS
"""

import asyncio
import contextlib
import socket
import sys
import time

from tests.world.load import CONNECT, asked

CHUNK = bytes(1 << 20)


async def source(port: str) -> None:
    """Sends zeros to whoever connects."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(CHUNK)
                await writer.drain()

    both = socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
    server = await asyncio.start_server(send, sock=both)
    await server.serve_forever()


async def sink(proxy: str, host: str, port: str, seconds: str) -> int:
    """Takes what comes for a time; says how many bytes did."""
    reader, writer, _ = await asked(int(proxy), CONNECT, host, int(port))
    end, came = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        came += len(await reader.read(1 << 20))
    writer.close()
    return came


async def stall(proxy: str, host: str, port: str, seconds: str) -> str:
    """Asks for what it never reads."""
    reader, writer, _ = await asked(int(proxy), CONNECT, host, int(port))
    await asyncio.sleep(float(seconds))
    writer.close()
    return f"{len(await reader.read(1))} read"


if __name__ == "__main__":
    what = {"source": source, "sink": sink, "stall": stall}
    print(asyncio.run(what[sys.argv[1]](*sys.argv[2:])))  # type: ignore[operator]
