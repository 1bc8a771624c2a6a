"""The beacon interval: BTI, A-BFT, ATI and DTI with their true durations.

Times are in microseconds. Control-PHY frames: IEEE 802.11-2016, clause 20.4; slot of the A-BFT:
aSSSlotTime and aSSDuration of clause 10.38.5 and the DMG MAC sublayer parameters.
"""

import math
from dataclasses import dataclass

from sumrate.access.errors import AccessError, whole, within
from sumrate.access.frames import FEEDBACK_OCTETS, SSW_OCTETS
from sumrate.access.signalling import announcement_octets

CHIPS_PER_US = 1760.0
PREAMBLE_CHIPS = 6400 + 1152
"""Short training field and channel estimation field of the control PHY."""
SPREADING = 32
"""Chips per coded bit of the control PHY."""
SIFS_US, SBIFS_US, MBIFS_US, LBIFS_US = 3.0, 1.0, 9.0, 18.0
SLOT_US = 5.0
PROPAGATION_US = 0.1
BEACON_OCTETS = 34
"""A DMG Beacon with its fixed fields and no element."""
ANNOUNCE_OCTETS, ALLOCATION_OCTETS, ACK_OCTETS = 28, 15, 14
STANDARD_MOST_FRAMES = 16
"""Most frames (mini-slots) of a slot: the standard's FSS field has 4 bits."""
STANDARD_MOST_SLOTS = 8
"""Most slots: the standard's A-BFT Length field has 3 bits."""


def control_frame_us(octets: int) -> float:
    """Air time of a control-PHY (MCS 0) frame: 14.91 us for an SSW frame of 26 octets."""
    whole("octets", octets, 6, 1023)
    payload_bits = 8 * (octets - 6)
    words = 1 + math.ceil(payload_bits / 168)
    coded = 8 * 11 + payload_bits + 168 * words
    return (PREAMBLE_CHIPS + SPREADING * coded) / CHIPS_PER_US


SSW_US = control_frame_us(SSW_OCTETS)
FEEDBACK_US = control_frame_us(FEEDBACK_OCTETS)


@dataclass(frozen=True)
class SlottedAbft:
    """The A-BFT of 802.11ad and 802.11ay: slots, each with room for one client's sweep.

    The thesis's baseline has 8 slots of 36 frames. The standard's FSS field allows at most 16
    frames in a slot.
    """

    slots: int = 8
    frames_per_slot: int = 36
    multiplier: int = 0
    """802.11ay's A-BFT Multiplier, 0 to 3: the A-BFT has slots x (1 + multiplier) slots."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        whole("A-BFT slots", self.slots, 1)
        whole("frames per slot", self.frames_per_slot, 1)
        whole("A-BFT multiplier", self.multiplier, 0, 3)

    @classmethod
    def standard(
        cls, slots: int = 8, frames_per_slot: int = 16, multiplier: int = 0
    ) -> "SlottedAbft":
        """An A-BFT within the limits of the standard's fields.

        Raises:
            AccessError: more slots or frames than the fields allow.

        """
        whole("A-BFT length", slots, 1, STANDARD_MOST_SLOTS)
        whole("FSS", frames_per_slot, 1, STANDARD_MOST_FRAMES)
        return cls(slots, frames_per_slot, multiplier)

    @property
    def all_slots(self) -> int:
        """Slots with the multiplier."""
        return self.slots * (1 + self.multiplier)

    @property
    def mini_slots(self) -> int:
        """Frames of all slots."""
        return self.all_slots * self.frames_per_slot

    @property
    def slot_us(self) -> float:
        """aSSSlotTime: the sweep, the feedback and the gaps around it, rounded up."""
        sweep = self.frames_per_slot * SSW_US + (self.frames_per_slot - 1) * SBIFS_US
        return float(math.ceil(PROPAGATION_US + sweep + MBIFS_US + FEEDBACK_US + MBIFS_US))

    @property
    def duration_us(self) -> float:
        """All slots."""
        return self.all_slots * self.slot_us


def mini_slot_abft_us(mini_slots: int, acknowledged: int = 0) -> float:
    """JPOC's A-BFT: mini-slots of one SSW frame, then SSW-Feedback to each decoded client.

    A mini-slot lasts as long as a frame, the gap between frames of a sweep, and the propagation.
    """
    whole("mini-slots", mini_slots, 1)
    whole("acknowledged clients", acknowledged, 0)
    sweep = mini_slots * (SSW_US + SBIFS_US + PROPAGATION_US)
    return sweep + MBIFS_US + acknowledged * (FEEDBACK_US + SBIFS_US)


def bti_us(sectors: int, announcement: int = 0) -> float:
    """The AP's sweep: one beacon per sector, each longer by `announcement` octets under JPOC."""
    whole("sectors", sectors, 1, 64)
    beacon = control_frame_us(BEACON_OCTETS + announcement)
    return sectors * beacon + (sectors - 1) * SBIFS_US


def ati_us(clients: int) -> float:
    """One Announce frame with an allocation for each client, and its acknowledgement."""
    whole("clients", clients, 0)
    announce = control_frame_us(min(1023, ANNOUNCE_OCTETS + ALLOCATION_OCTETS * clients))
    return announce + SIFS_US + control_frame_us(ACK_OCTETS)


@dataclass(frozen=True)
class BeaconInterval:
    """The parts of a beacon interval, in us."""

    bti: float
    abft: float
    ati: float
    dti: float

    @property
    def header(self) -> float:
        """The BHI: all parts before the DTI, with their gaps."""
        return self.bti + self.abft + self.ati

    @property
    def total(self) -> float:
        """The whole interval."""
        return self.header + self.dti


def divide(
    abft_us: float,
    *,
    sectors: int = 36,
    clients: int = 0,
    jpoc: bool = False,
    interval_us: float = 100_000.0,
) -> BeaconInterval:
    """The parts of a beacon interval; BTI, A-BFT and ATI are each followed by an MBIFS.

    Args:
        abft_us: duration of the A-BFT.
        sectors: of the AP.
        clients: associated, for the ATI.
        jpoc: whether beacons carry JPOC's fields.
        interval_us: the beacon interval.

    Raises:
        AccessError: the header leaves no time for the DTI.

    """
    within("beacon interval", interval_us, 1_000.0, 1_024_000.0, "us")
    bti = bti_us(sectors, announcement_octets() if jpoc else 0) + MBIFS_US
    ati = ati_us(clients) + MBIFS_US
    abft = abft_us + MBIFS_US
    dti = interval_us - bti - abft - ati
    if dti <= 0:
        raise AccessError(
            f"BTI, A-BFT and ATI take {bti + abft + ati:.0f} us, and the beacon interval has "
            f"{interval_us:.0f}: use fewer mini-slots or a longer interval"
        )
    return BeaconInterval(bti, abft, ati, dti)
