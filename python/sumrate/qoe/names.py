"""Names of servers: one file of hosts over the system's, seen in the private namespaces only."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sumrate.lab.namespaces import run
from sumrate.lab.scene import Site

HOSTS = "/etc/hosts"


@contextmanager
def resolved(site: Site, names: Iterable[str], address: str) -> Iterator[None]:
    """Has these names stand for the address, for every program of both hosts.

    Both hosts share their files. So a name stands for the address by which clients reach servers
    through the scheme under test; through a proxy it is the far end that resolves it.

    Raises:
        RuntimeError: the kernel refuses the mount.

    """
    path = site.folder / "hosts"
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name in names)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    run(["mount", "--bind", str(path), HOSTS])
    try:
        yield
    finally:
        run(["umount", HOSTS])
