"""The report on experiments of the laboratory: reads result folders, writes one HTML file.

Needs the optional dependencies of `sumrate[lab]`; import it only where a report is asked for.
"""

from sumrate.report.lab.compare import compare_table
from sumrate.report.lab.page import write_report
from sumrate.report.lab.read import BrokenRunError, MissingRunError, Run, RunError, read_run

__all__ = [
    "BrokenRunError",
    "MissingRunError",
    "Run",
    "RunError",
    "compare_table",
    "read_run",
    "write_report",
]
