"""One file per transport under test, all with the same two abilities: download and bench."""

from sumrate.lab.endpoints.base import Download, Scheme, Unavailable
from sumrate.lab.endpoints.mptcp import KernelMptcp
from sumrate.lab.endpoints.single_path import SinglePath
from sumrate.lab.endpoints.sumrate import Sumrate

__all__ = ["Download", "KernelMptcp", "Scheme", "SinglePath", "Sumrate", "Unavailable"]
