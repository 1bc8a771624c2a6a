"""The file that is downloaded: seeded pseudo-random bytes in memory, and its checksum."""

import hashlib
import os
import random
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.namespaces import mount_tmpfs

CHUNK = 16 << 20


class NoRoomError(RuntimeError):
    """Memory or disk is too small for the files; the message says how much is missing."""


@dataclass(frozen=True)
class Payload:
    """A file to download: where it is, its size in bytes and its SHA-256."""

    path: Path
    size: int
    sha256: str


def make_payload(path: Path, size: int, seed: int) -> Payload:
    """Writes `size` pseudo-random bytes, the same for the same seed, and returns their checksum."""
    generator = random.Random(seed)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        left = size
        while left > 0:
            block = generator.randbytes(min(CHUNK, left))
            digest.update(block)
            file.write(block)
            left -= len(block)
    return Payload(path, size, digest.hexdigest())


class Sink:
    """The file that the receiver writes, as its standard output.

    Its room is taken and touched beforehand and used again by every scheme: on a virtual machine
    the first touch of memory is slow and halts the processor for tens of milliseconds, which would
    be measured as a stall. The receiver's progress is the offset that it shares with this object.
    """

    def __init__(self, path: Path, size: int) -> None:
        """Makes the file with room for `size` bytes."""
        self.path = path
        self.size = size
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.clear()

    def clear(self) -> None:
        """Overwrites all of it with zeros: no earlier transfer can be taken for the next one."""
        zeros = bytes(CHUNK)
        for offset in range(0, self.size, CHUNK):
            os.pwrite(self.file, zeros[: self.size - offset], offset)
        os.ftruncate(self.file, self.size)
        os.lseek(self.file, 0, os.SEEK_SET)

    def received(self) -> int:
        """Bytes that the receiver has written so far."""
        return os.lseek(self.file, 0, os.SEEK_CUR)

    def matches(self, payload: Payload) -> bool:
        """Whether exactly the payload has been received."""
        return self.received() == payload.size and self._sha256() == payload.sha256

    def close(self) -> None:
        """Removes the file."""
        os.close(self.file)
        self.path.unlink(missing_ok=True)

    def _sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def memory_available() -> int:
    """Bytes of memory that the kernel says are available."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return 0


def storage(target: Path, size: int, fallback: Path) -> tuple[Path, str]:
    """A folder for the sent and the received file, each of `size` bytes, and its kind.

    A tmpfs of the private mount namespace (gone with the processes) where memory allows twice the
    room needed, otherwise `fallback` on disk.

    Raises NoRoomError: neither has the room.
    """
    need = 2 * size + (64 << 20)
    if memory_available() > need + size + (1 << 30):
        target.mkdir(parents=True, exist_ok=True)
        mount_tmpfs(target)
        return target, "memory"
    fallback.mkdir(parents=True, exist_ok=True)
    stat = os.statvfs(fallback)
    free = stat.f_bavail * stat.f_frsize
    if free < need:
        raise NoRoomError(
            f"{need >> 20} MiB are needed for the file and its copy, {fallback} has {free >> 20}; "
            "use a smaller --size"
        )
    return fallback, "disk"
