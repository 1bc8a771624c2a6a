"""What rustls alone moves over the same sockets: TLS 1.3 per link, nothing above it."""

import json
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.endpoints.base import LoadGenerator, Measurement, Unavailable
from sumrate.lab.process import Process, ProcessFailedError, listening, processor_time
from sumrate.lab.programs import MissingProgramError, example
from sumrate.lab.scene import Site

PORT = 5900


@dataclass(frozen=True)
class TlsPump(LoadGenerator):
    """`crates/fbdt/examples/tls_pump.rs`: a thread and a TLS connection per link."""

    name: str = "tls-pump"
    title: str = "rustls alone, one TLS per link"

    def check(self) -> None:
        """Needs the built example."""
        self._program()

    def _program(self) -> Path:
        try:
            return example("tls_pump", package="fbdt")
        except MissingProgramError as error:
            raise Unavailable(str(error)) from error

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """Receives on all links at once; a warm-up is counted too."""
        program = str(self._program())
        log, answer = site.folder / "tls-pump.log", site.folder / "tls-pump.json"
        answer.unlink(missing_ok=True)
        accept = [program, "serve", *(f"{link.server_ip}:{PORT}" for link in site.links)]
        paths = [f"{link.client_ip}@{link.server_ip}:{PORT}" for link in site.links]
        with Process(accept, log=log, host=site.server) as server:
            server.wait_until(lambda: listening(site.server, PORT), "tls_pump listens")
            argv = [program, "fetch", f"{seconds:g}", *paths]
            with Process(argv, log=log, host=site.client, stdout=answer) as client:
                status = client.wait(seconds + 60)
            server.stop()
        if status != 0:
            raise ProcessFailedError(f"`{client.command_line}`: {client.tail()}")
        result = json.loads(answer.read_text(encoding="utf-8"))
        return Measurement(
            goodput_mbps=result["goodput_mbps"],
            command=client.command_line,
            details={
                "server_command": server.command_line,
                "bytes": result["bytes"],
                "warmup_not_left_out_s": warmup_s,
                **processor_time(client=[client], server=[server]),
            },
        )
