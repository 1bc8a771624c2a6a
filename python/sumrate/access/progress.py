"""Progress of `sumrate-lab access` on stderr: the current step and the time left."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from sumrate.access import kernel
from sumrate.access.budget import make_pool
from sumrate.access.figures import Effort, Figure
from sumrate.access.scenes import SCENES
from sumrate.access.simulation import Setting, simulate
from sumrate.lab.results import Progress

COMPILE_S = 15.0
"""Expected time to compile `kernel.realise`."""


def is_compiled(function: Callable[..., object]) -> bool:
    """True if numba's cache on disk has this function of the kernel."""
    jitted = cast(Any, function)
    if jitted.stats.cache_path is None:
        return False
    line = jitted.py_func.__code__.co_firstlineno
    name = f"{Path(kernel.__file__).stem}.{function.__name__}-{line}.*.nbi"
    return any(Path(jitted.stats.cache_path).glob(name))


def compile_simulation(progress: Progress) -> None:
    """Compiles the simulation before workers need it, unless it is in the cache on disk."""
    if is_compiled(kernel.realise):
        return
    progress.show("compiling the simulation, which later runs reuse", COMPILE_S)
    pool = make_pool(SCENES["los-aligned"], 1)
    simulate(pool, Setting(intervals=1, warm_up=0), clients=1, realisations=1, seed=1)
    progress.clear()


class Clock:
    """Shows the number of the current figure, and the time left for all figures."""

    def __init__(self, chosen: Sequence[Figure], effort: Effort, workers: int | None) -> None:
        """Estimates the time from each figure's `seconds`, scaled to effort and workers."""
        self._chosen = chosen
        usual = effort.realisations / Effort().realisations
        self._scale = (FIXED + (1 - FIXED) * usual) / (workers or os.cpu_count() or 1)
        self._left = sum(one.seconds for one in chosen)
        self._begun, self._before, self._place = time.monotonic(), 0.0, 0
        self._progress = Progress(self._left * self._scale)
        compile_simulation(self._progress)

    def done(self, one: Figure) -> None:
        """Corrects the estimate by the time that the finished figures took."""
        self._place += 1
        self._before += one.seconds
        self._left -= one.seconds
        self._scale = (time.monotonic() - self._begun) / self._before
        self._progress.clear()

    def show(self, done: int, total: int) -> None:
        """Shows the number of finished tasks of the current figure."""
        one = self._chosen[self._place]
        self._progress.left_s = self._scale * (self._left - one.seconds * done / max(total, 1))
        where = f"figure {self._place + 1} of {len(self._chosen)}"
        self._progress.show(f"{where}: {one.name}, {done} of {total} tasks")


FIXED = 0.15
"""Share of a figure's time that does not depend on the number of realisations."""
