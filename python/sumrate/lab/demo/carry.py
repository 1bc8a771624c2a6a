"""Finds the largest scale of the rates that this machine's emulator carries on time.

Plain TCP fills both links at once, through the same emulator and the same topology as the
transfers. It costs less than any scheme under test, so a scale that fails here fails there too.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sumrate.lab.demo.setting import SCALES, Setting, setting
from sumrate.lab.endpoints.base import FILE_NAME, HTTP_PORT, curl, file_server
from sumrate.lab.lateness import LATE_SHARE, late_share, worst_lateness_ms
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.process import Process
from sumrate.lab.results import rounded
from sumrate.lab.scene import Scene, scene

TRIAL_S = 1.5
WARM_UP_S = 0.4
COST_S = TRIAL_S + WARM_UP_S + 1.0
"""Of one trial with its scene."""
CARRIED_SHARE = 0.9
"""Plain TCP should reach this share of the rates."""
FULL_SIZE = 4 << 30
"""More than passes in a trial; the file has no content, so it takes no room."""


@dataclass(frozen=True)
class Trial:
    """How both links did at one scale."""

    scale: float
    late_share: float
    worst_ms: float | None
    carried_share: float
    """Bytes that arrived over what both rates allow."""

    @property
    def on_time(self) -> bool:
        """Whether the emulator can carry this scale."""
        return self.late_share <= LATE_SHARE and self.carried_share >= CARRIED_SHARE

    def document(self) -> dict[str, Any]:
        """The trial for the result."""
        return {
            "scale": self.scale,
            "late_share": rounded(self.late_share, 5),
            "worst_lateness_ms": self.worst_ms,
            "carried_share": rounded(self.carried_share),
            "on_time": self.on_time,
        }


def largest_scale(try_scale: Callable[[float], Trial]) -> tuple[float, list[Trial]]:
    """The largest scale whose trial is on time, else the smallest; and the trials."""
    trials: list[Trial] = []
    for scale in SCALES:
        trials.append(try_scale(scale))
        if trials[-1].on_time:
            return scale, trials
    return SCALES[-1], trials


def trial(scale: float, seed: int, folder: Path) -> Trial:
    """Fills both links by plain TCP for a moment and reads how late the emulator was."""
    chosen = setting(scale, FULL_SIZE)
    links = tuple(replace(link, blackouts=()) for link in chosen.links)
    with scene(links, seed=seed, folder=folder) as built:
        empty = folder / "empty.bin"
        with empty.open("wb") as file:
            file.truncate(FULL_SIZE)
        return _measured(chosen, links, built, Payload(empty, FULL_SIZE, ""))


def _measured(chosen: Setting, links: tuple[Link, ...], built: Scene, payload: Payload) -> Trial:
    log = built.folder / "trial.log"
    with ExitStack() as stack:
        stack.enter_context(file_server(built, payload, address="0.0.0.0"))  # noqa: S104
        for link in links:
            address = f"http://{link.server_ip}:{HTTP_PORT}/{FILE_NAME}"
            options = ("--output", "/dev/null")
            stack.enter_context(Process(curl(address, *options), log=log, host=built.client))
        built.raise_emulator()
        time.sleep(WARM_UP_S)
        before, began = _received(built, links), time.monotonic()
        built.emulator.stats(reset=True)
        time.sleep(TRIAL_S)
        stats = built.emulator.stats()
        after, passed_s = _received(built, links), time.monotonic() - began
    possible = sum(link.down.rate_mbps for link in links) * 125e3 * passed_s
    return Trial(
        chosen.scale,
        late_share(stats),
        worst_lateness_ms(stats),
        (after - before) / possible,
    )


def _received(built: Scene, links: tuple[Link, ...]) -> int:
    """Bytes that the client's interfaces have received so far."""
    counters = {}
    for line in built.client.run(["cat", "/proc/self/net/dev"]).splitlines():
        name, colon, numbers = line.partition(":")
        if colon:
            counters[name.strip()] = int(numbers.split()[0])
    return sum(counters[link.interface] for link in links)
