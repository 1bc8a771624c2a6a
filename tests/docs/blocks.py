"""Command blocks of the documentation: what they say and whether a test runs them.

A block is a fence with the language `sh`. The comment directly above it says what happens with it:

    <!-- run: HOST -->                            to its end, on a host of tests/docs/world.py
    <!-- run: HOST, prints "WORDS" -->            and its output has these words
    <!-- run: HOST, keeps running once it says "WORDS" -->
    <!-- run elsewhere: step STEP -->             each of its commands is in that step of .ci/run
    <!-- run elsewhere: step STEP, tests/x.py --> or is what this test, which the step runs, tries
    <!-- not run: REASON -->

Other fences may have `<!-- file: NAME -->`: commands below find that file. The runs of a page are
one story, in their order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w+-]*)")
COMMENT = re.compile(r"^\s*<!--\s*(.*?)\s*-->\s*$")
SHELL = "sh"
REASON_WORDS = 3
PROGRAMS = (
    r"(sudo|make|cargo|curl|git|ip|iperf3|python3?|sumrate(-\w+)?|systemctl|target/release/\S+)"
)
COMMAND = re.compile(rf"^(\$ )?{PROGRAMS}( |$)")
HOW = "prints|keeps running once it says"
RUN = re.compile(rf'run: (?P<host>[a-z]+)(?:, (?P<how>{HOW}) "(?P<says>.+)")?$')
ELSEWHERE = re.compile(
    r"run elsewhere: step (?P<step>[\w ]+?)(?:, (?P<test>(?:tests|crates)/\S+\.(?:py|rs)))?$"
)
NOT_RUN = re.compile(r"not run: (?P<reason>.+)$")
FILE = re.compile(r"file: (?P<name>[\w.-]+)$")


class BlockError(ValueError):
    """A block that is neither run nor marked as it should be; the message has its line."""


@dataclass(frozen=True)
class Run:
    """Run here, on a host; `says` are words of its output."""

    host: str
    says: str = ""
    keeps_running: bool = False


@dataclass(frozen=True)
class Elsewhere:
    """Run by a step of CI, by the command itself or by a test."""

    step: str
    test: str = ""


@dataclass(frozen=True)
class NotRun:
    """Not run, and why."""

    reason: str


@dataclass(frozen=True)
class Given:
    """Not a command: the content of a file."""

    name: str


Mark = Run | Elsewhere | NotRun | Given


@dataclass(frozen=True)
class Block:
    """A fence of a page, or code that is indented (its language is then `indented`)."""

    page: str
    line: int
    language: str
    text: str
    comment: str

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"

    def commands(self) -> list[str]:
        """Its commands, one a line, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        bare = (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines)
        return [line for line in bare if line]


def pages(root: Path = ROOT) -> list[Path]:
    """Every page whose commands are tested."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def blocks(text: str, page: str) -> Iterator[Block]:
    """The fences of a page, and commands that are indented instead."""
    lines = text.splitlines()
    above = ""
    number = 0
    while number < len(lines):
        line = lines[number]
        opened = FENCE.match(line)
        if opened:
            end = number + 1
            while end < len(lines) and lines[end].strip() != opened["fence"]:
                end += 1
            indent = len(opened["indent"])
            inner = "".join(text[indent:] + "\n" for text in lines[number + 1 : end])
            yield Block(page, number + 1, opened["language"], inner, above)
            number = end
        elif line.startswith("    ") and COMMAND.match(line.strip()):
            yield Block(page, number + 1, "indented", line.strip() + "\n", above)
        if line.strip():
            comment = COMMENT.match(line)
            above = comment[1] if comment else ""
        number += 1


def mark(block: Block) -> Mark | None:
    """What is done with a block; None if it holds no commands.

    Raises:
        BlockError: it is neither run nor marked, or its mark says nothing that is understood.

    """
    if block.language != SHELL:
        if given := FILE.match(block.comment):
            return Given(given["name"])
        if any(COMMAND.match(line) for line in block.text.splitlines()):
            raise BlockError(f"{block.place}: commands go into a fence with the language sh")
        if not block.language:
            raise BlockError(f"{block.place}: a fence says its language, at least `text`")
        return None
    if run := RUN.match(block.comment):
        return Run(run["host"], run["says"] or "", (run["how"] or "").startswith("keeps"))
    if elsewhere := ELSEWHERE.match(block.comment):
        return Elsewhere(elsewhere["step"], elsewhere["test"] or "")
    if (not_run := NOT_RUN.match(block.comment)) and len(not_run[1].split()) >= REASON_WORDS:
        return NotRun(not_run["reason"])
    raise BlockError(
        f"{block.place}: no comment above it says how it is run, or why not "
        f"(tests/docs/blocks.py); found `{block.comment}`"
    )


def steps(ci: str) -> dict[str, str]:
    """The steps of .ci/run: name and commands."""
    parts = re.split(r'^step "?([^"\n]+)"?$', ci, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def not_elsewhere(block: Block, where: Elsewhere, ci: str, root: Path = ROOT) -> list[str]:
    """What of a block is not run where its mark says so; empty if all is."""
    found = steps(ci)
    if where.step not in found:
        return [f"{block.place}: .ci/run has no step {where.step}"]
    if where.test:
        if not (root / where.test).is_file():
            return [f"{block.place}: there is no {where.test}"]
        runs = "make test" in found[where.step]
        return [] if runs else [f"{block.place}: step {where.step} runs no tests"]
    missing = [c for c in block.commands() if " ".join(c.split()[:2]) not in found[where.step]]
    return [f"{block.place}: step {where.step} has no `{command}`" for command in missing]
