"""The report: a page that lists all experiments with what they show, and a page for each."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType

from sumrate.report.lab.bars import bar_columns, bar_figures, whiskered
from sumrate.report.lab.canvas import Numbered
from sumrate.report.lab.claims import Asked, anchor, read_claims, verdict_section
from sumrate.report.lab.curves import cdf_figures, time_figures
from sumrate.report.lab.palette import Style, styles
from sumrate.report.lab.read import Documents, Run, Setting, read_run
from sumrate.report.lab.summary import Summary, summarise
from sumrate.report.lab.sweeps import sweep_figures
from sumrate.report.lab.tables import commands, left_out, median_tables
from sumrate.report.lab.words import plain, quantities
from sumrate.report.lab.workloads import duration_figures, split_figures
from sumrate.report.style import page

BARS = (
    ("goodput_mbps", "sum_ratio", "ideal_ratio"),
    ("longest_stall_ms", "in_order_delay_p99_ms"),
    ("blackout_stall_ms", "recovery_ms"),
    ("delivery_delay_p99_ms", "delivery_delay_max_ms"),
    ("beside_mbps",),
    ("model_ratio", "split_error"),
    ("aggregation_benefit", "aggregation_benefit_mean"),
    ("padhye_ratio", "padhye_full_ratio"),
    ("onload_over_wifi", "onload_over_wigig"),
    ("git_clone_ms", "packages_ms"),
    ("key_ms", "key_p95_ms"),
    ("pause_share", "psnr_db"),
    ("viewport_psnr_db", "viewport_missing_share"),
    ("play_stalled_share", "play_mbps"),
    ("message_p50_ms", "message_p99_ms"),
    ("pooled_message_p999_ms", "message_lost_share"),
)
"""Metrics drawn as bars, two side by side."""
WORKLOADS = ("files", "pages", "daily")
"""Methods with so many metrics that their tables are folded."""
MOST_TABLES = 3
"""With more of them an experiment's are folded."""
SUBFLOWS = " Thin lines are the subflows, as the receiver's capture has them."
CSS = """
small { display: block; color: var(--soft); font-size: .8125rem; line-height: 1.3; }
a { color: inherit; } h3 { font-size: 1rem; margin: 2rem 0 .5rem; }
h4 { font-size: .9375rem; margin: 1.25rem 0 .25rem; }
ul.experiments { padding-left: 1rem; } ul.experiments li { margin-bottom: .75rem; }
nav a { margin-right: 1rem; } details > summary { cursor: pointer; margin: 2rem 0 1rem; }
section { border-top: 2px solid var(--ink); margin-top: 1rem; }
section > h2 { font-size: 1.375rem; margin-top: 1rem; }
table { font-size: .9375rem; line-height: 1.35; } td { vertical-align: top; }
table.medians th, table.medians td { padding: .25rem .5rem; }
table.medians small { white-space: nowrap; }
table.medians th[scope=row] { white-space: normal; min-width: 7rem; }
th[scope=row] { font-weight: 400; text-align: left; padding-left: .75rem !important; }
th.setting { text-align: left; padding-top: .75rem; }
td.missing { text-align: left; font-style: italic; }
table.verdicts th, table.verdicts td { text-align: left; padding: .375rem .625rem .375rem 0; }
table.verdicts { width: 100%; table-layout: fixed; min-width: 44rem; }
table.verdicts td:first-child { white-space: normal; }
table.verdicts td { overflow-wrap: break-word; }
table.verdicts th:nth-child(1) { width: 27%; } table.verdicts th:nth-child(2) { width: 13%; }
table.verdicts th:nth-child(3) { width: 17%; } table.verdicts th:nth-child(4) { width: 13%; }
table.verdicts td.mark { font-weight: 600; padding-right: 1.2rem; }
tr.fails td.mark { text-decoration: underline; text-underline-offset: .2em; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
p.headline { max-width: none; }
figure svg { max-width: 54rem; min-width: 34rem; margin: 0 auto; }
figure img { display: block; width: 100%; max-width: 54rem; margin: 0 auto; }
figcaption { max-width: 54rem; margin: .25rem auto 0; font-size: .9375rem; }
ul { margin: .25rem 0; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
dl.absent { font-size: .8125rem; }
dl.absent span { white-space: nowrap; }
@media print {
  @page { size: A4; margin: 12mm; }
  :root { color-scheme: light; --paper: #ffffff; --ink: #000000; --soft: #333333;
    --rule: #c4cad0; --shade: #eceff2; }
  body { padding: 0; max-width: none; font-size: 10pt; }
  p { max-width: none; } table { font-size: 9pt; } small, pre, dl.absent { font-size: 9pt; }
  th, td, table.medians th, table.medians td { padding: .15rem .4rem; }
  table.verdicts { min-width: 0; }
  .scroll, figure, pre { overflow: visible; }
  figure svg, figure img { min-width: 0; max-width: 7.2in; }
  figure, tr, pre { break-inside: avoid; } h2, h3, h4 { break-after: avoid; }
  table.medians tbody { break-inside: avoid; }
  table.medians { font-size: 8pt; } table.medians small { font-size: 7.5pt; }
  table.medians th[scope=row] { min-width: 5rem; }
}
"""


def write_report(
    results: Sequence[Path],
    claims: Path,
    output: Path,
    said: Callable[[str], None] = lambda _: None,
    asked: Asked = MappingProxyType({}),
    *,
    judged: Mapping[Path, Documents] = MappingProxyType({}),
) -> None:
    """Writes a page about all results, and beside it a folder with a page for each.

    Every page is a self-contained HTML file and is written whole or not at all; `output` is the
    last. The others are in the folder `NAME-pages`.

    `judged` has the verdicts of results whose own file of verdicts does not count.
    `said` is told what is drawn next, as that takes about a second for each. `asked` has the
    experiments that check each claim and goal: one that has no result here keeps it from holding.

    Raises:
        RunError: a folder, or the catalogue of claims, cannot be used; nothing is written.

    """
    runs = [read_run(result, judged.get(result)) for result in results]
    catalogue = read_claims(claims)
    summaries = [summarise(run) for run in runs]
    pages = output.with_name(f"{output.stem}-pages")
    pages.mkdir(parents=True, exist_ok=True)
    for place, summary in enumerate(summaries):
        said(f"{place + 1} of {len(summaries)}: {summary.run.experiment}")
        beside = {-1: "previous", 1: "next"}
        links = [(f"../{output.name}", "all experiments")]
        links += [(f"{anchor(runs[place + step])}.html", word) for step, word in beside.items()
                  if 0 <= place + step < len(runs)]  # fmt: skip
        numbered = Numbered()
        body = _nav(links) + _experiment(summary, numbered)
        title = f"Sumrate: {summary.run.title}"
        _write(pages / f"{anchor(summary.run)}.html", page(title, body, CSS + numbered.css()))
    found = re.sub(
        r'href="#(experiment-[^"]+)"', rf'href="{pages.name}/\1.html"',
        verdict_section(runs, catalogue, asked),
    )  # fmt: skip
    body = "\n".join(
        [
            "<h1>What the experiments show</h1>",
            f"<ul class='experiments'>{''.join(_listed(s, pages.name) for s in summaries)}</ul>",
            "<details><summary>Every claim and goal, and whether it holds</summary>",
            f"{found}</details>",
        ]
    )
    _write(output, page("Sumrate: what the experiments show", body, CSS))


def _write(path: Path, text: str) -> None:
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _nav(links: Sequence[tuple[str, str]]) -> str:
    parts = (f'<a href="{escape(where)}">{escape(word)}</a>' for where, word in links)
    return f"<nav>{' '.join(parts)}</nav>"


def _listed(summary: Summary, folder: str) -> str:
    """An experiment in the list: its title, its question, and who leads."""
    run = summary.run
    _, settings = summary.variants()[0] if summary.settings else ("", [])
    leads = (summary.leads(metrics, settings) for metrics in BARS)
    return (
        f'<li><a href="{folder}/{anchor(run)}.html">{escape(run.title)}</a>'
        f"<br>{escape(run.question)} <b>{escape(next(filter(None, leads), ''))}</b></li>"
    )


def _experiment(summary: Summary, numbered: Numbered) -> str:
    run = summary.run
    looks = styles(scheme.name for scheme in summary.schemes)
    simulated = run.manifest.get("method") == "simulation"
    drawn = _pictures(run, numbered) if simulated else _figures(summary, looks, numbered)
    figures, medians = "\n".join(drawn), median_tables(summary)
    long = medians.count("<table") > MOST_TABLES
    if simulated or long or run.manifest.get("method") in WORKLOADS:
        medians = f"<details><summary>Every value</summary>{medians}</details>"
    return f"""<section id="{anchor(run)}">
<h2>{escape(run.title)}</h2>
<p class="headline">{escape(run.question)}</p>
<h3>Plots</h3>
{figures or "<p>Nothing was measured that could be drawn.</p>"}
<h3>Medians</h3>
<p>Median, and below it the least and the largest value. Void runs are left out.</p>
{medians}
<h3>How it was run</h3>
{_how(summary)}
{left_out(summary)}
{_commands(summary)}
</section>"""


def _how(summary: Summary) -> str:
    run, manifest = summary.run, summary.run.manifest
    machine = manifest.get("machine")
    repetitions = {key.repetition for key in run.ran}
    listed: list[tuple[str, str]] = [
        ("commit", plain(manifest.get("commit"))),
        ("kernel", plain(manifest.get("kernel"))),
        ("machine", quantities(machine) if isinstance(machine, Mapping) else plain(machine)),
        ("busy before", _share(manifest.get("busy_before"))),
        ("started", plain(manifest.get("started"))),
        ("finished", plain(manifest.get("finished"))),
        ("links", "\n".join(_links(summary))),
        ("conditions", "\n".join(_conditions(summary))),
        ("congestion control", _joined(s.congestion_control for s in summary.settings)),
        ("buffers", _joined(s.buffers for s in summary.settings)),
        ("settings", "\n".join(_settings(run))),
        ("encodes", "\n".join(_encodes(run))),
        ("schemes", "; ".join(scheme.title for scheme in summary.schemes)),
        ("repetitions", f"{len(repetitions)} of each, {len(run.ran)} runs in all"),
        ("seeds", plain(manifest.get("seeds", manifest.get("seed")))),
        ("command", _joined_command(manifest.get("argv"))),
    ]
    cells = "".join(
        f"<dt>{key}</dt><dd>{escape(text).replace(chr(10), '<br>')}</dd>"
        for key, text in listed
        if text
    )
    return f"<dl>{cells}</dl>"


def _share(used: object) -> str:
    """What other programs used of the processors before the first run, where that was looked at."""
    return f"{used:.0%} of the processors" if isinstance(used, float) else ""


def _settings(run: Run) -> Iterator[str]:
    """The settings of the system that runs with each kind of buffers had, where they are kept."""
    found: dict[str, str] = {}
    for key, entry in run.ran.items():
        settings = entry.get("settings")
        if isinstance(settings, Mapping):
            words = ", ".join(f"{name} = {value}" for name, value in settings.items())
            found.setdefault(words, f"{key.setting.buffers} buffers: {words}")
    yield from found.values()


def _encodes(run: Run) -> Iterator[str]:
    """What was encoded for each condition, of its first run, and how sizes were scaled."""
    found: dict[str, str] = {}
    for key, entry in run.ran.items():
        for name in ("video", "tiles", "player"):
            said = entry.get(name)
            if isinstance(said, Mapping):
                condition = key.setting.condition
                found.setdefault(condition, f"{condition}: {quantities(said)}")
    yield from found.values()


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _joined_command(argv: object) -> str:
    return " ".join(map(str, argv)) if isinstance(argv, list) else plain(argv)


def _links(summary: Summary) -> Iterator[str]:
    """What is the same of a link in all conditions."""
    for name, entry in _constant(summary.run).items():
        yield f"{summary.link_title(name)}: {quantities(entry)}"


def _conditions(summary: Summary) -> Iterator[str]:
    """What differs from condition to condition."""
    constant = _constant(summary.run)
    for condition in summary.run.conditions:
        parts = []
        for name, entry in condition.links.items():
            own = {key: value for key, value in entry.items() if key not in constant[name]}
            if words := quantities(own):
                parts.append(f"{summary.link_title(name)} {words}")
        absent = [summary.link_title(name) for name in constant if name not in condition.links]
        parts += [f"no {name}" for name in absent]
        yield condition.title + (f": {'; '.join(parts)}" if parts else "")


def _constant(run: Run) -> dict[str, dict[str, object]]:
    """The keys of each link that have the same value in every condition that has the link."""
    found: dict[str, dict[str, object]] = {}
    for condition in run.conditions:
        for name, entry in condition.links.items():
            same = found.setdefault(name, dict(entry))
            for key in [key for key, value in same.items() if entry.get(key) != value]:
                del same[key]
    return found


def _commands(summary: Summary) -> str:
    titles = {scheme.name: scheme.title for scheme in summary.schemes}
    lines = [f"# {titles.get(name, name)}\n{text}" for name, text in commands(summary.run)]
    if not lines:
        return ""
    text = escape("\n".join(lines))
    return f"<h4>Commands, of the first run of each scheme</h4><pre>{text}</pre>"


def _pictures(run: Run, numbered: Numbered) -> Iterator[str]:
    """What a simulation drew, from its folder."""
    for path in sorted(run.folder.glob("*.svg")):
        yield numbered.picture(path.read_bytes(), f"{run.title}.")


def _unsampled(summary: Summary, settings: Sequence[Setting]) -> str:
    """Who ran but has no samples: programs that measure themselves give a mean only."""
    without = [
        scheme.title
        for scheme in summary.schemes
        if any(summary.counted(s, scheme.name)[0] for s in settings)
        and not any(summary.samples(s, scheme.name) for s in settings)
    ]
    return f" Not drawn, as no samples of them were taken: {', '.join(without)}." if without else ""


def _bars_said(some: bool, others: bool) -> str:
    """What bars and whiskers are, where some have whiskers, and where others have none."""
    spans = "Bars, dots and numbers are medians, whiskers span the least and the largest value."
    whole = (
        "A bar without a whisker is one value of all repetitions together, or all have the same."
    )
    beyond = "» marks what goes beyond the axis."
    return " ".join([*([spans] if some else []), *([whole] if others else []), beyond])


def _figures(summary: Summary, looks: dict[str, Style], numbered: Numbered) -> Iterator[str]:
    title = summary.run.title
    for words, settings in summary.variants():
        where = f"{title}, {words}" if words else title
        for metrics in BARS:
            columns = bar_columns(summary, metrics, settings)
            names = " and ".join(column.title for column in columns)
            said = _bars_said(*whiskered(summary, [c.metric for c in columns], settings))
            first = summary.leads([c.metric for c in columns], settings)
            for drawn in bar_figures(summary, metrics, settings, looks):
                yield numbered.figure(drawn, f"{where}: {names}. {said}", first)
        for drawn, heading in sweep_figures(summary, settings):
            yield numbered.figure(
                drawn,
                f"{where}: {heading} over the size N. Marks are medians, lines span the least and "
                "the largest value.",
            )
        for drawn, said in duration_figures(summary, settings, looks):
            yield numbered.figure(
                drawn,
                f"{where}: {said}. Marks are medians, lines span the least and the largest value. "
                "Lower is better.",
            )
        for drawn, link in split_figures(summary, settings, looks):
            yield numbered.figure(
                drawn,
                f"{where}: the share of each download's bytes that came by {link}, headers and "
                "copies included, in bins of 12 %, the last of 4 %; of downloads above 10 MB.",
            )
        remarks = _unsampled(summary, settings)
        if any(metric == "pause_share" for metric, _, _ in summary.spreads):
            remarks += (
                " A player whose buffer is full reads no faster than it plays: the curve of what "
                "is faster than the video is the player's."
            )
        for drawn in cdf_figures(summary, settings, looks):
            yield numbered.figure(
                drawn,
                f"{where}: distribution of the goodput in 100 ms samples of all repetitions, "
                "without the first and the last half second. Further right is better; it ends "
                "where no scheme has more than one sample in 20 beyond it." + remarks,
            )
        for drawn in time_figures(summary, settings, looks):
            yield numbered.figure(
                drawn,
                f"{where}: goodput against time in 100 ms samples, of the repetition in which "
                "Sumrate has its median goodput, the same for all (of those without it their own)."
                + (SUBFLOWS if summary.run.subflows else "")
                + remarks,
            )
