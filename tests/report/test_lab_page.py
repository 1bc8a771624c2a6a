"""The report on experiments says what the result files say."""

import json
import re
import statistics
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sumrate.report.lab import RunError, write_report
from sumrate.report.lab.canvas import slim
from sumrate.report.lab.result import read_result
from tests.report import made_up


def values(metric: str, scheme: str, condition: str) -> list[float]:
    return [
        row["value"]
        for row in made_up.rows()[0]
        if (row["metric"], row["scheme"], row["condition"]) == (metric, scheme, condition)
        and (scheme, condition, row["repetition"]) != made_up.VOID
    ]


def row_of(page: str, scheme: str, condition: str) -> str:
    """The first row of a scheme behind the heading of a condition."""
    rows = page[page.index("<summary>Values") :]
    rows = rows[rows.index(f'scope="rowgroup">{escape(made_up.CONDITIONS[condition])}') :]
    title = escape(made_up.SCHEMES[scheme]).replace("&quot;", "&#34;")
    return rows[rows.index(f"<td>{title}") :].partition("<tr>")[0].partition("</table>")[0]


@pytest.mark.parametrize("scheme", made_up.SCHEMES)
@pytest.mark.parametrize("condition", made_up.CONDITIONS)
def test_numbers_are_medians_with_ranges(page: str, scheme: str, condition: str) -> None:
    row = row_of(page, scheme, condition)
    for metric, digits in (("goodput_mbps", 0), ("sum_ratio", 3)):
        found = values(metric, scheme, condition)
        low, middle, high = (
            f"{x:.{digits}f}" for x in (min(found), statistics.median(found), max(found))
        )
        assert f"<td>{middle}<i>{low}\N{EN DASH}{high}</i>" in row


def test_void_runs_are_left_out_and_listed(page: str) -> None:
    assert "9999" not in page
    assert "Kernel MPTCP, Normal, repetition 3, late by up to 24.7 ms" in page
    assert row_of(page, "mptcp", "normal").endswith("<td>4<small>1 left out</small>")
    assert row_of(page, "mptcp", "blackout").endswith("<td>5")
    assert "8 void attempts were discarded and run again" in page
    assert "Kernel MPTCP, WiGig silent for 3 s &lt;both ways&gt;, repetition 2: no &lt;page" in page


def test_a_scheme_without_counting_runs_is_named(tmp_path: Path) -> None:
    folder = made_up.write_run(tmp_path / "run")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for entry in manifest["runs"]:
        entry["void"] = (entry["scheme"], entry["condition"]) == ("mptcp", "normal")
    path.write_text(json.dumps(manifest), encoding="utf-8")
    write_report([folder], [], tmp_path / "page.html")
    page = made_up.text_of(tmp_path / "page.html")
    assert "<h3>No run counts of</h3><ul><li>Kernel MPTCP, Normal</ul>" in page


def test_missing_and_excluded_schemes_have_reasons(page: str) -> None:
    _, title, reason = made_up.MISSING
    shown = escape(reason).replace("`make peers`", "<code>make peers</code>")
    assert f"<h3>Missing</h3><ul><li>{title}: {shown}" in page
    assert "<li>aggligator: it is measured <code>&lt;elsewhere&gt;</code>" in page
    assert re.search(r"<li>Kernel MPTCP \(Normal; [^)]+\): too &lt;late&gt; here", page)


def test_checks_stand_folded_with_values_and_causes(page: str) -> None:
    folded = page[page.index('<details id="verdicts">') :].partition("</details>")[0]
    assert "of 4 checks 2 hold, 2 do not hold" in folded
    assert "MPTCP reaches <code>0.9</code> of &lt;the sum&gt;" in folded
    assert "0.9312 to 0.97" in folded
    assert "<small>Kernel MPTCP: 0.25 to 0.5; TQUIC: 3 (in 1 of 2)</small>" in folded
    assert "Calibrated: The &lt;sum&gt; was set to it." in folded
    assert folded.count("The &lt;first&gt; probe waits.") == 1, "a cause stands once for a goal"
    assert "blackout: 52.5" in folded
    assert "Another part" not in folded, "it is of another experiment"


def test_each_claim_links_to_its_page(report: Path, page: str) -> None:
    index = report.read_text(encoding="utf-8")
    links = re.findall(r'href="report-pages/made-up.html#([^"]+)">\1', index)
    assert sorted(links) == ["P5", "S23", "T-1"]
    assert all(f'<tbody id="{name}">' in page for name in links)
    assert "2 published claims: 1 hold, 1 not measured here." in index
    assert "third-study (no result here)" in index
    assert "Nobody has such radios." in index
    performance, other = index.index("Performance goals"), index.index("Other goals")
    assert performance < index.index("#P5") < other < index.index("#S23")


def test_index_has_thumbnail_and_sentence(report: Path) -> None:
    index = report.read_text(encoding="utf-8")
    (image,) = re.findall(r'<img src="([^"]+)"', index)
    assert (report.parent / image).stat().st_size < 5_000
    assert "has the best median in 2 of 2 cases of goodput." in index


def test_figures_are_small_and_well_formed(report: Path, page: str) -> None:
    files = re.findall(r'<figure><img src="([^"]+)"', page)
    captions = re.findall(r"<figcaption>.*?</figcaption>", page)
    assert len(files) == len(captions) == 4
    for words in ("Dots are medians", "Distribution", "100 ms samples, of the repetition"):
        assert any(words in caption for caption in captions)
    text = ""
    for file in files:
        svg = (report.parent / "report-pages" / file).read_text(encoding="utf-8")
        assert len(svg) < 60_000
        plot = ElementTree.fromstring(svg)  # noqa: S314, our own file
        assert float(plot.attrib["viewBox"].split()[2]) <= 7.3 * 72, "fits a printed page"
        assert min(map(float, re.findall(r"font-size:([\d.]+)px", svg))) >= 7.5
        text += " ".join(plot.itertext())
    for words in ("goodput, Mbit/s", "at most this goodput, Mbit/s", "seconds since the first byte",
                  "hatched: WiGig dark", *made_up.SCHEMES.values()):  # fmt: skip
        assert words in text


def test_an_svg_shares_styles_and_follows_night() -> None:
    drawn = """<?xml?><svg viewBox="0 0 9 9"><defs><style>*{}</style></defs>
     <g id="axes"><g transform="scale(2)">
     <path d="M 0.123456 0 \nL 1.55 2 \nL 3 4 \nz" id="m1" style="fill: #ffffff"/>
     <use xlink:href="#m1" x="1.23456"/></g>
     <path d="M 0 0 \nC 1 1 2 2 3 3 \nL 4 4 " style="fill: #ffffff"/></g></svg>"""
    svg = slim(drawn).replace("\n", "")
    assert '<path d="M 0.1 0 1.5 2 3 4 z" id="i1" class="s0"/><use href="#i1" x="1.2"/>' in svg
    assert '<path d="M 0 0 C 1 1 2 2 3 3 L 4 4" class="s0"/>' in svg
    assert ".s0{fill:#ffffff}@media (prefers-color-scheme: dark){.s0{fill:#14181c}}" in svg
    assert 'id="axes"' not in svg


def test_how_it_was_run_is_shown(page: str) -> None:
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


def test_a_table_fits_a_printed_page(page: str) -> None:
    heads = re.findall(r'<table class="medians"><thead>(.*?)</thead>', page)
    assert heads
    assert max(head.count("<th>") for head in heads) <= 7, "scheme, five metrics, runs"


def test_pages_are_the_same_each_time(folder: Path, tmp_path: Path, report: Path) -> None:
    for name in ("one", "two"):
        write_report([folder], made_up.entries(), tmp_path / name / "report.html")
    names = sorted(path.name for path in (report.parent / "report-pages").iterdir())
    assert len(names) == 7
    for name in names:
        one, two = (tmp_path / n / "report-pages" / name for n in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_a_run_without_values_still_has_a_page(tmp_path: Path) -> None:
    own = made_up.write_run(tmp_path / "own")
    for name in ("metrics", "series"):
        table = pq.read_table(own / f"{name}.parquet")
        pq.write_table(pa.Table.from_batches([], table.schema), own / f"{name}.parquet")
    write_report([own], [], own / "report.html")
    assert "Nothing was measured" in made_up.text_of(own / "report.html")


def test_no_index_is_written_for_broken_results(tmp_path: Path) -> None:
    own = made_up.write_run(tmp_path / "own")
    (own / "manifest.json").unlink()
    with pytest.raises(RunError, match=r"manifest\.json"):
        write_report([own], [], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_pictures_of_a_simulation_are_shown(tmp_path: Path) -> None:
    own = made_up.write_run(tmp_path / "own")
    (own / "map.svg").write_text("<svg/>", encoding="utf-8")
    write_report([own], [], tmp_path / "report.html")
    page = made_up.text_of(tmp_path / "report.html")
    assert re.findall(r'<figure><img src="([^"]+)"', page) == ["own-figure-map.svg"]
    assert (tmp_path / "report-pages" / "own-figure-map.svg").read_text() == "<svg/>"


def test_names_with_links_alone_come_first(folder: Path) -> None:
    names = [scheme.name for scheme in read_result(folder).schemes]
    assert names == ["wifi", "wigig", "mptcp", "sumrate", "tquic"]
