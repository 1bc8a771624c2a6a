"""Any change of a good experiment file: still right, or refused with the file's name."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumrate.lab.experiment.load import ExperimentError, load
from tests.lab.test_experiment_files import GOOD

LINES = GOOD.splitlines()
VALUES = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.text(max_size=8).map(lambda text: '"' + text.replace('"', "'").replace("\\", "/") + '"'),
    st.sampled_from(["true", "[]", "{}", "[[]]", "1979-05-27", "", '"""', "inf", "nan", "-1"]),
)


@st.composite
def changed(draw: st.DrawFn) -> str:
    """Lines taken away, doubled, moved, or given another value."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                lines.pop(at)
            case 1:
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case 2:
                lines[at] = lines[at].split("=")[0] + "= " + draw(VALUES)
            case 3:
                lines.insert(at, draw(st.text(max_size=12)) + " = " + draw(VALUES))
            case _:
                lines[at] = draw(
                    st.sampled_from(["[[links]]", "[links]", "[[checks]]", "= 1", "x"])
                )
        if not lines:
            break
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiments")


FILES = st.one_of(changed().map(lambda t: t.encode("utf-8", "replace")), st.binary())


def check(folder: Path, content: bytes) -> None:
    """A file with this content is right, or refused with its name."""
    (folder / "trial.toml").write_bytes(content)
    try:
        experiment = load("trial", folder)
    except ExperimentError as error:
        assert "trial.toml" in str(error)
        return
    assert experiment.name == "trial"
    assert experiment.checks


@settings(deadline=None, max_examples=400)
@given(content=FILES)
def test_any_file_is_right_or_refused_by_name(folder: Path, content: bytes) -> None:
    check(folder, content)
