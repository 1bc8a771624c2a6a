"""Reports of real faults become tables, and those of failures do not."""

import json
from pathlib import Path

import pytest

import trust_report
from sumrate.lab.faults.account import LEAST_RATIO, ROUNDS_JUDGED
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.fault import FEW_DESCRIPTORS, SERVER, VICTIM
from sumrate.lab.faults.transfer import CHUNK, Checker, chunk


def test_the_bounds_of_descriptors_are_those_of_the_code(repository: Path) -> None:
    text = " ".join((repository / "docs/reliability.md").read_text(encoding="utf-8").split())
    flood = FAULTS["stream-flood"].opens[SERVER]
    half_open = FAULTS["half-open-handshakes"].opens[SERVER]
    dialing = FAULTS["blackout"].opens[VICTIM]
    assert (
        f"at most {FEW_DESCRIPTORS} descriptors open, besides those of the fault itself, and "
        f"closed them at the end. Such faults are `stream-flood` ({flood:,} of the server), "
        f"`half-open-handshakes` ({half_open:,}) and a client that redials ({dialing:,})"
    ) in text


def report(**changes: object) -> dict[str, object]:
    row = {
        "what": "w",
        "injected": 3,
        "bytes": 3_000_000,
        "bytes_lost": 0,
        "longest_stall_ms": 1234.0,
        "longest_recovery_ms": 5.0,
        "others_ratio": {"median": 0.97, "least": 0.91},
    }
    return {
        "faults": {"blackout": row},
        "transfers": {"right": 8, "broken": 1},
        "bytes": 3_000_000,
        "bytes_lost": 0,
        "bad_transfers": [],
        "panics": [],
        "memory": {"server": {"peak_bytes": 90_000_000, "known_by": "VmHWM"}},
        "most_descriptors": {"server": 20},
        "problems": [],
        **changes,
    }


def test_a_report_becomes_a_table() -> None:
    text = trust_report.section("faults", report())
    assert "| blackout | w | 3 | 3 | 0 | 1,234 | 5 | 97% (91%) |" in text
    assert "9 transfers, 3 MB compared byte by byte, 0 bytes lost; 1 transfers failed" in text


def written(folder: Path, content: dict[str, object]) -> list[str]:
    path = folder / "report.json"
    path.write_text(json.dumps(content))
    return ["--faults", str(path)]


@pytest.mark.parametrize(
    ("field", "value"),
    [("bytes_lost", 1), ("bad_transfers", ["x"]), ("panics", ["x"]), ("problems", ["x: lost"])],
)
def test_a_report_of_a_failure_is_no_table(field: str, value: object, tmp_path: Path) -> None:
    words = written(tmp_path, report(**{field: value}))
    with pytest.raises(trust_report.TableError, match="lost"):
        trust_report.load("faults", Path(words[1]))


def with_row(**changes: object) -> dict[str, object]:
    found = report()
    rows = found["faults"]
    assert isinstance(rows, dict)
    return {**found, "faults": {"blackout": {**rows["blackout"], **changes}}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"others_ratio": {"median": 0.89, "least": 0.5}}, "left the other client 89%"),
        ({"injected": 2}, "was made 2 times, 3 are needed"),
        ({"others_ratio": None}, "no reason"),
    ],
)
def test_others_that_were_slowed_down_or_not_judged_are_no_table(
    changes: dict[str, object], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trust_report.main(written(tmp_path, with_row(**changes))) == 2
    assert words in capsys.readouterr().err


def test_a_fault_that_stops_everybody_says_why(tmp_path: Path) -> None:
    found = with_row(others_ratio=None, stops_everybody="no server runs")
    written(tmp_path, found)
    read = trust_report.load("faults", tmp_path / "report.json")
    assert "| none: no server runs |" in trust_report.section("faults", read)


def test_the_bounds_of_table_and_campaign_are_the_same() -> None:
    assert trust_report.LEAST_RATIO == LEAST_RATIO
    assert trust_report.ROUNDS_JUDGED == ROUNDS_JUDGED


ATTACKS = {
    "attacks": {
        "garbage": {
            "what": "w", "made": 5000, "closed": 4900, "answered": 0, "transfers": 12,
            "bytes": 9_000_000, "bytes_lost": 0, "sessions": 2, "sessions_harmed": 0,
        }
    },
    "connections": 5000, "bytes_lost": 0, "sessions_harmed": 0, "problems": [],
}  # fmt: skip
FUZZ = {"targets": [{"executions": 1_000_000}, {"executions": 500}], "seconds": 30}


def test_bad_inputs_and_harmed_sessions_are_counted() -> None:
    text = trust_report.section("attacks", ATTACKS, FUZZ)
    assert "1,000,500 inputs of 2 fuzz targets and 5,000 hostile connections: 0 sessions" in text
    assert "| garbage | w | 5,000 | 4,900 | 0 | 12 | 9 | 0 of 2 |" in text
    alone = trust_report.section("attacks", ATTACKS, None)
    assert alone.startswith("## Attacks\n\n5,000 hostile connections: 0 ")


def test_what_a_load_run_held_is_said() -> None:
    text = trust_report.section(
        "load",
        {
            "cores": 2, "sessions_at_once": 100, "streams": 1000, "completed_share": 1.0,
            "goodput_mbps": 1234.0, "handshakes_per_s": 1500.0,
            "server_cpu_ms_per_handshake": 0.4, "idle_share": 0.03,
        },
    )  # fmt: skip
    assert "| sessions that transfer at once | 100 (100% complete) |" in text
    assert "| full TLS handshakes with Hello, a second | 1,500 |" in text
    assert "| of the cores idle meanwhile | 3% |" in text


def deliver(checker: Checker, data: bytes, piece: int) -> None:
    for begin in range(0, len(data), piece):
        part = data[begin : begin + piece]
        while part:
            room = checker.buffer()[: len(part)]
            room[:] = part[: len(room)]
            checker.took(len(room))
            part = part[len(room) :]


SIZE = 2 * CHUNK + 1000
SENT = b"".join(chunk(7, number) for number in range(3))[:SIZE]


def other(byte: int) -> bytes:
    return bytes([byte ^ 1])


@pytest.mark.parametrize("piece", [999, 1 << 16, SIZE])
def test_what_was_sent_is_right(piece: int) -> None:
    checker = Checker(7, SIZE)
    deliver(checker, SENT, piece)
    assert (checker.finish(), checker.wrong, checker.received) == (0, 0, SIZE)


@pytest.mark.parametrize(
    ("received", "missing", "wrong"),
    [
        (SENT[:-1], 1, 0),
        (SENT[:CHUNK], CHUNK + 1000, 0),
        (SENT[:500] + other(SENT[500]) + SENT[501:], 0, CHUNK),
        (SENT[:-1] + other(SENT[-1]), 0, 1000),
        (SENT[:CHUNK] + SENT[:CHUNK] + SENT[2 * CHUNK :], 0, CHUNK),
        (SENT + b"x", 0, 1),
    ],
    ids=["a byte short", "a chunk only", "one byte", "the last byte", "a chunk twice", "more"],
)
def test_what_was_not_sent_is_found(received: bytes, missing: int, wrong: int) -> None:
    checker = Checker(7, SIZE)
    deliver(checker, received, 1 << 16)
    assert checker.finish() == missing
    assert checker.wrong >= wrong > 0 or (wrong == 0 == checker.wrong)
