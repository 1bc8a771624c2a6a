"""When a run is made again: the emulator was late, it failed, or other programs were in the way."""

from dataclasses import dataclass, field
from typing import Any

from sumrate.lab.experiment.record import Run
from sumrate.lab.machine_load import MOST

MAX_RETRIES = 2
"""How often a run whose emulator was late, that failed or was disturbed, is made again."""
SUBFLOW_RETRIES = 10
"""How often one that lacks a subflow is: beside other TCPs every second one may."""
MISSING_SUBFLOW = "missing_subflow"
"""That a run failed because a subflow of kernel MPTCP carried nothing."""
FOREIGN = "foreign_user_share"
"""Of all processors' time during a run: what programs used that are not of this laboratory."""


def badness(run: Run) -> tuple[bool, bool, float]:
    """The attempt with the least of it stands: what failed or was void only without others."""
    return "error" in run.detail, run.void, run.detail.get(FOREIGN) or 0.0


@dataclass
class Attempts:
    """What was wrong with the runs of a scheme at a point that were made again."""

    failed_retries: int
    late_retries: int
    late: list[float | None] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    """Those that lacked a subflow; they are luck, and take no other's retries."""
    disturbed: list[float] = field(default_factory=list)
    waited_s: float = 0.0
    """Before all of them, for the machine to keep time."""

    @property
    def retries(self) -> int:
        """How many there were for other reasons than a missing subflow."""
        return len(self.late) + len(self.failed) + len(self.disturbed)

    @property
    def number(self) -> int:
        """How many there were."""
        return self.retries + len(self.incomplete)

    def again(self, run: Run) -> str:
        """Why the run has to be made again; nothing if it stands."""
        lacking = run.detail.get(MISSING_SUBFLOW, False)
        if self.retries >= MAX_RETRIES and not lacking:
            return ""
        share = run.detail.get(FOREIGN) or 0.0
        if lacking:
            if self.failed_retries and len(self.incomplete) < SUBFLOW_RETRIES:
                self.incomplete.append(run.detail["error"])
                return "it lacked a subflow"
        elif "error" in run.detail:
            if len(self.failed) < self.failed_retries:
                self.failed.append(run.detail["error"])
                return "it failed"
        elif run.void:
            if len(self.late) < self.late_retries:
                self.late.append(run.detail.get("worst_lateness_ms"))
                return "the emulator was late"
        elif share > MOST:
            self.disturbed.append(share)
            return f"other programs used {share:.0%} of the processors"
        return ""

    def shown(self) -> dict[str, Any]:
        """For the manifest: only what there was."""
        failed = self.incomplete + self.failed
        found: dict[str, Any] = {"void_before_ms": self.late, "failed_before": failed}
        found |= {"disturbed_before": self.disturbed, "waited_s": round(self.waited_s, 1)}
        return {name: value for name, value in found.items() if value}
