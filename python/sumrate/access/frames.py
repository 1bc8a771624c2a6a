"""Sector-sweep frames of IEEE 802.11ad (clauses 9.3.1.16 and 9.5.1 of IEEE 802.11-2016)."""

import zlib
from dataclasses import dataclass

from sumrate.access.errors import AccessError, whole, within

SSW_OCTETS = 26
FEEDBACK_OCTETS = 28
"""Length of SSW-Feedback and of SSW-Ack."""
CONTROL_EXTENSION = 0b0110_01_00
"""First octet of frame control: version 0, type control, subtype control frame extension."""
SSW, SSW_FEEDBACK, SSW_ACK = 0b1000, 0b1001, 0b1010
"""Control frame extensions."""
SNR_LEAST_DB, SNR_MOST_DB = -13.0, 50.75


class FrameError(AccessError):
    """Octets do not form a frame of the expected kind."""


@dataclass(frozen=True)
class SectorSweep:
    """The SSW field, 24 bits."""

    from_initiator: bool
    """The AP's sweep; a client's (responder's) if false."""
    countdown: int
    """CDOWN: frames of the sweep that still follow, 0 to 511."""
    sector: int
    """Sector ID, 0 to 63."""
    antenna: int = 0
    """DMG antenna ID, 0 to 3."""
    rxss_length: int = 0
    """Length of a receive sector sweep that is asked for, 0 to 63."""

    def encode(self) -> int:
        """The field as a number.

        Raises:
            AccessError: a value does not fit into its bits.

        """
        return (
            int(not self.from_initiator)
            | whole("CDOWN", self.countdown, 0, 511) << 1
            | whole("sector ID", self.sector, 0, 63) << 10
            | whole("antenna ID", self.antenna, 0, 3) << 16
            | whole("RXSS length", self.rxss_length, 0, 63) << 18
        )

    @classmethod
    def decode(cls, field: int) -> "SectorSweep":
        """From the field."""
        return cls(
            from_initiator=not field & 1,
            countdown=field >> 1 & 0x1FF,
            sector=field >> 10 & 0x3F,
            antenna=field >> 16 & 3,
            rxss_length=field >> 18 & 0x3F,
        )


@dataclass(frozen=True)
class Feedback:
    """The SSW feedback field of a responder's frames and of SSW-Feedback, 24 bits."""

    sector: int
    """The peer's best sector, 0 to 63."""
    snr_db: float
    """SNR at which it was received, -13 to 50.75 dB in steps of 0.25."""
    antenna: int = 0
    poll_required: bool = False

    def encode(self) -> int:
        """The field as a number.

        Raises:
            AccessError: a value does not fit into its bits.

        """
        snr = round(4 * (within("SNR", self.snr_db, SNR_LEAST_DB, SNR_MOST_DB, "dB") - 19))
        return (
            whole("sector ID", self.sector, 0, 63)
            | whole("antenna ID", self.antenna, 0, 3) << 6
            | (snr & 0xFF) << 8
            | int(self.poll_required) << 16
        )

    @classmethod
    def decode(cls, field: int) -> "Feedback":
        """From the field."""
        snr = field >> 8 & 0xFF
        return cls(
            sector=field & 0x3F,
            snr_db=19 + (snr - 256 if snr > 127 else snr) / 4,
            antenna=field >> 6 & 3,
            poll_required=bool(field >> 16 & 1),
        )


@dataclass(frozen=True)
class SswFrame:
    """An SSW frame, which a client sends over each of its beams."""

    receiver: bytes
    transmitter: bytes
    sweep: SectorSweep
    feedback: Feedback
    duration_us: int = 0

    def encode(self) -> bytes:
        """The 26 octets, frame check sequence included."""
        _address(self.receiver)
        _address(self.transmitter)
        head = _header(SSW, self.duration_us, self.receiver, self.transmitter)
        body = self.sweep.encode().to_bytes(3, "little") + self.feedback.encode().to_bytes(
            3, "little"
        )
        return _checked(head + body)

    @classmethod
    def decode(cls, octets: bytes) -> "SswFrame":
        """From the octets.

        Raises:
            FrameError: wrong length, kind or frame check sequence.

        """
        _verify(octets, SSW_OCTETS, SSW)
        return cls(
            duration_us=int.from_bytes(octets[2:4], "little"),
            receiver=octets[4:10],
            transmitter=octets[10:16],
            sweep=SectorSweep.decode(int.from_bytes(octets[16:19], "little")),
            feedback=Feedback.decode(int.from_bytes(octets[19:22], "little")),
        )


@dataclass(frozen=True)
class SswFeedbackFrame:
    """An SSW-Feedback frame: the AP sends a client its best sector, without a BRP request."""

    receiver: bytes
    transmitter: bytes
    feedback: Feedback
    duration_us: int = 0

    def encode(self) -> bytes:
        """The 28 octets, frame check sequence included."""
        _address(self.receiver)
        _address(self.transmitter)
        head = _header(SSW_FEEDBACK, self.duration_us, self.receiver, self.transmitter)
        return _checked(head + self.feedback.encode().to_bytes(3, "little") + bytes(5))

    @classmethod
    def decode(cls, octets: bytes) -> "SswFeedbackFrame":
        """From the octets.

        Raises:
            FrameError: wrong length, kind or frame check sequence.

        """
        _verify(octets, FEEDBACK_OCTETS, SSW_FEEDBACK)
        return cls(
            duration_us=int.from_bytes(octets[2:4], "little"),
            receiver=octets[4:10],
            transmitter=octets[10:16],
            feedback=Feedback.decode(int.from_bytes(octets[16:19], "little")),
        )


def _header(extension: int, duration_us: int, receiver: bytes, transmitter: bytes) -> bytes:
    whole("duration (us)", duration_us, 0, 32767)
    return (
        bytes([CONTROL_EXTENSION, extension])
        + duration_us.to_bytes(2, "little")
        + receiver
        + transmitter
    )


def _address(octets: bytes) -> None:
    if len(octets) != 6:
        raise AccessError(f"a MAC address has 6 octets, not {len(octets)}")


def _checked(octets: bytes) -> bytes:
    return octets + zlib.crc32(octets).to_bytes(4, "little")


def _verify(octets: bytes, length: int, extension: int) -> None:
    if len(octets) != length:
        raise FrameError(f"the frame must have {length} octets, not {len(octets)}")
    if octets[0] != CONTROL_EXTENSION or octets[1] & 0xF != extension:
        raise FrameError(f"frame control {octets[:2].hex()} is not that of this frame")
    if zlib.crc32(octets[:-4]) != int.from_bytes(octets[-4:], "little"):
        raise FrameError("the frame check sequence does not match")
