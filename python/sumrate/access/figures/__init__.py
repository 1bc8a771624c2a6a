"""The figures of the thesis on initial access, and studies beyond it, as tidy tables.

Every figure is a list of independent tasks whose rows together are its table. Columns: `figure`;
`panel` (scene, or what else separates panels); `curve`; `metric`; `x`, `y` (numbers, or None);
`mean` with the ends `low` and `high` of its 95 % confidence interval; `n` values behind it.
"""

from sumrate.access.figures.catalogue import FIGURES, figure_named
from sumrate.access.figures.table import Effort, Figure

__all__ = ["FIGURES", "Effort", "Figure", "figure_named"]
