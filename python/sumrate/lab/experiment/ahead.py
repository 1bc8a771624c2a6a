"""Where a peer has more of what is judged than Sumrate, in the same run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.experiment.goals import TITLES
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.model import Check
from sumrate.lab.experiment.sources import result_names, verdicts_of
from sumrate.verdict.model import JUDGED, PEERS, Finding
from sumrate.verdict.words import figure

MARGIN = 0.01
"""What is closer than this to Sumrate's value is alike."""
MARGIN_DB = 0.1
"""The same of values in dB."""
BYSTANDERS = "beside_mbps"
"""What others keep beside a scheme: who leaves them more is not ahead."""


@dataclass(frozen=True)
class Ahead:
    """One value of a peer that is better than Sumrate's."""

    goal: str
    statement: str
    where: str
    """Condition, and congestion control and buffers where they are not the usual ones."""
    peer: str
    theirs: float | None
    """None where the value itself is Sumrate's over the peer's."""
    own: float
    experiment: str
    decibels: bool = False
    """Whether Sumrate's value over the peer's is a difference in dB."""

    def line(self) -> str:
        """As an item of a list."""
        has = f"{TITLES[self.peer]} {figure(self.theirs or 0.0)}, Sumrate {figure(self.own)}"
        if self.theirs is None:
            has = f"Sumrate has {figure(self.own)} of what {TITLES[self.peer]} has"
        if self.decibels:
            has = f"Sumrate is {figure(abs(self.own))} dB behind {TITLES[self.peer]}"
        return (
            f"- {self.goal}, {self.statement}, {self.where}: {has} "
            f"(`sumrate-lab run {self.experiment}`)."
        )


def ahead(results: Path) -> Iterator[Ahead]:
    """Of all goals that are judged, experiment by experiment."""
    for name in result_names(results):
        checks = {check.statement: check for check in load(name).checks}
        for verdict in verdicts_of(results, name):
            for finding in verdict.findings if verdict.kind == "goal" else ():
                check = checks.get(finding.statement)
                if check is not None and check.value.metric != BYSTANDERS:
                    yield from _of(verdict.id, finding, name, check)
                    yield from _over_peers(verdict.id, finding, name, check)


def _of(goal: str, finding: Finding, experiment: str, check: Check) -> Iterator[Ahead]:
    own, sign = finding.measured, _sign(check)
    if own is None or not sign:
        return
    where = finding.place()
    for peer in PEERS:
        theirs = finding.beside.get(peer)
        margin = MARGIN_DB if check.value.metric.endswith("_db") else MARGIN * abs(own)
        if theirs is not None and sign * (theirs - own) > margin:
            yield Ahead(goal, finding.statement, where, peer, theirs, own, experiment)


def _sign(check: Check) -> float:
    """1 if more is better, -1 if less is; 0 if neither, or a range is wanted."""
    at_least = check.better == "more" or (check.at_least is not None and check.at_most is None)
    at_most = check.better == "less" or (check.at_most is not None and check.at_least is None)
    return float(at_least) - float(at_most)


def _over_peers(goal: str, finding: Finding, experiment: str, check: Check) -> Iterator[Ahead]:
    """Values that are Sumrate's over a peer's."""
    own, sign = finding.measured, _sign(check)
    if own is None or not sign or check.value.scheme != JUDGED:
        return
    for peer in PEERS:
        if not compares_with(check, peer):
            continue
        decibels = check.value.metric.endswith("_db")
        behind = sign * (0.0 - own) > MARGIN_DB if decibels else sign * (1.0 - own) > MARGIN
        if behind:
            where = finding.place()
            yield Ahead(
                goal, finding.statement, where, peer, None, own, experiment, decibels=decibels
            )


def compares_with(check: Check, peer: str) -> bool:
    """Whether the check's value is one over this peer's, or less it in dB."""
    over = check.over is not None and check.over.scheme == peer
    return over or check.value.metric.endswith((f"_over_{peer}", f"_over_{peer}_db"))
