"""A machine of the scene, with name servers, hosts and packet filter of its own."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sumrate.lab.namespaces import Host

OWN_FILES = """
mount --bind "$1" "$(realpath /etc/resolv.conf)" && mount --bind "$2" /etc/hosts || exit 1
shift 2
exec "$@"
"""
"""Runs a program that sees a node's own files; it remains the process that was started."""


class Node(Host):
    """A host whose programs see their own /etc/resolv.conf and /etc/hosts."""

    def __init__(self, name: str, folder: Path) -> None:
        """Makes the namespace and the files, which name nobody yet."""
        self.resolv, self.hosts = folder / f"{name}.resolv.conf", folder / f"{name}.hosts"
        self.resolv.touch()
        self.hosts.write_text("127.0.0.1 localhost\n", encoding="ascii")
        super().__init__(name)

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` on this node."""
        files = [str(self.resolv), str(self.hosts)]
        own = ["unshare", "--mount", "--", "sh", "-c", OWN_FILES, "sh", *files]
        return super().command([*own, *argv])

    def name_servers(self, *addresses: str) -> None:
        """Has this node's resolver ask these from now on."""
        lines = [f"nameserver {address}\n" for address in addresses]
        self.resolv.write_text("".join(lines), encoding="ascii")

    def forwards(self) -> None:
        """Makes it a router."""
        self.sysctl("net.ipv4.ip_forward", "1")
        self.sysctl("net.ipv6.conf.all.forwarding", "1")

    def filter(self, table: str, chains: Mapping[str, str], *, priority: int = 0) -> None:
        """Replaces a table of the packet filter.

        Args:
            table: its name.
            chains: of each hook one rule.
            priority: of the hooks.

        """
        made = [
            f"chain {hook} {{ type filter hook {hook} priority {priority}; {rule}; }}"
            for hook, rule in chains.items()
        ]
        self.table(table, *made)

    def table(self, name: str, *parts: str) -> None:
        """Replaces a table of the packet filter by one of these sets and chains."""
        self.unfilter(name)
        self.run(["nft", "\n".join([f"table inet {name} {{", *parts, "}"])])

    def unfilter(self, table: str) -> None:
        """Removes a table of the packet filter, if there is one."""
        with suppress(RuntimeError):
            self.run(["nft", "delete", "table", "inet", table])
