"""What all trials of one fault came to, and what of it must not be."""

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sumrate.lab.faults.fault import Fault
from sumrate.lab.faults.trial import Books, Trial
from sumrate.lab.results import rounded

LEAST_RATIO = 0.9
"""Of its goodput before the fault another client keeps so much at least."""
ROUNDS_JUDGED = 3
"""Goodput is judged by its median over so many trials at least: one late second is none."""


@dataclass
class Account:
    """What all trials of one fault came to."""

    trials: list[Trial] = field(default_factory=list)
    delivered: int = 0
    lost: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """By client: transfers that failed while the fault was made, and whose programs were told."""
    broken: Counter[str] = field(default_factory=Counter)
    """Those of them that had begun."""
    descriptors: dict[str, int] = field(default_factory=dict)
    """By process: the most that were open at once while the fault was made."""

    def enter(self, trial: Trial, delivered: int, books: Books) -> None:
        """Adds a trial, what was delivered meanwhile, and the transfers that ended."""
        self.trials.append(trial)
        self.delivered += delivered
        self.enter_failures(books)

    def enter_failures(self, books: Books) -> None:
        """Adds transfers that ended in a trial that is not counted as one."""
        self.lost += books.lost
        self.failed += books.failed
        self.broken += books.broken

    def enter_descriptors(self, most: Mapping[str, int]) -> None:
        """Adds how many descriptors each process had open at most, with or without effect."""
        for name, count in most.items():
            self.descriptors[name] = max(count, self.descriptors.get(name, 0))

    def beyond(self, fault: Fault) -> list[str]:
        """Processes that had more descriptors open than this very fault takes."""
        return [
            f"{fault.name}: {name} had {count} descriptors open, at most "
            f"{fault.most_descriptors(name)} are expected"
            for name, count in sorted(self.descriptors.items())
            if count > fault.most_descriptors(name)
        ]

    def others_ratio(self) -> float:
        """Median over the trials of what another client kept of its goodput."""
        return statistics.median(trial.others_ratio for trial in self.trials)

    def harmed(self, fault: Fault) -> list[str]:
        """Clients whose transfers failed although the fault does not permit that."""
        broken = self.broken if fault.only_refuses else Counter[str]()
        return [
            f"{fault.name}: {count} transfers of {client} failed; the fault may break those of "
            f"{fault.may_break}"
            for client, count in sorted(self.failed.items())
            if count and not fault.permits(client)
        ] + [
            f"{fault.name}: {count} transfers of {client} were broken; it may only refuse new ones"
            for client, count in sorted(broken.items())
        ]

    def slowed(self, fault: Fault) -> list[str]:
        """Whether another client kept too little of its goodput; empty where too few were made."""
        if fault.stops_everybody or len(self.trials) < ROUNDS_JUDGED:
            return []
        ratio = self.others_ratio()
        if ratio >= LEAST_RATIO:
            return []
        return [
            f"{fault.name}: the other client kept {ratio:.0%} of its goodput (median of "
            f"{len(self.trials)}), at least {LEAST_RATIO:.0%} is wanted"
        ]

    def row(self, fault: Fault) -> dict[str, Any]:
        """The fault's entry in the report; times in milliseconds."""
        ratios = [t.others_ratio for t in self.trials]
        return {
            "what": fault.what,
            "injected": len(self.trials),
            "bytes": self.delivered,
            "bytes_lost": self.lost,
            "transfers_failed": self.failed.total(),
            "transfers_failed_by_client": dict(self.failed),
            "may_break": fault.may_break,
            "most_descriptors": self.descriptors,
            "permitted_descriptors": {
                name: fault.most_descriptors(name) for name in self.descriptors
            },
            "longest_stall_ms": rounded(max(t.stall_s for t in self.trials) * 1e3, 0),
            "longest_recovery_ms": rounded(max(t.recovery_s for t in self.trials) * 1e3, 0),
            "stops_everybody": fault.stops_everybody,
            "others_ratio": None
            if fault.stops_everybody
            else {"median": rounded(self.others_ratio()), "least": rounded(min(ratios))},
            "trials": [asdict(t) for t in self.trials],
        }
