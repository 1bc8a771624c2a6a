"""Which other programs used the processors, from made-up and real process tables."""

import os
import subprocess
import sys

from sumrate.lab.processor_users import (
    HOST,
    Moment,
    ProcessorUsers,
    Usage,
    starved,
    usage,
    used_between,
)

STAT = "7 (a) b) S 3 7 7 0 -1 4194304 0 0 0 0 250 50 0 0 20 0 1 0 900 0 0"


def moment(total: int, idle: int, **processes: Usage) -> Moment:
    found = {int(name[1:]): used for name, used in processes.items()}
    return Moment(total / 2, total, idle, 0, found)


def test_a_process_line_is_read_whatever_its_name() -> None:
    assert usage(STAT) == Usage("a) b", parent=3, started=900, ticks=300)


def test_own_processes_are_left_out_and_reused_numbers_are_new() -> None:
    before = moment(0, 0, p10=Usage("demo", 1, 5, 100), p30=Usage("old", 1, 5, 400))
    after = moment(
        *(400, 0),
        p10=Usage("demo", 1, 5, 200),
        p11=Usage("curl", 10, 6, 50),
        p30=Usage("rustc", 1, 90, 70),
    )
    assert used_between(before, after, own=10) == {"rustc": 70, HOST: 0}


def test_a_measurement_is_starved_only_where_nothing_was_left() -> None:
    before = moment(0, 0)
    assert starved(before, moment(400, 0), 200) is not None
    assert starved(before, moment(400, 100), 200) is None
    assert starved(before, moment(400, 0), 20) is None


def test_a_busy_neighbour_is_named() -> None:
    loop = "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass"
    watched = subprocess.Popen(["sleep", "60"])
    try:
        users = ProcessorUsers(watched.pid, os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
        users.begin()
        busy = subprocess.Popen([sys.executable, "-c", f"{loop}\ninput()"], stdin=subprocess.PIPE)
        while users.ticks.total() < 30:
            users.end()
            assert busy.poll() is None
        busy.communicate(b"\n")
    finally:
        watched.kill()
        watched.wait()
    assert users.users()
