"""Codebooks cover what they claim, and patterns survive a file."""

from pathlib import Path

import numpy as np
import pytest

from sumrate.phy.arrays import PlanarArray
from sumrate.phy.codebook import (
    PatternError,
    codebook_36,
    codebook_64,
    quasi_omni,
    read_patterns,
    sector_grid,
    steered,
    write_patterns,
)
from sumrate.phy.parameters import ParameterError


def directions() -> tuple[np.ndarray, np.ndarray]:
    grid = np.deg2rad(np.linspace(-58, 58, 59))
    az, el = np.meshgrid(grid, grid, indexing="ij")
    return az.ravel(), el.ravel()


def test_36_beams_leave_little_gain_between_them() -> None:
    book = codebook_36()
    azimuth = np.deg2rad(np.linspace(-58, 58, 117))
    best = book.gain_dbi(azimuth, np.arcsin(np.sin(np.pi / 3) / 4)).max(axis=0)
    ideal = PlanarArray().array_gain_db + book.array.element.gain_dbi(
        azimuth, np.full(117, np.arcsin(np.sin(np.pi / 3) / 4))
    )
    assert book.beams == 36
    assert (ideal - best).max() < 3.5
    assert (ideal - best).min() < 0.1


def test_a_square_grid_leaves_deep_gaps() -> None:
    azimuth = np.deg2rad(np.linspace(-58, 58, 233))
    array = PlanarArray()
    wide = sector_grid(array, 6, 6).gain_dbi(azimuth, 0.0).max(axis=0)
    fitting = codebook_36(array).gain_dbi(azimuth, 0.0).max(axis=0)
    assert (fitting - wide).max() > 3.0


def test_more_beams_never_cover_less() -> None:
    az, el = directions()
    few = codebook_36().gain_dbi(az, el).max(axis=0)
    many = codebook_64().gain_dbi(az, el).max(axis=0)
    assert codebook_64().beams == 64
    assert many.mean() > few.mean()


def test_beams_point_where_they_were_steered() -> None:
    azimuth, elevation = np.deg2rad([-30, 0, 15]), np.deg2rad([10, 0, -20])
    found = steered(PlanarArray(), azimuth, elevation).peak_directions(181)
    assert np.rad2deg(found[0]) == pytest.approx([-30, 0, 15], abs=4)
    assert np.rad2deg(found[1]) == pytest.approx([10, 0, -20], abs=8)


@pytest.mark.parametrize("method", ["single-element", "quadratic-phase"])
def test_quasi_omni_listens_everywhere_in_front(method: str) -> None:
    az, el = directions()
    listening = quasi_omni(method=method)
    gain = listening.gain_dbi(az, el)
    assert gain.shape == (1, az.size)
    sector = codebook_36().gain_dbi(az, el).max(axis=0)
    assert gain[0].mean() < sector.mean() - 6
    assert listening.beams == 1


def test_phase_bits_cost_a_little() -> None:
    exact = codebook_36()
    coarse = sector_grid(PlanarArray(), 9, 4, phase_bits=2)
    az, el = exact.peak_directions(61)
    loss = np.diag(exact.gain_dbi(az, el)) - np.diag(coarse.gain_dbi(az, el))
    assert 0.2 < loss.mean() < 2.0


def test_patterns_survive_a_file_and_are_interpolated(tmp_path: Path) -> None:
    grid = [float(degree) for degree in range(-60, 61, 5)]
    book = codebook_36()
    write_patterns(book, grid, grid, tmp_path / "patterns.csv")
    measured = read_patterns(tmp_path / "patterns.csv")
    az, el = np.meshgrid(np.deg2rad(grid), np.deg2rad(grid), indexing="ij")
    assert measured.beams == 36
    assert measured.gain_dbi(az, el) == pytest.approx(
        np.maximum(book.gain_dbi(az, el), -60.0), abs=1e-3
    )
    halfway = measured.gain_dbi(np.deg2rad(2.5), 0.0)
    ends = measured.gain_dbi(np.deg2rad([0.0, 5.0]), [0.0, 0.0])
    assert halfway == pytest.approx(ends.mean(axis=1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beam,az\n", "line 1: expected the header beam,azimuth_deg.*, found beam,az"),
        ("", "line 1: expected the header .*, found nothing"),
        ("beam,azimuth_deg,elevation_deg,gain_dbi\n0,0,0\n", "line 2: expected"),
        (
            "beam,azimuth_deg,elevation_deg,gain_dbi\n0,0,0,1\n0,0,0,2\n",
            "line 3: beam 0 already has a gain at azimuth 0, elevation 0",
        ),
        (
            "beam,azimuth_deg,elevation_deg,gain_dbi\n0,270,0,1\n",
            "line 2: azimuth_deg must be within ±180, not 270",
        ),
        (
            "# measured\nbeam,azimuth_deg,elevation_deg,gain_dbi\n0,0,91,1\n",
            "line 3: elevation_deg",
        ),
        ("beam,azimuth_deg,elevation_deg,gain_dbi\n-1,0,0,1\n", "line 2: beam must be .*, not -1"),
        ("beam,azimuth_deg,elevation_deg,gain_dbi\n0,0,0,x\n", "line 2: expected .* found 0,0,0,x"),
        (
            "beam,azimuth_deg,elevation_deg,gain_dbi\n0,0,0,nan\n",
            "line 2: gain_dbi must be within ±200, not nan",
        ),
        ("beam,azimuth_deg,elevation_deg,gain_dbi\n1,0,0,1\n", "beam 0 is missing: beams 0 to 1"),
        (
            "beam,azimuth_deg,elevation_deg,gain_dbi\n0,0,0,1\n1,5,0,1\n",
            "beam 0 has no gain at azimuth 5",
        ),
        ("beam,azimuth_deg,elevation_deg,gain_dbi\n", "at least one beam"),
    ],
)
def test_wrong_files_are_refused_with_line_and_value(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "patterns.csv"
    path.write_text(text)
    with pytest.raises(PatternError, match=expected):
        read_patterns(path)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "patterns.csv"
    path.write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(PatternError, match="not a text file"):
        read_patterns(path)


def test_impossible_codebooks_are_refused() -> None:
    with pytest.raises(ParameterError, match="columns is 0"):
        sector_grid(PlanarArray(), 0, 4)
    with pytest.raises(ParameterError, match="span of columns is 120"):
        sector_grid(PlanarArray(), 9, 4, azimuth_span=120.0)
    with pytest.raises(ParameterError, match="spacing is 'cosine': allowed is angle, sine"):
        sector_grid(PlanarArray(), 9, 4, spacing="cosine")
    with pytest.raises(ParameterError, match="method"):
        quasi_omni(method="loud")
