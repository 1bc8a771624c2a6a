"""Writes what was found on initial access into docs/initial-access.md, from the kept results.

The document has tables and a sentence on speed between markers. `--check` writes nothing: it
fails where one of them is not what docs/results says.

Run: python tools/access_tables.py [--check]
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from sumrate.access.curves import CURVES
from sumrate.access.figures.catalogue import PARTS
from sumrate.access.participation import SITUATIONS
from sumrate.access.scenes import SCENES
from trust_contents import TableError, table
from trust_tables import marked

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/initial-access.md"
KEPT = ROOT / "docs/results/lab"
SPEED = ROOT / "docs/results/access-speed.json"
"""What benches/access_realisations.py --figures printed."""
THREE = ("jpoc", "dot11ad", "dot11ad-random")
MISSING = "-"


class Values:
    """Medians over the repetitions of a kept result."""

    def __init__(self, name: str) -> None:
        """Reads the result of the experiment of this name."""
        path = KEPT / name / "metrics.parquet"
        if not path.is_file():
            raise TableError(f"{path}: no such result: sumrate-lab keep {name}")
        found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for row in pq.read_table(path).to_pylist():
            found[row["scheme"], row["condition"], row["metric"]].append(row["value"])
        self._found = {key: statistics.median(values) for key, values in found.items()}

    def __call__(self, scheme: str, condition: str, metric: str, form: str = ".2f") -> str:
        """A value as text; a dash where there is none."""
        value = self._found.get((scheme, condition, metric))
        return MISSING if value is None else format(value, form)


def protocols(value: Values) -> str:
    """Every protocol at the largest blockage."""
    rows = []
    for name, curve in CURVES.items():
        figure = "ablation" if name in PARTS else "variants"
        at = {scene: f"{figure}/{scene}@0.9" for scene in SCENES}
        rows.append(
            [
                f"`{name}`: {curve.title}" + (" (extension)" if curve.extension else ""),
                *(value(name, at[scene], "jain")
                  for scene in ("los-aligned", "los-spread", "office-aligned", "office-random")),
                value(name, at["office-aligned"], "failure_probability"),
                value(name, at["office-aligned"], "mini_slots", ".0f"),
                value(name, at["office-random"], "never_served", ".1%").replace("%", " %"),
            ]
        )  # fmt: skip
    head = ["protocol", "line of sight, facing", "line of sight, up to 60°", "office, facing",
            "office, anywhere", "failures, office, facing", "mini-slots there",
            "never heard, office, anywhere"]  # fmt: skip
    return table(head, rows)


def overhead(value: Values) -> str:
    """802.11ad's mini-slots over JPOC's."""
    rows = [
        [f"{SCENES[scene].title}, {order}"]
        + [value(scheme, f"{scene}@{clients}", "ratio", ".1f") for clients in (4, 16, 64)]
        for scene in ("los-aligned", "office-aligned", "los-spread", "office-random")
        for order, scheme in (
            ("common order", "802.11ad over JPOC"),
            ("random order", "802.11ad with random beam order over JPOC"),
        )
    ]
    return table(["802.11ad over JPOC", "4 clients", "16", "64"], rows)


def changes(value: Values) -> str:
    """Jain's index and failures of the three curves where one thing is changed."""
    where: list[tuple[str, str]] = []
    for scene in ("line of sight", "office"):
        where += [(f"{scene}, turned by up to {x}°", f"orientation/{scene}@{x}")
                  for x in (0, 15, 60, 180)]  # fmt: skip
    for scene, title in (("los-aligned", "line of sight"), ("office-aligned", "office")):
        where += [(f"{title}, device models: {x}, blockage 0.9", f"devices/{scene}@{x}")
                  for x in (1, 2, 4)]  # fmt: skip
    for capture in ("on", "off"):
        where += [(f"office, decoding from {x} dB, capture {capture}",
                   f"thresholds/office-aligned, capture {capture}@{x}")
                  for x in (1, -4, -12)]  # fmt: skip
    where += [(f"office, capture from {x} dB", f"capture/office-aligned@{x}") for x in (1, 5, 10)]
    where += [(f"office, cells of 10 m side by side: {x}", f"access-points/office-aligned@{x}")
              for x in (1, 2, 4)]  # fmt: skip
    rows = [[title, *(_pair(value, name, at) for name in THREE)] for title, at in where]
    return table(["changed", *(CURVES[name].title for name in THREE)], rows)


def _pair(value: Values, name: str, at: str) -> str:
    return f"{value(name, at, 'jain')} ({value(name, at, 'failure_probability')})"


def power(value: Values) -> str:
    """JPOC's fairness where clients set their power with errors."""
    names = ("exact", "whole dB in the fields", "steps of 3 dB", "3 dB more after a failure")
    rows = [
        [f"{SCENES[scene].title}, {x} dB"]
        + [value(name, f"power-error/{scene}@{x}", "jain") for name in names]
        for scene in ("los-aligned", "office-aligned", "office-random")
        for x in (0, 2, 6)
    ]
    return table(["error, standard deviation", *names], rows)


def estimator(value: Values) -> str:
    """What (3.8) and (3.9) settle at after the step."""
    rows = [
        [SCENES[scene].title, scheme, value(scheme, scene, "intervals_to_90_percent", ".0f"),
         value(scheme, scene, "settled_over_true"), value(scheme, scene, "deviation")]
        for scene in ("los-aligned", "office-aligned")
        for scheme in ("T = 1", "T = 5", "T = 10", "T = 5, two-K")
    ]  # fmt: skip
    return table(["scene", "mean of", "intervals to 90 %", "settles at, of the true number",
                  "deviation, clients"], rows)  # fmt: skip


def competition(value: Values) -> str:
    """Medians over the cells of the office grid."""
    rows = [
        [f"{SCENES[scene].title}, {target}"]
        + [value("grid", f"{scene}, {target}", metric)
           for metric in ("median_index", "median_balance", "median_balance_decodable")]
        for scene in ("office-aligned", "office-spread")
        for target in ("no power control", "target 10 dB", "target 4 dB", "target 4 dB, 64 beams")
    ]  # fmt: skip
    return table(["median over the cells", "index", "evenness", "of beams that are decoded"], rows)


def participation(value: Values) -> str:
    """Seconds between a client's trainings."""
    rows = [
        [situation.title]
        + [value(policy, name, "interval_s", ".0f") for policy in ("product", "restrained")]
        for name, situation in SITUATIONS.items()
    ]
    return table(["client", "product, s", "restrained, s"], rows)


def speed(path: Path) -> str:
    """What the benchmark measured, in a sentence."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error
    one, whole = found["one_core"], found["figure_3_7"]
    rates = [result["realisations_per_second"] for result in one["results"]]
    return (
        f"Last measured, {found['cores']} cores ({found['processor']}): {min(rates):.0f} to "
        f"{max(rates):.0f} realisations per second,\n{one['seconds_per_1000_slowest']:.1f} s for "
        f"1,000 where it takes longest; figure 3.7 whole in {whole['whole_s']:.0f} s."
    )


def tables() -> dict[str, str]:
    """Every table by its marker."""
    ablation = Values("access-ablation")
    return {
        "protocols": protocols(ablation),
        "overhead": overhead(Values("access-overhead")),
        "changes": changes(ablation),
        "power": power(ablation),
        "estimator": estimator(Values("access-estimator")),
        "competition": competition(Values("access-competition")),
        "participation": participation(Values("access-participation")),
        "speed": speed(SPEED),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if a table is out of step, 2 if a result or marker is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args(argv)
    try:
        text = DOCUMENT.read_text(encoding="utf-8")
        new = text
        for name, content in tables().items():
            pattern = marked(name)
            if len(pattern.findall(new)) != 1:
                raise TableError(f"{DOCUMENT}: one place marked '{name}' is needed")
            # The tables hold no backslash that a replacement would read.
            new = pattern.sub(rf"\g<1>\n{content}\n\n\g<2>", new)
    except TableError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.check and new != text:
        print(f"{DOCUMENT} is out of step; run: python tools/access_tables.py")
        return 1
    if not arguments.check:
        DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
