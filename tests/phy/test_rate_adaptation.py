"""Controllers choose rates that work, late and with errors."""

import numpy as np
import pytest

from sumrate.phy.mcs import NONE, SINGLE_CARRIER
from sumrate.phy.parameters import ParameterError
from sumrate.phy.rate_adaptation import Ideal, Informed, RateAdaptation, TrialAndError

LAWS: list[RateAdaptation] = [Ideal(), Informed(), TrialAndError()]


@pytest.mark.parametrize("law", LAWS)
def test_extreme_snr_leaves_no_choice(law: RateAdaptation) -> None:
    generator = np.random.default_rng(1)
    top = law.choose(SINGLE_CARRIER, np.full(500, 30.0), 0.01, generator)
    assert np.median(top) == 11
    nothing = law.choose(SINGLE_CARRIER, np.full(500, -20.0), 0.01, generator)
    assert (nothing == NONE).all()


def test_informed_adaptation_without_error_is_only_late() -> None:
    law = Informed(delay_s=0.2, error_db=0.0, up_margin_db=0.0, report_s=0.01)
    snr = np.where(np.arange(200) < 100, 20.0, 0.5)
    chosen = law.choose(SINGLE_CARRIER, snr, 0.01, np.random.default_rng(0))
    assert chosen[:120].tolist() == [11] * 120
    assert chosen[120:].tolist() == [1] * 80


def test_trial_and_error_is_restless_between_two_rates() -> None:
    generator = np.random.default_rng(2)
    law = TrialAndError()
    table = SINGLE_CARRIER.only([1, 2, 4, 6, 7, 8, 10, 11])
    middle = law.choose(table, 7.5 + generator.normal(0, 1.0, 6000), 0.01, generator)
    top = law.choose(table, 16.0 + generator.normal(0, 1.0, 6000), 0.01, generator)
    rates = table.rates_mbps
    assert rates[middle].std() > 2 * rates[top].std()
    assert len(set(middle.tolist())) >= 3
    ideal = table.rate_mbps(7.5)
    assert rates[middle].mean() < 1.2 * float(ideal)


def test_the_same_source_gives_the_same_course() -> None:
    snr = np.random.default_rng(3).normal(6, 2, 300)
    for law in LAWS:
        one, two = (law.choose(SINGLE_CARRIER, snr, 0.01, np.random.default_rng(7)) for _ in "ab")
        assert (one == two).all()


def test_bad_controllers_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"delay_s is -1\.0"):
        Informed(delay_s=-1.0)
    with pytest.raises(ParameterError, match="longest_s"):
        TrialAndError(up_s=2.0, longest_s=1.0)
    with pytest.raises(ParameterError, match=r"shape of snr_db is \(2, 2\)"):
        Ideal().choose(SINGLE_CARRIER, np.zeros((2, 2)), 0.01, np.random.default_rng(0))
