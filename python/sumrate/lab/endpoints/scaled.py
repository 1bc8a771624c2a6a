"""Two kernel TCP connections scheduled with the thesis's alpha and beta: its coupled mode alone.

A model sender, not a transport: it shows what scaling the send windows does to the kernel's flows
and to others on the same bottleneck. Nothing puts the bytes back together.
"""

import json
import sys
from dataclasses import dataclass

from sumrate.lab.endpoints.base import LoadGenerator, Measurement, Unavailable
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Site

PROGRAM = (sys.executable, "-m", "sumrate.lab.scaling")
ENVIRONMENT = {"PYTHONPATH": str(REPOSITORY / "python")}


@dataclass(frozen=True)
class Scaled(LoadGenerator):
    """`sumrate.lab.scaling` over all links; links on one wire share a bottleneck."""

    name: str = "scaled"
    title: str = "TCPs with scaled windows"
    options: tuple[str, ...] = ("coupled",)
    """`coupled`: factors on shared bottlenecks; `decoupled`: every factor is 1."""

    def check(self) -> None:
        """Needs nothing, but knows two modes only."""
        if self.options not in (("coupled",), ("decoupled",)):
            raise Unavailable(f"the mode is coupled or decoupled, not {' '.join(self.options)!r}")

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """Receives on all paths at once."""
        ready, answer = site.folder / "scaling.ready", site.folder / "scaling.json"
        ready.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)
        windows = site.folder / "scaling-windows.json"
        send = [*PROGRAM, "serve", "--cc", site.congestion_control, "--ready", str(ready)]
        send += ["--output", str(windows)]
        take = [*PROGRAM, "fetch", "--time", f"{seconds:g}", "--warmup", f"{warmup_s:g}"]
        take += ["--output", str(answer)]
        for link in site.links:
            group = (link.wire or link.name) if self.options == ("coupled",) else link.name
            send += ["--path", f"{group}@{link.server_ip}"]
            take += ["--path", f"{link.client_ip}@{link.server_ip}"]
        log = site.folder / "scaling.log"
        with Process(send, log=log, host=site.server, env=ENVIRONMENT) as server:
            server.wait_until(ready.exists, "the sender listens")
            with Process(take, log=log, host=site.client, env=ENVIRONMENT) as client:
                status = client.wait(seconds + warmup_s + 60)
            server.wait(10.0)
        if status != 0:
            raise ProcessFailedError(f"`{client.command_line}`: {client.tail()}")
        result = json.loads(answer.read_text(encoding="utf-8"))
        by_address = result["path_mbps"]
        return Measurement(
            goodput_mbps=sum(by_address.values()),
            command=client.command_line,
            details={
                "server_command": server.command_line,
                "bytes": result["bytes"],
                "windows": json.loads(windows.read_text(encoding="utf-8")),
                "path_mbps": {link.name: by_address[link.server_ip] for link in site.links},
            },
        )
