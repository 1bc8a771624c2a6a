"""All schemes at one scale; a disturbed round is given up for one at the next smaller scale."""

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.demo.carry import COST_S, Trial, largest_scale, trial
from sumrate.lab.demo.setting import MEASURED_FIRST, SCALES, Setting, setting
from sumrate.lab.demo.transfer import Outcome, Round, transfer
from sumrate.lab.endpoints import Scheme
from sumrate.lab.payload import Sink, make_payload, storage
from sumrate.lab.processor_users import ProcessorUsers
from sumrate.lab.results import Progress
from sumrate.report.demo_words import scale_words

WITHIN_S = 150.0
"""By default the demo starts no further round that would end later than this."""


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    size: int
    """Of the file at the full rates."""
    seed: int
    output: Path
    only: tuple[str, ...]
    scale: float | None
    """None: whatever the machine can carry."""
    within_s: float
    json: bool
    keep: bool
    strict: bool


@dataclass
class Rounds:
    """What was measured at the scale that counts, and what was given up before."""

    setting: Setting
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    given_up: list[dict[str, Any]] = field(default_factory=list)


def smaller(scale: float) -> float | None:
    """The next smaller scale; None below the smallest."""
    return next((other for other in SCALES if other < scale), None)


def chosen(schemes: tuple[Scheme, ...], only: tuple[str, ...]) -> list[Scheme]:
    """The schemes to measure, in the order in which they are measured."""
    ordered = sorted(schemes, key=lambda scheme: MEASURED_FIRST.index(scheme.name))
    return [scheme for scheme in ordered if not only or scheme.name in only]


def round_s(at: Setting, only: tuple[str, ...]) -> float:
    """How long a round takes at this setting."""
    return at.file_s() + sum(at.cost_s(scheme.name) for scheme in chosen(at.schemes, only))


def measure_rounds(
    first: Setting,
    measure: Callable[[Setting, Setting | None], "tuple[dict[str, Outcome], str | None]"],
    full_size: int,
    say: Callable[[str], object],
) -> Rounds:
    """Measures rounds at ever smaller scales until one is not given up.

    Args:
        first: the setting to begin with.
        measure: runs a round, given its setting and the one that may follow, if any; gives its
            outcomes, and the disturbance for which it was given up, if it was.
        full_size: of the file at the full rates.
        say: tells the user.

    """
    rounds = Rounds(first)
    while True:
        scale = smaller(rounds.setting.scale)
        following = None if scale is None else setting(scale, full_size)
        rounds.outcomes, disturbance = measure(rounds.setting, following)
        if disturbance is None or following is None:
            return rounds
        rounds.given_up.append({"scale": rounds.setting.scale, "reason": disturbance})
        say(f"{disturbance}; all downloads start again at {scale_words(following.scale)}.")
        rounds.setting = following


class Demo:
    """The whole measurement inside the private namespaces."""

    def __init__(self, options: Options, work: Path, users: ProcessorUsers) -> None:
        """Prepares the measurement.

        Args:
            options: what the user asked for.
            work: folder for logs and configurations.
            users: counts what other programs use meanwhile.

        """
        self.options = options
        self.work = work
        self.users = users
        self.trials: list[dict[str, Any]] = []
        self._ends_by = time.monotonic() + options.within_s
        self._progress = Progress(COST_S)
        self.payload: dict[str, Any] = {}

    def run(self) -> Rounds:
        """Finds the scale, then measures."""
        scale = self._scale()
        first = setting(scale, self.options.size)
        words = " and ".join(
            f"{name} {link.down.rate_mbps:.0f} Mbit/s"
            for name, link in (("WiFi", first.wifi), ("WiGig", first.wigig))
        )
        late = self.trials[-1]["late_share"] if self.trials else None
        self._say(
            f"The links have {scale_words(scale)}: {words}"
            + (
                f" (at this scale {late:.1%} of the packets were late)."
                if late is not None
                else "."
            )
        )
        try:
            return measure_rounds(first, self._measure, self.options.size, self._say)
        finally:
            self._progress.clear()

    def _say(self, line: str) -> None:
        self._progress.clear()
        print(line, file=sys.stderr, flush=True)

    def _scale(self) -> float:
        if self.options.scale is not None:
            return self.options.scale
        left = round_s(setting(1.0, self.options.size), self.options.only)

        def tried(scale: float) -> Trial:
            self._progress.show(f"measuring whether this machine carries {scale_words(scale)}")
            return trial(scale, self.options.seed, self.work / "trial")

        self._progress = Progress(left + 2 * COST_S)
        scale, trials = largest_scale(tried)
        self.trials = [found.document() for found in trials]
        return scale

    def _may_follow(self, following: Setting | None) -> bool:
        if self.options.scale is not None or following is None:
            return False
        return time.monotonic() + round_s(following, self.options.only) < self._ends_by

    def _measure(
        self, at: Setting, following: Setting | None
    ) -> tuple[dict[str, Outcome], str | None]:
        """One round; it is given up where it is disturbed and a smaller scale may follow."""
        options, progress = self.options, Progress(round_s(at, self.options.only))
        self._progress = progress
        target = self.work / f"files-{at.scale:g}"
        folder, kind = storage(target, at.size, options.output / "files")
        outcomes: dict[str, Outcome] = {}
        try:
            progress.show(f"making a file of {at.size / 2**20:.0f} MiB")
            made = make_payload(folder / "file.bin", at.size, options.seed)
            self.payload = {"bytes": made.size, "sha256": made.sha256, "kept_in": kind}
            sink = Sink(folder / "received.bin", at.size)
            shared = Round(at, made, sink, options.seed, self.work, progress)
            progress.left_s -= at.file_s()
            for scheme in chosen(at.schemes, options.only):
                progress.left_s -= at.cost_s(scheme.name)
                outcome = self._transfer(scheme, shared)
                outcomes[scheme.name] = outcome
                if outcome.disturbed and self._may_follow(following):
                    return outcomes, f"{scheme.title}: {outcome.disturbed}"
        finally:
            progress.clear()
            if kind == "disk":
                shutil.rmtree(folder, ignore_errors=True)
            else:
                for file in folder.iterdir():
                    file.unlink()
        return outcomes, None

    def _transfer(self, scheme: Scheme, shared: Round) -> Outcome:
        self.users.begin()
        outcome = transfer(scheme, shared)
        starved = self.users.end()
        if starved and not outcome.entry.get("void", True):
            outcome.entry.update(void=True, void_reason=starved)
        return outcome
