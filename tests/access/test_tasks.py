import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from sumrate.access.errors import AccessError
from sumrate.access.figures.cells import fairness_rows
from sumrate.access.figures.table import Effort
from sumrate.access.tasks import Row, Task, evaluate

EFFORT = Effort(6, 64)


class Cluster(Protocol):
    """A Dask cluster."""

    scheduler_address: str


def simulations() -> list[Task]:
    return [
        Task(fairness_rows, {"scene": scene, "curve": curve, "effort": EFFORT, "seed": 5,
                             "blockages": (0.2, 0.9)})
        for scene in ("los-aligned", "conference-random") for curve in ("jpoc", "dot11ad-random")
    ]  # fmt: skip


def dies_once(folder: str, number: int) -> list[Row]:
    """Kills its own process the first time that it is called with number 2."""
    marker = Path(folder) / "died"
    if number == 2 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return [{"number": number, "draw": float(np.random.default_rng(number).random())}]


def deadly(folder: Path) -> list[Task]:
    return [Task(dies_once, {"folder": str(folder), "number": n}) for n in range(8)]


def expected(tmp_path: Path) -> list[Row]:
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / "died").touch()
    return evaluate(deadly(folder), workers=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers in processes of their own, watched by nannies that start dead ones again."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made


def test_processes_give_what_one_process_gives() -> None:
    assert evaluate(simulations(), workers=2) == evaluate(simulations(), workers=1)


def test_killed_process_loses_nothing(tmp_path: Path) -> None:
    assert evaluate(deadly(tmp_path), workers=2) == expected(tmp_path)
    assert (tmp_path / "died").exists()


def test_cluster_gives_what_one_process_gives(cluster: Cluster) -> None:
    found = evaluate(simulations(), scheduler=cluster.scheduler_address)
    assert found == evaluate(simulations(), workers=1)


def test_killed_worker_of_a_cluster_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    pids = {w["pid"] for w in _workers(cluster)}
    assert len(pids) == 2
    assert os.getpid() not in pids
    found = evaluate(deadly(tmp_path), scheduler=cluster.scheduler_address)
    assert found == expected(tmp_path)
    assert (tmp_path / "died").exists()


def _workers(cluster: Cluster) -> list[dict[str, int]]:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster.scheduler_address) as client:
        return [{"pid": pid} for pid in client.run(os.getpid).values()]


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    evaluate(simulations()[:2], workers=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_nobody_at_the_schedulers_address() -> None:
    with pytest.raises(AccessError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        evaluate(simulations(), scheduler="tcp://127.0.0.1:9")
