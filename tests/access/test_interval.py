import pytest

from sumrate.access.errors import AccessError
from sumrate.access.interval import (
    FEEDBACK_US,
    SSW_US,
    SlottedAbft,
    bti_us,
    control_frame_us,
    divide,
    mini_slot_abft_us,
)


def test_air_times_of_the_standard() -> None:
    assert pytest.approx(14.91, abs=0.005) == SSW_US
    assert pytest.approx(18.26, abs=0.01) == FEEDBACK_US


@pytest.mark.parametrize(("frames", "slot_us"), [(8, 163), (16, 290), (36, 609)])
def test_slot_durations(frames: int, slot_us: float) -> None:
    assert SlottedAbft(8, frames).slot_us == slot_us


def test_multiplier_of_802_11ay_multiplies_the_slots() -> None:
    assert SlottedAbft.standard(8, 16, 3).all_slots == 32
    assert SlottedAbft.standard(8, 16, 3).duration_us == 32 * 290


def test_the_standard_cannot_name_36_frames() -> None:
    with pytest.raises(AccessError, match="FSS must be 1 to 16, not 36"):
        SlottedAbft.standard(8, 36)
    assert SlottedAbft(8, 36).mini_slots == 288


def test_parts_add_up_to_the_interval() -> None:
    parts = divide(SlottedAbft().duration_us, clients=16)
    assert parts.total == pytest.approx(100_000.0)
    assert parts.dti > 90_000
    jpoc = divide(mini_slot_abft_us(82, 16), clients=16, jpoc=True)
    assert jpoc.abft < parts.abft
    assert jpoc.bti > parts.bti


def test_jpocs_fields_make_each_beacon_longer() -> None:
    longer = control_frame_us(34 + 3) - control_frame_us(34)
    assert bti_us(36, 3) - bti_us(36) == pytest.approx(36 * longer)


def test_a_header_without_room_is_refused() -> None:
    with pytest.raises(AccessError, match="use fewer mini-slots or a longer interval"):
        divide(SlottedAbft(200).duration_us)
