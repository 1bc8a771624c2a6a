"""Rate traces of links: a generator calibrated to measured WiGig and WiFi, and the file format."""

from sumrate.traces.calibration import MEASURED, Calibration, calibrate
from sumrate.traces.generate import generate
from sumrate.traces.kinds import KINDS
from sumrate.traces.measure import GOODPUT_SHARE, Statistics, pooled, statistics
from sumrate.traces.trace import Trace, TraceFormatError, read, write

__all__ = [
    "GOODPUT_SHARE",
    "KINDS",
    "MEASURED",
    "Calibration",
    "Statistics",
    "Trace",
    "TraceFormatError",
    "calibrate",
    "generate",
    "pooled",
    "read",
    "statistics",
    "write",
]
