"""`sumrate-lab values NAME`: the medians of every metric of a result, as tables."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from sumrate.lab.experiment.kept import KEPT, path_of, read_kept_runs, read_provenance
from sumrate.lab.experiment.record import Run
from sumrate.lab.options import Json, Kept
from sumrate.lab.refusal import RefusedError
from sumrate.verdict.words import figure

Place = tuple[str, str]
"""A condition, with congestion control and buffers where they differ; and a scheme."""


def values(
    name: str, /, *, metric: tuple[str, ...] = (), results: Kept = KEPT, as_json: Json = False
) -> int:
    """Print the medians of a kept result, with the commit that was measured.

    Prints the median of all repetitions, for each metric, condition and scheme.

    Example: sumrate-lab values blackout --metric blackout_stall_ms

    Args:
        name: Experiment.
        metric: Only this metric (repeatable).

    """
    path = path_of(results, name)
    if not path.is_file():
        raise RefusedError(f"no kept result {path}: `sumrate-lab verdicts` names those there are")
    found = medians(read_kept_runs(path))
    if unknown := [name for name in metric if name not in found]:
        raise RefusedError(f"{path} has no {', '.join(unknown)}; it has {', '.join(sorted(found))}")
    chosen = {name: found[name] for name in metric or sorted(found)}
    origin = read_provenance(path)
    if as_json:
        rows = [
            {"metric": title, "condition": condition, "scheme": scheme, "median": value}
            for title, of in chosen.items()
            for (condition, scheme), value in of.items()
        ]
        print(json.dumps({"origin": origin, "values": rows}, indent=1, ensure_ascii=False))
        return 0
    print(f"{origin['command']}, {origin['started'][:10]}, commit {origin['commit'][:10]}")
    for title, of in chosen.items():
        print("\n".join(["", f"{title}:", *table(of)]))
    return 0


def medians(runs: Sequence[Run]) -> dict[str, dict[Place, float]]:
    """Of each metric, over the repetitions that are not void."""
    many = {
        name: len({getattr(run, name) for run in runs}) > 1
        for name in ("congestion_control", "buffers")
    }
    gathered: dict[str, dict[Place, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        more = [getattr(run, name) for name, there in many.items() if there]
        place = (", ".join([run.condition, *more]), run.scheme)
        for metric in run.metrics if not run.void else ():
            gathered[metric.name][place].append(metric.value)
    return {
        metric: {place: statistics.median(found) for place, found in of.items()}
        for metric, of in gathered.items()
    }


def table(of: Mapping[Place, float]) -> Iterator[str]:
    """In Markdown: a line for each condition, a column for each scheme."""
    schemes = list(dict.fromkeys(scheme for _, scheme in of))
    yield f"| condition | {' | '.join(schemes)} |"
    yield f"|---|{'---|' * len(schemes)}"
    for condition in dict.fromkeys(condition for condition, _ in of):
        there = (of.get((condition, scheme)) for scheme in schemes)
        cells = ("-" if value is None else figure(value) for value in there)
        yield f"| {condition} | {' | '.join(cells)} |"
