"""How fast initial access is simulated; prints JSON.

A realisation: 16 clients with 36 beams each, 100 beacon intervals, every frame decoded or not from
its SINR, with capture, on one core. Compilation and the scene's channels are timed apart. With
--figures, figure 3.7 whole too: four scenes, three curves, 400 realisations of each point, both
panels with confidence bands, on as many processes as there are cores.

Run: python benches/access_realisations.py [--realisations 1000] [--figures]
"""

import argparse
import json
import os
import platform
import time
from dataclasses import replace
from typing import Any

from sumrate.access.budget import make_pool
from sumrate.access.curves import CURVES
from sumrate.access.figures import Effort, figure_named
from sumrate.access.scenes import SCENES
from sumrate.access.simulation import run
from sumrate.access.tasks import evaluate

CLIENTS, INTERVALS = 16, 100
GOAL_S, FIGURES_GOAL_S = 10.0, 300.0
"""1,000 realisations on one core; figure 3.7 on two."""


def realisations(count: int) -> dict[str, Any]:
    """Times each protocol with everybody competing in every interval, and at 50 % blockage."""
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
            start, work = time.perf_counter(), time.process_time()
            run(pool, setting, clients=CLIENTS, realisations=count, seed=1)
            seconds, work = time.perf_counter() - start, time.process_time() - work
            results.append(
                {
                    "protocol": name,
                    "condition": label,
                    "seconds": round(seconds, 3),
                    "processor_s": round(work, 3),
                    "realisations_per_second": round(count / seconds, 1),
                    "beacon_intervals_per_second": round(count * INTERVALS / seconds),
                    "first_call_s": round(first, 2),
                }
            )
    slowest = max(one["seconds"] for one in results) * 1000 / count
    return {
        "realisations": count,
        "clients": CLIENTS,
        "beams": 36,
        "beacon_intervals": INTERVALS,
        "channels_of_2000_clients_s": round(channels, 2),
        "results": results,
        "seconds_per_1000_slowest": round(slowest, 2),
        "at_most_10_s": slowest <= GOAL_S,
    }


def figures() -> dict[str, Any]:
    """Times both panels of figure 3.7 with the default effort."""
    found: dict[str, Any] = {}
    for name in ("3.7a", "3.7b"):
        start = time.perf_counter()
        figure_named(name).table(Effort(), 1, evaluate)
        found[name] = round(time.perf_counter() - start, 1)
    whole = sum(found.values())
    return {"seconds": found, "whole_s": round(whole, 1), "at_most_5_min": whole <= FIGURES_GOAL_S}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--realisations", type=int, default=1000)
    parser.add_argument("--figures", action="store_true", help="figure 3.7 too, minutes")
    args = parser.parse_args()
    document: dict[str, Any] = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "one_core": realisations(args.realisations),
    }
    if args.figures:
        document["figure_3_7"] = figures()
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
