"""The report: an index of all experiments, claims and goals, and a page for each experiment."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from matplotlib.figure import Figure

from sumrate.report.lab import figures
from sumrate.report.lab.canvas import drawing, save
from sumrate.report.lab.palette import Style, styles
from sumrate.report.lab.result import Result, Setting, excluded, read_result
from sumrate.report.lab.words import NOTHING, heading, plain, prose, quantities, shown
from sumrate.verdict.metrics import Metric, find
from sumrate.verdict.model import BESIDE, JUDGED, Demand, Entry, is_performance
from sumrate.verdict.words import said

DRAWN = (
    "goodput_mbps", "sum_ratio", "ideal_ratio", "longest_stall_ms", "in_order_delay_p99_ms",
    "blackout_stall_ms", "recovery_ms", "delivery_delay_p99_ms", "delivery_delay_max_ms",
    "beside_mbps", "model_ratio", "split_error", "aggregation_benefit",
    "aggregation_benefit_mean", "padhye_ratio", "padhye_full_ratio", "onload_over_wifi",
    "onload_over_wigig", "git_clone_ms", "packages_ms", "key_ms", "key_p95_ms", "pause_share",
    "psnr_db", "viewport_psnr_db", "viewport_missing_share", "play_stalled_share", "play_mbps",
    "message_p50_ms", "message_p99_ms", "pooled_message_p999_ms", "message_lost_share",
    "jain", "median_index", "snr_db", "mini_slots", "estimated_clients", "trainings", "share",
    "rate_mbps", "ratio",
)  # fmt: skip
"""Metrics that are drawn, where they were measured, in this order."""
MOST_DRAWN = 6
"""Metrics in figures and tables."""
MOST_COLUMNS = 5
"""Metrics of one table, so that it fits the width of a printed page."""
PER_FIGURE = 6, 3
"""Settings of a figure of distributions, and of one of goodput against time."""
MARKS = {
    "holds": "✓ holds",
    "fails": "✗ does not hold",
    "depends": "± holds in part",
    "not-run": f"{NOTHING} not run",
    "reported": f"{NOTHING} figure only",
    "unmeasured": f"{NOTHING} not measured here",
}
COUNTED = {
    "holds": "hold",
    "fails": "do not hold",
    "depends": "hold in part",
    "not-run": "not run",
    "reported": "figures only",
    "unmeasured": "not measured here",
}
DOCUMENTS = {
    "D0": "“802.11ad in an evolving Wi-Fi network”",
    "D1": "Lim and Valdez, “MPTCP Wireless Performance”",
    "D2": "Saha et al., MobiCom 2017 poster on MPTCP over 60 and 5 GHz",
    "D3": "Saha, Garg and Koutsonikolas, “TCP Performance in Indoor IEEE 802.11ad WLANs”",
    "D4": "Srinivasan, PhD thesis, Portland State University, 2024",
}
TEMPLATES = Path(__file__).with_name("templates")
DOTS = "Dots are medians, lines span the least and the largest repetition."
CDF = ("Distribution of the goodput in 100 ms samples of all repetitions, without the first and "
       "the last half second. Further right is better.")  # fmt: skip
TIME = "Goodput in 100 ms samples, of the repetition in which Sumrate has its median goodput."
SUBFLOWS = " Thin lines are the subflows."
SPLIT = ("Share of each download's bytes that came by {}, in bins of 12 %, the last of 4 %; of "
         "downloads above 10 MB.")  # fmt: skip


@cache
def environment() -> Environment:
    """The templates, with the words that they use."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {"prose": prose, "shown": shown, "heading": heading, "counts": counts,
                      "beside": beside, "said": said}  # fmt: skip
    found.globals |= {"MARKS": MARKS, "DOCUMENTS": DOCUMENTS}
    return found


@dataclass(frozen=True)
class Job:
    """The inputs of a page."""

    result: Path
    folder: Path
    index: str
    """Name of the index."""
    entries: tuple[Entry, ...]
    """The claims and goals that the experiment has checks of."""
    before: str
    after: str
    """The experiments whose pages come before and after; empty at the ends."""


def write_report(
    results: Sequence[Path],
    entries: Sequence[Entry],
    output: Path,
    done: Callable[[str], None] = lambda _: None,
) -> None:
    """Writes the index to `output` and, in the folder NAME-pages beside it, a page for each result.

    Args:
        results: folders of runs, or kept tables.
        entries: all claims and goals with their verdicts.
        output: the index, which is written last.
        done: is told the name of each experiment whose page is written.

    Raises:
        RunError: a result cannot be used; the index is not written.

    """
    folder = output.with_name(f"{output.stem}-pages")
    folder.mkdir(parents=True, exist_ok=True)
    names = [path.stem if path.suffix == ".parquet" else path.name for path in results]
    _write(folder / "style.css", (TEMPLATES / "style.css").read_text(encoding="utf-8"))
    jobs = []
    for place, (name, path) in enumerate(zip(names, results, strict=True)):
        own = tuple(e for e in entries if any(check.experiment == name for check in e.checks))
        around = ["", *names, ""]
        jobs.append(Job(path, folder, output.name, own, around[place], around[place + 2]))
    cards = []
    # Threads of polars do not survive a fork.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name, card in zip(names, pool.map(write_page, jobs), strict=True):
            cards.append({"name": name, **card})
            done(name)
    claims = [entry for entry in entries if entry.document != "goal"]
    goals = [entry for entry in entries if entry.document == "goal"]
    tables = [("Performance goals", [e for e in goals if is_performance(e.id)]),
              ("Other goals", [e for e in goals if not is_performance(e.id)])]  # fmt: skip
    tables += [(f"Claims of {DOCUMENTS.get(key, key)}", list(found))
               for key, found in groupby(claims, lambda entry: entry.document)]  # fmt: skip
    text = environment().get_template("index.html").render(
        title="What the experiments show", cards=cards, tables=[t for t in tables if t[1]],
        claims=claims, goals=goals, folder=folder.name, names=set(names),
        style=f"{folder.name}/style.css",
    )  # fmt: skip
    _write(output, text)


def _write(path: Path, text: str) -> None:
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def write_page(job: Job) -> dict[str, str]:
    """Writes the page of one result with its figures; title, question and finding for the index."""
    result = read_result(job.result)
    name = result.manifest.experiment
    looks = styles(scheme.name for scheme in result.schemes)
    with drawing():
        pictures = list(_pictures(job, result, looks))
    demands = [(e, [c for c in e.checks if c.experiment == name]) for e in job.entries]
    text = environment().get_template("experiment.html").render(
        title=result.manifest.title, result=result, manifest=result.manifest, job=job,
        pictures=pictures, finding=finding(result),
        demands=demands,
        tables=list(tables(result)), how=list(how(result)), lists=list(left_out(result)),
        commands=list(commands(result)), repeated=repeated(result), style="style.css",
    )  # fmt: skip
    _write(job.folder / f"{job.result.stem}.html", text)
    checks = counts([check for _, found in demands for check in found])
    return {"title": result.manifest.title, "question": result.manifest.question,
            "finding": finding(result), "checks": checks}  # fmt: skip


def finding(result: Result) -> str:
    """How often Sumrate leads in the first metric in which it has rivals."""
    leads = ((metric, result.leads([metric.name])) for metric in drawn_metrics(result))
    metric, sentence = next((pair for pair in leads if pair[1]), (None, ""))
    return f"{sentence.removesuffix('.')} of {metric.title}." if metric else ""


def counts(entries: Sequence[Entry | Demand]) -> str:
    """How many there are of each verdict."""
    found = Counter(entry.verdict for entry in entries)
    return ", ".join(f"{found[kind]} {words}" for kind, words in COUNTED.items() if found[kind])


def beside(demand: Demand, result: Result) -> list[str]:
    """Values of other schemes, each in as many conditions as it ran in."""
    titles = {scheme.name: scheme.title for scheme in result.schemes}
    of = demand.points.get(JUDGED, 0)
    found = []
    for scheme in (name for name in BESIDE if name in demand.measured):
        number = demand.points.get(scheme, 0)
        part = f" (in {number} of {of})" if number < of else ""
        found.append(f"{titles.get(scheme, scheme)}: {said(demand.measured[scheme])}{part}")
    return found


def drawn_metrics(result: Result) -> list[Metric]:
    """The metrics of DRAWN that were measured and are not 0 everywhere; else the first ones."""
    known = {name for (name, *_), spread in result.spreads.items() if spread.high or spread.low}
    if "ideal_ratio" in known:  # links that go dark back off alone: their sum is no whole
        known.discard("sum_ratio")
    there = {metric.name: metric for metric in result.metrics}
    return [there[name] for name in DRAWN if name in known] or result.metrics[:2]


def _pictures(
    job: Job, result: Result, looks: Mapping[str, Style]
) -> Iterator[tuple[str, str, str]]:
    """Writes the figures; the file, caption and finding of each."""
    stem = job.result.stem
    for old in job.folder.glob(f"{stem}-figure-*.svg"):
        old.unlink()
    metrics = drawn_metrics(result)
    if rows := figures.dot_rows(result, metrics[:1], result.settings):
        save(figures.thumbnail(result, metrics[0], rows, looks), job.folder / f"{stem}-thumb.svg")
    simulated = sorted(result.path.glob("*.svg")) if result.path.is_dir() else []
    for path in simulated:
        file = f"{stem}-figure-{path.name}"
        (job.folder / file).write_bytes(path.read_bytes())
        yield file, "", ""
    if simulated:
        return
    for number, (drawn, caption, sentence) in enumerate(_figures(result, looks), start=1):
        file = f"{stem}-figure-{number}.svg"
        save(drawn, job.folder / file)
        yield file, caption, sentence


def _figures(result: Result, looks: Mapping[str, Style]) -> Iterator[tuple[Figure, str, str]]:
    """The figures of a result, with caption and finding."""
    settings = result.settings
    metrics = drawn_metrics(result)[:MOST_DRAWN]
    for some in _panels(result, metrics):
        rows = figures.dot_rows(result, some, settings)
        sentence = result.leads([metric.name for metric in some])
        for drawn in figures.dot_figures(result, some, rows, looks):
            yield drawn, DOTS, sentence
    if figures.families(result):
        yield figures.sweep_figure(result, metrics[0], settings), "Lines over the size N.", ""
    for words, rows in figures.duration_rows(result, settings).items():
        timed = find(rows[0].cells[0][0])._replace(title=words, unit="ms")
        for drawn in figures.dot_figures(result, [timed], rows, looks):
            yield drawn, f"{words.capitalize()}. {DOTS}", ""
    for metric in result.metrics:
        if metric.name.endswith("_share_mode_percent"):
            link = metric.name.removesuffix("_share_mode_percent")
            drawn = figures.split_figure(result, link, settings, looks)
            yield drawn, SPLIT.format(result.link_title(link)), ""
    sampled = [s for s in settings if any(place == s for place, _ in result.distributions)]
    for nth in range(0, len(sampled), PER_FIGURE[0]):
        some_settings = sampled[nth : nth + PER_FIGURE[0]]
        yield figures.distribution_figure(result, some_settings, looks), CDF, ""
    thin = SUBFLOWS if (result.samples["path"] != "").any() else ""
    for nth in range(0, len(sampled), PER_FIGURE[1]):
        some_settings = sampled[nth : nth + PER_FIGURE[1]]
        yield figures.time_figure(result, some_settings, looks), TIME + thin, ""


def _panels(result: Result, metrics: Sequence[Metric]) -> Iterator[list[Metric]]:
    """The metrics of each figure: those of few settings stand apart, so that no panel is empty."""
    places = {(name, setting) for name, setting, _ in result.spreads}
    covered = Counter(name for name, _ in places)
    often = [m for m in metrics if 2 * covered[m.name] >= covered[metrics[0].name]]
    for some in (often, [metric for metric in metrics if metric not in often]):
        for place in range(0, len(some), figures.PANELS):
            yield some[place : place + figures.PANELS]


def tables(result: Result) -> Iterator[tuple[str, list[Metric]]]:
    """The metrics of each table of medians, with its title: those that can be drawn."""
    names = {metric.name for metric in drawn_metrics(result)[:MOST_DRAWN]}
    grouped = [metric for metric in result.metrics if metric.name in names]
    for title, found in groupby(grouped, lambda metric: metric.group):
        metrics = list(found)
        for first in range(0, len(metrics), MOST_COLUMNS):
            yield title or "Further metrics", metrics[first : first + MOST_COLUMNS]


def how(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Facts about the runs: their names and lines."""
    manifest = result.manifest
    machine = manifest.machine
    busy = manifest.busy_before
    yield "commit", [manifest.commit]
    yield "kernel", [manifest.kernel]
    yield "machine", [quantities(machine) if isinstance(machine, Mapping) else plain(machine)]
    yield "busy before", [f"{busy:.0%} of the processors"] if busy is not None else []
    yield "started", [manifest.started]
    yield "finished", [manifest.finished]
    yield "links", [f"{result.link_title(name)}: {quantities(link)}"
                    for name, link in constant(result).items()]  # fmt: skip
    yield "conditions", list(_conditions(result))
    yield "settings", _noted(result, "settings")
    yield "encodes", [line for key in ("video", "tiles", "player") for line in _noted(result, key)]
    repetitions = {run["repetition"] for run in result.runs}
    yield "repetitions", [f"{len(repetitions)} of each, {len(result.runs)} runs in all"]
    yield "seeds", [plain(manifest.seeds)] if manifest.seeds else []
    yield "command", [" ".join(manifest.argv) or manifest.command]


def constant(result: Result) -> dict[str, dict[str, Any]]:
    """The keys of each link that have the same value in every condition that has the link."""
    found: dict[str, dict[str, Any]] = {}
    for condition in result.conditions:
        for name, link in result.links(condition).items():
            same = found.setdefault(name, link)
            found[name] = {key: value for key, value in same.items() if link.get(key) == value}
    return found


def _conditions(result: Result) -> Iterator[str]:
    """The settings of links that differ from condition to condition."""
    same = constant(result)
    for condition in result.manifest.conditions:
        links = result.links(condition.name)
        parts = []
        for name, link in links.items():
            own = quantities({k: v for k, v in link.items() if k not in same[name]})
            parts += [f"{result.link_title(name)} {own}"] if own else []
        parts += [f"no {result.link_title(name)}" for name in same if name not in links]
        yield f"{condition.title or condition.name}" + (f": {'; '.join(parts)}" if parts else "")


def _noted(result: Result, key: str) -> list[str]:
    """The different notes of this kind that runs have."""
    notes = [run[key] for run in result.runs if isinstance(run.get(key), Mapping)]
    return list(dict.fromkeys(quantities(note) for note in notes))


def left_out(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Headings with the schemes and runs that are in no number, and why."""
    schemes = [scheme for scheme in result.schemes if scheme.missing or scheme.missing_in_part]
    yield "Missing", [f"{scheme.title}: {'; '.join([scheme.missing, *scheme.missing_in_part])}"
                      .replace(": ; ", ": ") for scheme in schemes]  # fmt: skip
    yield "Not run", list(excluded(result))
    counted = [(setting, scheme, *result.counted(setting, scheme.name))
               for setting in result.settings for scheme in result.schemes]  # fmt: skip
    none = [(setting, scheme) for setting, scheme, good, out in counted if out and not good]
    yield "No run counts of", [f"{scheme.title}, {result.setting_title(setting)}"
                               for setting, scheme in none]  # fmt: skip
    failed = [run for run in result.runs if run.get("error")]
    yield "Failed runs", [f"{_run(result, run)}: {run['error']}" for run in failed]
    void = [run for run in result.runs if run.get("void") and not run.get("error")]
    yield "Void runs, beside which the emulator was late", [_late(result, run) for run in void]
    again = [run for run in result.runs if run.get("failed_before")]
    yield (
        "Runs that failed at first and were made again",
        [f"{_run(result, run)}: {'; '.join(map(str, run['failed_before']))}" for run in again],
    )


def repeated(result: Result) -> int:
    """How many void attempts were discarded and run again."""
    return sum(len(run.get("void_before_ms") or ()) for run in result.runs)


def _run(result: Result, run: Mapping[str, Any]) -> str:
    titles = {scheme.name: scheme.title for scheme in result.schemes}
    setting = Setting(*(run[key] for key in Setting._fields))
    scheme = titles.get(run["scheme"], run["scheme"])
    return f"{scheme}, {result.setting_title(setting)}, repetition {run['repetition']}"


def _late(result: Result, run: Mapping[str, Any]) -> str:
    worst = run.get("worst_lateness_ms")
    late = f", late by up to {worst:.1f} ms" if worst is not None else ""
    return _run(result, run) + late


def commands(result: Result) -> Iterator[tuple[str, str]]:
    """The command lines of the first run of each scheme."""
    seen: set[str] = set()
    for run in result.runs:
        if run["scheme"] not in seen and run.get("command"):
            seen.add(run["scheme"])
            yield run["scheme"], "\n".join([*run.get("other_commands", ()), run["command"]])
