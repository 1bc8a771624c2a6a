"""What a daemon keeps of the memory that a transfer took."""

import re
import time
from pathlib import Path

import pytest

from tests.watch.running import PATIENCE_S, needs_sumrate, running

pytestmark = [pytest.mark.system, needs_sumrate]

IDLE_MB = 30
TRANSFERS = 3
TRANSFER_BYTES = 200_000_000


def resident_mb(process: Path, field: str = "VmRSS") -> float:
    """Resident memory now (`VmHWM`: at most so far), in MB (10^6 bytes; proc(5), status)."""
    (found,) = re.findall(rf"^{field}:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    return int(found) * 1024 / 1e6


def test_memory_of_transfers_is_given_back(tmp_path: Path) -> None:
    paths = ["--path", "wifi=127.0.0.1", "--path", "lte=127.0.0.2"]
    with running(tmp_path, serve=[], up=paths) as both:
        for _ in range(TRANSFERS):
            assert both.fetch(TRANSFER_BYTES).wait(PATIENCE_S) == 0
        processes = {name: Path(f"/proc/{pid}") for name, pid in both.pids.items()}
        peaks = {name: resident_mb(process, "VmHWM") for name, process in processes.items()}
        assert max(peaks.values()) > IDLE_MB, f"the transfers took too little to show it: {peaks}"
        waited = time.monotonic()
        while max(kept := [resident_mb(process) for process in processes.values()]) > IDLE_MB:
            assert time.monotonic() - waited < PATIENCE_S, f"kept, in MB: {kept}; at most: {peaks}"
            time.sleep(0.5)
