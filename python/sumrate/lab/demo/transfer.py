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
class Round:
    """What all transfers of a round share: links, file, folder, progress."""

    setting: Setting
    payload: Payload
    sink: Sink
    """The file that every scheme receives into."""
    seed: int
    work: Path
    progress: Progress


def transfer(scheme: Scheme, of: Round) -> Outcome:
    """Runs one scheme in a scene of its own; a failure becomes its entry, never silence."""
    try:
        scheme.check()
    except Unavailable as reason:
        return Outcome({"missing": str(reason)}, None)
    of.progress.show(f"{scheme.title}: connecting", of.setting.expected_s(scheme.name))
    of.sink.clear()
    folder = of.work / scheme.name
    try:
        with scene(of.setting.links, seed=of.seed, folder=folder) as built:
            built.raise_emulator()
            return _download(scheme, of, built)
    except (ProcessFailedError, RuntimeError) as error:
        return Outcome({"error": str(error)}, None)


def _download(scheme: Scheme, of: Round, built: Scene) -> Outcome:
    """Downloads the file and verifies its checksum after the clock has stopped."""
    expected_s, probe = of.setting.expected_s(scheme.name), Probe(built.server)
    shown_s = -1.0

    def sampled(at_s: float, size: int) -> None:
        nonlocal shown_s
        if at_s >= PROBE_S:
            probe.fire()
        if at_s - shown_s >= SHOW_S or shown_s < 0:
            shown_s, done = at_s, size / of.payload.size
            of.progress.show(f"{scheme.title}: {done:4.0%}", max(0.0, expected_s * (1 - done)))

    with scheme.download(built, of.payload) as ready:
        log = built.folder / "curl.log"
        with Process(ready.curl, log=log, host=built.client, stdout=of.sink.file) as curl:
            curve = watch(
                curl,
                of.sink.received,
                timeout_s=TIMEOUT_S + TIMEOUT_FACTOR * expected_s,
                on_first_byte=built.emulator.trigger,
                on_sample=sampled,
            )
        stats = built.emulator.stats()
        settings = built.settings()
    of.progress.show(f"{scheme.title}: verifying the checksum")
    same = of.sink.matches(of.payload)
    cpu = {"curl": curl.cpu_seconds}
    if isinstance(emulator := built.emulator, Emulator):
        emulator.process.stop()
        cpu["sumrate-link"] = emulator.process.cpu_seconds
    cpu.update({name: process.cpu_seconds for name, process in ready.processes.items()})
    late = why_late(stats)
    entry = {
        **describe(curve, scheme.name),
        "sha256_ok": same,
        "command": f"{curl.command_line} 1<> {of.sink.path.name}",
        "other_commands": ready.commands,
        "cpu_seconds": cpu,
        "connections": probe.connections(),
        "tcp_settings": settings,
        "emulator": {"worst_lateness_ms": worst_lateness_ms(stats), "stats": stats},
        "void": late is not None,
    }
    return Outcome(entry | ({"void_reason": late} if late else {}), curve)
