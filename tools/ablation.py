"""Which constants and rules of the sender pay, judged on random conditions.

Each constant of the tables in docs/sender.md is halved and doubled; each rule of
tools/ablation.toml is switched off. Each variant is built in a copy of the tree, and
`fbdt-world outcomes` runs the default scheduler on the same draws as the unmodified code. Draws
are compared by four measures. A variant whose first draws all have the same outcome is not run
on the others.

A microsecond changes the goodput of every sixth draw by more than this threshold, either way
(the rule `luck`). A verdict that this may explain has a ?; more draws, or --until-sure, decide.

Run: python3 tools/ablation.py --draws 2000
Outcomes are kept in out/ablation/runs: an interrupted run goes on, and runs again only what has
changed in the source. `--only suspect_floor --factors 100` plants a change that must show.
Exit status: 0, or 130 if it was interrupted.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import variants
from variant_runs import DOES_NOT_BUILD, Judge, Row, Run
from variants import UNMODIFIED, Variant

ROOT = Path(__file__).resolve().parents[1]
PAYS = 0.01
"""Net share of draws that must lose by one measure without the rule, or with another value."""
SURE = 2.0
"""Standard errors of a net share: a verdict that changes within these has a ?."""


@dataclass(frozen=True)
class Measure:
    """A column of outcomes, and when one is worse than another."""

    name: str
    share: float
    least: float = 0.0
    more_is_better: bool = False

    def is_worse(self, value: float, other: float) -> bool:
        """Whether `value` is worse than `other` by the share, and by the least difference."""
        if self.more_is_better:
            return value < other * (1 - self.share)
        return value - other >= self.least and value > other * (1 + self.share)


MEASURES = (
    Measure("goodput", 0.02, more_is_better=True),
    Measure("stall", 0.10, least=5.0),
    Measure("in-order p99", 0.10, least=2.0),
    Measure("latency p99", 0.10, least=2.0),
)
"""In the order of `Row`."""


@dataclass(frozen=True)
class Result:
    """A variant beside the unmodified code on the same draws."""

    name: str
    change: str
    draws: int
    differ: float
    """Share of draws whose outcome is not exactly the same."""
    lose: dict[str, float]
    win: dict[str, float]
    goodput: float
    """Geometric mean of the ratio."""
    verdict: str
    build_s: float
    judge_s: float


def counted(base: Sequence[Row], rows: Sequence[Row], index: int) -> tuple[int, int]:
    """Draws in which the variant loses, and in which it wins, by one measure."""
    worse = MEASURES[index].is_worse
    pairs = [(old, new) for old, new in zip(base, rows, strict=True)
             if not (old.is_broken or new.is_broken)]  # fmt: skip
    # A run whose invariant broke has no numbers.
    broken = [new.is_broken - old.is_broken for old, new in zip(base, rows, strict=True)]
    lose = sum(worse(new.values[index], old.values[index]) for old, new in pairs)
    win = sum(worse(old.values[index], new.values[index]) for old, new in pairs)
    return lose + broken.count(1), win + broken.count(-1)


def verdict(counts: Iterable[tuple[int, int]], draws: int) -> str:
    """Whether the unmodified code is better by any measure; with a ? where luck may explain it."""
    nets = []
    for lose, win in counts:
        net = (lose - win) / draws
        error = math.sqrt(max((lose + win) / draws - net * net, 1 / draws) / draws)
        nets.append((net, SURE * error))
    if max(nets)[0] >= PAYS:
        words, sure = "pays", any(net - error >= PAYS for net, error in nets)
    elif min(nets)[0] <= -PAYS:
        words = "does not pay: better so"
        sure = any(net + error <= -PAYS for net, error in nets)
    else:
        words, sure = "does not pay", all(abs(net) + error < PAYS for net, error in nets)
    return words if sure else f"{words}?"


def compared(variant: Variant, run: Run, base: Sequence[Row]) -> Result:
    """The variant's outcomes beside those of the unmodified code."""
    draws = min(len(run.rows), len(base))
    rows, base = run.rows[:draws], base[:draws]
    counts = [counted(base, rows, index) for index in range(len(MEASURES))]
    pairs = [(new.values[0], old.values[0]) for new, old in zip(rows, base, strict=True)]
    ratios = [math.log(new / old) for new, old in pairs if new > 0 and old > 0]
    differ = sum(new != old for new, old in zip(rows, base, strict=True))
    share = {m.name: pair for m, pair in zip(MEASURES, counts, strict=True)}
    if run.failure:
        words = run.failure
    elif not differ:
        words = f"does not pay: no effect in {draws} draws"
    else:
        words = verdict(counts, draws)
    return Result(
        variant.name,
        variant.change,
        draws,
        differ / max(draws, 1),
        {name: lose / max(draws, 1) for name, (lose, _) in share.items()},
        {name: win / max(draws, 1) for name, (_, win) in share.items()},
        math.exp(sum(ratios) / len(ratios)) if ratios else 1.0,
        words,
        run.build_s,
        run.judge_s,
    )


def is_sure(run: Run, base: Run) -> bool:
    """Whether more draws would hardly change the verdict."""
    return not compared(UNMODIFIED, run, base.rows).verdict.endswith("?")


def table(results: Iterable[Result]) -> str:
    """A Markdown table; shares of draws in percent, losing / winning."""
    names = [measure.name for measure in MEASURES]
    head = ["constant or rule", "variant", "draws", "differ", *names, "goodput ratio", "verdict"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for result in results:
        cells = [f"`{result.name}`", result.change, f"{result.draws}", f"{result.differ:.1%}"]
        cells += [f"{result.lose[name]:.1%} / {result.win[name]:.1%}" for name in names]
        cells += [f"{result.goodput:.4f}", result.verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chosen(only: Sequence[str], factors: Sequence[float]) -> list[Variant]:
    """All variants, or those of the names.

    Raises ValueError: no constant or rule has a name, or a variant can't be made.
    """
    every = [*variants.of_rules(ROOT), *variants.of_constants(ROOT, factors)]
    for name in only:
        if not any(variant.is_named(name) for variant in every):
            raise ValueError(f"no constant or rule is named {name}: see --list")
    return [v for v in every if not only or any(v.is_named(name) for name in only)]


def judged(judge: Judge, todo: Sequence[Variant], say: Callable[[str], None]) -> list[Result]:
    """All variants beside the unmodified code, with the time left after each."""
    judge.say = say
    base = judge.run(UNMODIFIED)
    if base.failure:
        raise ValueError(f"unmodified code: {base.failure} ({judge.path_of(UNMODIFIED, 'logs')})")
    say(f"unmodified code: {len(base.rows)} draws, {base.judge_s:.0f} s")
    results: list[Result] = []
    spent, fresh = 0.0, 0
    for number, variant in enumerate(todo, 1):
        started, known = time.monotonic(), judge.is_known(variant, base)
        run = judge.run(variant, base)
        results.append(compared(variant, run, base.rows))
        if not known:
            spent, fresh = spent + time.monotonic() - started, fresh + 1
        left = sum(not judge.is_known(later, base) for later in todo[number:])
        each = spent / fresh if fresh else base.judge_s + base.build_s
        failed = f" ({judge.path_of(variant, 'logs')})" if run.failure == DOES_NOT_BUILD else ""
        say(
            f"{number} of {len(todo)}, {each * left / 60:.0f} min left: {variant.title}: "
            f"{results[-1].verdict}{failed}"
        )
    return results


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, metavar="N")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only this constant or rule (can be repeated)")  # fmt: skip
    parser.add_argument("--factors", default=[0.5, 2.0], metavar="LIST",
                        type=lambda text: [float(part) for part in text.split(",")],
                        help="by which constants are multiplied [default: 0.5,2]")  # fmt: skip
    parser.add_argument("--threads", type=int, help="[default: all processors]")
    parser.add_argument("--until-sure", action="store_true",
                        help="run no more draws of a variant than its verdict needs")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--list", action="store_true", help="print all variants and stop")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the ablation; returns the exit status."""
    arguments = parsed(sys.argv[1:] if words is None else words)
    try:
        todo = chosen(arguments.only, arguments.factors)
        if arguments.list:
            print("\n".join(variant.title for variant in todo))
            return 0
        judge = Judge(ROOT, ROOT / "out/ablation", arguments.draws, arguments.threads)
        if arguments.until_sure:
            judge.is_decided = is_sure
        results = judged(judge, todo, lambda line: print(line, file=sys.stderr, flush=True))
    except ValueError as error:
        print(f"ablation: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    print(table(results))
    if arguments.table:
        arguments.table.write_text(table(results) + "\n", encoding="utf-8")
    if arguments.json:
        text = json.dumps([asdict(result) for result in results], indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
