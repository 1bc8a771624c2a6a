"""Pictures of initial access: reads tidy tables, writes SVG and PNG."""

from sumrate.report.access.draw import draw

__all__ = ["draw"]
