"""When a run is void."""

import pytest

from sumrate.lab.lateness import is_late, why_late


@pytest.mark.parametrize(
    ("worst", "late", "void"),
    [(3.0, 0, False), (24.9, 10, False), (25.1, 1, True), (5.0, 1001, True), (5.0, 1000, False)],
)
def test_void_by_worst_and_by_share(worst: float, late: int, void: bool) -> None:
    counted = {"worst_ms": worst, "late_over_2ms": late, "events": 100_000}
    assert is_late({"lateness_since_reset": counted}) is void


def test_unknown_lateness_is_void() -> None:
    assert is_late({})


def test_what_made_a_run_void_is_said_with_its_limit() -> None:
    counted = {"worst_ms": 13.0, "late_over_2ms": 4625, "events": 145_574}
    assert why_late({"lateness_since_reset": counted}) == (
        "the emulator sent 3.2% of the packets more than 2 ms late (limit: 1%)"
    )
    assert why_late({"lateness_since_reset": counted | {"late_over_2ms": 12}}) is None
