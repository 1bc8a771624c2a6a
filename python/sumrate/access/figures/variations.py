"""Studies beyond the thesis: fairness over parameters of scene and protocol."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sumrate.access.budget import make_pool
from sumrate.access.curves import curve_named
from sumrate.access.errors import whole
from sumrate.access.figures.table import Effort, row
from sumrate.access.participation import SITUATIONS, take_part
from sumrate.access.power import PowerControl, starved
from sumrate.access.scenes import Scene, scene_named
from sumrate.access.signalling import (
    TARGET_BITS,
    TERM_BITS,
    MiniSlotCoding,
    announcement_bits,
)
from sumrate.access.simulation import Setting, simulate
from sumrate.access.tasks import Row, Task

CLIENTS, BLOCKAGE, DEVICES_BLOCKAGE = 16, 0.5, 0.9
COMPARED = ("jpoc", "dot11ad", "dot11ad-random")
SPREADS_DEG = (0.0, 15.0, 30.0, 45.0, 60.0, 90.0, 135.0, 180.0)
DEVICES = {
    1.0: ("36-beams",),
    2.0: ("36-beams", "36-beams-by-rows"),
    3.0: ("36-beams", "36-beams-by-rows", "36-beams-12x3"),
    4.0: ("36-beams", "36-beams-by-rows", "36-beams-12x3", "64-beams"),
}


def _rows(
    scene: Scene, curve: str, setting: Setting, effort: Effort, seed: int, *, at: tuple[str, float]
) -> list[Row]:  # fmt: skip
    """All results of a simulation as rows at a panel and an x."""
    pool = make_pool(scene, effort.pool, seed)
    done = simulate(
        pool, setting, clients=CLIENTS, realisations=max(2, effort.realisations // 2), seed=seed
    )
    rows = [row(at[0], curve, name, v, x=at[1]) for name, v in done.values().items()]
    control = setting.power_control
    lost = np.zeros(pool.size) if control is None else starved(pool, control, setting.decode_db)
    return [*rows, row(at[0], curve, "starved", lost.astype(float), x=at[1])]


def orientation_rows(scene: str, curve: str, effort: Effort, seed: int) -> list[Row]:
    """Fairness over the angle by which clients are turned away from the AP."""
    base = scene_named(scene)
    setting = replace(curve_named(curve).setting, blockage=BLOCKAGE)
    panel = "line of sight" if base.channel == "free-space" else base.channel
    found = []
    for degrees in SPREADS_DEG:
        turned = replace(base, name=f"{base.name}-{degrees:g}", turned=float(np.deg2rad(degrees)))
        found += _rows(turned, curve, setting, effort, seed, at=(panel, degrees))
    return found


def device_rows(scene: str, curve: str, effort: Effort, seed: int) -> list[Row]:
    """Fairness over the number of device models."""
    setting = replace(curve_named(curve).setting, blockage=DEVICES_BLOCKAGE)
    return [
        r
        for count, devices in DEVICES.items()
        for r in _rows(
            replace(scene_named(scene), devices=devices),
            curve,
            setting,
            effort,
            seed,
            at=(scene, count),
        )
    ]


def threshold_rows(
    scene: str, curve: str, decode_db: float, effort: Effort, seed: int
) -> list[Row]:
    """Fairness at a decode threshold, with and without capture."""
    found = []
    for capture in (True, False):
        setting = replace(
            curve_named(curve).setting, blockage=BLOCKAGE, decode_db=decode_db, capture=capture
        )
        panel = f"{scene}, capture {'on' if capture else 'off'}"
        found += _rows(scene_named(scene), curve, setting, effort, seed, at=(panel, decode_db))
    return found


def capture_rows(scene: str, curve: str, effort: Effort, seed: int) -> list[Row]:
    """Fairness over the capture margin."""
    base = replace(curve_named(curve).setting, blockage=BLOCKAGE)
    return [
        r
        for margin in (1.0, 3.0, 5.0, 7.0, 10.0)
        for r in _rows(
            scene_named(scene), curve, replace(base, capture_db=margin), effort, seed,
            at=(scene, margin),
        )
    ]  # fmt: skip


def cell_rows(scene: str, curve: str, effort: Effort, seed: int) -> list[Row]:
    """Fairness over the number of APs on one channel, 2 radii apart, with simultaneous A-BFTs."""
    base = replace(scene_named(scene), radius_m=10.0)
    setting = replace(curve_named(curve).setting, blockage=BLOCKAGE)
    smaller = effort._replace(pool=max(64, effort.pool // 4))
    return [
        r
        for aps in (1, 2, 4)
        for r in _rows(
            replace(base, aps=aps), curve, setting, smaller, seed, at=(scene, float(aps))
        )
    ]


def error_rows(scene: str, effort: Effort, seed: int) -> list[Row]:
    """Fairness of JPOC over the error of power settings, and with coarse power steps."""
    found = []
    for name, control in (
        ("exact", PowerControl()),
        ("whole dB in the fields", PowerControl(quantised=True)),
        ("steps of 3 dB", PowerControl(step_db=3.0)),
        ("3 dB more after a failure", PowerControl(ramp_db=3.0)),
    ):
        for error in (0.0, 1.0, 2.0, 4.0, 6.0):
            setting = Setting(blockage=BLOCKAGE, power_control=replace(control, error_db=error))
            found += _rows(scene_named(scene), name, setting, effort, seed, at=(scene, error))
    return found


def participation_rows(situation: str, effort: Effort, seed: int) -> list[Row]:
    """Trainings of a client in ten minutes in one situation (Fig. 3.2a)."""
    runs = whole("realisations", max(10, effort.realisations // 10), 1)
    known = SITUATIONS[situation]
    found = []
    for policy in ("product", "restrained"):
        done = [take_part(known, 600.0, seed=seed * 10_000 + i, policy=policy) for i in range(runs)]
        count = np.array([float(d.times_s.size) for d in done])
        needless = np.array([float(d.needless.sum()) for d in done])
        below = np.array([d.below_s for d in done])
        place = float(list(SITUATIONS).index(situation))
        found += [
            row("trainings in 10 minutes", policy, "trainings", count, x=place),
            row("needless ones", policy, "needless", needless, x=place),
            row("seconds below threshold", policy, "below_s", below, x=place),
            row(situation, policy, "interval_s", 600.0 / np.maximum(count.mean(keepdims=True), 1)),
        ]
    return found


def signalling_rows() -> list[Row]:
    """Bits of each field, and the largest number of mini-slots of each coding."""
    found = []
    for coding, curve in (
        (MiniSlotCoding.SIX_BITS_FROM_36, "as published"), (MiniSlotCoding.SEVEN_BITS, "7 bits"),
    ):  # fmt: skip
        bits = (TARGET_BITS, TERM_BITS, coding.bits, announcement_bits(coding))
        for place, count in enumerate(bits):
            found.append(row("fields", curve, "bits", np.array([float(count)]), x=float(place)))
        all_bits = float(announcement_bits(coding))
        found += [
            row("fields", curve, "all_bits", np.array([all_bits])),
            row("fields", curve, "values", np.array([float(2**coding.bits)])),
            row("fields", curve, "largest", np.array([float(coding.most)])),
        ]
    return found


def over(
    function: Callable[..., list[Row]], items: Sequence[tuple[str, str]], effort: Effort, seed: int
) -> list[Task]:
    """One task per scene and curve."""
    return [
        Task(function, {"scene": scene, "curve": curve, "effort": effort, "seed": seed})
        for scene, curve in items
    ]
