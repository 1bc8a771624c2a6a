"""Independent pieces of work, on local processes or on a Dask cluster, with the same results."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import as_completed as as_they_end
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sumrate.access.errors import AccessError, whole
from sumrate.lab.results import Progress as Bar

Row = dict[str, Any]
"""One row of a tidy table: names to numbers, texts or None."""
Progress = Callable[[int, int], None]
"""Called with the number of finished and of all tasks."""
MOST_DEATHS = 3
"""Most restarts of a sweep after killed processes."""


class SweepError(RuntimeError):
    """A sweep failed; the message has the cause and the number of lost tasks."""


@dataclass(frozen=True)
class Task:
    """A function of this package with its arguments, which determine its result."""

    function: Callable[..., list[Row]]
    arguments: Mapping[str, Any]

    def rows(self) -> list[Row]:
        """Runs the task."""
        return self.function(**self.arguments)


def rows_of(task: Task) -> list[Row]:
    """Runs a task in the calling process."""
    return task.rows()


def watch(bar: Bar, what: str, unit: str) -> Progress:
    """A callback that shows the finished and all units, and extrapolates the time left."""
    begun = time.monotonic()

    def show(done: int, total: int) -> None:
        if done:
            bar.left_s = (time.monotonic() - begun) / done * (total - done)
        bar.show(f"{what}: {done} of {total} {unit}")
        if done == total:
            bar.clear()

    return show


def _silent(done: int, total: int) -> None:
    """Progress without output."""


def evaluate(
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress = _silent,
) -> list[Row]:
    """Runs all tasks and returns their rows in the order of the tasks.

    Args:
        tasks: to run.
        workers: local processes; one per core if None; 1 works in this process.
        scheduler: address of a Dask scheduler, such as `tcp://10.0.0.1:8786`; instead of local
            processes. Its workers need this package in the same version.
        progress: called after each task.

    Raises:
        AccessError: fewer than one worker, or no scheduler at the address.
        SweepError: processes were killed too often.

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
    """Runs the tasks in this process."""
    for index, task in enumerate(tasks):
        yield index, task.rows()


def _on_processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, list[Row]]]:
    """Runs the tasks on local processes; tasks of a killed process run again."""
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
        "undone. Check that the machine has enough memory."
    )


def _on_cluster(tasks: Sequence[Task], scheduler: str) -> Iterator[tuple[int, list[Row]]]:
    """Runs the tasks on a Dask cluster, whose scheduler repeats tasks of dead workers."""
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
