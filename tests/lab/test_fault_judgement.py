"""What a campaign and a soak must not overlook: a planted case is a problem, a sound one none."""

import json
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sumrate.lab.faults import clock, hostile
from sumrate.lab.faults.account import Account
from sumrate.lab.faults.attacks import KINDS, Beside, wait_for_proof
from sumrate.lab.faults.campaign import Findings
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.fault import BYSTANDER, FEW_DESCRIPTORS, VICTIM
from sumrate.lab.faults.hostile import FLOOD, Attack
from sumrate.lab.faults.load import (
    CORES,
    LEAST_ANSWERED,
    MOST_IDLE,
    Handshakes,
    Held,
    core_ticks,
    idle_share,
)
from sumrate.lab.faults.soak import DRAWN, JUDGED_S, KILLED, Soak, dealt
from sumrate.lab.faults.timeline import Timeline
from sumrate.lab.faults.trial import Books, Trial
from sumrate.lab.faults.world import MEMORY_LIMIT, World
from sumrate.lab.process import Process, ProcessFailedError


def trial(fault: str, ratio: float) -> Trial:
    return Trial(fault, {}, 1.0, 0.1, 0.1, ratio)


def account(fault: str, *ratios: float, failed: dict[str, int] | None = None) -> Account:
    made = Account([trial(fault, ratio) for ratio in ratios])
    made.enter_failures(Books(failed=Counter(failed or {})))
    return made


def problems(fault: str, *ratios: float, failed: dict[str, int] | None = None) -> list[str]:
    found = Findings(accounts={fault: account(fault, *ratios, failed=failed)})
    assert found.sound() == (not found.problems())
    return found.problems()


def test_others_that_are_slowed_down_are_named() -> None:
    (line,) = problems("stream-flood", 0.7, 0.85, 0.99)
    assert line.startswith("stream-flood: the other client kept 85% of its goodput")
    assert problems("stream-flood", 0.9, 0.9, 0.9) == []


def test_one_late_second_fails_nothing() -> None:
    assert problems("blackout", 0.99, 0.3, 1.0) == []
    assert problems("blackout", 0.3) == [], "one round is not judged"
    assert problems("blackout", 0.3, 0.3) == []


def test_only_faults_that_stop_everybody_may_and_each_says_why() -> None:
    stopping = {name: fault.stops_everybody for name, fault in FAULTS.items()}
    assert {name for name, why in stopping.items() if why} == {"server-killed", "server-suspended"}
    assert problems("server-killed", 0.0, 0.0, 0.0) == []
    row = account("server-killed", 0.0).row(FAULTS["server-killed"])
    assert (row["others_ratio"], row["stops_everybody"]) == (None, "no server runs")


@pytest.mark.parametrize(
    ("fault", "client", "permitted"),
    [
        ("blackout", VICTIM, False),
        ("client-descriptors", VICTIM, True),
        ("client-descriptors", BYSTANDER, False),
        ("server-killed", BYSTANDER, True),
        ("server-killed", "short-flows", True),
    ],
)
def test_a_transfer_fails_only_where_the_fault_permits_it(
    fault: str, client: str, *, permitted: bool
) -> None:
    found = problems(fault, 1.0, failed={client: 2})
    assert (found == []) == permitted
    assert permitted or f"2 transfers of {client} failed" in found[0]


def test_who_has_no_descriptor_left_refuses_and_breaks_nothing() -> None:
    refused = Books(failed=Counter({BYSTANDER: 2}))
    broken = Books(failed=Counter({BYSTANDER: 2}), broken=Counter({BYSTANDER: 1}))
    for books, wanted in ((refused, 0), (broken, 1)):
        made = Account([trial("server-descriptors", 1.0)])
        made.enter_failures(books)
        found = Findings(accounts={"server-descriptors": made}).problems()
        assert len(found) == wanted
        assert all("1 transfers of bystander were broken" in line for line in found)


def test_failures_without_a_fault_lost_bytes_and_panics_are_problems() -> None:
    assert Findings().problems() == []
    late = Findings(unasked=Counter({VICTIM: 1}))
    assert "1 transfers of victim failed when no fault was made" in late.problems()[0]
    assert "3 bytes were lost" in Findings(books=Books(lost=3)).problems()[0]
    assert "1 transfers were wrong" in Findings(books=Books(bad=[{}])).problems()[0]
    assert "panic" in Findings(panics=["panicked at x"]).problems()[0]


def test_descriptors_are_bounded_by_process_and_by_the_very_fault() -> None:
    accounts = {name: account(name, 1.0) for name in ("blackout", "disk-full", "stream-flood")}
    found = Findings(accounts=accounts)
    accounts["blackout"].enter_descriptors({"server": FEW_DESCRIPTORS, VICTIM: 200})
    accounts["disk-full"].enter_descriptors({BYSTANDER: FEW_DESCRIPTORS})
    accounts["stream-flood"].enter_descriptors({"server": 2050})
    assert found.problems() == []
    assert found.descriptors() == {"server": 2050, VICTIM: 200, BYSTANDER: FEW_DESCRIPTORS}
    accounts["disk-full"].enter_descriptors({"server": 65, BYSTANDER: 3})
    (line,) = found.problems()
    assert line == "disk-full: server had 65 descriptors open, at most 64 are expected"
    assert accounts["disk-full"].descriptors == {"server": 65, BYSTANDER: FEW_DESCRIPTORS}
    accounts["stream-flood"].enter_descriptors({BYSTANDER: 300})
    assert "stream-flood: bystander had 300" in found.problems()[1], "the flood is not its own"
    row = accounts["stream-flood"].row(FAULTS["stream-flood"])
    permitted = {"server": FLOOD + FEW_DESCRIPTORS, BYSTANDER: FEW_DESCRIPTORS}
    assert row["permitted_descriptors"] == permitted


def test_what_one_fault_had_open_is_not_held_against_the_next(tmp_path: Path) -> None:
    with Process(["sleep", "60"], log=tmp_path / "log") as process:
        built = SimpleNamespace(clients={}, daemons=lambda: {"server": process})
        timeline = Timeline(cast(World, built))
        timeline.most_descriptors["server"] = 2000
        timeline.sample()
        assert timeline.most_descriptors == {"server": 2000}
        timeline.forget()
        assert timeline.most_descriptors == {}
        timeline.look()
        assert 0 < timeline.most_descriptors["server"] < FEW_DESCRIPTORS


def test_memory_is_bounded() -> None:
    found = Findings(peaks={"server": (MEMORY_LIMIT + 1, "VmHWM")})
    assert "server took" in found.problems()[0]


def soaked(
    time_s: float,
    without_effect: dict[str, int] | None = None,
    slopes: dict[str, dict[str, Any]] | None = None,
) -> Soak:
    kept = Soak(1, time_s, Counter(without_effect or {}), slopes=slopes or {})
    kept.findings.accounts = {name: account(name, 1.0) for name in DRAWN}
    return kept


def test_a_long_soak_makes_every_fault() -> None:
    assert soaked(JUDGED_S).problems() == []
    never = soaked(JUDGED_S, without_effect={"blackout": 4})
    never.findings.accounts["blackout"] = Account()
    assert never.problems() == ["blackout was never made: 4 attempts had no effect"]
    assert "blackout" not in never.report()["faults"]
    assert never.report()["without_effect"] == {"blackout": 4}
    short = soaked(JUDGED_S - 1)
    short.findings.accounts.clear()
    assert short.problems() == []


def test_a_soak_judges_failures_and_not_goodput() -> None:
    kept = soaked(JUDGED_S)
    kept.findings.accounts["blackout"] = account("blackout", 0.1, 0.1, 0.1)
    assert kept.problems() == []
    kept.findings.accounts["blackout"] = account("blackout", 1.0, failed={"short-flows": 1})
    assert "1 transfers of short-flows failed" in kept.problems()[0]


def test_growth_is_a_problem_of_a_long_soak() -> None:
    slopes = {"server": {"descriptors": {"grows": True}}}
    assert soaked(JUDGED_S, slopes=slopes).problems() == ["server: descriptors grows"]
    assert soaked(JUDGED_S - 1, slopes=slopes).problems() == []


def test_a_soak_that_was_broken_off_says_so_and_asks_for_no_more_faults() -> None:
    kept = soaked(JUDGED_S)
    kept.findings.accounts.clear()
    kept.broken_off = "after 4 s: in blackout: it ended"
    assert kept.problems() == ["broken off after 4 s: in blackout: it ended"]
    assert not kept.sound()


def test_faults_are_dealt_so_that_each_has_its_turn() -> None:
    cold = list(islice(dealt(random.Random(1), lambda: False), 2 * len(DRAWN)))
    assert sorted(cold[: len(DRAWN)]) == sorted(cold[len(DRAWN) :]) == sorted(DRAWN)
    assert cold[: len(DRAWN)] != cold[len(DRAWN) :]
    warm = list(islice(dealt(random.Random(1), lambda: True), 100))
    assert KILLED not in warm


def beside(**changes: object) -> Beside:
    usual: dict[str, Any] = {
        "kind": KINDS["silent-reader"],
        "counts": {"made": 300, "closed": 250, "answered": 240},
        "lasted_s": 9.0,
        "books": Books(outcomes=Counter(right=3), delivered=10),
        "replaced": [],
        "panics": [],
    }
    return Beside(**{**usual, **changes})


def test_an_attack_without_effect_or_with_harm_is_a_problem() -> None:
    assert beside().problems() == []
    (line,) = beside(counts={"made": 300, "closed": 250, "answered": 0}).problems()
    assert "0 answered" in line
    assert beside(replaced=[VICTIM]).problems() == ["silent-reader: harmed victim"]
    failed = beside(books=Books(failed=Counter({BYSTANDER: 1})))
    assert failed.row()["sessions_harmed"] == 1
    assert failed.problems() == ["silent-reader: harmed bystander"]
    assert beside(panics=["panicked at x"]).problems() == ["silent-reader: panicked at x"]


def counting(folder: Path, *command: str) -> Attack:
    """An attack that has no effect, by a program of its own."""
    state = folder / "attack.json"
    state.write_text(json.dumps({"made": 0, "closed": 0}), encoding="ascii")
    return Attack(Process(command, log=folder / "log"), state)


def test_an_attack_that_is_late_says_all_that_it_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile, "PATIENCE_S", 0.05)
    late = counting(tmp_path, "sleep", "60")
    with late.process, pytest.raises(ProcessFailedError, match=r"no 1 made within.*'closed': 0"):
        late.wait("made", 1)


def test_an_attack_without_effect_ends_in_a_report_and_a_dead_attacker_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile, "PATIENCE_S", 0.05)
    kind = KINDS["half-open"]
    idle = counting(tmp_path, "sleep", "60")
    with idle.process:
        wait_for_proof(idle, kind)
        (line,) = beside(kind=kind, counts=idle.counts()).problems()
        assert line == "half-open: 0 closed, 200 are expected of an attack"
    dead = counting(tmp_path, "false")
    dead.process.wait(10)
    with pytest.raises(ProcessFailedError, match="half-open: the attacker ended"):
        wait_for_proof(dead, kind)


def held(handshakes: Handshakes, completed_share: float = 1.0) -> Held:
    return Held(100, 1000, completed_share, 100, 900.0, 9.0, [], handshakes)


def test_a_load_run_that_measured_its_own_clients_is_a_problem() -> None:
    assert held(Handshakes(900.0, 0.6, MOST_IDLE, LEAST_ANSWERED)).problems() == []
    (line,) = held(Handshakes(900.0, 0.6, 0.2, 1.0)).problems()
    assert line.startswith("20% of the machine were idle while handshakes were made")
    assert held(Handshakes(0.0, 0.0, 0.0, 1.0)).problems() == ["no handshake was answered"]
    assert "99% of 100 sessions" in held(Handshakes(900.0, 0.6, 0.0, 1.0), 0.99).problems()[0]


def test_a_load_run_that_met_a_limit_of_the_server_is_a_problem() -> None:
    (line,) = held(Handshakes(20.0, 9.0, 0.0, 0.02)).problems()
    assert line.startswith("2% of the handshakes were answered, at least 90%")


def test_only_the_time_of_our_cores_counts() -> None:
    core = min(CORES)
    head = f"cpu 9 9 9 9 9 9 9 9 9 9\ncpu{max(CORES) + 1} 7 7 7 7 7 7 7 7 7 7\n"
    before = core_ticks(f"{head}cpu{core} 10 1 2 100 3 4 5 6 50 0\nintr 1 2\n")
    assert before == (103, 131)
    after = core_ticks(f"{head}cpu{core} 90 1 2 120 3 4 5 6 90 0\nintr 1 2\n")
    assert idle_share(before, after) == 0.2
    assert idle_share(before, before) == 0.0
    assert core_ticks() > (0, 0), "this machine's own"


@pytest.mark.parametrize(("value", "wanted"), [("1", True), ("0", False), ("", False)])
def test_ci_requires_what_others_may_leave_out(
    value: str, monkeypatch: pytest.MonkeyPatch, *, wanted: bool
) -> None:
    monkeypatch.setenv(clock.REQUIRED, value)
    assert clock.required() is wanted


def test_ci_asks_for_every_fault(repository: Path) -> None:
    script = (repository / ".ci/run").read_text(encoding="utf-8")
    assert f"export {clock.REQUIRED}=1" in script
