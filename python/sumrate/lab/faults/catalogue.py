"""All faults, by name."""

from sumrate.lab.faults import clock, hostile, network, processes, resources
from sumrate.lab.faults.fault import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for module in (network, processes, resources, clock, hostile)
    for fault in module.FAULTS
}
