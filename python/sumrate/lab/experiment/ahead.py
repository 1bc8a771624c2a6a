"""Where a peer has more of what is judged than Sumrate, in the same run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.demands import read_verdicts
from sumrate.lab.experiment.goals import TITLES
from sumrate.lab.experiment.judge import BESIDE, MODES, figure

PEERS = tuple(scheme for scheme in BESIDE if scheme not in MODES)
MARGIN = 0.01
"""What is closer than this to Sumrate's value is alike."""
USUAL = {"cubic", "default"}


@dataclass(frozen=True)
class Ahead:
    """One value of a peer that is better than Sumrate's."""

    goal: str
    statement: str
    where: str
    """Condition, and congestion control and buffers where they are not the usual ones."""
    peer: str
    theirs: float
    own: float
    experiment: str

    def line(self) -> str:
        """As an item of a list."""
        return (
            f"- {self.goal}, {self.statement}, {self.where}: {TITLES[self.peer]} "
            f"{figure(self.theirs)}, Sumrate {figure(self.own)} "
            f"(`sumrate-lab run {self.experiment}`)."
        )


def ahead(results: Path) -> Iterator[Ahead]:
    """Of all goals that are judged, experiment by experiment."""
    for folder in sorted(path.parent for path in results.glob("*/verdicts.json")):
        for verdict in read_verdicts(folder):
            for finding in verdict["findings"] if verdict.get("goal") else ():
                yield from _of(verdict["goal"], finding, folder.name)


def _of(goal: str, finding: Mapping[str, Any], experiment: str) -> Iterator[Ahead]:
    own, wanted = finding["measured"], finding["expected"]
    if own is None or wanted.startswith("at least") == wanted.startswith("at most"):
        return
    keys = (finding["condition"], finding["congestion_control"], finding["buffers"])
    where = ", ".join(key for key in keys if key not in USUAL)
    sign = 1.0 if wanted.startswith("at least") else -1.0
    for peer in PEERS:
        theirs = finding.get("beside", {}).get(peer)
        if theirs is not None and sign * (theirs - own) > MARGIN * abs(own):
            yield Ahead(goal, finding["statement"], where, peer, theirs, own, experiment)
