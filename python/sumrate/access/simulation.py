"""Initial access of a whole cell over many beacon intervals, in many realisations."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast

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
from sumrate.access.kernel import (
    DOT11AD,
    JPOC,
    MiniSlotRules,
    Outcome,
    Receiver,
    Rules,
    SlotRules,
    realise,
)
from sumrate.access.pool import Pool
from sumrate.access.power import PowerControl, good_beams
from sumrate.access.signalling import announcement_octets
from sumrate.intervals import student
from sumrate.phy.parameters import Floats, Integers

Protocol = Literal["dot11ad", "jpoc"]
BeamOrder = Literal["common", "random"]
Beams = Literal["good", "occupied"]
MOST_MINI_SLOTS = 4096
Named = TypeVar("Named")
"""A named tuple of the kernel."""
REFERENCE_CLIENTS, REFERENCE_MINI_SLOTS = 16, 128
"""Clients and mini-slots with which `occupied_beams` counts occupied mini-slots."""


@dataclass(frozen=True)
class MiniSlots:
    """Parameters with which JPOC's AP sets the number of mini-slots."""

    target_failure: float = 0.1
    """P0."""
    initial: int = INITIAL_MINI_SLOTS
    minimum: int = MINIMUM_MINI_SLOTS
    maximum: int = MOST_MINI_SLOTS
    """A field of 7 bits announces at most 128."""
    adapt: bool = True
    averaging: int = AVERAGING_ROUNDS
    double_when_full: bool = False
    """Extension: double M after an A-BFT without an empty mini-slot."""
    good_beams: float | None = None
    """K; None: the mean over the scene's clients."""
    feedback: float = 0.0
    """Extension: gain with which inferred failures (estimated less decoded clients) change M."""
    two_k: bool = False
    """K in p and in (3.8) counts every mini-slot that a client fills with energy.

    The exponent stays the number of good beams.
    """

    def __post_init__(self) -> None:
        """Checks the parameters."""
        share("target failure", self.target_failure)
        whole("least mini-slots", self.minimum, 1)
        whole("largest mini-slots", self.maximum, self.minimum, MOST_MINI_SLOTS)
        whole("initial mini-slots", self.initial, self.minimum, self.maximum)
        whole("averaging rounds", self.averaging, 1, 1000)
        within("feedback gain", self.feedback, 0.0, 1.0)


@dataclass(frozen=True)
class Setting:
    """One protocol in one condition: all input of a realisation except its clients."""

    protocol: Protocol = "jpoc"
    intervals: int = 100
    blockage: float = 0.0
    """Probability that a client is blocked in a beacon interval and has to compete in the next."""
    blocked_sweep: bool = False
    """A blocked client's sweep also passes the blocked channel."""
    always_compete: bool = False
    """Trained clients compete as well."""
    power_control: PowerControl | None = field(default_factory=PowerControl)
    """None: full power."""
    abft: SlottedAbft = field(default_factory=SlottedAbft)
    beam_order: BeamOrder = "common"
    """802.11: all clients sweep by beam number, or each client in a random order."""
    retry_limit: int | None = None
    """RSSRetryLimit; None: a client competes in every A-BFT until the AP decodes it."""
    rss_backoff: int = 8
    mini_slots: MiniSlots = field(default_factory=MiniSlots)
    decode_db: float = 1.0
    capture_db: float = 3.0
    capture: bool = True
    detect_db: float | None = None
    """Least energy over noise of an occupied mini-slot; None: `decode_db`."""
    warm_up: int = 10
    """First beacon intervals, excluded from the failure probability: all clients compete."""
    interval_us: float = 100_000.0

    def __post_init__(self) -> None:
        """Checks the parameters."""
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


DOT11AD_BASELINE = Setting("dot11ad", power_control=None)
"""The thesis's baseline: 8 slots of 36 frames, a common beam order, a sweep in one slot."""
DOT11AD_STANDARD = Setting(
    "dot11ad", power_control=None, abft=SlottedAbft.standard(), retry_limit=8
)
"""The largest A-BFT of the standard: 8 slots of 16 frames, RSSRetryLimit and RSSBackoff."""


def mean_good_beams(pool: Pool, setting: Setting) -> float:
    """K: mean number of good beams, over the clients of the scene with at least one."""
    counts = good_beams(pool, setting.power_control, setting.decode_db)
    some = counts[counts > 0]
    return float(some.mean()) if some.size else 1.0


@lru_cache(maxsize=256)
def occupied_beams(pool: Pool, setting: Setting) -> float:
    """K of the two-K form: (3.8) solved for K with a known number of clients.

    Beams too weak to decode add up, so the energy detector finds more mini-slots occupied.
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


def _named(kind: Callable[..., Named], source: object, **values: object) -> Named:
    """A named tuple whose other fields are the attributes of `source` with the same name."""
    fields: tuple[str, ...] = cast(Any, kind)._fields
    rest = {name: getattr(source, name) for name in fields if name not in values}
    return kind(**rest, **values)


def rules(pool: Pool, setting: Setting) -> Rules:
    """The kernel's numbers."""
    slots, power = setting.mini_slots, setting.power_control or PowerControl()
    jpoc = setting.protocol == "jpoc"
    good = (slots.good_beams or mean_good_beams(pool, setting)) if jpoc else 1.0
    detect = setting.decode_db if setting.detect_db is None else setting.detect_db
    return _named(
        Rules, setting,
        protocol=JPOC if jpoc else DOT11AD,
        slots=_named(
            SlotRules, setting.abft,
            random_order=setting.beam_order == "random",
            retry_limit=-1 if setting.retry_limit is None else setting.retry_limit,
            rss_backoff=setting.rss_backoff,
        ),
        mini_slots=_named(
            MiniSlotRules, slots,
            good_beams=good,
            occupied_beams=occupied_beams(pool, setting) if jpoc and slots.two_k else good,
        ),
        receiver=Receiver(
            decode=10 ** (setting.decode_db / 10),
            capture=10 ** (setting.capture_db / 10),
            capture_on=setting.capture,
            detect=10 ** (detect / 10),
        ),
        ramp_db=power.ramp_db,
        error_db=power.error_db,
        fixed_us=_fixed_us(setting),
        mini_slot_us=SSW_US + SBIFS_US + PROPAGATION_US,
        feedback_us=FEEDBACK_US + SBIFS_US,
    )  # fmt: skip


def _fixed_us(setting: Setting) -> float:
    """Beacon interval less all parts that do not depend on clients and mini-slots.

    Raises:
        AccessError: no time is left for the DTI.

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
    """Runs realisations, each with its own clients, channels and random numbers.

    With the same seed, realisation i has the same clients under every protocol.

    Args:
        pool: of the scene.
        setting: protocol and condition.
        clients: of each cell.
        realisations: how many.
        seed: of all realisations; realisation i does not depend on their number.
        present: number of clients in the cell in each interval, (intervals,); all if None.
        progress: called with the number of finished and of all realisations.

    Raises:
        AccessError: a parameter is out of range.

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
    """Jain's index of the air time in which the client was not blocked."""
    failure_probability: Floats
    """Failed sweeps over all sweeps, after the warm-up; NaN without a sweep."""
    mini_slots: Floats
    """Mean length of the A-BFT after the warm-up."""
    estimated_clients: Floats
    """Mean of (3.9) after the warm-up."""
    competitors: Floats
    """Mean number of clients in an A-BFT after the warm-up."""
    never_served: Floats
    """Share of the clients that never succeeded."""
    worst_client: Floats
    """Failure probability of the client that fails most often."""
    first_success: Floats
    """Mean interval of the first success, over the clients that succeeded."""
    collisions: Floats
    """Decodable frames lost to other frames, per beacon interval."""
    captures: Floats
    """Frames decoded in spite of other frames, per beacon interval."""
    beam_loss_db: Floats
    """Mean SNR of the best beam over that of the best decoded beam, dB."""

    def values(self) -> dict[str, Floats]:
        """All results by name, each of shape (realisations,)."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def summarise(outcomes: list[Outcome], setting: Setting) -> Summary:
    """The results of realisations, one number each."""
    rows = [_row(outcome, setting.warm_up) for outcome in outcomes]
    return Summary(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _row(outcome: Outcome, warm_up: int) -> dict[str, float]:
    """The fields of `Summary` for one realisation."""
    attempts = outcome.attempts[:, warm_up:]
    failures = outcome.failures[:, warm_up:]
    tried = attempts.sum(axis=1)
    per_client = failures.sum(axis=1)[tried > 0] / tried[tried > 0]
    known = outcome.first[outcome.first >= 0]
    intervals = outcome.mini_slots.size
    successes = outcome.attempts.sum() - outcome.failures.sum()

    def mean(values: Floats | Integers) -> float:
        return float(values.mean()) if values.size else np.nan

    return {
        "jain": float(jain_index(outcome.air_time_us)),
        "jain_delivered": float(jain_index(outcome.delivered_us)),
        "failure_probability": failures.sum() / tried.sum() if tried.sum() else np.nan,
        "mini_slots": mean(outcome.mini_slots[warm_up:]),
        "estimated_clients": mean(outcome.expected[warm_up:]),
        "competitors": mean(outcome.competitors[warm_up:]),
        "never_served": float(np.mean(outcome.first < 0)),
        "worst_client": per_client.max() if per_client.size else np.nan,
        "first_success": mean(known),
        "collisions": outcome.events[0] / intervals,
        "captures": outcome.events[1] / intervals,
        "beam_loss_db": outcome.loss_db[0] / successes if successes else np.nan,
    }


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
    """Mean and ends of its 95 % confidence interval, over the finite ones of values (n,)."""
    known = values[np.isfinite(values)]
    if not known.size:
        return float("nan"), float("nan"), float("nan")
    mean, half = float(known.mean()), 0.0
    if known.size > 1:
        half = student(known.size - 1) * float(known.std(ddof=1)) / float(np.sqrt(known.size))
    return mean, mean - half, mean + half
