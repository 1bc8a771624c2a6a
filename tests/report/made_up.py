"""A made-up run of an experiment: two conditions, four schemes and a missing one, a void run."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sumrate.verdict.model import DEPENDS, FAILS, HOLDS, UNMEASURED, Demand, Entry

Row = dict[str, Any]

RATES = {"wifi": 630.0, "wigig": 1800.0}
SCHEMES = {
    "wifi": "WiFi alone",
    "wigig": "WiGig alone",
    "mptcp": "Kernel MPTCP",
    "sumrate": 'Sumrate <pipelined> & "own"',
}
MISSING = ("tquic", "TQUIC", "tquic_client is not installed: run `make peers` <first>")
CONDITIONS = {"normal": "Normal", "blackout": "WiGig silent for 3 s <both ways>"}
SHARE = {"wifi": 0.259, "wigig": 0.741, "mptcp": 0.93, "sumrate": 0.99}
DARK = (4.0, 7.0)
SECONDS = 12
VOID = ("mptcp", "normal", 3)
REPETITIONS = 5


def _series(random_: random.Random, scheme: str, condition: str) -> list[tuple[float, float]]:
    total = sum(RATES.values())
    points = []
    for index in range(SECONDS * 10):
        at = index / 10 + 0.05
        rate = total * SHARE[scheme]
        if condition == "blackout" and DARK[0] <= at < DARK[1]:
            rate = {"wifi": rate, "wigig": 0.0, "mptcp": 300.0, "sumrate": 628.0}[scheme]
        ramp = min(1.0, (at + 0.1) / 0.4)
        points.append((round(at, 3), max(0.0, rate * ramp * random_.gauss(1, 0.03))))
    return points


def _values(random_: random.Random, scheme: str, goodput: float, *, dark: bool) -> list[Row]:
    stall = {"wifi": 6.0, "wigig": 3000.0, "mptcp": 400.0, "sumrate": 28.0}[scheme]
    found = [
        ("goodput_mbps", goodput, "Mbit/s"),
        ("sum_ratio", goodput / sum(RATES.values()), "ratio"),
        ("longest_stall_ms", (stall if dark else 6.0) * random_.uniform(0.8, 1.2), "ms"),
        ("in_order_delay_p99_ms", random_.uniform(2, 40), "ms"),
        ("reassembly_peak_bytes", random_.uniform(2e5, 3e6), "B"),
        ("cpu_s_per_gb", random_.uniform(0.8, 2.2), "s/GB"),
        ("redundant_share", random_.uniform(0.0, 0.02), "ratio"),
        ("sample_p5_mbps", goodput * 0.95, "Mbit/s"),
        ("sample_p50_mbps", goodput, "Mbit/s"),
        ("sample_p95_mbps", goodput * 1.04, "Mbit/s"),
    ]
    if dark:
        found.append(("recovery_ms", random_.uniform(100, 900), "ms"))
        found.append(("blackout_goodput_mbps", goodput / 3, "Mbit/s"))
    return [{"metric": name, "value": value, "unit": unit} for name, value, unit in found]


def _runs() -> list[Row]:
    return [
        {
            "scheme": scheme,
            "condition": condition,
            "congestion_control": "cubic",
            "buffers": "default",
            "repetition": repetition,
        }
        for condition in CONDITIONS
        for repetition in range(REPETITIONS)
        for scheme in SCHEMES
    ]


def rows(seed: int = 7) -> tuple[list[Row], list[Row]]:
    """Rows of metrics.parquet and of series.parquet; the void run has absurd values."""
    random_ = random.Random(seed)
    metrics, series = [], []
    for run in _runs():
        void = (run["scheme"], run["condition"], run["repetition"]) == VOID
        common = {"experiment": "made-up", **run}
        points = _series(random_, run["scheme"], run["condition"])
        goodput = 9999.0 if void else sum(rate for _, rate in points) / len(points)
        dark = run["condition"] == "blackout"
        for value in _values(random_, run["scheme"], goodput, dark=dark):
            metrics.append(
                {**common, "claims": "T-4.1b-normal-mptcp", "seed": seed, "void": void, **value}
            )
        series += [
            {**common, "t_s": at, "goodput_mbps": 9999.0 if void else rate} for at, rate in points
        ]
    return metrics, series


def manifest() -> Row:
    """A manifest with one void run, one missing scheme and a blackout."""
    schemes: list[Row] = [
        {"name": name, "title": title, "kind": "alone" if name in RATES else name}
        for name, title in SCHEMES.items()
    ]
    schemes.append(
        {"name": MISSING[0], "title": MISSING[1], "kind": "tquic", "missing": MISSING[2]}
    )
    return {
        "schema": "sumrate.lab.run.v1",
        "experiment": "made-up",
        "title": "Two radios, one goes <silent>",
        "question": "Does the sum arrive while WiGig is blocked & comes back?",
        "started": "2026-11-20T10:00:00+00:00",
        "finished": "2026-11-20T10:09:00+00:00",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "kernel": "6.12.0-test",
        "machine": {"cpus": 2, "architecture": "x86_64"},
        "argv": ["sumrate-lab", "run", "made-up"],
        "seeds": [7],
        "links": [
            {"condition": condition, "name": name, "title": title, "rate_mbps": RATES[name],
             "rtt_ms": rtt, "queue_ms": 20.0, "loss": 0.0,
             "blackouts": [[*DARK, "both"]] if (condition, name) == ("blackout", "wigig") else []}
            for condition in CONDITIONS
            for name, title, rtt in (("wifi", "WiFi", 8.0), ("wigig", "WiGig", 4.0))
        ],
        "schemes": schemes,
        "conditions": [
            {"name": name, "title": title, "why_not": {"mptcp": "too <late> here"}}
            for name, title in CONDITIONS.items()
        ],
        "why_not": {"aggligator": "it is measured `<elsewhere>`"},
        "runs": [
            {**run, "command": f"measure --scheme {run['scheme']} --cc <cubic>",
             "other_commands": ["listen --port <5202>"], "worst_lateness_ms": 24.749,
             "void_before_ms": [31.5] if run["repetition"] == 4 else [],
             **({"failed_before": ["no <page> came"]} if _place(run) == AGAIN else {}),
             "void": (run["scheme"], run["condition"], run["repetition"]) == VOID}
            for run in _runs()
        ] + [
            {"scheme": MISSING[0], "condition": "normal", "congestion_control": "cubic",
             "buffers": "default", "repetition": 0, "void": False, "missing": MISSING[2]}
        ],
    }  # fmt: skip


AGAIN = ("mptcp", "blackout", 2)
"""A run that failed at first."""


def _place(run: Row) -> tuple[str, str, int]:
    return run["scheme"], run["condition"], run["repetition"]


def entries() -> list[Entry]:
    """Claims and goals of each verdict; one check of a goal is of another experiment."""

    def demand(kind: str, name: str, verdict: str, statement: str) -> Demand:
        return Demand(kind, name, statement, "at least 0.9", "made-up", verdict=verdict)

    def entry(name: str, document: str, verdict: str, *checks: Demand, fitted: str = "") -> Entry:
        experiments = ", ".join(dict.fromkeys(check.experiment for check in checks))
        return Entry(
            name, document, "Fig. 4.1b", "about 2300 Mb/s <sum>", f"{name} says so.", experiments,
            "", verdict, "", "", "", "" if checks else "Nobody has such radios.", fitted, checks,
        )  # fmt: skip

    whole = {"sumrate": (0.9312, 0.97), "mptcp": (0.25, 0.5), "tquic": (3.0, 3.0)}
    measured = replace(
        demand("claim", "T-1", HOLDS, "MPTCP reaches `0.9` of <the sum>"),
        measured=whole,
        points={"sumrate": 2, "mptcp": 2, "tquic": 1},
    )
    missed = replace(
        demand("goal", "P5", FAILS, "Longest stall"),
        missed_in=("blackout: 52.5",),
        cause="The <first> probe waits.",
        measured={"sumrate": (52.5, 52.5)},
    )
    again = replace(missed, statement="Longest stall, again")
    elsewhere = Demand("goal", "P5", "Another part", "", "third-study")
    return [
        entry("T-1", "D4", HOLDS, measured, fitted="The <sum> was set to it."),
        entry("W-7", "D0", UNMEASURED),
        entry("P5", "goal", DEPENDS, missed, again, elsewhere),
        entry("S23", "goal", HOLDS, demand("goal", "S23", HOLDS, "A rule of a system")),
    ]


def write_run(folder: Path, *, seed: int = 7, factor: float = 1.0) -> Path:
    """Writes the whole result folder; `factor` changes what Sumrate reaches."""
    folder.mkdir(parents=True)
    metrics, series = rows(seed)
    for row in metrics:
        if row["scheme"] == "sumrate" and row["metric"] == "goodput_mbps":
            row["value"] *= factor
    pq.write_table(pa.Table.from_pylist(metrics), folder / "metrics.parquet")
    pq.write_table(pa.Table.from_pylist(series), folder / "series.parquet")
    (folder / "manifest.json").write_text(json.dumps(manifest()), encoding="utf-8")
    return folder


def text_of(report: Path) -> str:
    """The index and, behind it, the page of each experiment."""
    pages = sorted(report.with_name(f"{report.stem}-pages").glob("*.html"))
    return "".join(page.read_text(encoding="utf-8") for page in (report, *pages))
