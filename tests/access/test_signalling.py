import pytest

from sumrate.access.errors import AccessError
from sumrate.access.signalling import (
    Announcement,
    MiniSlotCoding,
    announcement_bits,
    announcement_octets,
    decode_merged,
)


@pytest.mark.parametrize("coding", list(MiniSlotCoding))
def test_every_value_of_every_field_survives(coding: MiniSlotCoding) -> None:
    step = coding.value[2]
    for slots in range(coding.least, coding.most + 1, step):
        said = Announcement(-86, 35, slots)
        assert Announcement.decode(said.encode(coding), coding) == said
    for target in range(-128, 128):
        said = Announcement(target, 0, coding.least)
        assert Announcement.decode(said.encode(coding), coding) == said
    for term in range(64):
        said = Announcement(-86, term, coding.most)
        assert Announcement.decode(said.encode(coding), coding) == said


def test_fields_have_20_bits_or_21_for_128() -> None:
    assert announcement_bits(MiniSlotCoding.SIX_BITS_FROM_36) == 8 + 6 + 6
    assert announcement_bits() == 8 + 6 + 7
    assert announcement_octets() == 3
    assert MiniSlotCoding.SEVEN_BITS.most == 128
    assert MiniSlotCoding.SIX_BITS_FROM_36.most == 99
    assert MiniSlotCoding.SIX_BITS_IN_TWOS.most == 128


def test_six_bits_do_not_code_128_numbers() -> None:
    coding = MiniSlotCoding.SIX_BITS_FROM_36
    with pytest.raises(AccessError, match="mini-slots must be 36 to 99, not 128"):
        coding.encode(128)
    assert MiniSlotCoding.SIX_BITS_IN_TWOS.decode(MiniSlotCoding.SIX_BITS_IN_TWOS.encode(81)) == 82


def test_sum_of_target_and_term_is_enough() -> None:
    assert decode_merged(Announcement(-86, 35, 82).encode_merged()) == (-51, 82)
    for total in range(-64, 0):
        said = Announcement(total, 0, 64)
        assert decode_merged(said.encode_merged()) == (total, 64)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (Announcement(-129, 35, 64), r"target power \(dBm\) must be -128 to 127, not -129"),
        (Announcement(-86, 64, 64), r"term \(dB\) must be 0 to 63, not 64"),
        (Announcement(-86, 35, 129), "mini-slots must be 1 to 128, not 129"),
    ],
)
def test_what_does_not_fit_is_refused(said: Announcement, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        said.encode()


def test_more_bits_than_fields_are_refused() -> None:
    with pytest.raises(AccessError, match="has 21 bits"):
        Announcement.decode(1 << 21)
