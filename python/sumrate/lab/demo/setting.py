"""The demo's two radios at a scale of their rates, its schemes, and how long each should take."""

from dataclasses import dataclass

from sumrate.lab.blockage import BLOCKAGE
from sumrate.lab.endpoints import KernelMptcp, Scheme, SinglePath, Sumrate
from sumrate.lab.links import Link
from sumrate.lab.scene import radio

SCALES = (1.0, 0.5, 0.25, 0.125)
WIFI_MBPS, WIGIG_MBPS = 630.0, 1800.0
DEFAULT_SIZE = 1536 << 20
"""At the full rates; Sumrate takes about seven seconds for it, and the blockage ends after four."""
SMALLEST_SIZE = 1 << 20
EXPECTED_MBPS = {"wifi": 600.0, "wigig": 1750.0, "mptcp": 2200.0, "sumrate": 2330.0}
LOST_S = {"wifi": 0.0, "wigig": 4.3, "mptcp": 3.3, "sumrate": 1.6}
"""What the blockage costs each scheme."""
AROUND_S = 2.5
"""A transfer's scene is built, its connections are made, its checksum is verified."""
MEASURED_FIRST = ("sumrate", "mptcp", "wigig", "wifi")
"""The most demanding first, so that a scale that is too large is given up early."""


@dataclass(frozen=True)
class Setting:
    """The links and the file at one scale."""

    scale: float
    size: int
    """Of the file in bytes, scaled already."""

    @property
    def wifi(self) -> Link:
        """The WiFi link."""
        return radio("wifi", 1, WIFI_MBPS * self.scale, 3.0)

    @property
    def wigig(self) -> Link:
        """The 60 GHz link, with its blockage."""
        return radio("wigig", 2, WIGIG_MBPS * self.scale, 2.0, BLOCKAGE)

    @property
    def links(self) -> tuple[Link, ...]:
        """Both links."""
        return (self.wifi, self.wigig)

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """What is compared, in the order of the result."""
        return (
            SinglePath(self.wifi, "WiFi alone"),
            SinglePath(self.wigig, "WiGig alone"),
            KernelMptcp(),
            Sumrate(),
        )

    def expected_s(self, scheme: str) -> float:
        """How long a transfer should take."""
        return self.size * 8e-6 / (EXPECTED_MBPS[scheme] * self.scale) + LOST_S[scheme]

    def cost_s(self, scheme: str) -> float:
        """The same with everything around the transfer."""
        return self.expected_s(scheme) + AROUND_S + self.size / 1e9

    def file_s(self) -> float:
        """How long making the file takes."""
        return self.size / 200e6


def setting(scale: float, full_size: int) -> Setting:
    """The setting at a scale; the file is scaled like the rates, so the times stay."""
    return Setting(scale, max(SMALLEST_SIZE, int(full_size * scale)))
