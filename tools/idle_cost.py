"""What a running process takes: share of one core over a while, and resident memory.

Run: python3 tools/idle_cost.py PID [--seconds 60] [--json]
Exit status: 0, or 1 with --core-percent or --memory-mb if one of them is exceeded.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path


def cpu_seconds(process: Path) -> float:
    """User and system time so far, in seconds, of all threads (proc(5), fields 14 and 15)."""
    fields = (process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks: int = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks


def resident_mb(process: Path, field: str = "VmRSS") -> float:
    """Resident memory now (`VmHWM`: at most so far), in MB (10^6 bytes; proc(5), status)."""
    for line in (process / "status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def main() -> int:
    """Measures one process; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: tools/idle_cost.py 4242")
    parser.add_argument("pid", type=int)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--core-percent", type=float, help="fail above this share of a core")
    parser.add_argument("--memory-mb", type=float, help="fail above this resident memory")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    process = Path("/proc") / str(args.pid)
    try:
        before, begun = cpu_seconds(process), time.monotonic()
        time.sleep(args.seconds)
        percent = 100 * (cpu_seconds(process) - before) / (time.monotonic() - begun)
        memory = resident_mb(process)
    except OSError as error:
        print(f"error: no process {args.pid}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if args.json:
        print(json.dumps({"core_percent": percent, "resident_mb": memory}))
    else:
        print(f"{percent:.2f} % of a core, {memory:.1f} MB resident")
    exceeded = (args.core_percent is not None and percent > args.core_percent) or (
        args.memory_mb is not None and memory > args.memory_mb
    )
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
