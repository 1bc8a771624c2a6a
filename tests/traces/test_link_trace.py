"""Link traces survive their file, follow their schema, and become what the emulator plays."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest

from sumrate.phy.parameters import ParameterError
from sumrate.traces import read, write
from sumrate.traces.course import make
from sumrate.traces.link_trace import (
    COLUMNS,
    LinkTrace,
    LinkTraceError,
    read_link_trace,
    write_link_trace,
)
from sumrate.traces.mahimahi import mahimahi_text, read_mahimahi, write_mahimahi
from sumrate.traces.scenarios import scene
from sumrate.traces.trace import Trace, TraceFormatError


@pytest.fixture(scope="module")
def made() -> LinkTrace:
    return make(scene("thesis-mobility"), 4.0, 2)


def test_a_file_holds_everything(made: LinkTrace, tmp_path: Path) -> None:
    path = tmp_path / "link.parquet"
    write_link_trace(made, path)
    found = read_link_trace(path)
    for name, _, _ in COLUMNS:
        assert (getattr(found, name) == getattr(made, name)).all(), name
    assert found.metadata == made.metadata
    assert found.step_s == made.step_s


def test_a_file_follows_the_published_schema(
    made: LinkTrace, tmp_path: Path, repository: Path
) -> None:
    schema = json.loads((repository / "docs/schemas/link-trace.v1.json").read_text())
    write_link_trace(made, tmp_path / "link.parquet")
    table = pq.read_table(tmp_path / "link.parquet")
    document = json.loads(table.schema.metadata[b"sumrate"])
    row = table.slice(0, 1).to_pylist()[0]
    whole: dict[str, Any] = {"metadata": document, "columns": row}
    jsonschema.validate(whole, schema)
    properties = schema["properties"]["columns"]["properties"]
    assert list(properties) == table.column_names == [name for name, _, _ in COLUMNS]
    for broken in ({"metadata": document}, whole | {"columns": row | {"state": "asleep"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def test_the_emulators_format_keeps_the_rate(made: LinkTrace, tmp_path: Path) -> None:
    path = tmp_path / "link.trace"
    write(made.rate_trace(), path)
    back = read(path)
    assert back.seconds == pytest.approx(made.seconds)
    fine = np.repeat(back.rates_mbps, round(back.step_ms / 10) or 1)
    assert fine == pytest.approx(made.rate_mbps, abs=1e-3)
    assert "thesis-mobility" in back.origin


def test_mahimahi_keeps_bytes_and_length(made: LinkTrace, tmp_path: Path) -> None:
    rate = made.rate_trace()
    write_mahimahi(rate, tmp_path / "m")
    back = read_mahimahi(tmp_path / "m")
    bits = rate.mean_rate_mbps * rate.seconds
    assert back.mean_rate_mbps * back.seconds == pytest.approx(bits, abs=0.05)
    assert back.seconds == pytest.approx(rate.seconds)
    again = tmp_path / "again"
    write_mahimahi(back, again)
    assert again.read_text() == (tmp_path / "m").read_text()


def test_mahimahi_of_a_known_rate() -> None:
    assert mahimahi_text(Trace(1.0, (24.0, 0.0, 12.0))) == "1\n1\n3\n"
    assert mahimahi_text(Trace(4.0, (6.0,))) == "2\n4\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nx\n", "line 2: expected a time"),
        ("5\n3\n", "line 2: 3 ms is before 5"),
        ("", "no delivery"),
        ("0\n", "line 1: 0 ms is before 1"),
    ],
)
def test_wrong_mahimahi_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m").write_text(text)
    with pytest.raises(TraceFormatError, match=message):
        read_mahimahi(tmp_path / "m")


def test_wrong_files_are_refused(made: LinkTrace, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("nothing")
    with pytest.raises(LinkTraceError, match="no Parquet file"):
        read_link_trace(path)
    pq.write_table(made.table().replace_schema_metadata({}), path)
    with pytest.raises(LinkTraceError, match=r"expected 'sumrate\.link-trace\.v1'"):
        read_link_trace(path)
    pq.write_table(made.table().drop_columns(["snr_db"]), path)
    with pytest.raises(LinkTraceError, match="columns are missing: snr_db"):
        read_link_trace(path)


def test_values_that_cannot_be_are_refused() -> None:
    zeros, none = np.zeros(3), np.zeros(3, dtype=np.int64)

    def trace(**other: np.ndarray) -> LinkTrace:
        values: dict[str, Any] = {
            "rate_mbps": zeros, "extra_delay_ms": zeros, "loss": zeros, "mcs": none,
            "rssi_dbm": zeros, "snr_db": zeros, "ap_beam": none, "client_beam": none,
            "state": none,
        }  # fmt: skip
        return LinkTrace(0.01, **(values | other))

    with pytest.raises(ParameterError, match=r"loss of step 1 is 2\.0: allowed is from 0 to 1"):
        trace(loss=np.array([0.0, 2.0, 0.0]))
    with pytest.raises(ParameterError, match=r"shape of mcs is \(2,\): allowed is \(3,\)"):
        trace(mcs=np.zeros(2, dtype=np.int64))
    with pytest.raises(ParameterError, match="rate_mbps of step 0"):
        trace(rate_mbps=np.array([-1.0, 0.0, 0.0]))
    with pytest.raises(LinkTraceError, match="never has a rate"):
        trace().rate_trace()
    with pytest.raises(ParameterError, match="state is 'asleep'"):
        trace().in_state("asleep")
