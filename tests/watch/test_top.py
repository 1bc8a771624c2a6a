"""`sumrate top` on a terminal: it draws, its keys work, and it leaves the terminal as it was."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.programs import binary_folder
from tests.watch.running import PATIENCE_S, needs_sumrate, running
from tests.watch.screen import COLUMNS, ROWS, Cell, Screen

PATHS = [
    *("--path", "wifi=127.0.0.1", "--policy", "wifi=rate=40M"),
    *("--path", "lte=127.0.0.2", "--policy", "lte=rate=15M"),
]
EVENTS, INTERNALS, WHY = "┌ events ─", "┌ internals; windows", "┌ why ─"


@dataclass
class Top:
    """A running `sumrate top` and its terminal."""

    process: subprocess.Popen[bytes]
    keyboard: int
    """The end where keys go in and the picture comes out."""
    terminal: int
    settings: list[Any]
    """Of the terminal, before the program had it."""
    screen: Screen = field(default_factory=Screen)

    def press(self, keys: bytes) -> None:
        os.write(self.keyboard, keys)

    def look(self, seconds: float) -> str:
        """The screen after so many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.keyboard], [], [], left)[0]:
                self.screen.feed(os.read(self.keyboard, 1 << 16))
        return self.screen.text()

    def until(self, there: Callable[[str], bool], what: str) -> str:
        """The screen once it shows what is waited for."""
        end = time.monotonic() + PATIENCE_S
        while not there(text := self.look(0.1)):
            assert self.process.poll() is None, f"it has ended; the last it showed:\n{text}"
            assert time.monotonic() < end, f"{what} is not shown:\n{text}"
        return text

    def ended(self) -> int:
        """Its exit status."""
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            self.look(0.1)
        self.look(0.1)
        return self.process.returncode

    def has_the_terminal(self) -> bool:
        """Whether the terminal is on its second screen, without cursor and in raw mode."""
        taken = [
            termios.tcgetattr(self.terminal) != self.settings,
            self.screen.modes.get("1049", False),
            not self.screen.modes.get("25", True),
        ]
        assert all(taken) or not any(taken), f"half of the terminal is restored: {taken}"
        return all(taken)


@contextlib.contextmanager
def top(socket: str) -> Iterator[Top]:
    """`sumrate top` on a terminal of its own."""
    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    settings = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        [str(binary_folder() / "sumrate"), "top", "--socket", socket, "--interval", "0.2"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"},
        start_new_session=True,
    )
    try:
        yield Top(process, keyboard, terminal, settings)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        os.close(keyboard)
        os.close(terminal)


def test_a_screen_is_what_was_written() -> None:
    screen = Screen()
    pieces = [b"\x1b[?1049h\x1b[2", b"J\x1b[2;3Hab\x1b[1mc", b"\x1b[3;1H\xe2\x96", b"\x88\x1b[?25l"]
    for written in pieces:
        screen.feed(written)
    assert (screen.line(1), screen.line(2), screen.line(3)) == ("", "  abc", "█")
    assert screen.modes == {"1049": True, "25": False}
    screen.feed(b"\x1b[4;1H\x1b[38;5;32;48;5;214mx\x1b[0m\x1b[2;31my")
    assert screen.cell(4, 1) == Cell("x", front=256 + 32, back=256 + 214, bold=True)
    assert screen.cell(4, 2) == Cell("y", front=31, dim=True)
    screen.feed(b"\x1b[2J\x1b[?1049l")
    assert screen.text().strip() == ""
    assert not screen.modes["1049"]


@pytest.mark.system
@needs_sumrate
def test_it_draws_its_keys_work_and_q_gives_the_terminal_back(tmp_path: Path) -> None:
    with running(tmp_path, serve=[], up=PATHS) as both:
        download = both.fetch(1 << 34)
        try:
            with top(both.client["status_socket"]) as shown:
                drive(shown)
        finally:
            download.kill()
            download.wait(PATIENCE_S)


def drive(shown: Top) -> None:
    """Presses every key that the last line names."""
    text = shown.until(lambda text: "down over wifi and lte" in text, "the download")
    assert shown.has_the_terminal()
    for word in ("SOCKS5 127.0.0.1:", "receiving", "q quit", EVENTS, "wifi is connected"):
        assert word in text, text
    shown.until(lambda text: "█" in text and "┌ down, Mbit/s" in text, "the chart")
    shown.press(b"i")
    shown.until(lambda text: INTERNALS in text and "in flight" in text, "the internals")
    shown.press(b"e")
    shown.until(lambda text: WHY in text and "wifi receives" in text, "why")
    shown.press(b"\x1b[B")
    text = shown.until(lambda text: "lte receives" in text, "the other path")
    assert INTERNALS not in text and EVENTS not in text
    shown.press(b"k")
    shown.until(lambda text: "wifi receives" in text, "the path above")
    shown.press(b"e")
    shown.until(lambda text: EVENTS in text and WHY not in text, "the events")
    shown.press(b"p")
    shown.until(lambda text: "PAUSED" in text, "that it pauses")
    still = shown.look(0.5)
    assert shown.look(1.0) == still, "it changes although it pauses"
    shown.press(b"p")
    shown.until(lambda text: "PAUSED" not in text and text != still, "that it goes on")
    shown.press(b"q")
    assert shown.ended() == 0, shown.screen.text()
    assert not shown.has_the_terminal()


@pytest.mark.system
@needs_sumrate
@pytest.mark.parametrize(
    ("end", "status"),
    [(signal.SIGTERM, 0), (signal.SIGINT, 130), (b"\x03", 130)],
    ids=["SIGTERM", "SIGINT", "Ctrl-C"],
)
def test_the_terminal_is_given_back_however_it_ends(
    tmp_path: Path, end: signal.Signals | bytes, status: int
) -> None:
    with running(tmp_path, serve=[], up=PATHS) as both, top(both.client["status_socket"]) as shown:
        shown.until(lambda text: "lte" in text, "a path")
        assert shown.has_the_terminal()
        if isinstance(end, bytes):
            shown.press(end)
        else:
            shown.process.send_signal(end)
        assert shown.ended() == status, shown.screen.text()
        assert not shown.has_the_terminal()


@pytest.mark.system
@needs_sumrate
def test_a_daemon_that_ends_is_said_and_q_still_leaves(tmp_path: Path) -> None:
    with contextlib.ExitStack() as daemons:
        both = daemons.enter_context(running(tmp_path, serve=[], up=PATHS))
        with top(both.client["status_socket"]) as shown:
            shown.until(lambda text: "lte" in text, "a path")
            daemons.close()
            shown.until(lambda text: "nothing answers on" in text, "that nobody answers")
            shown.press(b"q")
            assert shown.ended() == 0
            assert not shown.has_the_terminal()
