"""The bytes of a transfer: anybody can make and check them from a seed, a chunk at a time."""

import random
import struct

CHUNK = 1 << 20
"""Bytes; each chunk begins with the transfer's seed and its own number, so that no chunk can stand
for another."""
_BLOCK = random.Random(20).randbytes(CHUNK)
_HEAD = struct.Struct("<QQ")


def chunk(seed: int, number: int) -> bytes:
    """Chunk `number` of the transfer with this seed (64 bits each)."""
    return _HEAD.pack(seed, number) + _BLOCK[_HEAD.size :]


class Checker:
    """Compares what arrives with what was sent; `buffer` is where the next bytes belong."""

    def __init__(self, seed: int, size: int) -> None:
        """Expects `size` bytes of the transfer with this seed."""
        self.seed = seed
        self.size = size
        self.received = 0
        """Bytes that came so far."""
        self.wrong = 0
        """Bytes of chunks that were not as sent, or beyond the end."""
        self._room = bytearray(CHUNK)
        self._at = 0

    def buffer(self) -> memoryview:
        """Room for the bytes that come next: one at least, also beyond the end."""
        return memoryview(self._room)[self._at :]

    def took(self, count: int) -> None:
        """Notes that the first `count` bytes of `buffer()` were filled."""
        self._at += count
        self.received += count
        if self._at == CHUNK or self.received >= self.size:
            self._check()

    def finish(self) -> int:
        """Checks what is left; gives the bytes that are missing."""
        self._check()
        return max(0, self.size - self.received)

    def _check(self) -> None:
        if not self._at:
            return
        begin = self.received - self._at
        expected = chunk(self.seed, begin // CHUNK)[: max(0, self.size - begin)]
        if bytes(memoryview(self._room)[: self._at]) != expected[: self._at]:
            self.wrong += self._at
        if self.received % CHUNK == 0 or self.received >= self.size:
            self._at = 0
