"""The table of medians of one experiment, and the lists of what was left out."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from sumrate.report.lab.read import Run, RunKey, Scheme, Setting
from sumrate.report.lab.summary import Summary
from sumrate.report.lab.words import GROUPS, METRICS, NOTHING, Column, prose

MOST_COLUMNS = 5
"""Metrics of one table: with a range under each number no more fit the width of a printed page."""


def median_tables(summary: Summary) -> str:
    """Medians with least and largest for each setting and scheme: rates, then the rest."""
    parts = []
    for title, columns in _groups(summary.columns):
        parts.append(f"<h4>{escape(title)}</h4>{_table(summary, columns)}")
    return "\n".join(parts)


def _groups(columns: Sequence[Column]) -> Iterator[tuple[str, list[Column]]]:
    others = [column.metric for column in columns if column.metric not in METRICS]
    for title, metrics in (*GROUPS.items(), ("Further metrics", others)):
        found = [column for column in columns if column.metric in metrics]
        tables = -(-len(found) // MOST_COLUMNS)
        each = -(-len(found) // max(1, tables))
        for first in range(0, len(found), max(1, each)):
            yield title + (", continued" if first else ""), found[first : first + each]


def _table(summary: Summary, columns: Sequence[Column]) -> str:
    heads = ["scheme", *(column.heading for column in columns), "repetitions"]
    cells = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    bodies = []
    for setting in summary.settings:
        title = escape(summary.setting_title(setting))
        rows = [
            f'<tr><th class="setting" scope="rowgroup" colspan="{len(heads)}">{title}</th></tr>'
        ]
        rows += [
            _row(summary, setting, scheme, columns)
            for scheme in summary.schemes
            if scheme.missing or any(summary.counted(setting, scheme.name))
        ]
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    return (
        f'<div class="scroll"><table class="medians"><thead><tr>{cells}</tr></thead>'
        f"{''.join(bodies)}</table></div>"
    )


def _row(summary: Summary, setting: Setting, scheme: Scheme, columns: Sequence[Column]) -> str:
    name = f'<th scope="row">{escape(scheme.title)}</th>'
    count, out = summary.counted(setting, scheme.name)
    if not count:
        reason = f"missing: {scheme.missing}" if scheme.missing else f"none of {out} runs counts"
        span = len(columns) + 1
        return f'<tr>{name}<td class="missing" colspan="{span}">{escape(reason)}</td></tr>'
    cells = "".join(_cell(summary, setting, scheme, column) for column in columns)
    said = f"{count}<small>{out} left out</small>" if out else str(count)
    return f"<tr>{name}{cells}<td>{said}</td></tr>"


def _cell(summary: Summary, setting: Setting, scheme: Scheme, column: Column) -> str:
    spread = summary.spread(column.metric, setting, scheme.name)
    if spread is None:
        return f"<td>{NOTHING}</td>"
    low, high = column.number(spread.low), column.number(spread.high)
    return f"<td>{column.number(spread.median)}<small>{low} to {high}</small></td>"


def left_out(summary: Summary) -> str:
    """Void runs, failed runs and missing schemes; what is not there is said to be so."""
    run = summary.run
    void = f"{len(run.void)} of {len(run.ran)} runs are void"
    parts = [
        f"<p>{void}: the link emulator was late. They are in no number and no plot.</p>"
        if run.void
        else "<p>No run is void: the link emulator was on time in all of them.</p>"
    ]
    if run.folder.suffix == ".parquet":
        command = f"<code>sumrate-lab run {escape(run.experiment)}</code>"
        parts.append(
            "<p>Curves over time are not drawn: a kept table has no samples. "
            f"{command} leaves them in out/lab.</p>"
        )
    if run.void:
        parts.append(_list(summary, {key: _late(run, key) for key in run.void}))
    repeated = sum(len(entry.get("void_before_ms") or ()) for entry in run.ran.values())
    if repeated:
        parts.append(f"<p>{repeated} void attempts were discarded and run again.</p>")
    again = {key: said for key, entry in run.ran.items() if (said := _failed_before(entry))}
    if again:
        parts.append(f"<p>{len(again)} runs failed at first and were made again:</p>")
        parts.append(_list(summary, again))
    if run.failed:
        parts.append(f"<p>{len(run.failed)} runs failed; they are in no number either.</p>")
        parts.append(_list(summary, run.failed))
    missing = [scheme for scheme in summary.schemes if scheme.missing]
    for scheme in missing:
        name, reason = escape(scheme.title), escape(scheme.missing or "")
        parts.append(f"<p class='void'>Missing: <b>{name}</b> did not run, because: {reason}</p>")
    in_part = [scheme for scheme in summary.schemes if scheme.missing_in_part]
    for scheme in in_part:
        name, reasons = escape(scheme.title), escape("; ".join(scheme.missing_in_part))
        parts.append(f"<p class='void'>Missing in part: <b>{name}</b>, because: {reasons}</p>")
    excluded = list(_excluded(summary))
    parts += [f"<p class='void'>Not run: {prose(reason)}</p>" for reason in excluded]
    uncounted = _uncounted(summary)
    if uncounted:
        items = "".join(f"<li>{escape(item)}</li>" for item in uncounted)
        parts.append(f"<p class='void'>No run counts, so nothing was found, of</p><ul>{items}</ul>")
    if not missing and not in_part and not uncounted and not excluded:
        parts.append("<p>No scheme is missing.</p>")
    return "\n".join(parts)


def _excluded(summary: Summary) -> Iterator[str]:
    """Peers that the experiment leaves out on purpose, and why."""
    manifest = summary.run.manifest
    titles = {scheme.name: scheme.title for scheme in summary.schemes}
    for name, reason in (manifest.get("why_not") or {}).items():
        yield f"{titles.get(name, name)}: {reason}"
    places: dict[tuple[str, str], list[str]] = {}
    for condition in manifest["conditions"]:
        where = condition.get("title") or condition["name"]
        for name, reason in (condition.get("why_not") or {}).items():
            places.setdefault((titles.get(name, name), reason), []).append(where)
    for (title, reason), where in places.items():
        yield f"{title} ({'; '.join(where)}): {reason}"


def _uncounted(summary: Summary) -> list[str]:
    """Schemes that ran in a condition without one run that counts."""
    return [
        f"{scheme.title}, {summary.setting_title(setting)}"
        for setting in summary.settings
        for scheme in summary.schemes
        if summary.counted(setting, scheme.name)[0] == 0 < summary.counted(setting, scheme.name)[1]
    ]


def _late(run: Run, key: RunKey) -> str:
    """How late the emulator was, as the manifest has it."""
    worst = run.ran.get(key, {}).get("worst_lateness_ms")
    return f"emulator late by up to {worst:.1f} ms" if worst is not None else "emulator late"


def _failed_before(entry: Mapping[str, object]) -> str:
    """What went wrong in attempts that were made again, if any did."""
    errors = entry.get("failed_before")
    return "; ".join(map(str, errors)) if isinstance(errors, list) else ""


def _list(summary: Summary, reasons: Mapping[RunKey, str]) -> str:
    titles = {scheme.name: scheme.title for scheme in summary.schemes}
    items = "".join(
        f"<li>{escape(titles.get(key.scheme, key.scheme))}, "
        f"{escape(summary.setting_title(key.setting))}, repetition {key.repetition}: "
        f"{escape(reason)}</li>"
        for key, reason in sorted(reasons.items())
    )
    return f"<ul>{items}</ul>"


def commands(run: Run) -> Iterator[tuple[str, str]]:
    """The command lines of the first run of each scheme."""
    seen: set[str] = set()
    for entry in run.manifest["runs"]:
        scheme = entry["scheme"]
        if scheme not in seen and entry.get("command"):
            seen.add(scheme)
            yield scheme, "\n".join([*entry.get("other_commands", ()), entry["command"]])
