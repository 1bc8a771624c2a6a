"""What a terminal shows: as much of one as `sumrate top` uses."""

import codecs
import re
from dataclasses import dataclass, replace

ROWS, COLUMNS = 40, 120
PART = re.compile(r"\x1b\[(?P<numbers>[?0-9;:]*)(?P<kind>[A-Za-z])|(?P<character>[^\x1b])")
INCOMPLETE = re.compile(r"\x1b(\[[?0-9;:]*)?$")


@dataclass(frozen=True)
class Cell:
    """A character with its style. Colours are codes of SGR; from 256 on those of the palette."""

    text: str = " "
    front: int | None = None
    back: int | None = None
    bold: bool = False
    dim: bool = False
    reversed: bool = False

    def style(self) -> tuple[int | None, int | None, bool, bool, bool]:
        """All but the character."""
        return self.front, self.back, self.bold, self.dim, self.reversed


class Screen:
    """Characters at their places, and the modes that were switched."""

    def __init__(self) -> None:
        self.modes: dict[str, bool] = {}
        """Private modes by their number: 1049 is the second screen, 25 the cursor."""
        self._cells: dict[tuple[int, int], Cell] = {}
        self._row, self._column = 1, 1
        self._pen = Cell()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""

    def feed(self, written: bytes) -> None:
        """Takes what a program wrote; it may end in the middle of a sequence."""
        text = self._rest + self._decoder.decode(written)
        incomplete = INCOMPLETE.search(text)
        end = incomplete.start() if incomplete else len(text)
        self._rest = text[end:]
        for part in PART.finditer(text[:end]):
            if part["character"]:
                self._cells[self._row, self._column] = replace(self._pen, text=part["character"])
                self._column += 1
            else:
                self._control(part["numbers"], part["kind"])

    def _control(self, numbers: str, kind: str) -> None:
        if kind == "H":
            row, _, column = numbers.partition(";")
            self._row, self._column = int(row or 1), int(column or 1)
        elif kind == "J":
            self._cells.clear()
        elif kind in "hl" and numbers.startswith("?"):
            self.modes[numbers[1:]] = kind == "h"
        elif kind == "m":
            self._paint([int(number or 0) for number in re.split("[;:]", numbers)])

    def _paint(self, codes: list[int]) -> None:
        while codes:
            code = codes.pop(0)
            if code in (38, 48) and codes[:1] == [5] and len(codes) > 1:
                palette = 256 + codes[1]
                del codes[:2]
                is_front = code == 38
                front = palette if is_front else self._pen.front
                back = self._pen.back if is_front else palette
                self._pen = replace(self._pen, front=front, back=back)
                continue
            changes: dict[int, dict[str, int | bool | None]] = {
                1: {"bold": True},
                2: {"dim": True},
                7: {"reversed": True},
                22: {"bold": False, "dim": False},
                27: {"reversed": False},
                39: {"front": None},
                49: {"back": None},
            }
            if code == 0:
                self._pen = Cell()
            elif 30 <= code <= 37:
                self._pen = replace(self._pen, front=code)
            elif 40 <= code <= 47:
                self._pen = replace(self._pen, back=code - 10)
            else:
                self._pen = replace(self._pen, **changes.get(code, {}))  # type: ignore[arg-type]

    def cell(self, row: int, column: int) -> Cell:
        """One character with its style."""
        return self._cells.get((row, column), Cell())

    def line(self, row: int) -> str:
        """One line, from 1 on."""
        cells = (self.cell(row, column).text for column in range(1, COLUMNS + 1))
        return "".join(cells).rstrip()

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.line(row) for row in range(1, ROWS + 1))
