"""How many realisations of initial access per second one core does; prints JSON.

A realisation: 16 clients with 36 beams each, 100 beacon intervals, every frame decoded or not from
its SINR, with capture. Compilation and the scene's channels are timed apart.

Run: python benches/access_realisations.py [--realisations 1000]
"""

import argparse
import json
import platform
import time
from dataclasses import replace

from sumrate.access.budget import make_pool
from sumrate.access.curves import CURVES
from sumrate.access.scenes import SCENES
from sumrate.access.simulation import run

CLIENTS, INTERVALS = 16, 100


def main() -> None:
    """Times each protocol with everybody competing in every interval, and at 50 % blockage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--realisations", type=int, default=1000)
    count = parser.parse_args().realisations
    start = time.perf_counter()
    pool = make_pool(SCENES["office-aligned"], 2000)
    channels = time.perf_counter() - start
    results = []
    for name in ("jpoc", "dot11ad", "dot11ad-random"):
        for label, change in (
            ("all compete", {"always_compete": True}),
            ("50 % blockage", {"blockage": 0.5}),
        ):
            setting = replace(CURVES[name].setting, intervals=INTERVALS, **change)
            start = time.perf_counter()
            run(pool, setting, clients=CLIENTS, realisations=2, seed=1)
            first = time.perf_counter() - start
            start = time.perf_counter()
            run(pool, setting, clients=CLIENTS, realisations=count, seed=1)
            seconds = time.perf_counter() - start
            results.append(
                {
                    "protocol": name,
                    "condition": label,
                    "seconds": round(seconds, 3),
                    "realisations_per_second": round(count / seconds, 1),
                    "beacon_intervals_per_second": round(count * INTERVALS / seconds),
                    "first_call_s": round(first, 2),
                }
            )
    print(
        json.dumps(
            {
                "realisations": count,
                "clients": CLIENTS,
                "beams": 36,
                "beacon_intervals": INTERVALS,
                "processor": platform.processor() or platform.machine(),
                "channels_of_2000_clients_s": round(channels, 2),
                "results": results,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
