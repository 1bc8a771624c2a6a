"""The published tables of real faults are of the faults that there are."""

import json
from pathlib import Path

import pytest

import trust_tables
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.content import CHUNK, Checker, chunk


def test_the_table_has_every_fault_and_no_other(repository: Path) -> None:
    text = (repository / "docs/reliability.md").read_text(encoding="utf-8")
    match = trust_tables.marked("real faults").search(text)
    assert match
    assert {row[:2] for row in trust_tables.first_cells(match[0], 2)} == {
        (fault.name, fault.what) for fault in FAULTS.values()
    }, "run: make faults tables"


def report(**changes: object) -> dict[str, object]:
    row = {
        "what": "w",
        "injected": 2,
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
        **changes,
    }


def test_a_report_becomes_a_table() -> None:
    text = trust_tables.real_faults(report())
    assert "| blackout | w | 2 | 3 | 0 | 1,234 | 5 | 97% (91%) |" in text
    assert "9 transfers, 3 MB compared byte by byte, 0 bytes lost; 1 transfers failed" in text


@pytest.mark.parametrize("field", ["bytes_lost", "bad_transfers", "panics"])
def test_a_report_of_a_failure_is_no_table(field: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report(**{field: 1 if field == "bytes_lost" else ["x"]})))
    with pytest.raises(trust_tables.TableError, match="lost"):
        trust_tables.real(path)


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
