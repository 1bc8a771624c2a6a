"""The README's picture and numbers of the demo, written from the result that it left in `out/`.

python -m sumrate.report.readme          # out/demo -> docs/results -> README.md; refused:
                                         # uncommitted files, void or failed transfers
python -m sumrate.report.readme --check  # README.md says what docs/results says
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sumrate.report.demo_page import TITLES, demo_chart
from sumrate.report.style import light_colours

Entry = Mapping[str, Any]
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def kept_of_demo(document: Entry) -> dict[str, Any]:
    """What the README needs of a demo's result: no command lines, no paths."""
    keys = ("goodput_mbps", "goodput_outside_blockage_mbps", "goodput_during_blockage_mbps",
            "longest_stall_ms", "duration_s", "sha256_ok", "void", "series")  # fmt: skip
    return {
        "commit": document["commit"],
        "kernel": document["kernel"],
        "started": document["started"],
        "blockage": document["blockage"],
        "sum_ratio": document["sum_ratio"],
        "sum_ratio_without_margin": document["sum_ratio_without_margin"],
        "schemes": {
            name: {key: entry[key] for key in keys if key in entry}
            for name, entry in document["schemes"].items()
        },
    }


def demo_table(demo: Entry) -> list[str]:
    """The demo's rows in Markdown."""
    lines = [
        "| one 2 GiB file by `curl`, WiGig blocked from 2 to 4 s | goodput, Mbit/s "
        "| outside the blockage | while blocked | longest stall, ms |",
        "|---|---|---|---|---|",
    ]
    for name, entry in demo["schemes"].items():
        if "goodput_mbps" not in entry:
            continue
        keys = ("goodput_mbps", "goodput_outside_blockage_mbps",
                "goodput_during_blockage_mbps", "longest_stall_ms")  # fmt: skip
        cells = [f"{entry[key]:.0f}" for key in keys]
        lines.append("| " + " | ".join([TITLES[name], *cells]) + " |")
    return lines


def block(demo: Entry) -> str:
    """Everything between the README's markers."""
    void = [TITLES[name] for name, entry in demo["schemes"].items() if entry.get("void")]
    lines = [
        BEGIN,
        f"`make demo`, {demo['started'][:10]}, kernel {demo['kernel'].split('-')[0]}, two cores: "
        f"outside the blockage Sumrate carried **{demo['sum_ratio']:.1%}** of the sum of the links "
        f"({demo['sum_ratio_without_margin']:.1%} counting the first half second and the half "
        "second after the blockage too).",
        *([f"Void, the emulator was late: {', '.join(void)}."] if void else []),
        "",
        *demo_table(demo),
        END,
    ]
    return "\n".join(lines)


def objections(document: Entry) -> list[str]:
    """Why a demo's result must not stand in the README; empty if it may."""
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


def inserted(readme: str, text: str) -> str:
    """The README with its block replaced."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    return pattern.sub(lambda _: text, readme)


def main(argv: list[str] | None = None) -> int:
    """Write or check; 1 if the README differs from the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path())
    args = parser.parse_args(argv)
    results = args.root / "docs" / "results"
    if not args.check:
        results.mkdir(parents=True, exist_ok=True)
        source = args.root / "out" / "demo" / "result.json"
        if source.exists():
            whole = json.loads(source.read_text())
            if refused := objections(whole):
                print("\n".join(["not taken over:", *refused]), file=sys.stderr)
                return 1
            kept = json.dumps(kept_of_demo(whole), indent=1) + "\n"
            (results / "demo.json").write_text(kept)
    demo = json.loads((results / "demo.json").read_text())
    picture = light_colours(demo_chart(demo)) + "\n"
    readme = args.root / "README.md"
    wanted = inserted(readme.read_text(), block(demo))
    if not args.check:
        (results / "demo.svg").write_text(picture)
        readme.write_text(wanted)
        return 0
    same = readme.read_text() == wanted and (results / "demo.svg").read_text() == picture
    if not same:
        print("README.md or docs/results/demo.svg is not what docs/results/demo.json says; "
              "run: python -m sumrate.report.readme", file=sys.stderr)  # fmt: skip
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
