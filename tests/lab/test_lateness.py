"""When a run is void."""

import pytest

from sumrate.lab.lateness import is_late


@pytest.mark.parametrize(
    ("worst", "late", "void"),
    [(3.0, 0, False), (24.9, 10, False), (25.1, 1, True), (5.0, 1001, True), (5.0, 1000, False)],
)
def test_void_by_worst_and_by_share(worst: float, late: int, void: bool) -> None:
    counted = {"worst_ms": worst, "late_over_2ms": late, "events": 100_000}
    assert is_late({"lateness_since_reset": counted}) is void


def test_unknown_lateness_is_void() -> None:
    assert is_late({})
