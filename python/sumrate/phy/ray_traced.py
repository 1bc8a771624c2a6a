"""The box room through Sionna RT, as an independent check; needs the extra `rt` and LLVM 19.

The tracer runs in its own process, because it aborts with another LLVM. The environment variable
DRJIT_LIBLLVM_PATH names the library.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.channel.box_room import OPENING, WALLS, BoxRoom
from sumrate.phy.directions import points
from sumrate.phy.parameters import Floats, ParameterError

TIMEOUT_S = 300.0
SAMPLES = 200_000
_CORNERS = (
    (0, 3, 7, 4), (1, 2, 6, 5), (0, 1, 5, 4), (3, 2, 6, 7), (0, 1, 2, 3), (4, 5, 6, 7),
)  # fmt: skip
"""Corners of each wall, in the order of `WALLS`; corner i of the box has the bits of `_BITS`."""
_BITS = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))


class RayTracerUnavailableError(RuntimeError):
    """Sionna RT is not installed or does not run; the message names the missing part."""


@dataclass(frozen=True, eq=False)
class TracedRays:
    """Rays of the tracer, the earliest first: each (rays,)."""

    length_m: Floats
    gain_db: Floats
    """Between vertical isotropic antennas, without oxygen."""


def traced(
    room: BoxRoom, transmitter: ArrayLike, receiver: ArrayLike, python: str = sys.executable
) -> TracedRays:
    """The rays of one link in a box room, by Sionna RT's specular paths.

    Args:
        room: with a thickness of walls and without openings.
        transmitter: metres, shape (3,).
        receiver: metres, shape (3,).
        python: interpreter that has Sionna RT.

    Raises:
        ParameterError: the room has no thickness, or an opening.
        RayTracerUnavailableError: the tracer does not run.

    """
    if room.thickness_m is None:
        raise ParameterError("thickness_m", None, "the thickness of the walls in metres")
    if OPENING in room.materials.values():
        raise ParameterError("materials", OPENING, "a material on every wall")
    request = {
        "size_m": list(room.size_m),
        "materials": [room.materials[wall] for wall in WALLS],
        "thickness_m": room.thickness_m,
        "order": room.max_order,
        "frequency_hz": room.frequency_hz,
        "transmitter": points("transmitter", transmitter).tolist(),
        "receiver": points("receiver", receiver).tolist(),
    }
    answer = _answer(request, python)
    order = np.argsort(answer["length_m"])
    return TracedRays(np.array(answer["length_m"])[order], np.array(answer["gain_db"])[order])


def _answer(request: dict[str, Any], python: str) -> dict[str, Any]:
    folder = str(Path(__file__).resolve().parents[2])
    try:
        done = subprocess.run(
            [python, "-m", "sumrate.phy.ray_traced"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            env={**os.environ, "PYTHONPATH": folder},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RayTracerUnavailableError(f"the ray tracer did not run: {error}") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RayTracerUnavailableError(
            f"the ray tracer ended with {done.returncode} ({last}): it needs `pip install .[rt]` "
            "and LLVM 19 or newer, named by DRJIT_LIBLLVM_PATH"
        )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _wall_file(path: Path, size: list[float], wall: int) -> None:
    corners = [np.array(_BITS[corner]) * np.array(size) for corner in _CORNERS[wall]]
    lines = ["ply", "format ascii 1.0", "element vertex 4"]
    lines += [f"property float {axis}" for axis in "xyz"]
    lines += ["element face 2", "property list uchar int vertex_indices", "end_header"]
    lines += [" ".join(f"{value:.9g}" for value in corner) for corner in corners]
    path.write_text("\n".join([*lines, "3 0 1 2", "3 0 2 3", ""]), encoding="ascii")


def _scene_file(folder: Path, request: dict[str, Any]) -> Path:
    """The room in the tracer's format; `_trace` sets the materials."""
    parts = [
        '<scene version="2.1.0"><bsdf type="itu-radio-material" id="mat-unset">'
        '<string name="type" value="concrete"/></bsdf>'
    ]
    for wall, name in enumerate(WALLS):
        _wall_file(folder / f"{name}.ply", request["size_m"], wall)
        parts.append(
            f'<shape type="ply" id="{name}"><string name="filename" value="{name}.ply"/>'
            '<boolean name="face_normals" value="true"/><ref id="mat-unset" name="bsdf"/></shape>'
        )
    path = folder / "room.xml"
    path.write_text("\n".join([*parts, "</scene>"]), encoding="ascii")
    return path


def _trace(request: dict[str, Any]) -> dict[str, list[float]]:
    """Runs the tracer in this process."""
    from sionna.rt import (  # noqa: PLC0415 (in the tracer's own process only)
        ITURadioMaterial,
        PathSolver,
        PlanarArray,
        Receiver,
        Transmitter,
        load_scene,
    )

    with tempfile.TemporaryDirectory() as folder:
        scene = load_scene(str(_scene_file(Path(folder), request)), merge_shapes=False)
    scene.frequency = request["frequency_hz"]
    # A scene is loaded for 3.5 GHz, where not every material is defined.
    made: dict[str, Any] = {}
    for wall, name in zip(WALLS, request["materials"], strict=True):
        kind = name.replace("-", "_")
        if kind not in made:
            made[kind] = ITURadioMaterial(f"wall-{kind}", kind, thickness=request["thickness_m"])
        scene.objects[wall].radio_material = made[kind]
    antenna = PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
    scene.tx_array = scene.rx_array = antenna
    scene.add(Transmitter("tx", position=request["transmitter"]))
    scene.add(Receiver("rx", position=request["receiver"]))
    paths = PathSolver()(
        scene,
        max_depth=request["order"],
        los=True,
        specular_reflection=True,
        diffuse_reflection=False,
        refraction=False,
        samples_per_src=SAMPLES,
    )
    real, imaginary = (np.asarray(part.numpy(), dtype=np.float64).ravel() for part in paths.a)
    delay = np.asarray(paths.tau.numpy(), dtype=np.float64).ravel()
    power = real**2 + imaginary**2
    there = (delay > 0) & (power > 0)
    return {
        "length_m": (delay[there] * 299_792_458.0).tolist(),
        "gain_db": (10 * np.log10(power[there])).tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(_trace(json.loads(sys.stdin.read()))))
