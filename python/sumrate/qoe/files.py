"""Files by curl from nginx: time to the last byte, and by which link the bytes came."""

import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sumrate.lab.links import Emulator, Wires
from sumrate.lab.payload import make_payload
from sumrate.lab.scene import Scene
from sumrate.qoe.carriage import Carriage
from sumrate.qoe.curl import command, download
from sumrate.qoe.nginx import HTTP_PORT, VirtualHost
from sumrate.qoe.settings import FileSize, FilesSetting
from sumrate.qoe.values import Renew, Value, nothing

PROGRAMS = ("curl", "nginx")
PORTS = (HTTP_PORT,)
SERVERS = (VirtualHost(HTTP_PORT),)
LARGE_BYTES = 10_000_000
"""Up to this size a file may be there before a second radio is awake: its share says nothing."""
SLOWEST_MBPS = 50.0
"""A download that is slower than this has failed: a stalled one of 1 GB is not waited for long."""


def content(setting: FilesSetting, folder: Path) -> Path:
    """The files, pseudo-random and made once; returns their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in setting.sizes:
        path = folder / size.name
        if not path.exists() or path.stat().st_size != size.bytes:
            make_payload(path, size.bytes, seed=size.bytes)
    return folder


def order(setting: FilesSetting) -> Iterator[FileSize]:
    """Each size as often as it is wanted, then the next larger one.

    What large files leave behind (queues, and the windows of a transport that keeps its
    connections) meets nothing small.
    """
    for size in sorted(setting.sizes, key=lambda size: size.bytes):
        yield from [size] * size.times


def delivered(emulator: Emulator | Wires) -> dict[str, int]:
    """Bytes of IP that each link has delivered to the client so far; nothing of bare wires."""
    links = emulator.stats().get("links", ())
    return {link["name"]: int(link["b_to_a"]["counters"]["bytes_out"]) for link in links}


def share(before: Mapping[str, int], after: Mapping[str, int], link: str) -> float | None:
    """The share of one link in what all delivered between two counts; None if nothing came."""
    came = {name: after[name] - before[name] for name in after}
    total = sum(came.values())
    return came[link] / total if total > 0 and link in came else None


def run(
    built: Scene, carriage: Carriage, setting: FilesSetting, renew: Renew = nothing
) -> Iterator[Value]:
    """Downloads every file; nginx serves them already.

    Yields `time_SIZE_ms` and `first_byte_SIZE_ms` of each download, and the link's share of it:
    `LINK_share_SIZE`, and of the large ones `LINK_share`.

    Raises:
        ProcessFailedError: a download failed.

    """
    for number, size in enumerate(order(setting)):
        renew(number)
        time.sleep(setting.pause_s)
        before = delivered(built.emulator)
        done = download(
            built,
            carriage,
            f"http://{carriage.address}:{HTTP_PORT}/{size.name}",
            size.bytes,
            timeout_s=30.0 + size.bytes * 8e-6 / SLOWEST_MBPS,
        )
        yield Value(f"time_{size.name}_ms", done.total_s * 1e3, "ms")
        yield Value(f"first_byte_{size.name}_ms", done.first_byte_s * 1e3, "ms")
        yield from _share(built, before, setting, size)


def _share(
    built: Scene, before: Mapping[str, int], setting: FilesSetting, size: FileSize
) -> Iterator[Value]:
    if setting.share_link and before:
        found = share(before, delivered(built.emulator), setting.share_link)
        if found is not None:
            if size.bytes > LARGE_BYTES:
                yield Value(f"{setting.share_link}_share", found, "ratio")
            yield Value(f"{setting.share_link}_share_{size.name}", found, "ratio")


def shown(carriage: Carriage, setting: FilesSetting) -> str:
    """The command of the first download."""
    url = f"http://{carriage.address}:{HTTP_PORT}/{setting.sizes[0].name}"
    return shlex.join(command(url, carriage))
