"""JPOC's fields in the AP's sector sweep: target power, gain and power term, mini-slots.

Thesis, Sec. 3.2.3: 8 + 6 + 6 bits. The thesis codes 128 mini-slots in six bits, which hold 64
values, so the number of mini-slots has three codings here. Target power and term may be sent as
their sum, because (3.5) uses only the sum.
"""

from dataclasses import dataclass
from enum import Enum

from sumrate.access.errors import AccessError, whole

TARGET_BITS, TERM_BITS, SUM_BITS = 8, 6, 7


class MiniSlotCoding(Enum):
    """Coding of the number of mini-slots: bits, least value, step."""

    SEVEN_BITS = (7, 1, 1)
    """1 to 128."""
    SIX_BITS_FROM_36 = (6, 36, 1)
    """36 to 99: numbers below the least M have no code."""
    SIX_BITS_IN_TWOS = (6, 2, 2)
    """2 to 128, even numbers; odd numbers are rounded up."""

    @property
    def bits(self) -> int:
        """Length of the field."""
        return self.value[0]

    @property
    def least(self) -> int:
        """Least number of mini-slots with a code."""
        return self.value[1]

    @property
    def most(self) -> int:
        """Largest number of mini-slots with a code."""
        bits, least, step = self.value
        return int(least + step * ((1 << bits) - 1))

    def encode(self, mini_slots: int) -> int:
        """The field's value; a number between two steps is rounded up."""
        whole("mini-slots", mini_slots, self.least, self.most)
        return int(-(-(mini_slots - self.least) // self.value[2]))

    def decode(self, field: int) -> int:
        """The number of mini-slots."""
        return int(self.least + self.value[2] * field)


@dataclass(frozen=True)
class Announcement:
    """JPOC's fields in every frame of the AP's sweep."""

    target_dbm: int
    """RxP_max^AP of (3.2), -128 to 127 dBm."""
    ap_term_db: int
    """G_T^AP(j) + P_T^AP - G_R^AP of (3.5), 0 to 63 dB."""
    mini_slots: int

    def encode(self, coding: MiniSlotCoding = MiniSlotCoding.SEVEN_BITS) -> int:
        """The bits as one number: target power in the lowest 8, then term, then mini-slots.

        Raises:
            AccessError: a value does not fit into its field.

        """
        target = _signed("target power (dBm)", self.target_dbm, TARGET_BITS)
        term = whole("AP gain and power term (dB)", self.ap_term_db, 0, (1 << TERM_BITS) - 1)
        slots = coding.encode(self.mini_slots)
        return target | term << TARGET_BITS | slots << (TARGET_BITS + TERM_BITS)

    @classmethod
    def decode(
        cls, bits: int, coding: MiniSlotCoding = MiniSlotCoding.SEVEN_BITS
    ) -> "Announcement":
        """From the bits.

        Raises:
            AccessError: bits beyond the fields are set.

        """
        _fits(bits, announcement_bits(coding))
        return cls(
            target_dbm=_from_signed(bits & 0xFF, TARGET_BITS),
            ap_term_db=bits >> TARGET_BITS & 0x3F,
            mini_slots=coding.decode(bits >> (TARGET_BITS + TERM_BITS)),
        )

    def encode_merged(self, coding: MiniSlotCoding = MiniSlotCoding.SEVEN_BITS) -> int:
        """The shorter form: the sum of target power and term in 7 bits, then mini-slots."""
        both = _signed("target power and term (dBm)", self.target_dbm + self.ap_term_db, SUM_BITS)
        return both | coding.encode(self.mini_slots) << SUM_BITS


def decode_merged(bits: int, coding: MiniSlotCoding = MiniSlotCoding.SEVEN_BITS) -> tuple[int, int]:
    """Sum of target power and term in dBm, and number of mini-slots, of the shorter form."""
    _fits(bits, SUM_BITS + coding.bits)
    total = _from_signed(bits & ((1 << SUM_BITS) - 1), SUM_BITS)
    return total, coding.decode(bits >> SUM_BITS)


def announcement_bits(coding: MiniSlotCoding = MiniSlotCoding.SEVEN_BITS) -> int:
    """Length of all fields: 20 bits as published, 21 with room for 128 mini-slots."""
    return TARGET_BITS + TERM_BITS + coding.bits


def announcement_octets(coding: MiniSlotCoding = MiniSlotCoding.SEVEN_BITS) -> int:
    """Octets that the fields add to a frame."""
    return -(-announcement_bits(coding) // 8)


def _signed(name: str, value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return whole(name, value, -half, half - 1) & ((1 << bits) - 1)


def _from_signed(field: int, bits: int) -> int:
    return field - (1 << bits) if field >> (bits - 1) else field


def _fits(bits: int, length: int) -> None:
    if not 0 <= bits < 1 << length:
        raise AccessError(f"an announcement has {length} bits, which {bits:#x} exceeds")
