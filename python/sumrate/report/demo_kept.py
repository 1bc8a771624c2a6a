"""The kept result of the demo and its picture, which the README shows.

python -m sumrate.report.demo_kept          # out/demo -> docs/results/demo.json and demo.svg;
                                            # refused: uncommitted files, void or failed transfers
python -m sumrate.report.demo_kept --check  # demo.svg is drawn from demo.json
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sumrate.report.svg import TITLES, standing_alone

Entry = Mapping[str, Any]


def kept_of_demo(document: Entry) -> dict[str, Any]:
    """The kept part of a demo's result: no command lines, no paths."""
    keys = ("goodput_mbps", "goodput_outside_blockage_mbps", "goodput_during_blockage_mbps",
            "longest_stall_ms", "duration_s", "sha256_ok", "void", "series")  # fmt: skip
    return {
        "commit": document["commit"],
        "kernel": document["kernel"],
        "started": document["started"],
        "blockage": document["blockage"],
        "sum_ratio": document["sum_ratio"],
        "sum_ratio_without_margin": document["sum_ratio_without_margin"],
        **{key: document[key] for key in ("scale", "file") if key in document},
        "schemes": {
            name: {key: entry[key] for key in keys if key in entry}
            for name, entry in document["schemes"].items()
        },
    }


def objections(document: Entry) -> list[str]:
    """Why a demo's result must not be kept; empty if it may."""
    found = []
    commit = str(document["commit"])
    if commit.endswith("-dirty") or commit == "unknown":
        found.append(f"demo: made from uncommitted files ({commit})")
    found += [
        f"demo: {TITLES[scheme]}: {reason}"
        for scheme, entry in document["schemes"].items()
        for reason in ("void", "error")
        if entry.get(reason)
    ]
    return found


def main(argv: list[str] | None = None) -> int:
    """Keep or check; 1 if the result must not be kept, or the picture is of another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path())
    args = parser.parse_args(argv)
    results = args.root / "docs" / "results"
    if not args.check:
        whole = json.loads((args.root / "out" / "demo" / "result.json").read_text())
        if refused := objections(whole):
            print("\n".join(["not taken over:", *refused]), file=sys.stderr)
            return 1
        results.mkdir(parents=True, exist_ok=True)
        (results / "demo.json").write_text(json.dumps(kept_of_demo(whole), indent=1) + "\n")
    demo = json.loads((results / "demo.json").read_text())
    picture = standing_alone(demo) + "\n"
    if not args.check:
        (results / "demo.svg").write_text(picture)
        return 0
    same: bool = (results / "demo.svg").read_text() == picture
    if not same:
        print("docs/results/demo.svg is not drawn from docs/results/demo.json; "
              "run: python -m sumrate.report.demo_kept", file=sys.stderr)  # fmt: skip
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
