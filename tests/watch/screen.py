"""What a terminal shows: as much of one as `sumrate top` uses."""

import codecs
import re

ROWS, COLUMNS = 40, 120
PART = re.compile(r"\x1b\[(?P<numbers>[?0-9;]*)(?P<kind>[A-Za-z])|(?P<character>[^\x1b])")
INCOMPLETE = re.compile(r"\x1b(\[[?0-9;]*)?$")


class Screen:
    """Characters at their places, and the modes that were switched."""

    def __init__(self) -> None:
        self.modes: dict[str, bool] = {}
        """Private modes by their number: 1049 is the second screen, 25 the cursor."""
        self._cells: dict[tuple[int, int], str] = {}
        self._row, self._column = 1, 1
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
                self._cells[self._row, self._column] = part["character"]
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

    def line(self, row: int) -> str:
        """One line, from 1 on."""
        cells = (self._cells.get((row, column), " ") for column in range(1, COLUMNS + 1))
        return "".join(cells).rstrip()

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.line(row) for row in range(1, ROWS + 1))
