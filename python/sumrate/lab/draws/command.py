"""`sumrate-lab draws`: random conditions of `fbdt-world` on real sockets, and simulated."""

import json
import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from sumrate.lab.draws.conditions import Draw, decoded, why_skipped
from sumrate.lab.draws.sockets import Outcome, run_alone, run_session
from sumrate.lab.experiment.run import FAILURES
from sumrate.lab.namespaces import run_isolated
from sumrate.lab.options import Json
from sumrate.lab.priority import raise_own
from sumrate.lab.programs import RUN_FOLDER, program, require
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import Progress, commit

GOALS = {"median": 0.03, "p90": 0.10}
"""Of the relative difference of goodput over all draws."""
AROUND_S = 6.0
"""Typical time around the work of a run: links, programs, connections, the simulation."""
WORST = 10
Row = dict[str, Any]


Alone = Literal["best", "all", "none"]


def draws(
    seeds: list[int] | None = None,
    /,
    *,
    first: Annotated[int, Parameter(name="--from")] = 0,
    count: int = 20,
    alone: Alone = "best",
    most_mbps: float = 1500.0,
    output: Path = Path("out/draws.jsonl"),
    again: bool = False,
    as_json: Json = False,
) -> int:
    """Compare simulated draws with real sockets.

    Each draw becomes emulated links between two namespaces. The daemons do the draw's work over
    them, and plain TCP does it over one path alone. Draws with short transfers, with messages or
    with a shared bottleneck are skipped, and so are those that are too fast for this machine.
    The same command goes on where it was stopped. Exit status: 0 both goals are reached, 1 one is
    missed or nothing was compared, 2 refused.

    Example: sumrate-lab draws --from 0 --count 60 --output out/draws.jsonl

    Args:
        seeds: Draws by their seeds.
        first: First seed.
        count: Draws without SEED.
        alone: Paths over which plain TCP is compared too.
        most_mbps: Skip draws whose paths carry more in all, in Mbit/s.
        output: File with a line for each draw.
        again: Run draws again that the file has.

    """
    require("ip", "nsenter", "ss", "sysctl")
    program("sumrate")
    program("sumrate-link")
    program("fbdt-world", build="cargo build --release -p fbdt-world")
    chosen = seeds or list(range(first, first + count))
    if not chosen or min(chosen) < 0:
        raise RefusedError("a seed is a number from 0 on, and --count is at least 1")
    output.parent.mkdir(parents=True, exist_ok=True)
    file_of_rows = output.resolve()
    known = {} if again else kept(file_of_rows)
    fresh = [decoded(_world("draw", str(seed), "--json")) for seed in chosen if seed not in known]
    progress = Progress(sum(_seconds(draw, alone, most_mbps) for draw in fresh))

    def body() -> int:
        raise_own()
        for draw in fresh:
            progress.show(f"draw {draw.seed}, {draw.work.kind}, {draw.control}")
            row = _row(draw, alone, most_mbps)
            with file_of_rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            progress.left_s -= _seconds(draw, alone, most_mbps)
            progress.clear()
            if not as_json:
                print(line(row), flush=True)
        return 0

    if status := run_isolated(body) if fresh else 0:
        return status
    rows = kept(file_of_rows)
    found = compared([rows[seed] for seed in chosen])
    print(json.dumps(found, indent=1) if as_json else "\n".join(words(found)))
    return 0 if found["reached"] else 1


def kept(path: Path) -> dict[int, Row]:
    """The last row of each draw in a file; a line that was not written whole is none."""
    rows: dict[int, Row] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(text)
        except ValueError:
            continue
        rows[row["seed"]] = row
    return rows


def _world(*argv: str) -> str:
    done = subprocess.run(
        [program("fbdt-world"), *argv], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):  # 1: the draw misses a goal
        raise RuntimeError(f"fbdt-world {' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def _seconds(draw: Draw, alone: Alone, most_mbps: float) -> float:
    if why_skipped(draw, most_mbps):
        return 0.0
    runs = 1 + {"best": 1, "all": len(draw.paths), "none": 0}[alone]
    return runs * (draw.time_s + AROUND_S + 5 * draw.longest_rtt_s)


def _row(draw: Draw, which: Alone, most_mbps: float) -> Row:
    """One draw on sockets and simulated; a failure becomes a part of the row."""
    row: Row = {"seed": draw.seed, "work": draw.work.kind, "control": draw.control}
    if reason := why_skipped(draw, most_mbps):
        return row | {"skipped": reason}
    row["commit"] = commit()
    try:
        found = _world("judge", "--draws", "1", "--from", str(draw.seed), "--json", "-")
        (verdict,) = json.loads(found)["draws"]
        alone = verdict["alone"]
        key = "latency_p99_ms" if draw.work.kind == "stream" else "goodput_mbps"
        order = sorted(range(len(alone)), key=lambda n: alone[n][key], reverse=key[0] == "g")
        paths = {"best": order[:1], "all": order, "none": []}[which]
        row["session"] = _pair(partial(run_session, draw), verdict["runs"][0])
        row["alone"] = [
            _pair(partial(run_alone, draw, number), alone[number]) | {"path": number}
            for number in paths
        ]
        # How much luck is in the simulated plain TCP over the best path: other losses and jitter.
        luck = [again["goodput_mbps"] for again in (alone[order[0]], *verdict["again"])]
        row["luck"] = round((max(luck) - min(luck)) / max(median(luck), 1e-9), 4)
    except FAILURES as error:
        row["error"] = str(error) or type(error).__name__
    return row


def _pair(measure: Callable[[Path], Outcome], simulated: Mapping[str, Any]) -> Row:
    """A run on sockets, made again once if the emulator was late, beside the simulated one."""
    for _ in range(2):
        shutil.rmtree(RUN_FOLDER, ignore_errors=True)
        outcome = measure(RUN_FOLDER)
        if not outcome.disturbed:
            break
    numbers = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(outcome).items()}
    return {"sockets": numbers, "simulated": {k: simulated[k] for k in numbers if k in simulated}}


def difference(pair: Row) -> float | None:
    """Goodput on sockets relative to the simulated one, minus 1; None where it does not count."""
    sockets, simulated = pair["sockets"], pair["simulated"]
    if sockets["disturbed"] or simulated["goodput_mbps"] <= 0:
        return None
    return float(sockets["goodput_mbps"] / simulated["goodput_mbps"] - 1.0)


def compared(rows: Sequence[Row]) -> Row:
    """How far sockets and simulation differ over all rows."""
    pairs = {
        "session": [(row, row["session"]) for row in rows if "session" in row],
        "plain TCP": [(row, pair) for row in rows for pair in row.get("alone", ())],
    }
    found: Row = {"schema": "sumrate.draws.v1", "goals": GOALS}
    for name, listed in pairs.items():
        sizes = [abs(d) for _, pair in listed if (d := difference(pair)) is not None]
        found[name] = {"draws": len(sizes), "disturbed": len(listed) - len(sizes)}
        if sizes:
            found[name]["median"] = median(sizes)
            found[name]["p90"] = sorted(sizes)[math.ceil(0.9 * len(sizes)) - 1]
    counts = {key: [row[key] for row in rows if key in row] for key in ("skipped", "error")}
    found["skipped"], found["failed"] = Counter(counts["skipped"]), Counter(counts["error"])
    ranked = [(abs(d), row) for row, p in pairs["session"] if (d := difference(p)) is not None]
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    found["worst"] = [row for _, row in ranked[:WORST]]
    own = found["session"]
    found["reached"] = all(own.get(key, 1.0) <= most for key, most in GOALS.items())
    return found


def line(row: Row) -> str:
    """One draw: sockets, simulation and their difference."""
    begin = f"draw {row['seed']:<5} {row['work']:<9} {row['control']:<5} "
    for key in ("skipped", "error"):
        if key in row:
            return f"{begin} {key}: {row[key]}"
    pairs = [("session", row["session"])]
    pairs += [(f"path {pair['path']} alone", pair) for pair in row["alone"]]
    parts = []
    for name, pair in pairs:
        sockets, simulated = pair["sockets"], pair["simulated"]
        size = difference(pair)
        shown = "disturbed" if size is None else f"{size:+.1%}"
        parts.append(
            f"{name} {sockets['goodput_mbps']:.4g} / {simulated['goodput_mbps']:.4g} Mbit/s "
            f"{shown}, "
            f"stall {sockets['stall_ms']:.0f} / {simulated['stall_ms']:.0f} ms"
        )
    order = [row["session"][end]["in_order_p99_ms"] for end in ("sockets", "simulated")]
    parts[0] += f", in order {order[0]:.0f} / {order[1]:.0f} ms"
    return begin + "; ".join(parts) + f" (luck {row['luck']:.1%})"


def words(found: Row) -> list[str]:
    """The comparison in lines."""
    lines = []
    for name in ("session", "plain TCP"):
        own = found[name]
        if own["draws"]:
            lines.append(
                f"{name}, goodput on sockets and simulated, {own['draws']} runs: "
                f"median difference {own['median']:.1%}, nine of ten within {own['p90']:.1%}"
            )
        if own["disturbed"]:
            lines.append(f"{name}: {own['disturbed']} runs were disturbed or carried nothing")
    lines.append("goals: at most 3 % in the median, 10 % in nine of ten")
    for key in ("skipped", "failed"):
        lines += [f"{key} {count}: {reason}" for reason, count in found[key].most_common()]
    lines += ["largest differences (sockets / simulated):"] if found["worst"] else []
    for row in found["worst"]:
        seed = row["seed"]
        again = f"sumrate-lab draws {seed} --again; fbdt-world replay {seed} --scheduler default"
        lines += [line(row), f"    {again}"]
    return lines
