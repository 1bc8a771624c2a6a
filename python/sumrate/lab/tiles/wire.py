"""What passes between sender and viewer: chunks of tiles down, where the viewer looks up.

One ordered stream carries all tiles: what has been handed to it cannot be taken back, so a tile is
cut into chunks, and the rest of a GOP is left out once it is due. As messages the chunks have an
importance (the tile's place in the plan) and a lifetime, arrive in any order, and what is late is
dropped on the way.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK = struct.Struct("<IHBBI")
"""GOP, tile, level, whether it is the tile's last, bytes that follow."""
LOOK = struct.Struct("<dddd")
"""Seconds since the viewer began, yaw and pitch in degrees, measured rate in Mbit/s (0: none)."""
MOST_CHUNK = 1 << 16
LOOK_EVERY_S = 0.05
MESSAGE = struct.Struct("<BII")
"""Importance (0 low, 1 normal, 2 high), lifetime in ms, bytes of the message that follows."""
MOST_OF_MESSAGE = 60_000
"""Most of a tile in one message, which is at most a frame of 64 KiB long."""


@dataclass(frozen=True)
class Chunk:
    """The head of a piece of a tile."""

    gop: int
    tile: int
    level: int
    last: bool
    length: int

    def head(self) -> bytes:
        """As it is sent, before its bytes."""
        return CHUNK.pack(self.gop, self.tile, self.level, self.last, self.length)


def chunks(gop: int, tile: int, level: int, size: int, most: int = MOST_CHUNK) -> Iterator[Chunk]:
    """A tile of `size` bytes, heads not counted, in pieces of at most `most`."""
    sent = 0
    while sent < size:
        length = min(most, size - sent)
        sent += length
        yield Chunk(gop, tile, level, sent == size, length)


class Reader:
    """Finds chunks in a stream: gives the head of each when its last byte is there."""

    def __init__(self) -> None:
        """Begins at the start of a chunk."""
        self._head = bytearray()
        self._chunk: Chunk | None = None
        self._left = 0

    def feed(self, data: memoryview) -> Iterator[Chunk]:
        """The chunks that end in what a read gave.

        Raises ValueError: this is no stream of tiles.
        """
        at = 0
        while at < len(data):
            if self._chunk is None:
                taken = min(CHUNK.size - len(self._head), len(data) - at)
                self._head += data[at : at + taken]
                at += taken
                if len(self._head) < CHUNK.size:
                    return
                gop, tile, level, last, length = CHUNK.unpack(self._head)
                if not 0 < length <= MOST_CHUNK:
                    raise ValueError(f"a chunk of {length} bytes: the stream has no tiles")
                self._head.clear()
                self._chunk, self._left = Chunk(gop, tile, level, bool(last), length), length
            taken = min(self._left, len(data) - at)
            self._left -= taken
            at += taken
            if not self._left:
                whole, self._chunk = self._chunk, None
                yield whole
