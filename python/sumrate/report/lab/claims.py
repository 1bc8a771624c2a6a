"""The top of the report: which published claims and performance goals hold, and why not."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sumrate.report.lab.read import BrokenRunError, MissingRunError, Run, Verdict
from sumrate.report.lab.words import NOTHING, plain, prose

MARKS = {
    "holds": "✓ holds",
    "fails": "✗ does not hold",
    "depends": "± holds in part",
    "not-run": f"{NOTHING} not run",
    "reported": f"{NOTHING} figure only",
}
COUNTED = {
    "holds": "hold",
    "fails": "do not hold",
    "depends": "hold in part",
    "not-run": "not run",
    "reported": "figures only",
}
"""How many there are of each, in words."""
DOCUMENTS = {
    "D0": "“802.11ad in an evolving Wi-Fi network”",
    "D1": "Lim and Valdez, “MPTCP Wireless Performance”",
    "D2": "Saha et al., MobiCom 2017 poster on MPTCP over 60 and 5 GHz",
    "D3": "Saha, Garg and Koutsonikolas, “TCP Performance in Indoor IEEE 802.11ad WLANs”",
    "D4": "Srinivasan, PhD thesis, Portland State University, 2024",
}
"""The documents of the catalogue."""


NEEDED = ("document", "figure", "published", "claim", "needs")
"""Keys that every claim of the catalogue has."""


@dataclass(frozen=True)
class Claim:
    """A published claim: where it stands, what is published, and what it says."""

    document: str
    figure: str
    published: str
    claim: str
    needs: str
    unmeasured: str = ""
    """What no experiment measures of it, and why: it keeps the claim from holding as a whole."""
    fitted: str = ""
    """What of the model was set so that it comes out: it shows that the model is calibrated."""


def read_claims(path: Path) -> dict[str, Claim]:
    """The catalogue of published claims by id.

    Raises:
        MissingRunError: there is no catalogue.
        BrokenRunError: it is no catalogue.

    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingRunError(path, "there is no such catalogue of claims") from error
    except (OSError, ValueError) as error:
        raise BrokenRunError(path, f"cannot be read as TOML: {error}") from error
    entries: dict[str, dict[str, Any]] = document.get("claims", {})
    found = {}
    for name, entry in entries.items():
        lacking = [key for key in NEEDED if key not in entry]
        if lacking:
            raise BrokenRunError(path, f"claim {name} has no {', '.join(lacking)}")
        texts = {key: str(entry[key]) for key in NEEDED}
        more = {key: str(entry.get(key, "")) for key in ("unmeasured", "fitted")}
        found[name] = Claim(**texts, **more)
    return found


Asked = Mapping[str, Sequence[str]]
"""By claim or goal: the experiments that have a check of it, whether their results are here."""


def verdict_section(
    runs: Sequence[Run], claims: Mapping[str, Claim], asked: Asked = MappingProxyType({})
) -> str:
    """Counts, the tables of goals and claims, and which claims are not here."""
    verdicts = [(run, verdict) for run in runs for verdict in run.verdicts]
    on_claims = [(run, _whole(v, claims)) for run, v in verdicts if v.claim]
    on_goals = [(run, verdict) for run, verdict in verdicts if verdict.goal]
    here = {(verdict.claim or verdict.goal, run.experiment) for run, verdict in verdicts}
    lacking = {
        name: [experiment for experiment in asked.get(name, ()) if (name, experiment) not in here]
        for name, _ in here
    }
    counted = (
        f"{_count('claim', on_claims, claims, lacking)} {_count('goal', on_goals, {}, lacking)}"
    )
    parts = [f"<p class='headline'>{counted}</p>"]
    for heading, wanted in (("Performance goals", True), ("Other goals", False)):
        chosen = [pair for pair in on_goals if is_performance(pair[1].goal) == wanted]
        if chosen:
            rows = "".join(_goal_rows(chosen, lacking))
            parts.append(f"<h2>{heading}</h2>{_table(('goal', 'wanted'), rows)}")
    parts.append("<h2>Published claims</h2>")
    if on_claims:
        parts.append(_table(("claim", "paper says"), "".join(_rows(on_claims, claims, lacking))))
        parts.append(_documents([claims[v.claim] for _, v in on_claims if v.claim in claims]))
    parts.append(_absent({verdict.claim for _, verdict in on_claims}, claims))
    return "\n".join(parts)


def _goal_rows(found: Sequence[tuple[Run, Verdict]], lacking: Asked) -> Iterator[str]:
    """The demands of each goal in the goals' order, then what of it has no result here."""
    for goal in sorted({verdict.goal for _, verdict in found}, key=_natural):
        for run, verdict in found:
            if verdict.goal == goal:
                yield from (_goal_row(run, demand) for demand in demands(verdict))
        yield from (_lacking_row(goal, experiment) for experiment in lacking.get(goal, ()))


def _rows(
    found: Sequence[tuple[Run, Verdict]], claims: Mapping[str, Claim], lacking: Asked
) -> Iterator[str]:
    """What each experiment found on each claim, in the catalogue's order, and who has no result."""
    named = {verdict.claim for _, verdict in found}
    unknown = sorted(named - claims.keys())
    for name in (*(claim for claim in claims if claim in named), *unknown):
        for run, verdict in found:
            if verdict.claim == name:
                yield _claim_row(run, verdict, claims)
        yield from (_lacking_row(name, experiment) for experiment in lacking.get(name, ()))


def _lacking_row(name: str, experiment: str) -> str:
    """A part of a claim or goal whose experiment has no result here: it cannot hold as a whole."""
    return (
        f'<tr class="not-run"><td><b>{escape(name)}</b> another part of it'
        f"<small>{escape(experiment)}</small></td><td>{NOTHING}</td><td>{NOTHING}</td>"
        f'<td class="mark">{MARKS["not-run"]}</td>'
        f"<td>no result of <code>{escape(experiment)}</code> is among these</td></tr>"
    )


def _whole(verdict: Verdict, claims: Mapping[str, Claim]) -> Verdict:
    """The verdict on all that a claim says: a part that nothing measures keeps it from holding."""
    claim = claims.get(verdict.claim)
    if claim is None or not claim.unmeasured:
        return verdict
    kind = "depends" if verdict.verdict == "holds" else verdict.verdict
    return replace(verdict, verdict=kind, cause=f"{verdict.cause} {claim.unmeasured}".strip())


def is_performance(goal: str) -> bool:
    """Whether it is one of P1 to P10, as `sumrate-lab bench` has them."""
    return goal.startswith("P") and goal[1:2].isdigit()


def _natural(goal: str) -> tuple[bool, int, str]:
    """By number."""
    digits = "".join(letter for letter in goal if letter.isdigit())
    return not digits, int(digits or 0), goal


def demands(verdict: Verdict) -> Iterator[Verdict]:
    """A goal's demands one by one, each with its own causes."""
    statements = dict.fromkeys(finding.get("statement") for finding in verdict.findings)
    if len(statements) < 2:
        yield verdict
        return
    for statement in statements:
        own = tuple(f for f in verdict.findings if f.get("statement") == statement)
        kind = _kind(own)
        yield replace(
            verdict,
            statement=str(statement),
            expected=own[0].get("expected"),
            measured=_span([f for f in own if f.get("measured") is not None]),
            verdict=kind,
            cause=" ".join(dict.fromkeys(f["cause"] for f in own if f.get("cause"))),
            findings=own,
        )


def _kind(findings: Sequence[Mapping[str, Any]]) -> str:
    said = {finding.get("holds") for finding in findings}
    if said == {None}:
        return "not-run" if findings[0].get("expected") else "reported"
    if False in said:
        return "depends" if True in said else "fails"
    return "not-run" if None in said else "holds"


def _span(findings: Sequence[Mapping[str, Any]]) -> str:
    """Least and largest value, the unit, and of how many repetitions where those are few."""
    if not findings:
        return ""
    values = [finding["measured"] for finding in findings]
    unit = findings[0].get("unit", "")
    span = f"{_range(values)} {unit}".rstrip()
    few = _few(findings)
    return f"{span} ({few})" if few else span


def _range(values: Sequence[float]) -> str:
    """Least and largest, or the one that both are."""
    low, high = (f"{v:,.0f}" if abs(v) >= 1e4 else f"{v:.4g}" for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _few(findings: Sequence[Mapping[str, Any]]) -> str:
    """How many repetitions count, where they are fewer than the experiment has; else nothing."""
    of = max(finding.get("repetitions", 0) for finding in findings)
    counted = [finding.get("counted", of) for finding in findings]
    least, most = min(counted), min(max(counted), of)
    if least >= of:
        return ""
    return f"{least if least == most else f'{least} to {most}'} of {of} repetitions"


def _count(
    word: str,
    verdicts: Sequence[tuple[Run, Verdict]],
    claims: Mapping[str, Claim],
    lacking: Asked,
) -> str:
    if not verdicts:
        return f"No check of a {word} is in these results."
    found: dict[str, set[str]] = {}
    for _, verdict in verdicts:
        name = verdict.claim or verdict.goal
        missing = {"not-run"} if lacking.get(name) else set()
        found.setdefault(name, missing).add(verdict.verdict)
    counted = Counter(_together(kinds) for kinds in found.values())
    holding = [claims[name] for name in found.keys() & claims.keys()
               if _together(found[name]) == "holds"]  # fmt: skip
    fitted = sum(bool(claim.fitted) for claim in holding)
    states = ", ".join(
        f"<b>{counted[kind]}</b> {COUNTED[kind]}" for kind in COUNTED if counted[kind]
    )
    note = f" Of those that hold, <b>{fitted}</b> were fitted: the model is calibrated by them."
    return f"{word.capitalize()}s that were checked: {states}.{note if fitted else ''}"


def _together(kinds: set[str]) -> str:
    """One verdict of what several experiments found about one claim or goal."""
    if {"fails", "depends"} & kinds:
        return "depends" if {"holds", "depends"} & kinds else "fails"
    return next((kind for kind in ("not-run", "holds") if kind in kinds), "reported")


def _table(first: tuple[str, str], rows: str) -> str:
    heads = (*first, "measured", "holds or not", "why")
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<div class="scroll"><table class="verdicts"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _documents(claims: Sequence[Claim]) -> str:
    named = sorted({claim.document for claim in claims} & DOCUMENTS.keys())
    text = "; ".join(f"{name}: {escape(DOCUMENTS[name])}" for name in named)
    return f"<p><small>{text}.</small></p>" if text else ""


def _claim_row(run: Run, verdict: Verdict, claims: Mapping[str, Claim]) -> str:
    claim = claims.get(verdict.claim)
    if claim is None:
        said, published = "is not in the catalogue of claims", NOTHING
    else:
        said, published = claim.claim, f"{claim.published} ({claim.document}, {claim.figure})"
    first = f"<b>{escape(verdict.claim)}</b> {escape(said)}"
    if claim is not None and claim.fitted:
        first += f"<small>fitted: {escape(claim.fitted)}</small>"
    parts = [_demand(part) for part in demands(verdict)]
    if len(parts) == 1:
        return _row(run, verdict, first, escape(published))
    return _row(run, replace(verdict, statement=""), first, escape(published), "".join(parts))


def _goal_row(run: Run, verdict: Verdict) -> str:
    first = f"<b>{escape(verdict.goal)}</b> {prose(verdict.statement)}"
    measured = escape(plain(verdict.measured)) + "".join(_beside(run, verdict))
    return _row(run, verdict, first, escape(plain(verdict.expected)), measured)


def _beside(run: Run, verdict: Verdict) -> Iterator[str]:
    """What other schemes of the same run have of it, each in as many conditions as it ran in."""
    titles = {scheme.name: scheme.title for scheme in run.schemes}
    found: dict[str, list[float]] = {}
    for finding in verdict.findings:
        for scheme, value in finding.get("beside", {}).items():
            found.setdefault(scheme, []).append(value)
    of = sum(finding.get("measured") is not None for finding in verdict.findings)
    for scheme, values in found.items():
        part = f" (in {len(values)} of {of})" if len(values) < of else ""
        said = _range(values)
        yield f"<small>{escape(titles.get(scheme, scheme))}: {said}{part}</small>"


def _demand(part: Verdict) -> str:
    """What a claim's check measured, and what it is."""
    return f"{escape(plain(part.measured))}<small>{prose(part.statement)}</small>"


def _row(run: Run, verdict: Verdict, first: str, second: str, measured: str = "") -> str:
    wanted = verdict.claim and not measured and verdict.expected not in (None, "")
    measured = measured or escape(plain(verdict.measured))
    if wanted:
        measured += f"<small>wanted: {escape(plain(verdict.expected))}</small>"
    why = [] if verdict.goal and not verdict.claim else [verdict.statement]
    cause = f"Cause, as found in the kept result: {verdict.cause}" if verdict.cause else ""
    why = [prose(text) for text in (*why, cause, *_exceptions(verdict)) if text]
    link = f'<small><a href="#{anchor(run)}">{escape(run.experiment)}</a></small>'
    return (
        f'<tr class="{verdict.verdict}"><td>{first}{link}</td><td>{second}</td>'
        f'<td>{measured}</td><td class="mark">{MARKS[verdict.verdict]}</td>'
        f"<td>{'<br>'.join(why) or NOTHING}</td></tr>"
    )


def _exceptions(verdict: Verdict) -> Iterator[str]:
    """Where it does not hold although it holds elsewhere, and where it was not measured."""
    for words, holds in (("fails in", False), ("not measured in", None)):
        found = dict.fromkeys(
            _where(finding)
            for finding in verdict.findings
            if finding.get("holds") is holds
            and (holds is False or finding.get("measured") is None)  # else it is only reported
        )
        if found and verdict.verdict != "holds":
            yield f"{words}: {'; '.join(found)}"


def _where(finding: Mapping[str, Any]) -> str:
    keys = ("condition", "congestion_control", "buffers")
    where = ", ".join(str(finding[key]) for key in keys if finding.get(key))
    measured = finding.get("measured")
    if measured is None:
        return where
    notes = (f"{measured:.4g}", _few([finding]))
    return f"{where} ({', '.join(note for note in notes if note)})"


def anchor(run: Run) -> str:
    """Where an experiment's section stands on the page."""
    return "experiment-" + "".join(c if c.isalnum() else "-" for c in run.experiment)


def _absent(covered: set[str], claims: Mapping[str, Claim]) -> str:
    absent: dict[str, list[str]] = {}
    for name, claim in claims.items():
        if name not in covered:
            absent.setdefault(claim.needs, []).append(name)
    if not absent:
        return f"<p>All {len(claims)} claims of the catalogue are checked above.</p>"
    count = sum(len(names) for names in absent.values())
    items = "".join(
        f"<dt>{escape(needs)} ({len(names)})</dt><dd>{', '.join(map(_unbroken, names))}</dd>"
        for needs, names in absent.items()
    )
    return (
        f"<p>Of the {len(claims)} claims of the catalogue, {count} have no check in these "
        f"results, by the part of the project that they need:</p><dl class='absent'>{items}</dl>"
    )


def _unbroken(name: str) -> str:
    return f"<span>{escape(name)}</span>"
