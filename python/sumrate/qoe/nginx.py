"""A real nginx on the server host: one process, files from a folder, plain or TLS."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.process import Process, listening
from sumrate.lab.scene import Site

HTTP_PORT = 8080


@dataclass(frozen=True)
class VirtualHost:
    """One `server` of the configuration."""

    port: int
    name: str = "_"
    certificate: Path | None = None
    """PEM chain of a TLS server; plain HTTP without one."""
    key: Path | None = None
    http2: bool = False
    locations: str = ""
    """Further lines, such as how long which files may be cached."""

    def text(self, root: Path) -> str:
        """The block, with its files in `root`."""
        tls = " ssl" + " http2" * self.http2 if self.certificate else ""
        lines = [
            f"listen 0.0.0.0:{self.port}{tls};",
            f"server_name {self.name};",
            f"root {root};",
        ]
        if self.certificate:
            lines += [f"ssl_certificate {self.certificate};", f"ssl_certificate_key {self.key};"]
        return "server { " + " ".join([*lines, self.locations]) + " }"


def configuration(root: Path, folder: Path, servers: Iterable[VirtualHost]) -> str:
    """The whole file.

    One process without a master: it changes no user, which an unprivileged namespace refuses.
    """
    temporary = (
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    http = [
        "include /etc/nginx/mime.types; default_type application/octet-stream;",
        "access_log off; sendfile on; tcp_nodelay on; keepalive_timeout 75s;",
        "keepalive_requests 100000; server_tokens off; etag on;",
        "ssl_protocols TLSv1.3; ssl_session_cache shared:s:4m; server_names_hash_bucket_size 128;",
        *temporary,
        *(server.text(root) for server in servers),
    ]
    body = "\n  ".join(http)
    return (
        "daemon off;\nmaster_process off;\n"
        f"pid {folder}/nginx.pid;\nerror_log {folder}/nginx.log warn;\n"
        f"events {{ worker_connections 4096; }}\nhttp {{\n  {body}\n}}\n"
    )


@contextmanager
def nginx(
    site: Site, root: Path, servers: Sequence[VirtualHost], prefix: Sequence[str] = ()
) -> Iterator[Process]:
    """An nginx that accepts connections.

    Raises:
        ProcessFailedError: it did not start; the message has what it said.

    """
    folder = site.folder / "nginx"
    folder.mkdir(exist_ok=True)
    path = folder / "nginx.conf"
    path.write_text(configuration(root, folder, servers), encoding="utf-8")
    argv = [*prefix, "nginx", "-p", str(folder), "-e", str(folder / "nginx.log"), "-c", str(path)]
    with Process(argv, log=site.folder / "nginx-start.log", host=site.server) as process:
        for port in sorted({server.port for server in servers}):
            process.wait_until(lambda port=port: listening(site.server, port), "nginx listens")  # type: ignore[misc]
        yield process
