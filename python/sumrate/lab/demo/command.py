"""`sumrate-lab demo`."""

import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from sumrate.lab.blockage import BLOCKAGE, DEFINITION, MARGIN_S, sum_ratio
from sumrate.lab.demo.rounds import WITHIN_S, Demo, Options, Rounds, round_s
from sumrate.lab.demo.setting import MEASURED_FIRST, SCALES, setting
from sumrate.lab.lateness import LATE_MS
from sumrate.lab.namespaces import IsolationUnavailableError, run_isolated
from sumrate.lab.options import Json, Runs, Seed
from sumrate.lab.payload import NoRoomError
from sumrate.lab.priority import granted, raise_own
from sumrate.lab.processor_users import ProcessorUsers
from sumrate.lab.programs import REPOSITORY, MissingProgramError, program, require
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import provenance, write_json
from sumrate.report.demo_page import demo_page
from sumrate.report.demo_words import summary
from sumrate.report.svg import standing_alone

SCHEMA = "sumrate.lab.demo.v1"
APPROXIMATE = 4
"""Exit status with --strict where the emulator was late."""
LEAST_SIZE = 1_000_000
ROOM_S = 15.0
"""Between what the sentence at the start promises and what the transfers should take."""


def failures(document: dict[str, Any]) -> list[str]:
    """What keeps the run from counting as a success: failed schemes and wrong checksums."""
    found = []
    for name, entry in document["schemes"].items():
        if "error" in entry:
            found.append(f"{name}: {entry['error']}")
        elif entry.get("missing"):
            if name != "mptcp":
                found.append(f"{name}: {entry['missing']}")
        elif not entry["sha256_ok"]:
            found.append(f"{name}: the received file differs from the one that was sent")
    return found


def status(document: dict[str, Any], *, strict: bool) -> int:
    """The exit status that goes with a result."""
    if failures(document):
        return 1
    return APPROXIMATE if strict and document["approximate"] else 0


def result(demo: Demo, rounds: Rounds, options: Options) -> dict[str, Any]:
    """The document of schema `sumrate.lab.demo.v1`."""
    measured = rounds.outcomes
    names = [scheme.name for scheme in rounds.setting.schemes if scheme.name in measured]
    curves = {name: curve for name in names if (curve := measured[name].curve)}
    entries = {name: measured[name].entry for name in names}
    return {
        "schema": SCHEMA,
        **provenance(sys.argv),
        "sampler_real_time": granted(),
        "scale": rounds.setting.scale,
        "trials": demo.trials,
        "given_up": rounds.given_up,
        "approximate": any(entry.get("void") for entry in entries.values()),
        "busy": demo.users.users(),
        "file": demo.payload,
        "seed": options.seed,
        "blockage": {"link": "wigig", "start_s": BLOCKAGE.start_s, "end_s": BLOCKAGE.end_s},
        "links": [
            {
                "name": link.name,
                "rate_mbps": link.down.rate_mbps,
                "rtt_ms": link.down.delay_ms + link.up.delay_ms,
                "queue_ms": link.down.queue_ms,
            }
            for link in rounds.setting.links
        ],
        "congestion_control": "cubic",
        "tcp_settings": next(
            (entry["tcp_settings"] for entry in entries.values() if "tcp_settings" in entry), {}
        ),
        "sum_ratio": sum_ratio(curves, MARGIN_S),
        "sum_ratio_without_margin": sum_ratio(curves, 0.0),
        "sum_ratio_definition": DEFINITION,
        "late_limit_ms": LATE_MS,
        "schemes": entries,
    }


def body(options: Options, users: ProcessorUsers) -> int:
    """Everything that happens inside the private namespaces."""
    raise_own()
    with ExitStack() as stack:
        if options.keep:
            work = options.output / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
        else:
            work = Path("/run/sumrate-lab")  # on the private tmpfs: gone with the processes
            work.mkdir()
            stack.callback(shutil.rmtree, work, ignore_errors=True)
        demo = Demo(options, work, users)
        try:
            document = result(demo, demo.run(), options)
        except (NoRoomError, MissingProgramError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return leave(document, options)


def leave(document: dict[str, Any], options: Options) -> int:
    """Writes the result, the picture and the page, and says what was seen."""
    write_json(options.output / "result.json", document)
    page = options.output / "report.html"
    page.write_text(demo_page(document), encoding="utf-8")
    (options.output / "demo.svg").write_text(standing_alone(document) + "\n", encoding="utf-8")
    if options.json:
        print((options.output / "result.json").read_text(encoding="utf-8"), end="")
    else:
        print(f"\n{summary(document)}\nThe picture and the numbers: {shown(page)}")
    for problem in failures(document):
        print(f"failed: {problem}", file=sys.stderr)
    return status(document, strict=options.strict)


def shown(path: Path) -> str:
    """The path as the user would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def size_in_bytes(text: str) -> int:
    """Reads a size such as 2G, 512Mi or 1048576."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(?:([KMG])(i?))?", text, re.IGNORECASE)
    if not found:
        raise RefusedError(f"{text}: use a number with K, M, G, Ki, Mi or Gi")
    number, unit, binary = found.groups()
    power = "KMG".index(unit.upper()) + 1 if unit else 0
    size = int(float(number) * (1024 if binary else 1000) ** power)
    if size < LEAST_SIZE:
        raise RefusedError(f"{text}: at least 1M, or there is nothing to measure")
    return size


def scale_of_rates(text: str) -> float:
    """Reads a scale such as 1, 1/4 or 0.25."""
    for scale in SCALES:
        if text in {f"{scale:g}", f"1/{1 / scale:g}"}:
            return scale
    raise RefusedError(f"{text}: use 1, 1/2, 1/4 or 1/8")


def announce(options: Options) -> None:
    """One sentence: what will happen, and for how long."""
    seconds = round_s(setting(1.0, options.size), options.only) + ROOM_S
    ways = len(options.only) or len(MEASURED_FIRST)
    print(
        f"curl downloads one file {ways} {'ways' if ways > 1 else 'way'} over emulated WiFi and "
        f"60 GHz links, and the 60 GHz link is blocked for 2 s: about {seconds:.0f} s, "
        f"{max(seconds, options.within_s):.0f} s on a busy machine.",
        file=sys.stderr,
    )


def demo(
    *,
    size: str = "1536Mi",
    scale: str | None = None,
    strict: bool = False,
    within: float = WITHIN_S,
    seed: Seed = 1,
    output: Runs = REPOSITORY / "out" / "demo",
    scheme: tuple[Literal["sumrate", "mptcp", "wigig", "wifi"], ...] = (),
    as_json: Json = False,
    keep: bool = False,
) -> int:
    """Download one file over two links, one of them blocked for two seconds.

    One real file by plain curl over WiFi, WiGig, kernel MPTCP and Sumrate, on emulated links.
    WiGig is blocked between seconds 2 and 4 of every download, counted from its first byte. The
    links have the largest rates that this machine can emulate: the full ones, half, a quarter or
    an eighth. Exit codes: 0 measured, 1 failed; with --strict 4 where the result is only
    approximate.

    Example: `sumrate-lab demo`, then open out/demo/report.html.

    Args:
        size: File size at the full rates, scaled with them.
        scale: Scale of the rates: 1, 1/2, 1/4 or 1/8 (what this machine carries).
        strict: Exit with 4 where the result is only approximate.
        within: Repeat a disturbed run only if it ends within this time, in seconds.
        scheme: Only this scheme (repeatable).
        keep: Keep logs and configurations.

    """
    options = Options(
        size=size_in_bytes(size),
        seed=seed,
        output=output.resolve(),
        only=scheme,
        scale=None if scale is None else scale_of_rates(scale),
        within_s=within,
        json=as_json,
        keep=keep,
        strict=strict,
    )
    try:
        require("ip", "ss", "nsenter", "sysctl", "curl")
        program("sumrate-link")
        options.output.mkdir(parents=True, exist_ok=True)
        announce(options)
        users = ProcessorUsers.open()
        return run_isolated(lambda: body(options, users))
    except (MissingProgramError, IsolationUnavailableError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
