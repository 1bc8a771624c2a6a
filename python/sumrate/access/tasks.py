"""Independent pieces of work, on local processes or on a Dask cluster, with the same results."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import as_completed as as_they_end
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sumrate.access.errors import AccessError, whole

Row = dict[str, Any]
"""One row of a tidy table: names to numbers, texts or None."""
Progress = Callable[[int, int], None]
"""Is told how many tasks of how many are done."""
MOST_DEATHS = 3
"""How often processes may be killed before a sweep gives up."""


class SweepError(RuntimeError):
    """A sweep could not be finished; says what happened to how many tasks."""


@dataclass(frozen=True)
class Task:
    """A function of this package with its arguments; its result depends on nothing else."""

    function: Callable[..., list[Row]]
    arguments: Mapping[str, Any]

    def rows(self) -> list[Row]:
        """Does the work."""
        return self.function(**self.arguments)


def rows_of(task: Task) -> list[Row]:
    """Does the work, in whichever process this is called."""
    return task.rows()


def _silent(done: int, total: int) -> None:
    """Progress that nobody watches."""


def evaluate(
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress = _silent,
) -> list[Row]:
    """Rows of all tasks, in the order of the tasks, wherever and whenever they were done.

    Args:
        tasks: what to do.
        workers: local processes; as many as there are cores if None; 1 works in this process.
        scheduler: address of a Dask scheduler, such as `tcp://10.0.0.1:8786`; instead of local
            processes. Its workers need this package in the same version.
        progress: is called after each task.

    Raises:
        AccessError: fewer than one worker, or an address without a scheduler.
        SweepError: processes were killed again and again.

    """
    if scheduler is not None:
        found = _on_cluster(tasks, scheduler)
    else:
        count = whole("workers", (os.cpu_count() or 1) if workers is None else workers, 1)
        alone = count == 1 or len(tasks) < 2
        found = _here(tasks) if alone else _on_processes(tasks, count)
    results: dict[int, list[Row]] = {}
    progress(0, len(tasks))
    for index, rows in found:
        results[index] = rows
        progress(len(results), len(tasks))
    return [row for index in range(len(tasks)) for row in results[index]]


def _here(tasks: Sequence[Task]) -> Iterator[tuple[int, list[Row]]]:
    """Results of this process."""
    for index, task in enumerate(tasks):
        yield index, task.rows()


def _on_processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, list[Row]]]:
    """Results as they come; what a killed process was doing is done again."""
    left = dict(enumerate(tasks))
    context = multiprocessing.get_context("spawn")
    for _ in range(MOST_DEATHS + 1):
        with ProcessPoolExecutor(min(workers, len(left)), mp_context=context) as pool:
            running = {pool.submit(rows_of, task): index for index, task in left.items()}
            try:
                for future in as_they_end(running):
                    yield running[future], future.result()
                    del left[running[future]]
            except BrokenProcessPool:
                continue
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return
    raise SweepError(
        f"a process was killed {MOST_DEATHS + 1} times; {len(left)} of {len(tasks)} tasks are "
        "undone: is there enough memory?"
    )


def _on_cluster(tasks: Sequence[Task], scheduler: str) -> Iterator[tuple[int, list[Row]]]:
    """Results as they come; the scheduler gives what a dead worker had to others."""
    try:
        distributed: Any = import_module("distributed")  # an optional extra without types
    except ModuleNotFoundError as missing:
        raise AccessError(f"--scheduler needs `pip install sumrate[cluster]` ({missing})") from None
    try:
        client = distributed.Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise AccessError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        futures = [
            client.submit(rows_of, task, key=f"sumrate-{os.getpid()}-{index}", pure=False)
            for index, task in enumerate(tasks)
        ]
        number = {future.key: index for index, future in enumerate(futures)}
        try:
            for future, rows in distributed.as_completed(
                futures, loop=client.loop, with_results=True
            ):
                yield number[future.key], rows
        except distributed.KilledWorker as error:
            raise SweepError(f"workers died again and again: {error}") from None
        except BaseException:
            client.cancel(futures)
            raise
