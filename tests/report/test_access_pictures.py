"""Pictures of initial access say what their tables show, and all of it can be read."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sumrate.access.figures import FIGURES, Figure
from sumrate.access.tasks import Row
from sumrate.lab.link_figures import FIGURES as LINKS
from sumrate.report.access import draw
from sumrate.report.access.draw import plot
from sumrate.report.access.findings import sentence
from sumrate.report.lab.canvas import drawing
from tests.report.pictures import problems, title, words

SCENES = ("los-aligned", "office-aligned")
XS = (0.1, 0.5, 0.9)


def cell(
    panel: str, curve: str, metric: str, mean: float, *, x: float | None = None,
    y: float | None = None,
) -> Row:  # fmt: skip
    return {"figure": "", "panel": panel, "curve": curve, "metric": metric, "x": x, "y": y,
            "mean": mean, "low": mean * 0.98, "high": mean * 1.02, "n": 9}  # fmt: skip


def fairness(least: dict[str, float]) -> list[Row]:
    return [
        cell(scene, curve, "jain", 1 - (1 - low) * x / XS[-1] * (scene == SCENES[1]), x=x)
        for scene in SCENES for curve, low in least.items() for x in XS
    ]  # fmt: skip


def beams(offset: float) -> list[Row]:
    return [
        cell(f"{scene}, no power control", curve, "snr_db", 10 + more + beam % 3, x=float(beam))
        for scene in SCENES
        for curve, more in (("near client, 1 m", offset), ("far client, 5 m", 0.0))
        for beam in range(36)
    ]


def maps() -> list[Row]:
    return [
        cell(f"{scene}, {control}", "grid", "index", index, x=float(x), y=float(y))
        for scene in SCENES
        for control, index in (("no power control", 1 / 3), ("target 4 dB", np.inf))
        for x in range(8) for y in range(8)
    ]  # fmt: skip


def map_without_control() -> list[Row]:
    return [r for r in maps() if str(r["panel"]).endswith("no power control")]


def power_errors() -> list[Row]:
    return [
        cell(scene, curve, "jain", 0.95 - cost * x, x=x)
        for scene, cost in ((*zip(SCENES, (0.0, 0.01), strict=True), ("office-random", 0.005)))
        for curve in ("exact", "whole dB in the fields", "steps of 3 dB")
        for x in (0.0, 2.0, 6.0)
    ]


def trainings() -> list[Row]:
    return [
        cell(panel, curve, metric, mean, x=float(x))
        for panel, metric, counts in (
            ("trainings in 10 minutes", "trainings", (20.0, 10.0)),
            ("needless ones", "needless", (12.0, 1.0)),
            ("seconds below threshold", "below_s", (3.0, 2.0)),
        )
        for curve, mean in zip(("product", "restrained"), counts, strict=True)
        for x in range(6)
    ]


def sizes() -> list[Row]:
    return [
        cell(scene, curve, metric, mean * clients, x=clients)
        for scene, factor in zip(SCENES, (4.0, 9.0), strict=True)
        for clients in (4.0, 64.0)
        for curve, metric, mean in (
            ("jpoc", "mini_slots", 2.0), ("dot11ad", "mini_slots", 2.0 * factor),
            ("802.11ad over JPOC", "ratio", factor / clients),
        )
    ]  # fmt: skip


MADE: dict[str, tuple[Callable[[], list[Row]], str]] = {
    "3.7a": (
        lambda: fairness({"jpoc": 0.93, "dot11ad": 0.71}),
        "JPOC keeps Jain's index at 0.93 or more; 802.11ad falls to 0.71 (office, facing the AP)",
    ),
    "3.1b": (lambda: beams(12.0),
             "Without power control, the near client arrives 12 dB stronger than the far one"),
    "3.5b": (maps, "Against a client near the AP, one elsewhere wins 25 % of the beams without "
             "power control, 100 % with power control to 4 dB"),
    "3.1c": (map_without_control, "Against a client near the AP, one elsewhere wins 25 % of the "
             "beams without power control"),
    "power-error": (power_errors, "Power errors of 6 dB cost JPOC at most 0.06 of Jain's index "
                    "(office, facing the AP)"),
    "3.2a": (trainings, "Of 20 trainings in ten minutes 12 are needless; a client that listens "
             "first trains 10 times"),
    "3.7b": (sizes, "802.11ad needs 4 to 9 times JPOC's mini-slots for 10 % failures of 64 "
             "clients"),
}  # fmt: skip


@pytest.fixture(params=list(MADE))
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Figure, list[Row], str]]:
    rows, said = MADE[request.param]
    with drawing():
        yield FIGURES[request.param], rows(), said


def test_titles_have_the_finding_and_text_is_legible(
    made: tuple[Figure, list[Row], str],
) -> None:
    figure, rows, said = made
    picture = plot(figure, rows)
    assert title(picture) == said
    assert not any(figure.name in text for text in words(picture)), "no internal name"
    assert not problems(picture)


def test_the_title_follows_the_table() -> None:
    turned = sentence(FIGURES["3.7a"], fairness({"jpoc": 0.6, "dot11ad": 0.8}))
    assert turned.startswith("802.11ad keeps Jain's index at 0.80 or more; JPOC falls to 0.60")
    weaker = sentence(FIGURES["3.1b"], beams(-5.0))
    assert weaker.endswith("arrives 5 dB weaker than the far one")
    assert sentence(FIGURES["3.7a"], []) == FIGURES["3.7a"].title


def test_line_ends_have_name_and_ratio() -> None:
    with drawing():
        shown = words(plot(FIGURES["3.7b"], sizes()))
    ratios = {f"802.11ad ({times} \N{MULTIPLICATION SIGN} JPOC)" for times in ("4.0", "9.0")}
    assert {"JPOC", *ratios} <= set(shown)


def test_panels_without_difference_are_only_named() -> None:
    parts = ("jpoc", "dot11ad", "dot11ad-random", "dot11ad-power", "mini-slots")
    least = dict(zip(parts, (0.95, 0.7, 0.9, 0.8, 0.85), strict=True))
    with drawing():
        picture = plot(FIGURES["ablation"], fairness(least))
    assert len(picture.axes) == 1
    assert any("Not drawn: line of sight, facing the AP" in text for text in words(picture))
    assert not problems(picture)


def test_files_are_small_and_of_both_kinds(tmp_path: Path) -> None:
    paths = draw(FIGURES["3.5b"], maps(), tmp_path)
    assert [path.name for path in paths] == ["3.5b.svg", "3.5b.png"]
    assert "prefers-color-scheme: dark" in paths[0].read_text(encoding="utf-8")
    assert paths[0].stat().st_size < 60_000


def test_panels_share_a_scale_for_all_values() -> None:
    rows = [
        cell(f"{signal}-1500", "udp", "goodput_mbps", top * x, x=x)
        for signal, top in (("strong", 100.0), ("weak", 900.0))
        for x in (1.0, 2.0)
    ]
    with drawing():
        picture = plot(LINKS["link-mcs"], rows)
    assert title(picture) == (
        "Goodput peaks at 200 Mbit/s at MCS 2 with a strong signal and 1800 Mbit/s at MCS 2 with "
        "a weak signal"
    )
    assert {"strong signal, MTU 1500", "UDP"} <= set(words(picture))
    assert {axes.get_ylim()[1] > 1800 for axes in picture.axes} == {True}
