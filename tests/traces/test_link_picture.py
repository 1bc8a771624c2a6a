"""The picture of a link trace has rate, signal and beams, and marks where nothing is carried."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sumrate.phy.parameters import ParameterError
from sumrate.report.lab.canvas import drawing
from sumrate.report.phy.link_trace import draw, plot, sentence
from sumrate.traces.course import make
from sumrate.traces.link_trace import LinkTrace
from sumrate.traces.scenarios import scene
from sumrate.traces.summary import summary
from tests.report.pictures import problems, title, words


@pytest.fixture(scope="module")
def trace() -> LinkTrace:
    made = make(scene("walk"), 10.0, 1, "dot11ad")
    rate = np.full(made.steps, 1500.0)
    rate[made.steps // 2 : made.steps // 2 + made.steps // 5] = 0.0
    return replace(made, rate_mbps=rate)


def test_the_title_counts_pauses_and_beams_show(trace: LinkTrace) -> None:
    with drawing():
        picture = plot(trace)
    assert title(picture) == (
        "The link carries 1.2 Gbit/s on the mean, "
        "and nothing in 20 % of 10 s, at most 2.0 s at once"
    )
    labels = [axes.get_ylabel() for axes in picture.axes]
    assert labels == ["rate, Gbit/s", "SNR, dB", "beam in use"]
    assert {"AP", "client", "no data"} <= set(words(picture))
    assert not problems(picture)


def test_the_title_has_the_silence_of_the_summary(trace: LinkTrace) -> None:
    """Two silences with a gap too narrow to draw are still two."""
    rate = np.full(trace.steps, 200.0)
    rate[100:150] = rate[151:191] = 0.0
    broken = replace(trace, rate_mbps=rate)
    found = summary(broken)["silences"]
    assert (found["count"], found["longest_s"], found["share"]) == (2, 0.5, 0.09)
    assert sentence(broken).endswith("and nothing in 9 % of 10 s, at most 0.5 s at once")


def test_a_link_without_pauses_has_none_marked(trace: LinkTrace) -> None:
    whole = replace(trace, rate_mbps=np.full(trace.steps, 200.0))
    assert sentence(whole) == "The link carries 200 Mbit/s on the mean, without a pause"
    with drawing():
        assert "no data" not in words(plot(whole))


def test_a_minute_is_a_small_file(trace: LinkTrace, tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    draw(trace, path)
    assert path.stat().st_size < 60_000
    with pytest.raises(ParameterError, match="a name that ends in"):
        draw(trace, tmp_path / "x.gif")
