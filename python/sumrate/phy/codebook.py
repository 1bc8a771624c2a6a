"""Codebooks: the sectors (beams) of a device, generated or read from measured patterns."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.arrays import Complexes, PlanarArray
from sumrate.phy.directions import wrap
from sumrate.phy.parameters import Floats, Integers, ParameterError, angle, one_of, whole, within

SPAN = float(np.deg2rad(120.0))
"""Range of a sector sweep in azimuth and in elevation: 120 degrees."""


class PatternError(ValueError):
    """A pattern file is malformed; the message has the line, the value and the range."""


class Pattern(Protocol):
    """The beams of one device, generated or measured."""

    @property
    def beams(self) -> int:
        """Number of beams."""
        ...

    def gain_dbi(self, azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
        """Gain of every beam towards directions in radians of the device's frame: (beams, ...)."""
        ...


@dataclass(frozen=True, eq=False)
class Codebook:
    """Beams made of weights on an array.

    Raises:
        ParameterError: the weights do not fit the array.

    """

    array: PlanarArray
    weights: Complexes
    """Shape (beams, elements); normalised when a gain is computed."""
    name: str = ""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        shape = np.shape(self.weights)
        if len(shape) != 2 or shape[0] < 1 or shape[1] != self.array.elements:
            raise ParameterError("shape of weights", shape, f"(beams, {self.array.elements})")

    @property
    def beams(self) -> int:
        """Number of beams."""
        return int(self.weights.shape[0])

    def gain_dbi(self, azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
        """Gain of every beam in dBi towards directions in radians: shape (beams, ...)."""
        return self.array.gain_dbi(self.weights, azimuth, elevation)

    def peak_directions(self, steps: int = 121) -> tuple[Floats, Floats]:
        """Azimuth and elevation of each beam's largest gain over the front, radians: (beams,)."""
        grid = np.linspace(-np.pi / 2, np.pi / 2, whole("steps", steps, 3))
        az, el = np.meshgrid(grid, grid, indexing="ij")
        best = self.gain_dbi(az.ravel(), el.ravel()).argmax(axis=1)
        return az.ravel()[best], el.ravel()[best]


def steered(
    array: PlanarArray,
    azimuth: ArrayLike,
    elevation: ArrayLike,
    *,
    phase_bits: int | None = None,
    name: str = "",
) -> Codebook:
    """A codebook with one beam steered to each direction.

    Args:
        array: of the device.
        azimuth: radians, shape (beams,).
        elevation: radians, shape (beams,).
        phase_bits: resolution of the phase shifters, 2^bits steps a turn; None: exact.
        name: of the codebook.

    """
    az, el = np.broadcast_arrays(np.atleast_1d(azimuth), np.atleast_1d(elevation))
    weights = array.weights_towards(az.ravel(), el.ravel())
    if phase_bits is not None:
        step = 2 * np.pi / 2 ** whole("phase_bits", phase_bits, 1, 16)
        weights = np.exp(1j * step * np.round(np.angle(weights) / step))
    return Codebook(array, weights, name)


def sector_grid(
    array: PlanarArray,
    columns: int,
    rows: int,
    *,
    azimuth_span: float = SPAN,
    elevation_span: float = SPAN,
    spacing: str = "sine",
    phase_bits: int | None = None,
) -> Codebook:
    """A codebook of columns x rows beams that tile a span; beam = column * rows + row.

    Beams of an array are equally wide in the sine of the angle, so neighbours with `sine` spacing
    cross at about the same level; `angle` spaces them equally in angle.

    Args:
        array: of the device.
        columns: beams side by side in azimuth.
        rows: beams above each other in elevation.
        azimuth_span: radians, centred on boresight, less than pi.
        elevation_span: likewise.
        spacing: `sine` or `angle`.
        phase_bits: as in `steered`.

    """
    one_of("spacing", spacing, ("sine", "angle"))
    azimuth = _centres("columns", columns, azimuth_span, spacing)
    elevation = _centres("rows", rows, elevation_span, spacing)
    az, el = np.meshgrid(azimuth, elevation, indexing="ij")
    name = f"{columns}x{rows} beams on {array.columns}x{array.rows} elements"
    return steered(array, az.ravel(), el.ravel(), phase_bits=phase_bits, name=name)


def _centres(name: str, count: int, span: float, spacing: str) -> Floats:
    """Centres of equal cells across a span, in radians."""
    whole(name, count, 1, 4096)
    within(f"span of {name}", span, 0.0, np.pi - 1e-9)
    share = (2 * np.arange(count) + 1) / count - 1
    if spacing == "angle":
        return np.asarray(share * span / 2)
    return np.asarray(np.arcsin(share * np.sin(span / 2)))


def codebook_36(array: PlanarArray | None = None) -> Codebook:
    """36 beams over 120 by 120 degrees: 9 columns, 4 rows, as beams of 8x4 elements are wide."""
    return sector_grid(array or PlanarArray(), 9, 4)


def codebook_64(array: PlanarArray | None = None) -> Codebook:
    """64 beams over 120 by 120 degrees: 16 columns, 4 rows."""
    return sector_grid(array or PlanarArray(), 16, 4)


def quasi_omni(array: PlanarArray | None = None, method: str = "single-element") -> Codebook:
    """One wide beam for reception.

    Args:
        array: of the device; 8x4 elements by default.
        method: `single-element` switches on one element; `quadratic-phase` uses all of them with
            phases that spread the beam over the front, so all amplifiers add power.

    """
    one_of("method", method, ("single-element", "quadratic-phase"))
    used = array or PlanarArray()
    if method == "single-element":
        weights = np.zeros((1, used.elements), dtype=np.complex128)
        middle = (used.columns // 2) * used.rows + used.rows // 2
        weights[0, middle] = 1.0
    else:
        across = _quadratic(used.columns)
        weights = np.outer(across, _quadratic(used.rows)).reshape(1, -1)
    return Codebook(used, weights, f"quasi-omni, {method}")


def _quadratic(count: int) -> Complexes:
    """Phases of a chirp that covers all directions once."""
    offset = np.arange(count) - (count - 1) / 2
    return np.asarray(np.exp(1j * np.pi * np.square(offset) / count))


@dataclass(frozen=True, eq=False)
class MeasuredPattern:
    """Beams as gains on a grid of directions, interpolated inside it and constant beyond it.

    Raises:
        ParameterError: shapes do not fit, or the grid does not rise.

    """

    azimuth: Floats
    """Radians, rising: shape (A,)."""
    elevation: Floats
    """Radians, rising: shape (E,)."""
    gains_dbi: Floats
    """Shape (beams, A, E)."""
    name: str = ""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        for name in ("azimuth", "elevation"):
            axis = angle(name, getattr(self, name))
            if axis.ndim != 1 or axis.size < 1 or (np.diff(axis) <= 0).any():
                raise ParameterError(name, "not rising", "a rising list of angles in radians")
        expected = (np.size(self.azimuth), np.size(self.elevation))
        if np.ndim(self.gains_dbi) != 3 or np.shape(self.gains_dbi)[1:] != expected:
            allowed = f"(beams, {expected[0]}, {expected[1]})"
            raise ParameterError("shape of gains_dbi", np.shape(self.gains_dbi), allowed)

    @property
    def beams(self) -> int:
        """Number of beams."""
        return int(self.gains_dbi.shape[0])

    def gain_dbi(self, azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
        """Gain of every beam in dBi towards directions in radians: shape (beams, ...)."""
        az, el = np.broadcast_arrays(wrap(angle("azimuth", azimuth)), angle("elevation", elevation))
        left, right, across = _between(self.azimuth, np.asarray(az, dtype=np.float64))
        low, high, upward = _between(self.elevation, np.asarray(el, dtype=np.float64))
        near = self.gains_dbi[:, left, low] * (1 - upward) + self.gains_dbi[:, left, high] * upward
        far = self.gains_dbi[:, right, low] * (1 - upward) + self.gains_dbi[:, right, high] * upward
        return np.asarray(near * (1 - across) + far * across)


def _between(axis: Floats, values: Floats) -> tuple[Integers, Integers, Floats]:
    """Indices of the points below and above, and the share of the step from the lower one."""
    if axis.size == 1:
        zero = np.zeros(values.shape, dtype=np.int64)
        return zero, zero, np.zeros(values.shape)
    held = np.clip(values, axis[0], axis[-1])
    below = np.clip(np.searchsorted(axis, held, side="right") - 1, 0, axis.size - 2)
    share = (held - axis[below]) / (axis[below + 1] - axis[below])
    return below, below + 1, share


COLUMNS = ("beam", "azimuth_deg", "elevation_deg", "gain_dbi")
"""Header of a file of patterns."""
MOST = {"azimuth_deg": 180, "elevation_deg": 90, "gain_dbi": 200}
"""Largest magnitude of each column."""
NULL_DBI = -60.0
"""Least gain in a file of patterns."""


def read_patterns(path: Path) -> MeasuredPattern:
    """Beams from a CSV file with the columns beam, azimuth_deg, elevation_deg, gain_dbi.

    Every beam needs a gain in every direction of the grid; lines may come in any order. Angles are
    in degrees, beams are numbered from 0. Lines that begin with `#` are comments.

    Raises:
        PatternError: a malformed line, or a missing beam or direction.

    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            cells = _cells(path, _rows(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise PatternError(f"{path}: not a text file in UTF-8: {error}") from None
    return _gridded(path, cells)


Cells = dict[tuple[int, float, float], float]
"""Gain in dBi by beam, azimuth and elevation in degrees."""


def _rows(file: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line, without empty lines and comments."""
    reader = csv.reader(file)
    for row in reader:
        if row and not row[0].startswith("#"):
            yield reader.line_num, row


def _cells(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Cells:
    """Gains of all lines after the header."""
    first, header = next(rows, (1, []))
    if [name.strip() for name in header] != list(COLUMNS):
        raise PatternError(
            f"{path}: line {first}: expected the header {','.join(COLUMNS)}, "
            f"found {','.join(header) or 'nothing'}"
        )
    cells: Cells = {}
    for number, row in rows:
        where = f"{path}: line {number}"
        beam, azimuth, elevation, gain = _pattern_row(row, where)
        if (beam, azimuth, elevation) in cells:
            raise PatternError(
                f"{where}: beam {beam} already has a gain at azimuth {azimuth:g}, "
                f"elevation {elevation:g}"
            )
        cells[beam, azimuth, elevation] = gain
    if not cells:
        raise PatternError(f"{path}: no line after the header: expected at least one beam")
    return cells


def _pattern_row(row: Sequence[str], where: str) -> tuple[int, float, float, float]:
    """Beam, azimuth, elevation and gain of a line."""
    try:
        beam_text, *numbers = row
        beam, (azimuth, elevation, gain) = int(beam_text), map(float, numbers)
    except ValueError:
        raise PatternError(
            f"{where}: expected {','.join(COLUMNS)} as numbers, found {','.join(row)}"
        ) from None
    if beam < 0:
        raise PatternError(f"{where}: beam must be at least 0, not {beam}")
    for name, value in zip(COLUMNS[1:], (azimuth, elevation, gain), strict=True):
        if not abs(value) <= MOST[name]:
            raise PatternError(f"{where}: {name} must be within ±{MOST[name]}, not {value:g}")
    return beam, azimuth, elevation, gain


def _gridded(path: Path, cells: Cells) -> MeasuredPattern:
    """The gains as an array.

    Raises:
        PatternError: a beam has no line, or a direction of the grid no gain.

    """
    beams = sorted({beam for beam, _, _ in cells})
    azimuths = sorted({azimuth for _, azimuth, _ in cells})
    elevations = sorted({elevation for _, _, elevation in cells})
    if beams[-1] >= len(beams):
        absent = next(number for number, beam in enumerate(beams) if number != beam)
        raise PatternError(f"{path}: beam {absent} is missing: beams 0 to {beams[-1]} need lines")
    missing = [
        (b, a, e) for b in beams for a in azimuths for e in elevations if (b, a, e) not in cells
    ]
    if missing:
        beam, azimuth, elevation = missing[0]
        raise PatternError(
            f"{path}: beam {beam} has no gain at azimuth {azimuth:g}, elevation {elevation:g} "
            f"({len(missing)} gains missing): every beam needs every direction of the grid"
        )
    gains = np.array([[[cells[b, a, e] for e in elevations] for a in azimuths] for b in beams])
    return MeasuredPattern(
        np.deg2rad(np.array(azimuths)), np.deg2rad(np.array(elevations)), gains, path.stem
    )


def write_patterns(
    pattern: Pattern, azimuth_deg: Sequence[float], elevation_deg: Sequence[float], path: Path
) -> None:
    """Samples beams on a grid in degrees and writes them in the format of `read_patterns`.

    A null is written as `NULL_DBI`, because gains are interpolated in dB.
    """
    az, el = np.meshgrid(np.deg2rad(azimuth_deg), np.deg2rad(elevation_deg), indexing="ij")
    gains = np.maximum(pattern.gain_dbi(az, el), NULL_DBI)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for beam, gain in enumerate(gains):
            for row, azimuth in enumerate(azimuth_deg):
                for column, elevation in enumerate(elevation_deg):
                    out.writerow([beam, azimuth, elevation, f"{gain[row, column]:.3f}"])
