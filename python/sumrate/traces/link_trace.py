"""Link traces: everything about a link over time, as Parquet (docs/schemas/link-trace.v1.json)."""

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
"""What a link does: it carries data; it does and competes for a better beam meanwhile; it has no
beam and competes for one."""
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
    """A file is no link trace; the message names what is wrong and what is expected."""


@dataclass(frozen=True, eq=False)
class LinkTrace:
    """A link in equal steps: every column has the shape (steps,).

    Raises:
        ParameterError: columns of different lengths, or values that cannot be.

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
    """Where it comes from: scenario, seed, access, and so on; plain JSON values."""

    def __post_init__(self) -> None:
        """Refuses what is no trace."""
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
        """Beginning of every step: shape (steps,)."""
        return np.asarray(np.arange(self.steps) * self.step_s)

    def in_state(self, name: str) -> NDArray[np.bool_]:
        """Whether the link is in a state: shape (steps,)."""
        if name not in STATES:
            raise ParameterError("state", repr(name), ", ".join(STATES))
        return np.asarray(self.state == STATES.index(name))

    def outages_s(self) -> Floats:
        """Durations of the outages in order, seconds, (n,); the first and last may be cut off."""
        dark = np.concatenate([[0], self.in_state("outage").astype(np.int8), [0]])
        edges = np.flatnonzero(np.diff(dark))
        return np.asarray((edges[1::2] - edges[::2]) * self.step_s)

    def rate_trace(self) -> Trace:
        """The rate alone, as the emulator plays it.

        Raises:
            LinkTraceError: the link never carries anything.

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
    """Reads what `write_link_trace` wrote.

    Raises:
        LinkTraceError: the file is no link trace of this version.

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
