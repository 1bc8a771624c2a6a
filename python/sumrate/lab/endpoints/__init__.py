"""One file per transport under test, all with the same abilities: download, bench and stream."""

from sumrate.lab.endpoints.aggligator import Aggligator
from sumrate.lab.endpoints.base import (
    Download,
    FollowsInterfaces,
    Measurement,
    Reach,
    Scheme,
    Unavailable,
)
from sumrate.lab.endpoints.handover import Handover
from sumrate.lab.endpoints.iperf import Paced, Parallel
from sumrate.lab.endpoints.messages import SumrateMessages
from sumrate.lab.endpoints.mptcp import KernelMptcp, KernelMptcpBackup
from sumrate.lab.endpoints.scaled import Scaled
from sumrate.lab.endpoints.single_path import SinglePath
from sumrate.lab.endpoints.sumrate import Sumrate
from sumrate.lab.endpoints.tls_pump import TlsPump
from sumrate.lab.endpoints.together import Together
from sumrate.lab.endpoints.tquic import Tquic

__all__ = [
    "Aggligator",
    "Download",
    "FollowsInterfaces",
    "Handover",
    "KernelMptcp",
    "KernelMptcpBackup",
    "Measurement",
    "Paced",
    "Parallel",
    "Reach",
    "Scaled",
    "Scheme",
    "SinglePath",
    "Sumrate",
    "SumrateMessages",
    "TlsPump",
    "Together",
    "Tquic",
    "Unavailable",
]
