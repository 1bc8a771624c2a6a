"""Experiment files: the shipped ones are right, wrong ones are refused with their line."""

import json
import re
import sys
from pathlib import Path

import pytest

from sumrate.lab import cli
from sumrate.lab.experiment import commands
from sumrate.lab.experiment.catalogue import claims, entries
from sumrate.lab.experiment.commands import durations
from sumrate.lab.experiment.goals import measured_by, rows
from sumrate.lab.experiment.keeping import uncounted
from sumrate.lab.experiment.kept import KEPT, kept_names, path_of, read_provenance
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.model import Experiment, scheme_names
from sumrate.lab.experiment.sources import verdicts_of
from sumrate.lab.experiment.verdicts import listing
from sumrate.lab.programs import REPOSITORY
from sumrate.verdict.model import DEPENDS, FAILS, HOLDS, UNMEASURED, Entry, Verdict
from tests.lab.test_keep import put, whole

GOOD = """schema = 1
name = "trial"
title = "Trial"
question = "Is it?"
method = "bench"
seconds = 1.0

[[links]]
name = "wifi"
title = "WiFi"
rate_mbps = 100.0
rtt_ms = 3.0

[[schemes]]
kind = "alone"

[[schemes]]
kind = "sumrate"

[[conditions]]
name = "normal"
title = "normal"

[[checks]]
claim = "T-4.1b-normal"
statement = "it is"
value = { metric = "sum_ratio", scheme = "sumrate", condition = "normal" }
at_least = 0.9
"""


@pytest.mark.parametrize("name", names())
def test_a_shipped_experiment_is_right(name: str) -> None:
    experiment = load(name)
    known = claims()
    for check in experiment.checks:
        assert not check.claim or check.claim in known, f"{check.claim} is not in the catalogue"


def written(folder: Path, text: str) -> Path:
    (folder / "trial.toml").write_text(text)
    return folder


def test_a_good_file_is_read(tmp_path: Path) -> None:
    experiment = load("trial", written(tmp_path, GOOD))
    assert scheme_names(experiment) == ["wifi", "sumrate"]
    assert experiment.repetitions == 5


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("rtt_ms = 3.0", "rtt = 3.0", 12, "did you mean `rtt_ms`"),
        ("seconds = 1.0", "secnds = 1.0", 6, "did you mean `seconds`"),
        ("seconds = 1.0", "seconds = -1.0", 6, "Expected `float` > 0.0"),
        ("at_least = 0.9", "at_least = 0.9\nat_most = 0.5", 26, "at_least above at_most"),
        ("rtt_ms = 3.0", "rtt_ms = -3.0", 12, "Expected `float` >= 0.0"),
        ("seconds = 1.0", "seconds = 1.0\npace_mbps = 1", 7, "unknown field `pace_mbps`"),
        ("seconds = 1.0", 'seconds = 1.0\nwhy_not.tqic = "?"', 7, "speaks of `tqic`"),
        (
            'title = "normal"\n',
            'title = "normal"\nlinks.wifi.blackouts = [[2.0, 1.0]]\n',
            23,
            "before it",
        ),
        ("at_least = 0.9", "at_lest = 0.9", 28, "did you mean `at_least`"),
        ('metric = "sum_ratio"', 'metrc = "sum_ratio"', 27, "did you mean `metric`"),
        ('name = "normal"', 'nonsense = "normal"', 21, "unknown field `nonsense`"),
        ("at_least = 0.9", 'at_least = "much"', 28, "at_least"),
        ('title = "normal"\n', "", 20, "missing required field `title`"),
        ('kind = "alone"', 'kind = "alon"', 15, "it can be "),
        ('method = "bench"', 'method = "benc"', 5, "it can be bench, calls"),
        ('scheme = "sumrate"', 'scheme = "sumrat"', 27, "did you mean sumrate"),
        ('condition = "normal"', 'condition = "norml"', 27, "did you mean normal"),
        ('metric = "sum_ratio"', 'metric = "sum_rate"', 27, "did you mean sum_ratio"),
        ("at_least = 0.9", "", 26, "cannot fail"),
        ('name = "trial"', 'name = "other"', 2, "is not the file's"),
        ('title = "normal"\n', 'title = "normal"\nlinks.lte.loss = 0.1\n', 23, "is no link"),
        ("seconds = 1.0", "seconds = 1.5", 6, "must be whole"),
        ("at_least = 0.9", 'at_least = 0.9\ncauses.norml = "?"', 29, "is no condition"),
        ("at_least = 0.9", 'at_least = 0.9\nwithout = ["norml"]', 29, "is no condition"),
        ('title = "normal"\n', 'title = "normal"\nwhy_not.sumrate = "?"\n', 18, "which is not"),
        ('title = "normal"\n', 'title = "normal"\nrepetitions = 9\n', 21, "must be 1 to"),
        ('claim = "T-4.1b-normal"\n', "", 25, "neither a claim nor a goal"),
        ("at_least = 0.9", "at_least = -inf", 28, "a finite number"),
        ("at_least = 0.9", "at_most = nan", 28, "a finite number"),
        (
            "at_least = 0.9",
            "at_least = 1\nover.metric = 'sum_ratio'\nover.scheme = 'sumrate'\n"
            "over.condition = 'normal'",
            26,
            "divides a value by itself",
        ),
        ("[[checks]]", "[[checks]", 24, "Expected ']]'"),
        ("at_least = 0.9", "at_least = 0.9\nat_least = 0.8", 29, "overwrite"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in GOOD
    with pytest.raises(ExperimentError) as refused:
        load("trial", written(tmp_path, GOOD.replace(old, new)))
    assert f"trial.toml:{line}: " in str(refused.value), str(refused.value)
    assert said in str(refused.value)


def test_a_file_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    """Found by fuzzing: the decoder's own error came through."""
    (tmp_path / "trial.toml").write_bytes(GOOD.encode().replace(b"Is it?", b"Is it\xff"))
    with pytest.raises(ExperimentError, match=r"trial.toml:4: not UTF-8"):
        load("trial", tmp_path)


def test_an_unknown_experiment_names_the_nearest() -> None:
    with pytest.raises(ExperimentError, match="did you mean five-conditions"):
        load("five-condition")


def test_the_catalogue_holds_every_claim_of_the_papers() -> None:
    known = claims()
    assert len(known) == 164
    for identity, entry in known.items():
        assert {"document", "figure", "published", "claim", "needs"} <= entry.keys(), identity


def test_what_a_model_was_set_to_is_said_to_be_fitted() -> None:
    """Claims that calibrate a link, and those whose reason names a page that says so."""
    known = claims()
    fitted = {name: str(entry["fitted"]) for name, entry in known.items() if "fitted" in entry}
    assert {name for name, entry in known.items() if "Calibrates" in entry["claim"]} <= set(fitted)
    for name, reason in fitted.items():
        assert reason.endswith("."), name
        for page in re.findall(r"docs/[\w-]+\.md", reason):
            text = (REPOSITORY / page).read_text(encoding="utf-8")
            assert re.search(r"fitted|chosen|calibrat", text, re.IGNORECASE), f"{name}: {page}"


def test_claims_that_were_fitted_are_counted_apart() -> None:
    holding = [e for e in entries(KEPT) if e.verdict == HOLDS and e.document != "goal"]
    fitted = [entry for entry in holding if entry.fitted]
    assert 1 < len(fitted) < len(holding)
    assert f"{len(fitted)} of those that hold were fitted" in listing(entries(KEPT))


def test_every_claim_is_checked_or_says_why_not(tmp_path: Path) -> None:
    found = {e.id: e for e in entries(tmp_path)}
    silent = [i for i in claims() if not found[i].checks and not found[i].unmeasured]
    assert not silent, "no check names them, and `unmeasured` of claims.toml does not say why"
    without = [e for e in found.values() if not e.checks]
    assert without
    assert all((e.verdict, e.cause) == (UNMEASURED, e.unmeasured) for e in without)


def test_a_catalogue_that_is_wrong_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text("# claims\n\n[claims.\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"claims\.toml:3: "):
        claims(tmp_path)


def test_every_claim_and_goal_has_a_verdict_line(tmp_path: Path) -> None:
    found = entries(tmp_path)
    assert {e.id for e in found} >= set(claims())
    assert {e.verdict for e in found} == {"not-run", UNMEASURED}
    assert next(e for e in found if e.id == "P1").command.startswith(
        "sumrate-lab run five-conditions"
    )


def test_a_kept_table_is_of_an_experiment_and_says_where_it_is_from() -> None:
    there = kept_names(KEPT)
    assert set(there) <= set(names())
    for name in there:
        origin = read_provenance(path_of(KEPT, name))
        assert origin["experiment"] == name
        assert re.fullmatch("[0-9a-f]{40}", origin["commit"]), name
        assert origin["finished"] > origin["started"], name
        assert origin["command"].startswith("sumrate-lab run "), name
        assert all(origin[key] for key in ("kernel", "machine", "seeds", "repetitions")), name


def test_the_kept_tables_are_small() -> None:
    sizes = [path.stat().st_size for path in KEPT.iterdir()]
    assert {path.suffix for path in KEPT.iterdir()} == {".parquet"}
    assert sum(sizes) <= 3_000_000


def test_whatever_a_kept_result_is_asked_for_was_measured() -> None:
    """Where names of values follow from pages and files, a wrong one in a check is seen here."""
    findings = [
        (name, finding.statement, finding.measured)
        for name in kept_names(KEPT)
        for verdict in verdicts_of(KEPT, name)
        for finding in verdict.findings
    ]
    assert findings
    assert not [found[:2] for found in findings if found[2] is None]


def test_what_does_not_hold_has_a_cause() -> None:
    missed = [entry for entry in entries(KEPT) if entry.verdict in (FAILS, DEPENDS)]
    assert missed
    assert not [entry.id for entry in missed if not entry.cause]
    demands = [row for row in rows(KEPT) if row.verdict in (FAILS, DEPENDS)]
    assert demands
    assert not [f"{row.id}: {row.statement}" for row in demands if not row.cause]


def test_a_list_goes_on_behind_a_file_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(name: str) -> Experiment:
        if name == "blackout":
            raise ExperimentError("blackout.toml:3: wrong")
        return load(name)

    monkeypatch.setattr(commands, "load", wrong)
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "list"])
    assert cli.main() == 2
    said = capsys.readouterr()
    assert "blackout.toml:3: wrong" in said.err
    assert "unshaped" in said.out


def test_the_list_says_how_long_everything_and_the_goals_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "list"])
    assert cli.main() == 0
    said = capsys.readouterr().out
    whole, quick = (sum(m) for m in zip(*(durations(load(n)) for n in measured_by()), strict=True))
    assert f"`sumrate-lab bench`      about {whole:.0f} min, --quick {quick:.0f} min" in said
    files = load("files")
    assert durations(files)[1] < durations(files)[0] / files.repetitions, "of its quick conditions"


def test_a_part_that_nobody_measures_keeps_a_claim_from_holding(tmp_path: Path) -> None:
    part = claims()["T-4.5e"]["unmeasured"]
    judge = next(e.experiment for e in entries(tmp_path) if e.id == "T-4.5e")
    folder = tmp_path / judge
    folder.mkdir()
    verdict = Verdict("T-4.5e", "claim", HOLDS, "0.4", "", "", "", ())
    (folder / "verdicts.json").write_text(json.dumps([verdict.document()]), encoding="utf-8")
    found = next(entry for entry in entries(tmp_path) if entry.id == "T-4.5e")
    assert (found.verdict, found.cause) == (DEPENDS, part)


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_of_repetitions_is_at_least_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: str
) -> None:
    argv = ["sumrate-lab", "run", "unshaped", f"--repetitions={number}"]
    monkeypatch.setattr(sys, "argv", argv)
    assert cli.main() == 2
    assert "--repetitions" in capsys.readouterr().err


def test_a_point_of_which_most_runs_are_void_is_not_kept(tmp_path: Path) -> None:
    def runs(scheme: str, void: int) -> list[dict[str, object]]:
        point = {"condition": "normal", "congestion_control": "cubic", "buffers": "default"}
        return [{"scheme": scheme, **point, "void": number < void} for number in range(5)]

    folder = tmp_path / "trial"
    folder.mkdir()
    entries = [*runs("sumrate", 2), *runs("tquic", 3), *runs("mptcp", 0), *runs("wifi", 3)]
    manifest = {"commit": "0" * 40, "method": "bench", "repetitions": 5}
    manifest |= {"runs": entries, "void_runs": 4}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    said = uncounted(folder, load("lap"))
    assert said == ["trial: normal, wifi, cubic, default: 2 of 5 runs count"], "a peer may"


@pytest.mark.parametrize("command", ["verdicts", "report"])
def test_results_that_are_nowhere_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: str,
) -> None:
    argv = ["sumrate-lab", command, "--results", str(tmp_path / "nowhere")]
    monkeypatch.setattr(sys, "argv", argv)
    assert cli.main() > 0
    assert "nowhere" in capsys.readouterr().err


def test_a_name_stands_for_the_last_run_beside_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    put(tmp_path, whole())
    monkeypatch.setattr("sumrate.lab.experiment.commands.OUTPUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "compare", "lap"])
    assert cli.main() == 0
    said = capsys.readouterr().out
    assert f"A: lap in {tmp_path / 'lap'}" in said
    assert f"B: lap in {KEPT / 'lap.parquet'}" in said


PEERS = ("mptcp", "aggligator", "tquic")
MODES = ("sumrate-two-ended", "sumrate-thesis")


TRANSPORT = (
    *("large-buffers", "lap", "uplink-cut", "windows", "redundancy", "forward-mapping"),
    *("throughput-model", "coupling", "head-of-line", "token-bucket"),
)


@pytest.mark.parametrize("name", dict.fromkeys([*measured_by(), *TRANSPORT]))
def test_what_is_left_out_is_left_out_for_a_reason(name: str) -> None:
    """A peer, or one of Sumrate's other modes."""
    experiment = load(name)
    schemes = scheme_names(experiment)
    for peer in (*PEERS, *MODES):
        if peer not in schemes:
            assert experiment.why_not.get(peer), f"{name} has no {peer} and does not say why"
            continue
        for condition in experiment.conditions:
            alone = {link.name for link in experiment.links}.issuperset(condition.schemes)
            if condition.schemes and peer not in condition.schemes and not alone:
                assert condition.why_not.get(peer), f"{name}, {condition.name}: why not {peer}?"


def test_the_documents_say_how_long_the_goals_take() -> None:
    """Within a tenth of what the plans say."""
    whole, quick = (sum(m) for m in zip(*(durations(load(n)) for n in measured_by()), strict=True))
    said = re.compile(r"about (\d+) minutes; `?(?:make bench )?BENCH=--quick`? about (\d+)")
    for document in ("Makefile",):
        text = (REPOSITORY / document).read_text(encoding="utf-8")
        (found,) = said.findall(text)
        assert [int(n) for n in found] == pytest.approx([whole, quick], rel=0.1), document


def test_there_are_experiments() -> None:
    assert "five-conditions" in names()
    assert FOLDER.is_dir()


def test_verdicts_have_claim_checks_command_and_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "verdicts"])
    assert cli.main() == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    said = " ".join(text.split())
    for entry in entries(KEPT):
        for part in told(entry):
            assert " ".join(part.split()) in said, entry.id


def told(entry: Entry) -> list[str]:
    """What must be said of it."""
    results = entry.results.replace(f"{REPOSITORY}/", "")
    parts = [f"{entry.verdict} {entry.id}", entry.command, results]
    parts += [entry.unmeasured, entry.fitted]
    if entry.document != "goal":
        parts += [entry.claim, f"{entry.document}, {entry.figure}: {entry.published}"]
    return parts + [f"{check.statement}: {check.found()}" for check in entry.checks if check.points]


def test_verdicts_can_be_of_some_claims_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "verdicts", "--json", "T-4.5d", "LAP"])
    assert cli.main() == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["id"] for entry in found] == ["T-4.5d-mptcp", "T-4.5d-fbdt", "LAP"]
    asked = {check["experiment"] for check in found[0]["checks"]}
    assert asked == {"channel-traces", "long-samples"}
    kept = [c["measured"] for c in found[0]["checks"] if c["experiment"] == "channel-traces"]
    assert [list(measured) for measured in kept] == [["mptcp"], ["mptcp"]]
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "verdicts", "--json", "lap"])
    assert cli.main() == 0
    assert [entry["id"] for entry in json.loads(capsys.readouterr().out)] == ["LAP"]
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "verdicts", "--json", "video"])
    assert cli.main() == 0
    of_video = {entry["id"] for entry in json.loads(capsys.readouterr().out)}
    assert {"Q8", "T-4.7a-1750-fbdt"} <= of_video
    assert not of_video & {"Q1", "P1"}
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "verdicts", "Z-9"])
    assert cli.main() == 2
    assert "no claim or goal begins with `Z-9`" in capsys.readouterr().err
