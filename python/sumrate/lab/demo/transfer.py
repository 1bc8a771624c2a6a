"""One download by one scheme, with everything that is recorded beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.blockage import describe
from sumrate.lab.demo.setting import Setting
from sumrate.lab.endpoints import Scheme, Unavailable
from sumrate.lab.lateness import why_late, worst_lateness_ms
from sumrate.lab.links import Emulator
from sumrate.lab.measure import Curve, watch
from sumrate.lab.payload import Payload, Sink
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.results import Progress
from sumrate.lab.scene import Scene, scene
from sumrate.lab.traffic import Probe

PROBE_S = 1.0
"""When the connections are looked at, seconds after the first byte."""
SHOW_S = 0.5
TIMEOUT_S, TIMEOUT_FACTOR = 15.0, 3.0
"""A transfer ends after TIMEOUT_S + TIMEOUT_FACTOR times what it should take."""


@dataclass(frozen=True)
class Outcome:
    """One scheme's entry in the result, and its curve if it finished."""

    entry: dict[str, Any]
    curve: Curve | None

    @property
    def disturbed(self) -> str | None:
        """Why a smaller scale may give a better result: the emulator was late, or it failed."""
        reason = self.entry.get("error") or self.entry.get("void_reason")
        return None if reason is None else str(reason)


@dataclass(frozen=True)
class Files:
    """What is sent, and where it is received, in every scheme."""

    payload: Payload
    sink: Sink


@dataclass(frozen=True)
class Context:
    """What all transfers of a round share."""

    setting: Setting
    seed: int
    work: Path
    progress: Progress


class Transfer:
    """One download in a scene."""

    def __init__(
        self, scheme: Scheme, files: Files, built: Scene, expected_s: float, progress: Progress
    ) -> None:
        """Prepares the transfer."""
        self.scheme = scheme
        self.files = files
        self.scene = built
        self.expected_s = expected_s
        self.progress = progress
        self.probe = Probe(built.server)
        self._shown_s = -1.0

    def run(self) -> Outcome:
        """Downloads the file and verifies its checksum after the clock has stopped."""
        sink = self.files.sink
        with self.scheme.download(self.scene, self.files.payload) as ready:
            log = self.scene.folder / "curl.log"
            with Process(ready.curl, log=log, host=self.scene.client, stdout=sink.file) as curl:
                curve = watch(
                    curl,
                    sink.received,
                    timeout_s=TIMEOUT_S + TIMEOUT_FACTOR * self.expected_s,
                    on_first_byte=self.scene.emulator.trigger,
                    on_sample=self._sampled,
                )
            stats = self.scene.emulator.stats()
            settings = self.scene.settings()
        self.progress.show(f"{self.scheme.title}: verifying the checksum")
        same = sink.matches(self.files.payload)
        cpu = {"curl": curl.cpu_seconds}
        if isinstance(emulator := self.scene.emulator, Emulator):
            emulator.process.stop()
            cpu["sumrate-link"] = emulator.process.cpu_seconds
        cpu.update({name: process.cpu_seconds for name, process in ready.processes.items()})
        late = why_late(stats)
        entry = {
            **describe(curve, self.scheme.name),
            "sha256_ok": same,
            "command": f"{curl.command_line} 1<> {sink.path.name}",
            "other_commands": ready.commands,
            "cpu_seconds": cpu,
            "connections": self.probe.connections(),
            "tcp_settings": settings,
            "emulator": {"worst_lateness_ms": worst_lateness_ms(stats), "stats": stats},
            "void": late is not None,
        }
        if late:
            entry["void_reason"] = late
        return Outcome(entry, curve)

    def _sampled(self, at_s: float, size: int) -> None:
        if at_s >= PROBE_S:
            self.probe.fire()
        if at_s - self._shown_s >= SHOW_S or self._shown_s < 0:
            self._shown_s = at_s
            done = size / self.files.payload.size
            self.progress.show(
                f"{self.scheme.title}: {done:4.0%}", max(0.0, self.expected_s * (1 - done))
            )


def transfer(scheme: Scheme, files: Files, context: Context) -> Outcome:
    """Runs one scheme in a scene of its own; a failure becomes its entry, never silence."""
    try:
        scheme.check()
    except Unavailable as reason:
        return Outcome({"missing": str(reason)}, None)
    expected_s = context.setting.expected_s(scheme.name)
    context.progress.show(f"{scheme.title}: connecting", expected_s)
    files.sink.clear()
    folder = context.work / scheme.name
    try:
        with scene(context.setting.links, seed=context.seed, folder=folder) as built:
            built.raise_emulator()
            return Transfer(scheme, files, built, expected_s, context.progress).run()
    except (ProcessFailedError, RuntimeError) as error:
        return Outcome({"error": str(error)}, None)
