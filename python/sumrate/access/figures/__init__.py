"""The figures of the thesis on initial access, and studies beyond it, as tidy tables.

Every figure is a list of independent tasks whose rows together are its table. Columns: `figure`;
`panel` (a scene in most figures); `curve`; `metric`; `x`, `y` (numbers, or None);
`mean` with the ends `low` and `high` of its 95 % confidence interval; `n` values behind it.
"""

from sumrate.access.figures.catalogue import FIGURES, figures_named
from sumrate.access.figures.table import Effort, Figure

__all__ = ["FIGURES", "Effort", "Figure", "figures_named"]
