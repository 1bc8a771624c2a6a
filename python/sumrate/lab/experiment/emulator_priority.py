"""The emulator's priority in experiments whose bytes are few."""

from sumrate.lab.experiment.record import Run
from sumrate.lab.links import Emulator
from sumrate.lab.priority import raise_threads
from sumrate.lab.scene import Scene


def raise_emulator(run: Run, built: Scene) -> None:
    """Keeps the programs under test from holding up the links, and notes whether that is granted.

    For pages, the player, daily programs and calls, whose bytes are few: the emulator takes little
    of a processor.
    """
    if isinstance(built.emulator, Emulator):
        run.detail["emulator_real_time"] = raise_threads(built.emulator.process.pid)
