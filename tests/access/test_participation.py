import numpy as np
import pytest

from sumrate.access.errors import AccessError
from sumrate.access.participation import SITUATIONS, Timers, margins_db, take_part

SEEDS = range(12)


def mean_interval(name: str, policy: str = "product") -> float:
    found = [take_part(SITUATIONS[name], 600.0, seed=s, policy=policy) for s in SEEDS]  # type: ignore[arg-type]
    return 600.0 / max(1e-9, float(np.mean([f.times_s.size for f in found])))


def test_periods_of_training_and_search_are_published() -> None:
    gaps = np.diff(take_part(SITUATIONS["los"], 600.0, seed=1).times_s)
    assert gaps == pytest.approx(60.0)
    gaps = np.diff(take_part(SITUATIONS["disconnected"], 600.0, seed=1).times_s)
    assert gaps == pytest.approx(10.0)


def test_moving_without_sight_trains_every_15_seconds() -> None:
    assert 15.0 <= mean_interval("mobile-nlos") <= 20.0


def test_order_of_the_situations() -> None:
    still, turning = mean_interval("los"), mean_interval("rotation")
    moving, behind = mean_interval("mobile-los"), mean_interval("mobile-nlos")
    assert still > turning > moving > behind
    assert mean_interval("nlos") < still


@pytest.mark.parametrize("name", list(SITUATIONS))
def test_restraint_avoids_needless_trainings(name: str) -> None:
    def needless(policy: str) -> float:
        found = [take_part(SITUATIONS[name], 600.0, seed=s, policy=policy) for s in SEEDS]  # type: ignore[arg-type]
        return float(np.mean([f.needless.sum() for f in found]))

    assert needless("restrained") <= 0.7 * needless("product")


@pytest.mark.parametrize("name", ["nlos", "mobile-los", "mobile-nlos"])
def test_restraint_does_not_prolong_outages(name: str) -> None:
    def below(policy: str) -> float:
        found = [take_part(SITUATIONS[name], 600.0, seed=s, policy=policy) for s in SEEDS]  # type: ignore[arg-type]
        return float(np.mean([f.below_s for f in found]))

    assert below("restrained") <= below("product") * 1.05


def test_every_path_and_interval_has_a_margin() -> None:
    rng = np.random.default_rng(1)
    assert margins_db(SITUATIONS["rotation"], 30.0, rng).shape == (3, 300)


def test_timers_can_be_set() -> None:
    found = take_part(SITUATIONS["los"], 600.0, seed=1, timers=Timers(periodic_s=30.0))
    assert np.diff(found.times_s) == pytest.approx(30.0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(AccessError, match="policy must be product or restrained, not lazy"):
        take_part(SITUATIONS["los"], 10.0, seed=1, policy="lazy")  # type: ignore[arg-type]
    with pytest.raises(AccessError, match="duration must be 1 to 86400 s, not 0"):
        take_part(SITUATIONS["los"], 0.0, seed=1)
    with pytest.raises(AccessError, match="period must be 1 to 3600 s, not 0"):
        Timers(periodic_s=0.0)
