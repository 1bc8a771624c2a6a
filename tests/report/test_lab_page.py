"""The report on experiments says what the result files say."""

import itertools
import json
import re
import shutil
import statistics
import subprocess
import sys
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from sumrate.report.lab import write_report
from sumrate.report.lab.canvas import Numbered, drawing, new_figure
from sumrate.report.lab.claims import demands
from sumrate.report.lab.palette import INK, PAPER, STYLES
from sumrate.report.lab.read import Verdict, read_run
from sumrate.report.lab.slim import alone
from sumrate.report.lab.summary import summarise
from sumrate.report.lab.tables import MOST_COLUMNS
from sumrate.report.lab.words import quantities
from sumrate.verdict.model import outcome
from tests.report import made_up

SVG = "{http://www.w3.org/2000/svg}"


class Tables(HTMLParser):
    """The cells of every row of every table, as text, the small print after a bar."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._inside = True
            self.rows[-1].append("")
        elif tag in ("small", "br") and self._inside:
            self.rows[-1][-1] += "|"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def values(metric: str, scheme: str, condition: str) -> list[float]:
    return [
        row["value"]
        for row in made_up.rows()[0]
        if (row["metric"], row["scheme"], row["condition"]) == (metric, scheme, condition)
        and (scheme, condition, row["repetition"]) != made_up.VOID
    ]


def rates_row(page: str, scheme: str, condition: str) -> list[str]:
    rows = Tables(page[page.index("<h4>Rates</h4>") :]).rows
    start = rows.index([made_up.CONDITIONS[condition]])
    return next(row for row in rows[start:] if row[0] == made_up.SCHEMES[scheme])


@pytest.mark.parametrize("scheme", made_up.SCHEMES)
@pytest.mark.parametrize("condition", made_up.CONDITIONS)
def test_numbers_are_medians_with_least_and_largest(page: str, scheme: str, condition: str) -> None:
    row = rates_row(page, scheme, condition)
    for place, (metric, digits) in enumerate([("goodput_mbps", 0), ("sum_ratio", 3)], start=1):
        found = values(metric, scheme, condition)
        median = f"{statistics.median(found):.{digits}f}"
        assert row[place] == f"{median}|{min(found):.{digits}f} to {max(found):.{digits}f}"


def test_void_runs_are_left_out_and_said(page: str) -> None:
    assert "9999" not in page
    assert "1 of 40 runs are void" in page
    assert "Kernel MPTCP, Normal, repetition 3: emulator late by up to 24.7 ms" in page
    assert rates_row(page, "mptcp", "normal")[-1] == "4|1 left out"
    assert rates_row(page, "mptcp", "blackout")[-1] == "5"
    assert "8 void attempts were discarded and run again" in page


def test_runs_that_failed_at_first_are_named(page: str) -> None:
    assert "1 runs failed at first and were made again:" in page
    assert "repetition 2: no &lt;page&gt; came" in page


def test_a_scheme_without_a_run_that_counts_is_named(tmp_path: Path, claims: Path) -> None:
    folder = made_up.write_run(tmp_path / "run")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for entry in manifest["runs"]:
        entry["void"] = (entry["scheme"], entry["condition"]) == ("mptcp", "normal")
    path.write_text(json.dumps(manifest), encoding="utf-8")
    write_report([folder], claims, tmp_path / "page.html")
    page = made_up.text_of(tmp_path / "page.html")
    assert (
        "No run counts, so nothing was found, of</p><ul><li>Kernel MPTCP, Normal</li></ul>" in page
    )
    assert rates_row(page, "mptcp", "normal")[1] == "none of 5 runs counts"
    assert rates_row(page, "mptcp", "blackout")[-1] == "5"


def test_a_peer_that_is_left_out_is_shown_with_its_reason(page: str) -> None:
    assert "Not run: aggligator: it is measured <code>&lt;elsewhere&gt;</code>" in page
    assert re.search(r"Not run: Kernel MPTCP \(Normal; [^)]+\): too &lt;late&gt; here", page)


def test_a_missing_scheme_is_shown_with_its_reason(page: str) -> None:
    _, title, reason = made_up.MISSING
    assert f"Missing: <b>{title}</b> did not run, because: {escape(reason)}" in page
    rows = [row for row in Tables(page).rows if row[0] == title]
    assert len(rows) == 3 * len(made_up.CONDITIONS)
    assert {row[1] for row in rows} == {f"missing: {reason}"}
    assert re.findall(r"<text[^>]*>missing</text>", page)


def test_every_verdict_is_shown_with_what_the_paper_says(page: str) -> None:
    rows = {row[0].split()[0]: row for row in Tables(page[: page.index("<section")]).rows}
    marks = {
        "holds": "holds",
        "fails": "does not hold",
        "depends": "holds in part",
        "not-run": "not run",
    }
    for verdict in made_up.verdicts():
        row = rows[verdict.get("claim") or verdict["goal"]]
        assert row[3].split(maxsplit=1)[1] == marks[verdict["verdict"]]
        assert verdict["cause"] in row[4]
        assert verdict["statement"] in row[0] + row[4]
    assert rows["T-4.1b-normal-mptcp"][1] == "about 2300 Mb/s <sum> (D4, Fig. 4.1b)"
    assert rows["T-4.1b-normal-mptcp"][2] == "0.931|wanted: at least 0.9"
    assert rows["T-4.1b-normal-wifi"][4].split("|")[2:] == [
        "fails in: normal (0.25)",
        "not measured in: blackout",
    ]
    assert "fitted: The <sum> was set to it." in rows["T-4.1b-normal-mptcp"][0]
    assert "Of those that hold, <b>1</b> were fitted" in page
    assert "not in the catalogue" in rows["X-unknown"][0]
    assert rows["P5"][1:3] == ["at most 40 ms", "52.5"]
    assert "<dt>access (1)</dt><dd><span>W-7</span></dd>" in page


def test_what_has_no_result_here_keeps_a_claim_from_holding(
    folder: Path, claims: Path, tmp_path: Path
) -> None:
    asked = {
        "T-4.1b-normal-mptcp": ["made-up", "other-study"],
        "P5": ["made-up", "third-study"],
        "P1": ["made-up"],
    }
    write_report([folder], claims, tmp_path / "page.html", asked=asked)
    page = made_up.text_of(tmp_path / "page.html")
    headline = page[page.index("<p class='headline'>") :].partition("</p>")[0]
    assert "Claims that were checked: <b>1</b> hold in part, <b>2</b> not run." in headline
    assert (
        "Goals that were checked: <b>1</b> hold, <b>1</b> do not hold, <b>1</b> not run" in headline
    )
    rows = [row for row in Tables(page[: page.index("<section")]).rows if "another part" in row[0]]
    assert [(row[0].split()[0], row[3]) for row in rows] == [
        ("P5", "\N{EN DASH} not run"),
        ("T-4.1b-normal-mptcp", "\N{EN DASH} not run"),
    ]
    assert "no result of other-study" in rows[1][4]


HELD = (True, False, None)


@pytest.mark.parametrize(
    "held", [held for n in (1, 2, 3) for held in itertools.product(HELD, repeat=n)]
)
def test_demands_are_judged_as_the_laboratory_judges(held: tuple[bool | None, ...]) -> None:
    findings = tuple({"statement": "s", "expected": "at least 1", "holds": h} for h in held)
    other = {"statement": "t", "expected": "at least 1", "holds": True}
    verdict = Verdict("", "P1", "holds", "", "", "s; t", "", (*findings, other))
    assert next(demands(verdict)).verdict == outcome(held)


def test_a_goal_has_its_peers_beside_it(tmp_path: Path, claims: Path) -> None:
    folder = made_up.write_run(tmp_path / "run")
    path = folder / "verdicts.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    common = {"statement": "s", "expected": "at least 1", "holds": True}
    first = {**common, "measured": 1.0, "beside": {"mptcp": 0.5, "tquic": 3.0}}
    second = {**common, "measured": 2.0, "beside": {"mptcp": 0.25}}
    found.append({"goal": "P2", "verdict": "holds", "measured": "1 to 2", "expected": "at least 1",
                  "statement": "s, see `sumrate-lab run <x>`", "cause": "",
                  "findings": [first, second]})  # fmt: skip
    path.write_text(json.dumps(found), encoding="utf-8")
    write_report([folder], claims, tmp_path / "page.html")
    page = made_up.text_of(tmp_path / "page.html")
    (row,) = [r for r in Tables(page[: page.index("<section")]).rows if r[0].startswith("P2 ")]
    assert row[2] == "1 to 2|Kernel MPTCP: 0.25 to 0.5|TQUIC: 3 (in 1 of 2)"
    assert "<code>sumrate-lab run &lt;x&gt;</code>" in page


def test_a_table_of_medians_is_no_wider_than_a_page(page: str) -> None:
    heads = re.findall(r'<table class="medians"><thead>(.*?)</thead>', page)
    assert heads
    assert max(head.count("<th") for head in heads) <= MOST_COLUMNS + 2, "scheme and repetitions"
    shown = [h for head in heads for h in re.findall(r"<th[^>]*>(.*?)</th>", head)]
    measured = {row["metric"] for row in made_up.rows()[0]}
    assert len(shown) - 2 * len(heads) == len(measured), "each metric stands in one table"


def test_links_alone_stand_before_the_schemes(tmp_path: Path) -> None:
    folder = made_up.write_run(tmp_path / "run")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    names = ["sumrate", "wigig", "mptcp", "wifi"]
    manifest["schemes"].sort(key=lambda s: names.index(s["name"]) if s["name"] in names else 9)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    found = [scheme.name for scheme in summarise(read_run(folder)).schemes]
    assert found == ["wifi", "wigig", "sumrate", "mptcp", "tquic"]


def test_a_caption_names_only_what_is_drawn(page: str) -> None:
    captions = re.findall(r"<figcaption>.*?</figcaption>", page)
    bars = [caption for caption in captions if "Bars, dots and numbers are medians" in caption]
    assert any("goodput and sum ratio" in caption for caption in bars)
    assert not any("share of what the links carry" in caption for caption in bars), (
        "no run has an ideal_ratio"
    )


def test_performance_goals_stand_apart_from_others(tmp_path: Path, claims: Path) -> None:
    folder = made_up.write_run(tmp_path / "run")
    path = folder / "verdicts.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    found.append({"goal": "S23", "verdict": "holds", "measured": 1, "expected": "at least 1",
                  "statement": "a rule of a system", "cause": ""})  # fmt: skip
    path.write_text(json.dumps(found), encoding="utf-8")
    write_report([folder], claims, tmp_path / "page.html")
    page = made_up.text_of(tmp_path / "page.html")
    performance, other = page.index("<h2>Performance goals</h2>"), page.index("<h2>Other goals")
    assert performance < page.index("<b>P10</b>") < other < page.index("<b>S23</b>")


def test_goals_are_in_their_order(page: str) -> None:
    places = [page.index(f"<b>{goal}</b>") for goal in ("P1", "P5", "P10")]
    assert places == sorted(places)


def test_how_it_was_run_is_said(page: str) -> None:
    for text in (
        "0123456789abcdef0123456789abcdef01234567",
        "6.12.0-test",
        "2026-11-20T10:00:00+00:00",
        "WiFi: rate 630 Mbit/s, RTT 8 ms, queue 20 ms",
        "&lt;both ways&gt;: WiGig dark 4 to 7 s",
        "5 of each, 40 runs in all",
        "sumrate-lab run made-up",
        "listen --port &lt;5202&gt;\nmeasure --scheme mptcp --cc &lt;cubic&gt;",
    ):
        assert text in page


def drawings(page: str) -> list[ElementTree.Element]:
    """The plots, each element with the style that its class has on the page."""
    looks = dict(re.findall(r"^\.(s\d+) \{ (.*) \}$", page, re.MULTILINE))
    found = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    whole = [re.sub(r'class="(s\d+)"', lambda m: f'style="{looks[m[1]]}"', svg) for svg in found]
    return [ElementTree.fromstring(svg) for svg in whole]  # noqa: S314, our own file


def test_plots_are_well_formed_and_legible(page: str) -> None:
    plots = drawings(page)
    captions = [unescape(c) for c in re.findall(r"<figcaption>(.*?)</figcaption>", page)]
    assert len(plots) == len(captions) == 5
    for words in ("goodput and sum ratio", "distribution", "against time"):
        assert any(words in caption for caption in captions)
    for plot in plots:
        width = float(plot.attrib["viewBox"].split()[2])
        assert width <= 7.3 * 72, "fits a printed page unscaled"
        sizes = re.findall(r"font(?:-size)?:[^;]*?([\d.]+)px", ElementTree.tostring(plot).decode())
        assert sizes
        assert min(map(float, sizes)) >= 9
    text = " ".join("".join(plot.itertext()) for plot in plots)
    for words in ("goodput, Mbit/s", "at most this goodput, Mbit/s", "s since the first byte",
                  "hatched: WiGig dark", *made_up.SCHEMES.values()):  # fmt: skip
        assert words in text


def test_identifiers_are_unique_and_found(page: str) -> None:
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert {a or b for a, b in used} <= set(identifiers)


def test_a_hatch_stands_on_the_page_once_and_a_figure_is_small() -> None:
    """Tiles of dots and circles have a quarter of a megabyte: once they were in every figure."""

    def bars() -> Figure:
        figure = new_figure(2.0)
        axes = figure.add_subplot()
        for place, look in enumerate(STYLES):
            axes.barh(place, place + 1.0, facecolor=look.colour, edgecolor=INK,
                      hatch=look.hatch or None, hatchcolor=PAPER)  # fmt: skip
        return figure

    numbered = Numbered()
    with drawing():
        first, second = (numbered.figure(bars(), "bars") for _ in range(2))
    hatches = re.findall(r'<pattern id="([^"]+)"', first)
    assert len(hatches) == sum(bool(look.hatch) for look in STYLES)
    assert set(re.findall(r"url\(#(hatch-\d+)\)", numbered.css())) == set(hatches)
    assert "<pattern" not in second
    assert len(second) < 10_000


def test_a_picture_loses_names_and_digits_only() -> None:
    drawn = """<svg><g id="axes"><g transform="scale(2)">
     <path d="M 0.123456 0 \nL 1.5 2 \nL 3 4 \nz" id="m1"/><use href="#m1" x="1.23456"/>
    </g><path d="M 0 0 \nC 1 1 2 2 3 3 \nL 4 4 "/></g></svg>"""
    assert alone(drawn).replace("\n", "") == (
        '<svg><g transform="scale(2)"><path d="M 0.12 0 1.5 2 3 4 z" id="i-1"/>'
        '<use href="#i-1" x="1.23"/></g><path d="M 0 0 C 1 1 2 2 3 3 L 4 4 "/></svg>'
    )


def test_no_figure_takes_more_than_its_plots_need(page: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(figures) == 5
    assert max(map(len, figures)) < 60_000
    assert len(page) < 200_000


def test_names_are_escaped_and_nothing_is_loaded(page: str) -> None:
    assert escape(made_up.SCHEMES["sumrate"]) in page
    for raw in ("<pipelined>", "<silent>", "<both ways>", "<first>", "<sum>", "<only>", "<cubic>"):
        assert raw not in page
    for outside in ("<script", "<link", "src=", "@import", "url(http"):
        assert outside not in page


def test_the_same_results_give_the_same_page(folder: Path, claims: Path, page: str) -> None:
    output = folder.parent / "again" / "report.html"
    write_report([folder], claims, output)
    assert made_up.text_of(output) == page


def test_the_demo_needs_no_package_of_the_report() -> None:
    code = (
        "import sys, sumrate.report.demo_page, sumrate.lab.cli; "
        "sys.exit(bool({'matplotlib', 'pyarrow', 'numpy'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_done_to_a_link_is_said_in_words() -> None:
    link = {"unplugged": [[1.5, 3.5]], "shares": "one", "trace": "", "beside": "a plain TCP"}
    said = quantities(link)
    assert said == "interface down 1.5 to 3.5 s, shares one, beside a plain TCP"


def test_what_a_simulation_drew_is_shown(folder: Path, claims: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(folder, tmp_path / "own"))
    path = own / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(manifest | {"method": "simulation"}), encoding="utf-8")
    (own / "3.7a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    write_report([own], claims, tmp_path / "page.html")
    text = made_up.text_of(tmp_path / "page.html")
    assert text.count('<img src="data:image/svg+xml;base64,') == 1
    assert "3.7a" not in text, "no internal name"
    assert "whiskers" not in text, "bars are for what was measured"


def test_a_goal_has_a_row_for_each_of_its_demands() -> None:
    def finding(statement: str, measured: float | None, *, holds: bool | None) -> dict[str, Any]:
        expected = "" if holds is None and measured is not None else "at least 1"
        cause = f"the cause of {statement}" if holds is False else ""
        return {"statement": statement, "measured": measured, "holds": holds,
                "expected": expected, "cause": cause}  # fmt: skip

    whole = Verdict(
        "", "P4", "depends", "", "", "", "the cause",
        (finding("a", 2.0, holds=True), finding("b", 0.5, holds=False),
         finding("b", 0.7, holds=False), finding("c", 0.4, holds=None)),
    )  # fmt: skip
    rows = [(v.statement, v.verdict, v.measured, v.cause) for v in demands(whole)]
    assert rows == [
        ("a", "holds", "2", ""),
        ("b", "fails", "0.5 to 0.7", "the cause of b"),
        ("c", "reported", "0.4", ""),
    ]


def test_a_claim_shows_each_of_its_checks_with_unit_and_repetitions() -> None:
    def finding(statement: str, measured: float, counted: int) -> dict[str, Any]:
        return {"statement": statement, "condition": "normal", "measured": measured, "holds": True,
                "expected": "at least 1", "unit": "ms", "counted": counted,
                "repetitions": 5}  # fmt: skip

    found = (finding("a", 2.0, 5), finding("a", 3.0, 3), finding("b", 20.0, 4))
    whole = Verdict("C", "", "holds", "2; 20", "", "a; b", "", found)
    said = [(v.statement, v.measured) for v in demands(whole)]
    assert said == [
        ("a", "2 to 3 ms (3 to 5 of 5 repetitions)"),
        ("b", "20 ms (4 of 5 repetitions)"),
    ]


def test_the_list_leads_to_a_page_for_each_experiment_and_back(
    folder: Path, claims: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    text = json.dumps(manifest | {"experiment": "other", "title": "Another"})
    (other / "manifest.json").write_text(text, encoding="utf-8")
    output = tmp_path / "all.html"
    write_report([folder, other], claims, output)
    index = output.read_text(encoding="utf-8")
    assert "<svg" not in index, "plots are on the pages"
    assert "has the best median in" in index
    for page in set(re.findall(r'href="([^"#]+)"', index)):
        assert (tmp_path / page).is_file()
        within = (tmp_path / page).read_text(encoding="utf-8")
        for link in re.findall(r"<nav>(.*?)</nav>", within):
            found = re.findall(r'href="([^"]+)"', link)
            assert "../all.html" in found
            assert all((tmp_path / page).parent.joinpath(where).is_file() for where in found)
    assert len(list((tmp_path / "all-pages").iterdir())) == 2


def test_every_colour_of_a_plot_has_one_for_dark_systems(page: str) -> None:
    used = set(re.findall(r"var\((--c[0-9a-f]{6})\)", page))
    found = re.search(r":root { (--c.*?)}\n@media screen .*? { :root { (.*?)} }", page)
    assert found is not None
    assert used
    for rules in found.groups():
        assert used <= set(re.findall(r"--c[0-9a-f]{6}(?=:)", rules))
    plots = "".join(re.findall(r"<figure>.*?</figure>", page, re.DOTALL))
    assert not re.search(r"(fill|stroke): #(?!000000)", plots)
