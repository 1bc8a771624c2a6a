"""Initial access of a whole cell over many beacon intervals, in many realisations."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from sumrate.access.equations import (
    AVERAGING_ROUNDS,
    INITIAL_MINI_SLOTS,
    MINIMUM_MINI_SLOTS,
)
from sumrate.access.errors import AccessError, share, whole, within
from sumrate.access.fairness import jain_index
from sumrate.access.interval import (
    FEEDBACK_US,
    MBIFS_US,
    PROPAGATION_US,
    SBIFS_US,
    SSW_US,
    SlottedAbft,
    bti_us,
    divide,
)
from sumrate.access.kernel import DOT11AD, JPOC, Outcome, Rules, realise
from sumrate.access.pool import Pool
from sumrate.access.power import PowerControl, good_beams
from sumrate.access.signalling import announcement_octets
from sumrate.phy.parameters import Floats, Integers

Protocol = Literal["dot11ad", "jpoc"]
BeamOrder = Literal["common", "random"]
Beams = Literal["good", "occupied"]
MOST_MINI_SLOTS = 4096
REFERENCE_CLIENTS, REFERENCE_MINI_SLOTS = 16, 128
"""Where the mini-slots that a client occupies are counted."""


@dataclass(frozen=True)
class MiniSlots:
    """How JPOC's AP sets the number of mini-slots."""

    target_failure: float = 0.1
    """P0."""
    initial: int = INITIAL_MINI_SLOTS
    minimum: int = MINIMUM_MINI_SLOTS
    maximum: int = MOST_MINI_SLOTS
    """128 is what 7 bits can announce."""
    adapt: bool = True
    averaging: int = AVERAGING_ROUNDS
    double_when_full: bool = False
    """Extension: at least twice as many after an A-BFT without an empty mini-slot."""
    good_beams: float | None = None
    """K; None: the mean over the scene's clients."""
    feedback: float = 0.0
    """Extension: gain with which failures, inferred from estimated and heard clients, change M."""
    two_k: bool = False
    """K in p and in (3.8) is what a client occupies, energy of weak beams included; the exponent
    stays the number of good beams."""

    def __post_init__(self) -> None:
        """Checks the numbers."""
        share("target failure", self.target_failure)
        whole("least mini-slots", self.minimum, 1)
        whole("largest mini-slots", self.maximum, self.minimum, MOST_MINI_SLOTS)
        whole("initial mini-slots", self.initial, self.minimum, self.maximum)
        whole("averaging rounds", self.averaging, 1, 1000)
        within("feedback gain", self.feedback, 0.0, 1.0)


@dataclass(frozen=True)
class Setting:
    """One protocol in one condition; what a realisation needs beside its clients."""

    protocol: Protocol = "jpoc"
    intervals: int = 100
    blockage: float = 0.0
    """Probability that a client is blocked in a beacon interval and has to compete in the next."""
    blocked_sweep: bool = False
    """A client that was blocked sweeps over the blocked channel."""
    always_compete: bool = False
    """Trained clients compete as well."""
    power_control: PowerControl | None = field(default_factory=PowerControl)
    """None: full power."""
    abft: SlottedAbft = field(default_factory=SlottedAbft)
    beam_order: BeamOrder = "common"
    """802.11: all clients sweep by beam number, or each in an order of its own."""
    retry_limit: int | None = None
    """RSSRetryLimit; None: a client competes in every A-BFT until it is heard."""
    rss_backoff: int = 8
    mini_slots: MiniSlots = field(default_factory=MiniSlots)
    decode_db: float = 1.0
    capture_db: float = 3.0
    capture: bool = True
    detect_db: float | None = None
    """Energy over noise of a mini-slot that is not empty; None: as `decode_db`."""
    warm_up: int = 10
    """Beacon intervals that do not count for the failure probability: at first all compete."""
    interval_us: float = 100_000.0

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if self.protocol not in ("jpoc", "dot11ad"):
            raise AccessError(f"protocol must be jpoc or dot11ad, not {self.protocol}")
        if self.beam_order not in ("common", "random"):
            raise AccessError(f"beam order must be common or random, not {self.beam_order}")
        whole("beacon intervals", self.intervals, 1, 1_000_000)
        whole("warm-up", self.warm_up, 0, self.intervals)
        within("blockage probability", self.blockage, 0.0, 1.0)
        within("decode threshold", self.decode_db, -20.0, 40.0, "dB")
        within("capture margin", self.capture_db, 0.0, 60.0, "dB")
        if self.retry_limit is not None:
            whole("RSSRetryLimit", self.retry_limit, 0)
        whole("RSSBackoff", self.rss_backoff, 1)

    def without_power_control(self) -> "Setting":
        """The same at full power."""
        return replace(self, power_control=None)


DOT11AD_BASELINE = Setting("dot11ad", power_control=None)
"""The thesis's: 8 slots of 36 frames, beams in the same order for all, a sweep in one slot."""
DOT11AD_STANDARD = Setting(
    "dot11ad", power_control=None, abft=SlottedAbft.standard(), retry_limit=8
)
"""What the standard can announce: 8 slots of 16 frames, with RSSRetryLimit and RSSBackoff."""


def mean_good_beams(pool: Pool, setting: Setting) -> float:
    """K: the mean number of good beams of the scene's clients that have any."""
    counts = good_beams(pool, setting.power_control, setting.decode_db)
    heard = counts[counts > 0]
    return float(heard.mean()) if heard.size else 1.0


@lru_cache(maxsize=256)
def occupied_beams(pool: Pool, setting: Setting) -> float:
    """K of the two-K form: (3.8) solved for K where the number of clients is known.

    Beams too weak to be decoded add up, and an energy detector finds the mini-slot occupied.
    """
    fixed = replace(
        setting, protocol="jpoc", intervals=20, always_compete=True, blockage=0.0, warm_up=0,
        mini_slots=replace(
            setting.mini_slots, adapt=False, initial=REFERENCE_MINI_SLOTS,
            minimum=REFERENCE_MINI_SLOTS, two_k=False,
        ),
    )  # fmt: skip
    clients = min(REFERENCE_CLIENTS, pool.size // pool.aps)
    outcomes = run(pool, fixed, clients=clients, realisations=40, seed=977)
    empty = float(np.mean([outcome.empty for outcome in outcomes])) / REFERENCE_MINI_SLOTS
    return float(REFERENCE_MINI_SLOTS * (1.0 - max(empty, 1e-3) ** (1.0 / clients)))


def rules(pool: Pool, setting: Setting) -> Rules:
    """The kernel's numbers."""
    slots, power, jpoc = setting.mini_slots, setting.power_control, setting.protocol == "jpoc"
    good = 1.0
    if jpoc:
        good = slots.good_beams or mean_good_beams(pool, setting)
    detect = setting.decode_db if setting.detect_db is None else setting.detect_db
    return Rules(
        protocol=JPOC if jpoc else DOT11AD,
        slots=setting.abft.all_slots,
        frames=setting.abft.frames_per_slot,
        random_order=setting.beam_order == "random",
        retry_limit=-1 if setting.retry_limit is None else setting.retry_limit,
        backoff=setting.rss_backoff,
        decode=10 ** (setting.decode_db / 10),
        capture=10 ** (setting.capture_db / 10),
        capture_on=setting.capture,
        detect=10 ** (detect / 10),
        good_beams=good,
        occupied_beams=occupied_beams(pool, setting) if jpoc and slots.two_k else good,
        target_failure=slots.target_failure,
        initial=slots.initial,
        minimum=slots.minimum,
        maximum=slots.maximum,
        adapt=slots.adapt,
        averaging=slots.averaging,
        feedback=slots.feedback,
        double_when_full=slots.double_when_full,
        ramp_db=power.ramp_db if power else 0.0,
        error_db=power.error_db if power else 0.0,
        blockage=setting.blockage,
        blocked_sweep=setting.blocked_sweep,
        always_compete=setting.always_compete,
        fixed_us=_fixed_us(setting),
        mini_slot_us=SSW_US + SBIFS_US + PROPAGATION_US,
        feedback_us=FEEDBACK_US + SBIFS_US,
    )


def _fixed_us(setting: Setting) -> float:
    """Beacon interval less all that does not depend on clients and mini-slots.

    Raises:
        AccessError: nothing is left for the DTI.

    """
    if setting.protocol == "dot11ad":
        return (
            setting.interval_us
            - divide(setting.abft.duration_us, interval_us=setting.interval_us).header
            + _ati_of_nobody()
        )
    return setting.interval_us - bti_us(36, announcement_octets()) - 4 * MBIFS_US


def _ati_of_nobody() -> float:
    return divide(1.0).ati - MBIFS_US


def run(
    pool: Pool,
    setting: Setting,
    *,
    clients: int,
    realisations: int,
    seed: int,
    present: Integers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Runs realisations: each draws its clients, their channels and all that is random anew.

    Realisation i has the clients of every other protocol's realisation i with the same seed.

    Args:
        pool: of the scene.
        setting: protocol and condition.
        clients: of each cell.
        realisations: how many.
        seed: of all of them; realisation i does not depend on how many there are.
        present: how many of the clients are there in each interval, (intervals,); all if None.
        progress: is told how many realisations of how many are done.

    Raises:
        AccessError: a parameter is outside what is allowed.

    """
    whole("realisations", realisations, 1)
    numbers = rules(pool, setting)
    offset = (
        np.zeros((2, pool.size))
        if setting.power_control is None
        else setting.power_control.offset_db(pool)
    )
    there = np.full(setting.intervals, clients * pool.aps) if present is None else present
    found = []
    for index in range(realisations):
        chosen = pool.draw(clients, _generator(seed, index, 0))
        world = pool.world(chosen, offset, there)
        found.append(realise(_generator(seed, index, 1), numbers, world))
        if progress:
            progress(index + 1, realisations)
    return found


def _generator(seed: int, index: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, index, purpose)))


@dataclass(frozen=True, eq=False)
class Summary:
    """One number per realisation, (realisations,)."""

    jain: Floats
    """Jain's index of the air time."""
    jain_delivered: Floats
    """The same of the air time in which the client was not blocked."""
    failure_probability: Floats
    """Sweeps that ended unheard over all, after the warm-up; NaN if there was none."""
    mini_slots: Floats
    """Mean length of the A-BFT after the warm-up."""
    estimated_clients: Floats
    competitors: Floats
    """Means after the warm-up."""
    never_served: Floats
    """Share of the clients that never succeeded."""
    worst_client: Floats
    """Failure probability of the client that fails most often."""
    first_success: Floats
    """Mean interval of the first success of those that succeeded."""
    collisions: Floats
    captures: Floats
    """Frames per beacon interval."""
    beam_loss_db: Floats
    """Mean loss of the best beam heard against the best one."""

    def values(self) -> dict[str, Floats]:
        """All of them by name, each of shape (realisations,)."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def summarise(outcomes: list[Outcome], setting: Setting) -> Summary:
    """What is reported of realisations."""
    rows = [_row(outcome, setting.warm_up) for outcome in outcomes]
    columns = np.array(rows, dtype=np.float64).T
    return Summary(*columns)


def _row(outcome: Outcome, warm_up: int) -> tuple[float, ...]:
    attempts = outcome.attempts[:, warm_up:]
    failures = outcome.failures[:, warm_up:]
    tried = attempts.sum(axis=1)
    per_client = failures.sum(axis=1)[tried > 0] / tried[tried > 0]
    known = outcome.first[outcome.first >= 0]
    intervals = outcome.mini_slots.size
    successes = outcome.attempts.sum() - outcome.failures.sum()
    return (
        float(jain_index(outcome.air_time_us)),
        float(jain_index(outcome.delivered_us)),
        failures.sum() / tried.sum() if tried.sum() else np.nan,
        outcome.mini_slots[warm_up:].mean() if warm_up < intervals else np.nan,
        outcome.expected[warm_up:].mean() if warm_up < intervals else np.nan,
        outcome.competitors[warm_up:].mean() if warm_up < intervals else np.nan,
        float(np.mean(outcome.first < 0)),
        per_client.max() if per_client.size else np.nan,
        known.mean() if known.size else np.nan,
        outcome.events[0] / intervals,
        outcome.events[1] / intervals,
        outcome.loss_db[0] / successes if successes else np.nan,
    )


def simulate(
    pool: Pool,
    setting: Setting,
    *,
    clients: int,
    realisations: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Runs realisations and reports them; arguments as of `run`."""
    found = run(
        pool, setting, clients=clients, realisations=realisations, seed=seed, progress=progress
    )
    return summarise(found, setting)


def confidence(values: Floats) -> tuple[float, float, float]:
    """Mean and the ends of its 95 % confidence interval, over values (n,) that are numbers."""
    known = values[np.isfinite(values)]
    if not known.size:
        return float("nan"), float("nan"), float("nan")
    mean, half = float(known.mean()), 0.0
    if known.size > 1:
        half = _student(known.size - 1) * float(known.std(ddof=1)) / float(np.sqrt(known.size))
    return mean, mean - half, mean + half


def _student(freedom: int) -> float:
    """97.5 % quantile of Student's t, by its series about the normal one (within 1 % from 3 on)."""
    z = 1.959964
    terms = (
        (z**3 + z) / (4 * freedom),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3),
    )
    return z + sum(terms)
