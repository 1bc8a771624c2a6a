"""The picture of an event log: its legend shows every curve and hatch as it is drawn."""

from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sumrate.report.events import plot, sentence
from sumrate.report.lab.canvas import drawing
from sumrate.traces.events import MEASURES, EventLog, PathEvents
from tests.report.pictures import problems, title

HEADER = {"role": "client", "version": "0"}


def path(session: str, name: str, *health: tuple[float, str]) -> PathEvents:
    times = [0.0, 0.1, 0.2, 5.0, 5.1]
    values = {measure: [float(place) for place in range(len(times))] for measure in MEASURES}
    return PathEvents(session, name, times, values, [(0.0, "active"), *health])


def logged(*paths: PathEvents) -> EventLog:
    return EventLog(HEADER, {(one.session, one.name): one for one in paths}, {}, 6.0)


def look(line: Line2D) -> tuple[Any, ...]:
    # Of a line whose dashes are numbers the name of its style is always the same.
    dashes = vars(line)["_unscaled_dash_pattern"]
    return to_hex(str(line.get_color())), dashes, line.get_marker()


def legend_of(figure: Figure) -> Legend:
    (legend,) = figure.legends
    return legend


def keys(figure: Figure) -> dict[str, Any]:
    """What the legend shows for each of its words."""
    legend = legend_of(figure)
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(set(texts)) == len(texts), texts
    return dict(zip(texts, legend.legend_handles, strict=True))


def test_each_curve_looks_as_its_legend_says_and_like_no_other() -> None:
    names = ["wifi", "wigig", "lte", *(f"wan{number}" for number in range(9))]
    figure = plot(logged(*(path("0" * 32, name) for name in names)))
    shown = keys(figure)
    assert list(shown) == names
    assert len(figure.axes) == 3
    for panel in figure.axes:
        looks = {}
        for line in panel.lines:
            name = str(line.get_label())
            looks[name] = look(line)
            assert look(shown[name]) == looks[name], name
        assert list(looks) == names
        assert len(set(looks.values())) == len(names), "two paths look the same"
    assert look(shown["wifi"])[1] != look(shown["lte"])[1], "also without colours"


def test_hatches_are_in_the_legend_if_they_were_drawn() -> None:
    well = path("0" * 32, "wifi")
    assert list(keys(plot(logged(well)))) == ["wifi"]
    unwell = path("0" * 32, "lte", (1.0, "suspect"), (2.0, "dead"), (3.0, "active"))
    figure = plot(logged(well, unwell))
    shown = keys(figure)
    words = ["suspect", "dead"]
    assert list(shown) == ["wifi", "lte", *words]
    (colour,) = {to_hex(str(line.get_color())) for line in figure.axes[0].lines[1:]}
    for panel in figure.axes:
        drawn = [patch for patch in panel.patches if isinstance(patch, Patch)]
        assert [patch.get_hatch() for patch in drawn] == [shown[word].get_hatch() for word in words]
        assert {to_hex(patch.get_edgecolor()) for patch in drawn} == {colour}


def test_paths_of_one_name_are_told_apart_by_their_session() -> None:
    figure = plot(logged(path("a" * 32, "wifi"), path("b" * 32, "wifi"), path("b" * 32, "lte")))
    shown = keys(figure)
    assert list(shown) == ["wifi (aaaaaaaa)", "wifi (bbbbbbbb)", "lte"]
    assert len({look(line) for line in figure.axes[0].lines}) == 3
    assert legend_of(plot(logged(path("a" * 32, "wifi")))).get_texts()[0].get_text() == "wifi"
    assert plot(logged()).legends == []


@pytest.mark.parametrize(("paths", "letters"), [(1, 4), (5, 10), (12, 20), (16, 32)])
def test_the_legend_is_within_the_picture_and_leaves_room(paths: int, letters: int) -> None:
    names = [f"{'w' * letters}{number}"[-letters:] for number in range(10, 10 + paths)]
    dead = (1.0, "suspect"), (2.0, "dead"), (3.0, "active")
    with drawing():
        figure = plot(logged(*(path("0" * 32, name, *dead) for name in names)))
        figure.draw_without_rendering()
    extent = legend_of(figure).get_window_extent()
    assert extent.x0 >= 0 and extent.x1 <= figure.bbox.width
    assert extent.y0 >= 0
    assert all(panel.bbox.height > 0.2 * 5.4 * figure.dpi for panel in figure.axes)
    assert all(panel.bbox.y0 > extent.y1 for panel in figure.axes)


def test_the_title_says_which_path_carried_how_much() -> None:
    one, other = path("0" * 32, "wifi"), path("0" * 32, "lte")
    for events, rate in ((one, 60.0), (other, 20.0)):
        events.time_s = [float(second) for second in range(11)]
        events.values = {measure: [0.0] * 11 for measure in MEASURES}
        events.values["received_mbps"] = [rate] * 11
    with drawing():
        figure = plot(logged(one, other))
    assert title(figure) == "100 MB received: wifi 75%, lte 25%"
    assert not problems(figure)
    assert sentence(logged()) == "Nothing was carried"
