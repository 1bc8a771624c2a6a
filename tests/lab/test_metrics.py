"""The registry of metrics, and checks that ask for what it does not have."""

import pytest

from sumrate.lab.experiment.load import load, names
from sumrate.lab.experiment.metrics import problems
from sumrate.verdict.metrics import find, is_pooled, pooled_with, registry
from sumrate.verdict.metrics import names as metric_names


def test_names_stand_once_with_known_fields() -> None:
    assert len(registry()) > 140
    for metric in registry().values():
        assert metric.better in ("", "more", "less"), metric
        assert metric.pooled in ("", "scheme", "peer", "all"), metric
        assert metric.title or not metric.group or "*" in metric.name, metric


@pytest.mark.parametrize(
    ("name", "title", "unit", "sign"),
    [
        ("goodput_mbps", "goodput", "Mbit/s", 1),
        ("path_wifi_first_mbps", "path wifi first", "Mbit/s", 0),
        ("time_10MB_ms", "time 10MB", "ms", -1),
        ("share_at_least_0_db", "share at least 0", "ratio", 0),
        ("never_heard_of", "never heard of", "", 0),
    ],
)
def test_unknown_names_are_read_by_suffix(name: str, title: str, unit: str, sign: int) -> None:
    found = find(name)
    assert (found.title, found.unit, found.sign) == (title, unit, sign)


def test_a_pooled_value_names_whose_repetitions() -> None:
    schemes = ["sumrate", "mptcp"]
    assert pooled_with("pooled_percentiles_over_mptcp", schemes) == ["mptcp"]
    assert pooled_with("pooled_message_p999_ms", schemes) == schemes
    assert pooled_with("wifi_share_mode_percent", schemes) == []
    assert is_pooled("wifi_share_mode_percent")
    assert not is_pooled("goodput_mbps")


def test_names_have_links_and_phases() -> None:
    found = set(metric_names(["wifi"], 2))
    assert {"path_wifi_mbps", "carried_wifi_phase_2_mbps", "phase_1_mbps"} <= found
    assert not found & {"phase_3_mbps", "phase_wifi_mbps", "psnr_db"}


def test_every_experiment_asks_for_known_metrics() -> None:
    assert [problem for name in names() for problem in problems(load(name))] == []
