import pytest

from sumrate.access.errors import AccessError
from sumrate.access.frames import (
    FEEDBACK_OCTETS,
    SSW_OCTETS,
    Feedback,
    FrameError,
    SectorSweep,
    SswFeedbackFrame,
    SswFrame,
)

AP, CLIENT = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


@pytest.mark.parametrize("countdown", [0, 35, 511])
@pytest.mark.parametrize("sector", [0, 17, 63])
@pytest.mark.parametrize("snr_db", [-13.0, 0.25, 50.75])
def test_ssw_frames_survive(countdown: int, sector: int, snr_db: float) -> None:
    frame = SswFrame(
        AP,
        CLIENT,
        SectorSweep(False, countdown, sector, 2, 9),
        Feedback(sector, snr_db, 1, True),
        99,
    )
    octets = frame.encode()
    assert len(octets) == SSW_OCTETS
    assert SswFrame.decode(octets) == frame


def test_feedback_frame_survives() -> None:
    frame = SswFeedbackFrame(CLIENT, AP, Feedback(12, 7.5))
    octets = frame.encode()
    assert len(octets) == FEEDBACK_OCTETS
    assert SswFeedbackFrame.decode(octets) == frame


def test_fields_are_where_the_standard_has_them() -> None:
    assert SectorSweep(True, 0, 0).encode() == 0
    assert SectorSweep(False, 0, 0).encode() == 1
    assert SectorSweep(True, 1, 0).encode() == 1 << 1
    assert SectorSweep(True, 0, 1).encode() == 1 << 10
    assert SectorSweep(True, 0, 0, 1).encode() == 1 << 16
    assert SectorSweep(True, 0, 0, 0, 1).encode() == 1 << 18
    assert Feedback(1, 19.0).encode() == 1
    assert Feedback(0, 19.25).encode() == 1 << 8


@pytest.mark.parametrize("bit", range(SSW_OCTETS * 8))
def test_a_flipped_bit_is_noticed(bit: int) -> None:
    octets = bytearray(SswFrame(AP, CLIENT, SectorSweep(False, 3, 4), Feedback(5, 6.0)).encode())
    octets[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FrameError):
        SswFrame.decode(bytes(octets))


def test_other_frames_are_refused() -> None:
    feedback = SswFeedbackFrame(CLIENT, AP, Feedback(12, 7.5)).encode()
    with pytest.raises(FrameError, match="must have 26 octets, not 28"):
        SswFrame.decode(feedback)
    with pytest.raises(FrameError, match="frame control"):
        SswFrame.decode(feedback[:26])


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (SectorSweep(False, 512, 0), "CDOWN must be 0 to 511, not 512"),
        (SectorSweep(False, 0, 64), "sector ID must be 0 to 63, not 64"),
        (Feedback(0, 60.0), "SNR must be -13 to 50.75 dB, not 60"),
    ],
)
def test_what_does_not_fit_is_refused(field: SectorSweep | Feedback, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        field.encode()
