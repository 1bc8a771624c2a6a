"""Two radios and a made-up result of the demo, for tests that need no network."""

from typing import Any

from sumrate.lab.scene import radio

WIFI = radio("wifi", 1, 630.0, 3.0)
WIGIG = radio("wigig", 2, 1800.0, 2.0)


def measured(rate_mbps: float, *, blocked: bool) -> dict[str, Any]:
    series = [[0.05 + i / 10, 0.0 if blocked and 20 <= i < 40 else rate_mbps] for i in range(80)]
    return {
        "goodput_mbps": rate_mbps,
        "goodput_outside_blockage_mbps": rate_mbps,
        "goodput_during_blockage_mbps": 0.0 if blocked else rate_mbps,
        "sha256_ok": True,
        "longest_stall_ms": 2000.0 if blocked else 10.0,
        "longest_stall_at_s": 2.0,
        "longest_stall_around_blockage_ms": 10.0,
        "duration_s": 8.0,
        "worst_sampling_gap_ms": 6.0,
        "series": series,
        "command": "curl --output received.bin http://10.1.1.2:8080/file.bin?a=1&b=<2>",
        "other_commands": ["python -m sumrate.lab.ends file-server"],
        "cpu_seconds": {"curl": 1.0},
        "connections": [],
        "emulator": {"worst_lateness_ms": 0.4, "stats": {}},
        "void": False,
    }


def demo_result() -> dict[str, Any]:
    return {
        "schema": "sumrate.lab.demo.v1",
        "commit": "0" * 40,
        "kernel": "6.12.0",
        "started": "2026-01-01T00:00:00+00:00",
        "argv": ["sumrate-lab", "demo"],
        "machine": {"cpus": 2},
        "file": {"bytes": 2 << 30, "sha256": "0" * 64, "kept_in": "memory"},
        "seed": 1,
        "scale": 1.0,
        "trials": [],
        "given_up": [],
        "approximate": False,
        "busy": [],
        "blockage": {"link": "wigig", "start_s": 2.0, "end_s": 4.0},
        "links": [
            {"name": "wifi", "rate_mbps": 630.0, "rtt_ms": 3.0, "queue_ms": 20.0},
            {"name": "wigig", "rate_mbps": 1800.0, "rtt_ms": 2.0, "queue_ms": 20.0},
        ],
        "congestion_control": "cubic",
        "tcp_settings": {"net.ipv4.tcp_rmem": "4096 131072 33554432"},
        "late_limit_ms": 5.0,
        "sum_ratio": 0.98,
        "sum_ratio_without_margin": 0.97,
        "sum_ratio_definition": "goodput over sum",
        "schemes": {
            "wifi": measured(600.0, blocked=False),
            "wigig": measured(1750.0, blocked=True),
            "mptcp": measured(2200.0, blocked=False),
            "sumrate": measured(2350.0, blocked=False),
        },
    }
