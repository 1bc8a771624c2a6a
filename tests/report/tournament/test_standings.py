"""Who wins where is what the table says."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sumrate.ranking import place
from sumrate.report.tournament.__main__ import main
from sumrate.report.tournament.figure import figure, rows
from sumrate.report.tournament.summary import summary
from sumrate.report.tournament.table import TableError, origin, read, standing
from tests.report.pictures import problems, title, words

SCHEMA = Path("docs/schemas/tournament.v1.json")


def row(
    scheduler: str, goodput: float, stall: float, delay: float, **more: str | float
) -> dict[str, Any]:
    return {
        "condition": 0,
        "group": "loss",
        "rate_ratio": 3.0,
        "rtt_ratio": 1.0,
        "late": "none",
        "loss": 0.01,
        "lossy": "fast",
        "buffer_bytes": 0,
        "buffer_factor": 0.0,
        "outage_s": 0.0,
        "dark": "none",
        "flapping": False,
        "transfer_bytes": 0,
        "trace": "",
        "seed": 1,
        "scheduler": scheduler,
        "rules": "published",
        "alone_mbps": [45.0, 15.0],
        "sum_ratio": goodput / 60,
        "goodput_mbps": goodput,
        "goodput_p5_mbps": goodput,
        "stall_ms": stall,
        "in_order_p50_ms": 0.0,
        "in_order_p99_ms": delay,
        "reorder_peak_bytes": 0,
        "redundant_share": 0.0,
        "violation": "",
        **more,
    }


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"schema": "tournament.v1", "arguments": [], "rows": rows}))
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two conditions: the default wins the first one and loses the second."""
    rows = [
        row("just-in-time", 60, 5, 2),
        row("minrtt", 59, 20, 40),
        row("redundant", 40, 1, 0),
        row("just-in-time", 40, 5, 2, group="outage", dark="slow", outage_s=1.0, condition=1),
        row("minrtt", 50, 300, 40, group="outage", dark="slow", outage_s=1.0, condition=1),
        row("redundant", 40, 1, 0, group="outage", dark="slow", outage_s=1.0, condition=1),
    ]
    return table(tmp_path / "table.json", rows)


def test_the_sample_follows_the_schema(small: Path, repository: Path) -> None:
    schema = json.loads((repository / SCHEMA).read_text(encoding="utf-8"))
    sample = json.loads(small.read_text(encoding="utf-8"))
    jsonschema.validate(sample, schema)
    del sample["rows"][0]["stall_ms"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sample, schema)


def test_standings_count_ties_and_leave_out_who_delivers_little(small: Path) -> None:
    conditions = read([small])
    own, minrtt = standing(conditions, "just-in-time"), standing(conditions, "minrtt")
    assert (own.ties, own.worst) == (0.5, 0.8)
    assert (minrtt.ties, round(minrtt.worst, 3)) == (1.0, 0.983)
    # Redundant is never counted against another: it delivers two thirds or four fifths.
    # The default is counted where it delivers nine tenths: in the first condition.
    assert own.stall == 0.5
    assert standing(conditions, "redundant").stall == 0.0, "it waits for little, and sends little"
    assert minrtt.in_order == 1.0, "second of the two that deliver"


def test_a_rank_counts_only_who_is_clearly_better() -> None:
    values = {"a": 10.0, "b": 9.5, "c": 5.0, "d": 200.0, "e": 190.0}
    assert [place(values[name], values.values()) for name in values] == [2, 2, 1, 4, 4]


def test_draws_are_summed_up_by_their_median(tmp_path: Path) -> None:
    rows = [row("minrtt", goodput, 1, 1, seed=seed) for seed, goodput in enumerate([10, 30, 50])]
    (condition,) = read([table(tmp_path / "t.json", rows)])
    assert condition.goodput_mbps == {"minrtt": 30}


def test_draws_are_compared_one_by_one(tmp_path: Path) -> None:
    def made(own: list[float], other: list[float]) -> Path:
        rows = [row("just-in-time", g, 1, 1, seed=n) for n, g in enumerate(own)]
        rows += [row("ecf", g, 1, 1, seed=n) for n, g in enumerate(other)]
        return table(tmp_path / "t.json", rows)

    # What a draw does to both is no reason to doubt who is ahead.
    (apart,) = read([made([30, 45, 54], [40, 50, 60])])
    assert apart.relative("just-in-time") == 0.9
    assert not apart.undecided("just-in-time", "ecf")
    (open_one,) = read([made([40, 45, 58], [50, 50, 54])])
    assert open_one.undecided("just-in-time", "ecf")
    (single,) = read([made([45], [50])])
    assert not single.undecided("just-in-time", "ecf"), "one draw tells nothing of chance"


def test_the_order_of_the_rows_does_not_pair_other_draws(tmp_path: Path) -> None:
    rows = [row("just-in-time", g, 1, 1, seed=n) for n, g in enumerate((30, 45, 54))]
    rows += [row("ecf", g, 1, 1, seed=n) for n, g in reversed(list(enumerate((40, 50, 60))))]
    (condition,) = read([table(tmp_path / "t.json", rows)])
    assert condition.ratios("just-in-time", "ecf") == [0.75, 0.9, 0.9]


def test_nobody_gets_more_than_the_links_carry(tmp_path: Path) -> None:
    rows = [row("minrtt", 66, 1, 1), row("ecf", 60, 1, 1)]
    (condition,) = read([table(tmp_path / "t.json", rows)])
    assert condition.relative("ecf") == 1.0
    rows = [row("minrtt", 66, 1, 1, trace="los-1"), row("ecf", 60, 1, 1, trace="los-1")]
    (condition,) = read([table(tmp_path / "t.json", rows)])
    assert round(condition.relative("ecf"), 3) == 0.909


def test_the_summary_says_where_the_default_loses(small: Path) -> None:
    text = summary(read([small]))
    assert "more than 2% below the best in 1 of 2 conditions by Mbit/s" in text
    condition = "outage: rates 1:3, 1 % loss on fast, slow path dark 1 s once"
    assert f"| {condition} | 0.800 | 0.667 | minrtt |" in text
    assert "loss: rates" not in text


def test_the_summary_says_where_others_stall_or_delay_less(tmp_path: Path) -> None:
    rows = [
        row("just-in-time", 60, 80, 2),
        row("minrtt", 60, 20, 40),
        row("ecf", 60, 30, 40),
        # It delivers little: its stall is no merit.
        row("redundant", 30, 1, 0),
    ]
    text = summary(read([table(tmp_path / "t.json", rows)]))
    _, listed = text.split("not among the two best in stall or in-order delay", 1)
    found = [line for line in listed.splitlines() if line.startswith("| loss:")]
    assert found == [
        "| loss: rates 1:3, 1 % loss on fast | stall | 80 | minrtt | 20 | minrtt | 20 |"
    ]


def test_where_copies_wait_least_the_best_of_the_others_is_named_too(tmp_path: Path) -> None:
    rows = [
        row("just-in-time", 60, 80, 2),
        row("minrtt", 60, 20, 40),
        row("ecf", 60, 30, 40),
        row("redundant", 58, 1, 2),
    ]
    text = summary(read([table(tmp_path / "t.json", rows)]))
    assert "| stall | 80 | redundant | 1 | minrtt | 20 |" in text
    assert "| best without redundant | ms |" in text


def test_what_is_lost_in_several_draws_has_its_range(tmp_path: Path) -> None:
    rows = [row("just-in-time", g, 1, 1, seed=n) for n, g in enumerate((48, 51, 57))]
    rows += [row("ecf", g, 1, 1, seed=n) for n, g in enumerate((54, 57, 60))]
    text = summary(read([table(tmp_path / "t.json", rows)]))
    assert "| 0.895 (0.889 to 0.950) | 0.850 | ecf | 0.950 |" in text
    assert "in 0 of these 1 the default is ahead in some draw" in text
    rows += [row("just-in-time", 55, 1, 1, seed=3), row("ecf", 54, 1, 1, seed=3)]
    text = summary(read([table(tmp_path / "t.json", rows)]))
    assert "| 0.922 (0.889 to 1.019) | 0.883 | ecf ~ | 0.925 |" in text
    assert "in 1 of these 1 the default is ahead in some draw" in text
    single = [row("just-in-time", 51, 1, 1), row("ecf", 57, 1, 1)]
    text = summary(read([table(tmp_path / "t.json", single)]))
    assert "| 0.895 | 0.850 | ecf | 0.950 |" in text
    assert "Ratios are of the same draw" not in text, "there is one"


def test_who_searches_longer_than_the_warm_up_is_marked(tmp_path: Path, small: Path) -> None:
    rows = [row("just-in-time", 51, 1, 1), row("musher", 57, 1, 1)]
    text = summary(read([table(tmp_path / "t.json", rows)]))
    assert text.count("| musher \\* | ") == 2
    assert "\\* musher looks for its ratio first" in text
    assert "musher" not in summary(read([small]))


def test_a_rule_that_never_came_to_bear_is_told(tmp_path: Path) -> None:
    def pair(other: float, **more: str | float) -> list[dict[str, Any]]:
        rows = [row("lrf", 50, 3, 4, seed=n, **more) for n in (1, 2)]
        rows += [row("minrtt", 50, 3, 4, **more), row("minrtt", other, 3, 4, seed=2, **more)]
        return rows

    outage: dict[str, str | float] = {"group": "outage", "dark": "slow", "outage_s": 1.0}
    rows = [*pair(50), *pair(50.1, loss=0.02), *pair(50, **outage)]
    text = summary(read([table(tmp_path / "t.json", rows)]))
    assert "| scheduler | built on | loss | outage |" in text
    assert "| minrtt | lrf | 1 of 2 | 1 of 1 |" in text
    assert "| blest |" not in text


def test_draws_are_told_by_group(tmp_path: Path) -> None:
    rows = [row("ecf", 50, 1, 1, seed=n) for n in (1, 2)]
    rows += [row("ecf", 50, 1, 1, group="trace", trace="los-1")]
    made = origin([table(tmp_path / "t.json", rows)], "abc")
    assert "2 conditions, 3 cells, 1 draw of each, 2 in loss; the number" in made


def test_the_figure_has_a_row_for_each_scheduler_and_says_what_it_shows(small: Path) -> None:
    conditions = read([small])
    drawn = figure(conditions)
    ranked = rows(conditions)
    shown = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert shown == [row.scheduler for row in ranked]
    own = next(row for row in ranked if row.scheduler == "just-in-time")
    assert (own.ties, dict(own.by_group)) == (0.5, {"loss": 1.0, "outage": 0.0})
    assert title(drawn).startswith("just-in-time carries as much as the best in 50% of 2")
    assert {"50%", "100%", "0%", "outages"} <= set(words(drawn))
    assert not problems(drawn)


def test_without_the_default_the_figure_is_of_the_best(tmp_path: Path) -> None:
    made = [row("minrtt", 60, 1, 1), row("ecf", 50, 1, 1)]
    drawn = figure(read([table(tmp_path / "t.json", made)]))
    assert title(drawn).startswith("minrtt carries as much as the best in 100% of 1 condition,")


def test_what_is_no_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert main([str(other)]) == 2
    assert "no schema tournament.v1" in capsys.readouterr().err
    broken = table(tmp_path / "broken.json", [row("minrtt", 1, 1, 1, violation="no progress")])
    with pytest.raises(TableError, match="minrtt broke an invariant: no progress"):
        read([broken])
    old = row("minrtt", 1, 1, 1)
    del old["transfer_bytes"]
    with pytest.raises(TableError, match="run make tournament"):
        read([table(tmp_path / "old.json", [old])])
    uneven = [row("minrtt", 1, 1, 1), row("ecf", 1, 1, 1, loss=0.02)]
    with pytest.raises(TableError, match="same schedulers"):
        read([table(tmp_path / "uneven.json", uneven)])


def test_files_are_written(small: Path, tmp_path: Path) -> None:
    picture, words = tmp_path / "wins.svg", tmp_path / "wins.md"
    asked = [str(small), "--figure", str(picture), "--summary", str(words), "--commit", "abc"]
    assert main(asked) == 0
    assert "<svg" in picture.read_text(encoding="utf-8")
    title, _, made, _, told, _, head, *_ = words.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ") and told.startswith("Rates 1:10")
    assert made.startswith("Made at commit abc: 2 conditions, 6 cells, 1 draw of each;")
    assert made.endswith("matrix is unknown, that of what the schedulers do unknown.")
    assert head.startswith("| scheduler |")


def test_a_summary_says_of_which_matrix_and_schedulers_it_is(small: Path) -> None:
    whole = json.loads(small.read_text(encoding="utf-8"))
    numbers = {"matrix": "0123456789abcdef", "behaviour": "fedcba9876543210"}
    small.write_text(json.dumps({**whole, **numbers}), encoding="utf-8")
    said = origin([small], "abc")
    assert "matrix is 0123456789abcdef, that of what the schedulers do fedcba9876543210." in said


def test_tables_of_other_code_are_not_put_together(small: Path, tmp_path: Path) -> None:
    whole = json.loads(small.read_text(encoding="utf-8"))
    others = {"matrix": "conditions", "behaviour": "schedulers", "tcp": "congestion control"}
    for name, what in others.items():
        words, older = f"other {what}", tmp_path / "older.json"
        older.write_text(json.dumps({**whole, name: "0123456789abcdef"}), encoding="utf-8")
        with pytest.raises(TableError, match=f"older.json is of {words} .0123456789abcdef."):
            origin([small, older], "abc")
        assert main([str(small), str(older)]) == 2


def test_a_table_is_narrowed_to_the_conditions_of_another(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads(small.read_text(encoding="utf-8"))
    first = whole["rows"][0]
    rows = [one for one in whole["rows"] if one["condition"] == first["condition"]]
    part = tmp_path / "cubic.json"
    part.write_text(json.dumps({**whole, "tcp": "cubic", "rows": rows}), encoding="utf-8")
    assert main([str(small), "--like", str(part)]) == 0
    assert "Here are the 1 conditions that cubic.json has too." in capsys.readouterr().out
    assert main([str(part)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# The tournament: standings over CUBIC\n")
    assert " Every path's TCP is cubic.\n" in said
    other = table(tmp_path / "other.json", [row("minrtt", 1, 1, 1, loss=0.33)])
    assert main([str(small), "--like", str(other)]) == 2
    assert "has none of these conditions" in capsys.readouterr().err


def test_ties_are_said_without_the_smallest_buffer_too(tmp_path: Path) -> None:
    rows = [row("just-in-time", 60, 5, 2), row("minrtt", 60, 5, 2)]
    for number, (size, own) in enumerate([(65536, 40), (65536, 60), (131072, 60), (262144, 30)]):
        like: dict[str, str | float] = {"group": "buffer", "buffer_bytes": size}
        like |= {"condition": number, "rate_ratio": number + 1}
        rows += [row("just-in-time", own, 5, 2, **like), row("minrtt", 60, 5, 2, **like)]
    said = summary(read([table(tmp_path / "t.json", rows)]))
    assert (
        "Without the 2 conditions with the smallest buffer, 64 KiB, just-in-time ties in 67% of "
        "all and in 50% of those with buffers." in said
    )
    rows = [r for r in rows if r["buffer_bytes"] <= 65536]
    assert "smallest buffer" not in summary(read([table(tmp_path / "u.json", rows)]))


def test_draws_are_counted_by_condition(tmp_path: Path) -> None:
    rows = [
        row("just-in-time", 60, 5, 2, seed=seed, loss=loss, condition=number, group=group)
        for number, (group, loss, draws) in enumerate(
            [("rate-rtt", 0.0, 3), ("short", 0.0, 3), ("short", 0.01, 5), ("loss", 0.02, 5)]
        )
        for seed in range(draws)
    ]
    made = origin([table(tmp_path / "table.json", rows)], "abc")
    assert "3 draws of each, 5 in loss, 3 or 5 in short;" in made


def test_the_longest_waits_and_the_copies_are_told_by_group(tmp_path: Path) -> None:
    short: dict[str, str | float] = {"group": "short", "condition": 2}
    rows = [
        row("just-in-time", 60, 5, 2),
        row("minrtt", 59, 20, 40),
        row("just-in-time", 58, 700, 3, loss=0.02, condition=1, redundant_share=0.03),
        row("minrtt", 59, 8, 90, loss=0.02, condition=1),
        row("just-in-time", 9, 1, 1, transfer_bytes=10000, redundant_share=0.5, **short),
        row("minrtt", 5, 1, 1, transfer_bytes=10000, **short),
    ]
    text = summary(read([table(tmp_path / "table.json", rows)]))
    assert "| just-in-time | 700, 3 | 1, 1 |" in text
    assert "| minrtt | 20, 90 | 1, 1 |" in text
    assert "| loss | 1.5% | 0.0% | 3.0% |" in text
    assert "| short, 10 KB | 50.0% | 50.0% | 50.0% |" in text
