"""Makes the pictures of the status page and of `sumrate top` from a real run of six minutes.

Run, after `make build browser`: python3 -m tests.watch.pictures docs/img
"""

import argparse
import fcntl
import html
import os
import pty
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

from sumrate.lab.programs import binary_folder
from tests.watch.relay import Relay
from tests.watch.running import Running, running
from tests.watch.screen import Cell, Screen
from tests.watch.test_status_page import PLAYWRIGHT

DRIVER = Path(__file__).with_name("pictures.mjs")
ROWS, COLUMNS = 24, 80
CELL = (8.4, 17)
GROUND, INK = "#14171a", "#e6e9ec"
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
NAMED = {31: "#ff8a80", 32: "#4cc38a", 33: "#f0b429"}
EIGHTHS = "▁▂▃▄▅▆▇█"
LINES = {"─": "lr", "│": "tb", "┌": "rb", "┐": "lb", "└": "rt", "┘": "lt"}


def colour(code: int | None, usual: str) -> str:
    """The colour of a code: one of eight named ones, or 256 and its place in the palette."""
    if code is None:
        return usual
    if code < 256:
        return NAMED.get(code, usual)
    place = code - 256
    if place < 16:
        return {1: NAMED[31], 2: NAMED[32], 3: NAMED[33]}.get(place, usual)
    cube = [0, 95, 135, 175, 215, 255]
    place -= 16
    return f"#{cube[place // 36]:02x}{cube[place // 6 % 6]:02x}{cube[place % 6]:02x}"


def drawn_line(sides: str, x: float, y: float) -> str:
    """A line of a frame, from the middle of the cell to its sides."""
    width, height = CELL
    middle = (x + width / 2, y + height / 2)
    ends = {"l": (x, middle[1]), "r": (x + width, middle[1]), "t": (middle[0], y)}
    ends["b"] = (middle[0], y + height)
    points = [ends[sides[0]], middle, ends[sides[1]]]
    path = "L".join(f"{at[0]:.1f} {at[1]:.1f}" for at in points)
    return f'<path d="M{path}" class="f"/>'


def blocks(screen: Screen, row: int) -> list[str]:
    """The rectangles of one line: runs of equal cells, and what lies behind them."""
    width, height = CELL
    runs: list[tuple[int, int, Cell]] = []
    for column in range(1, COLUMNS + 1):
        cell = screen.cell(row, column)
        last = runs[-1] if runs else None
        if last and last[0] + last[1] == column and last[2] == cell:
            runs[-1] = (last[0], last[1] + 1, cell)
        else:
            runs.append((column, 1, cell))
    parts = []
    y = (row - 1) * height
    for column, count, cell in runs:
        front, back = colour(cell.front, INK), colour(cell.back, GROUND)
        if cell.reversed:
            front, back = back, front
        x, long = (column - 1) * width, count * width
        if back != GROUND:
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{long:.1f}" height="{height}" fill="{back}"/>'
            )
        if cell.text in EIGHTHS:
            tall = height * (EIGHTHS.index(cell.text) + 1) / 8
            parts.append(
                f'<rect x="{x:.1f}" y="{y + height - tall:.2f}" width="{long:.1f}" '
                f'height="{tall:.2f}" fill="{front}"/>'
            )
    return parts


def texts(screen: Screen, row: int) -> list[str]:
    """The words of one line, and its frames."""
    width, height = CELL
    parts, run, begin = [], "", 1
    before: Cell | None = None
    for column in range(1, COLUMNS + 2):
        cell = screen.cell(row, column)
        is_text = cell.text not in EIGHTHS and cell.text not in LINES and column <= COLUMNS
        style = cell.style()
        if run and (not is_text or before is None or style != before.style()):
            if run.strip() and before is not None:
                parts.append(written(run, begin, row, before))
            run = ""
        if is_text:
            begin = begin if run else column
            run += cell.text
            before = cell
        elif cell.text in LINES:
            parts.append(drawn_line(LINES[cell.text], (column - 1) * width, (row - 1) * height))
    return parts


def written(text: str, column: int, row: int, cell: Cell) -> str:
    """A run of characters of one style, at its exact width whatever the font is."""
    width, height = CELL
    lead = len(text) - len(text.lstrip())
    text, column = text.strip(), column + lead
    front = colour(cell.front, INK)
    if cell.reversed:
        front = colour(cell.back, GROUND)
    style = ' font-weight="700"' if cell.bold else ""
    style += ' opacity=".65"' if cell.dim else ""
    style += f' fill="{front}"' if front != INK else ""
    return (
        f'<text x="{(column - 1) * width:.1f}" y="{row * height - 4.5:.1f}" '
        f'textLength="{len(text) * width:.1f}"{style}>{html.escape(text)}</text>'
    )


def to_svg(screen: Screen) -> str:
    """The screen as a picture that needs no font of its own."""
    width, height = COLUMNS * CELL[0], ROWS * CELL[1]
    parts = [part for row in range(1, ROWS + 1) for part in blocks(screen, row)]
    parts += [part for row in range(1, ROWS + 1) for part in texts(screen, row)]
    title = "sumrate top during a download over WiFi and a phone"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-14 -14 {width + 28:.0f} '
        f'{height + 28:.0f}" role="img" aria-label="{title}"><title>{title}</title>'
        f"<style>text{{white-space:pre}}.f{{fill:none;stroke:{INK};opacity:.45}}</style>"
        f'<rect x="-14" y="-14" width="{width + 28:.0f}" height="{height + 28:.0f}" rx="10" '
        f'fill="{GROUND}"/><g font-family="{FONT}" font-size="14" fill="{INK}" '
        f'shape-rendering="crispEdges">\n' + "\n".join(parts) + "\n</g></svg>\n"
    )


def top(socket: str) -> Screen:
    """What `sumrate top` shows after a few seconds."""
    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [str(binary_folder() / "sumrate"), "top", "--socket", socket],
        stdin=terminal,
        stdout=terminal,
        env={"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"},
        start_new_session=True,
    )
    screen = Screen()
    end = time.monotonic() + 4
    while (left := end - time.monotonic()) > 0:
        if select.select([keyboard], [], [], left)[0]:
            screen.feed(os.read(keyboard, 1 << 16))
    process.kill()
    process.wait()
    return screen


def page(both: Running, folder: Path) -> None:
    """The page, light and dark."""
    chromium = shutil.which("chromium") or "chromium"
    argv = ["node", str(DRIVER), str(PLAYWRIGHT), chromium, both.client["web"], str(folder)]
    subprocess.run(argv, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for page.png, page-dark.png and top.svg")
    parser.add_argument("--seconds", type=int, default=310, help="how long to download before")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    relays: list[Relay] = []

    def flags(listen: str) -> list[str]:
        relays.append(Relay("127.0.0.3", listen))
        paths = ["--path", "wlan0=127.0.0.1", "--path", f"usb0=127.0.0.2@{relays[0].address}"]
        limits = ["--policy", "wlan0=rate=57M", "--policy", "usb0=rate=28M,quota=10G"]
        return [*paths, *limits, "--web", "0"]

    with (
        tempfile.TemporaryDirectory() as scratch,
        running(Path(scratch), serve=[], up=flags) as both,
    ):
        time.sleep(0.1 * arguments.seconds)
        download = both.fetch(1 << 36)
        time.sleep(0.45 * arguments.seconds)
        relays[0].cut()
        time.sleep(0.12 * arguments.seconds)
        relays[0].mend()
        time.sleep(0.33 * arguments.seconds)
        page(both, arguments.folder)
        svg = to_svg(top(both.client["status_socket"]))
        (arguments.folder / "top.svg").write_text(svg, encoding="utf-8")
        download.kill()
        download.wait()


if __name__ == "__main__":
    main()
