"""The report on experiments of the laboratory: reads results, writes HTML.

Needs the optional dependencies of `sumrate[lab]`; import it only where a report is asked for.
"""

from sumrate.report.lab.compare import compare_table
from sumrate.report.lab.pages import write_report
from sumrate.report.lab.result import RunError, read_result

__all__ = ["RunError", "compare_table", "read_result", "write_report"]
