"""Any trace file: read, or refused with the file's name; what is written is read back."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumrate.traces import Trace, TraceFormatError, read, write

NUMBERS = st.one_of(
    st.integers(-5, 10**9).map(str),
    st.floats().map(repr),
    st.sampled_from(["0", "-0", "1e400", "180e300", "nan", "0x10", "1_000", "٣", "1.5.2", ""]),
)
LINES = st.one_of(
    st.tuples(NUMBERS, NUMBERS).map(" ".join),
    st.lists(NUMBERS, max_size=4).map(" ".join),
    st.text(max_size=20),
    st.sampled_from(["# a comment", "", "\t", "10 5 # beam", "10 5\r"]),
)
FILES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda head, lines: "\n".join([head, *lines]).encode("utf-8", "surrogatepass"),
        st.sampled_from(["sumrate-trace 1", "sumrate-trace 2", "", "\ufeffsumrate-trace 1"]),
        st.lists(LINES, max_size=12),
    ),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces") / "x.trace"


def check(folder: Path, content: bytes) -> None:
    """A trace file with this content is read, or refused with its name."""
    path = folder / "x.trace"
    path.write_bytes(content)
    try:
        trace = read(path)
    except TraceFormatError as error:
        assert "x.trace" in str(error)
        return
    assert trace.rates_mbps
    assert trace.step_ms > 0
    assert all(rate >= 0 and math.isfinite(rate) for rate in trace.rates_mbps)


@settings(deadline=None, max_examples=400)
@given(content=FILES)
def test_any_file_is_read_or_refused_by_name(path: Path, content: bytes) -> None:
    check(path.parent, content)


@settings(deadline=None, max_examples=200)
@given(
    rates=st.lists(st.integers(0, 5_000_000), min_size=1, max_size=50).filter(any),
    step=st.integers(1, 1000),
)
def test_what_is_written_is_read_back(path: Path, rates: list[int], step: int) -> None:
    trace = Trace(float(step), tuple(rate / 1000 for rate in rates), "drawn")
    write(trace, path)
    again = read(path)
    assert again.seconds == pytest.approx(trace.seconds)
    assert again.mean_rate_mbps == pytest.approx(trace.mean_rate_mbps)
