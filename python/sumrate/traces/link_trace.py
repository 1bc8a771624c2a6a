"""Link traces: rate, beams and state of a link over time (docs/schemas/link-trace.v1.json)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sumrate.phy.parameters import Floats, Integers, ParameterError, positive
from sumrate.traces.trace import Trace

SCHEMA = "sumrate.link-trace.v1"
METADATA_KEY = b"sumrate"
STATES = ("connected", "training", "outage")
"""States of a link.

In `connected` it carries data. In `training` it carries data while the client competes for a better
beam. In `outage` it has no beam, and the client competes for one.
"""
NO_MCS = -1
NO_BEAM = -1

COLUMNS: tuple[tuple[str, pa.DataType, str], ...] = (
    ("time_s", pa.float64(), "beginning of the step, seconds from the trace's beginning"),
    ("rate_mbps", pa.float64(), "rate of IP bytes, Mbit/s; 0: packets wait"),
    ("extra_delay_ms", pa.float64(), "one-way delay beyond propagation and queue, ms"),
    ("loss", pa.float64(), "share of packets lost for good, 0 to 1"),
    ("mcs", pa.int16(), "modulation and coding scheme; -1: none"),
    ("rssi_dbm", pa.float64(), "received power of the pair of beams in use, dBm"),
    ("snr_db", pa.float64(), "signal over noise with implementation losses, dB"),
    ("ap_beam", pa.int16(), "beam of the access point; -1: none"),
    ("client_beam", pa.int16(), "beam of the client; -1: none"),
    ("state", pa.dictionary(pa.int8(), pa.string()), "connected, training or outage"),
)


class LinkTraceError(ValueError):
    """A file is not a link trace; the message has the fault and the expected content."""


@dataclass(frozen=True, eq=False)
class LinkTrace:
    """A link in equal steps: every column has the shape (steps,).

    Raises:
        ParameterError: columns have different lengths, or a value is out of range.

    """

    step_s: float
    rate_mbps: Floats
    extra_delay_ms: Floats
    loss: Floats
    mcs: Integers
    rssi_dbm: Floats
    snr_db: Floats
    ap_beam: Integers
    client_beam: Integers
    state: Integers
    """Index into `STATES`."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Origin: scenario, seed, access and others; plain JSON values."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        positive("step_s", self.step_s)
        names = [name for name, _, _ in COLUMNS if name != "time_s"]
        shape = np.shape(self.rate_mbps)
        if len(shape) != 1 or shape[0] < 1:
            raise ParameterError("shape of rate_mbps", shape, "(steps,), at least one step")
        for name in names:
            if np.shape(getattr(self, name)) != shape:
                given = np.shape(getattr(self, name))
                raise ParameterError(f"shape of {name}", given, str(shape))
        _allowed("rate_mbps", self.rate_mbps, 0.0, np.inf)
        _allowed("extra_delay_ms", self.extra_delay_ms, 0.0, np.inf)
        _allowed("loss", self.loss, 0.0, 1.0)
        _allowed("state", self.state, 0, len(STATES) - 1)
        _allowed("mcs", self.mcs, NO_MCS, 31)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.rate_mbps.size)

    @property
    def seconds(self) -> float:
        """Length."""
        return self.steps * self.step_s

    @property
    def time_s(self) -> Floats:
        """Start of every step, seconds: shape (steps,)."""
        return np.asarray(np.arange(self.steps) * self.step_s)

    def in_state(self, name: str) -> NDArray[np.bool_]:
        """True for steps in a state: shape (steps,)."""
        if name not in STATES:
            raise ParameterError("state", repr(name), ", ".join(STATES))
        return np.asarray(self.state == STATES.index(name))

    def spans_s(self, inside: NDArray[np.bool_]) -> Floats:
        """Begin and end in seconds of each run of steps in `inside`: shape (runs, 2)."""
        return np.asarray(_runs(inside) * self.step_s)

    def outages_s(self) -> Floats:
        """Durations of the outages, seconds, (n,); the first and last may be cut off."""
        return np.asarray(np.diff(_runs(self.in_state("outage")))[:, 0] * self.step_s)

    def silences_s(self) -> Floats:
        """Durations of the times at rate 0, outages among them, seconds, (n,)."""
        return np.asarray(np.diff(_runs(self.rate_mbps == 0))[:, 0] * self.step_s)

    @property
    def contests(self) -> int:
        """Number of times that the client entered the A-BFT."""
        return len(_runs(~self.in_state("connected")))

    def rate_trace(self) -> Trace:
        """The rate alone, as the emulator plays it.

        Raises:
            LinkTraceError: the rate is always 0.

        """
        if not (self.rate_mbps > 0).any():
            raise LinkTraceError("the link never has a rate above 0: the emulator cannot play it")
        origin = " ".join(f"{key} {value}" for key, value in self.metadata.items())
        rates = tuple(float(rate) for rate in np.round(self.rate_mbps, 3))
        return Trace(round(self.step_s * 1e3, 9), rates, f"link trace: {origin}".rstrip(": "))

    def table(self) -> pa.Table:
        """The trace as an Arrow table with its metadata."""
        columns = {
            name: pa.array(self.time_s if name == "time_s" else getattr(self, name), type=kind)
            for name, kind, _ in COLUMNS
            if name != "state"
        }
        columns["state"] = pa.DictionaryArray.from_arrays(
            pa.array(self.state, type=pa.int8()), pa.array(STATES)
        )
        document = {"schema": SCHEMA, "step_s": self.step_s, "origin": dict(self.metadata)}
        arrow = pa.schema(
            [pa.field(name, columns[name].type, nullable=False) for name, _, _ in COLUMNS],
            metadata={METADATA_KEY: json.dumps(document).encode()},
        )
        return pa.table([columns[name] for name, _, _ in COLUMNS], schema=arrow)


def _runs(inside: NDArray[np.bool_]) -> Integers:
    """First step of each run of true values, and the step after its last one: (runs, 2)."""
    padded = np.concatenate([[0], inside.astype(np.int8), [0]])
    return np.asarray(np.flatnonzero(np.diff(padded)).reshape(-1, 2))


def _allowed(name: str, values: Floats | Integers, low: float, high: float) -> None:
    wrong = ~((values >= low) & (values <= high)) | ~np.isfinite(values)
    if wrong.any():
        at = int(np.argmax(wrong))
        allowed = f"from {low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
        raise ParameterError(f"{name} of step {at}", values[at], allowed)


def write_link_trace(trace: LinkTrace, path: Path) -> None:
    """Writes a trace to a Parquet file."""
    pq.write_table(trace.table(), path, compression="zstd")


def read_link_trace(path: Path) -> LinkTrace:
    """Reads a trace from a Parquet file.

    Raises:
        LinkTraceError: the file is not a link trace of this version.

    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise LinkTraceError(f"{path}: no Parquet file: {error}") from None
    document = json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
    if document.get("schema") != SCHEMA:
        raise LinkTraceError(f"{path}: schema is {document.get('schema')!r}: expected {SCHEMA!r}")
    missing = [name for name, _, _ in COLUMNS if name not in table.column_names]
    if missing:
        raise LinkTraceError(f"{path}: columns are missing: {', '.join(missing)}")
    values: dict[str, Any] = {}
    for name, kind, _ in COLUMNS:
        if name in ("time_s", "state"):
            continue
        number = np.int64 if pa.types.is_integer(kind) else np.float64
        values[name] = table[name].to_numpy().astype(number)
    states = table["state"].to_pylist()
    unknown = set(states) - set(STATES)
    if unknown:
        raise LinkTraceError(f"{path}: unknown states {sorted(unknown)}: known {', '.join(STATES)}")
    values["state"] = np.array([STATES.index(state) for state in states], dtype=np.int64)
    try:
        made = LinkTrace(float(document["step_s"]), metadata=document.get("origin", {}), **values)
    except ParameterError as error:
        raise LinkTraceError(f"{path}: {error}") from None
    if not np.allclose(table["time_s"].to_numpy(), made.time_s, atol=1e-9):
        raise LinkTraceError(f"{path}: time_s is not in equal steps of {made.step_s} s from 0")
    return made
