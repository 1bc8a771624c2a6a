import numpy as np
import pytest

from sumrate.access.errors import AccessError
from sumrate.access.fairness import balance, competition_index, jain_index


def test_jain_of_equal_single_and_no_shares() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain_index([0.0, 0.0]) == 1.0
    assert jain_index([[1, 1], [1, 0]]).tolist() == [1.0, 0.5]


def test_jain_refuses_negative_shares() -> None:
    with pytest.raises(AccessError, match="must not be negative"):
        jain_index([1.0, -0.5])


def test_competition_counts_beams_that_win_by_the_margin() -> None:
    near = np.array([10.0, 10.0, 10.0, 10.0])
    other = np.array([13.0, 7.0, 9.0, 6.0])
    assert competition_index(near, other) == pytest.approx(0.5)
    assert competition_index(near, near - 20.0) == 0.0
    assert np.isnan(competition_index(near, near))
    assert competition_index(near, near + 20.0) == np.inf, "the near client never wins"


def test_balance_does_not_ask_who_wins() -> None:
    index = np.array([0.0, 0.25, 1.0, 4.0, np.inf, np.nan])
    assert balance(index).tolist() == [0.0, 0.25, 1.0, 0.25, 0.0, 1.0]


def test_decode_limit_leaves_out_beams_that_nobody_hears() -> None:
    near = np.array([10.0, -20.0])
    other = np.array([0.0, -5.0])
    assert competition_index(near, other) == 1.0
    assert competition_index(near, other, decode_db=1.0) == 0.0


def test_competition_needs_equal_numbers_of_beams() -> None:
    with pytest.raises(AccessError, match="not 4 and 3"):
        competition_index(np.zeros(4), np.zeros(3))
