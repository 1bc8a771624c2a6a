"""Every command block of the documentation is run by a test, or says why it is not."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.blocks import (
    ROOT,
    Block,
    BlockError,
    Elsewhere,
    Given,
    NotRun,
    Run,
    blocks,
    mark,
    not_elsewhere,
    pages,
)
from tests.docs.world import HOSTS, World, have_programs, nowhere, world
from tests.system.scenario import isolated, needs_emulator, needs_sumrate


def of_page(path: Path) -> list[Block]:
    return list(blocks(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))))


def stories() -> dict[str, list[Block]]:
    """Pages with blocks that are run, and these with the files that they need."""
    found = {}
    for path in pages():
        told = [b for b in of_page(path) if is_told(b)]
        if any(b.language == "sh" for b in told):
            found[str(path.relative_to(ROOT))] = told
    return found


def is_told(block: Block) -> bool:
    try:
        return isinstance(mark(block), Run | Given)
    except BlockError:
        return False  # test_every_block_is_marked fails


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_is_run_or_marked(path: Path) -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    wrong = []
    for block in of_page(path):
        try:
            how = mark(block)
        except BlockError as error:
            wrong.append(str(error))
            continue
        if isinstance(how, Elsewhere):
            wrong += not_elsewhere(block, how, ci)
        elif isinstance(how, Run) and how.host not in HOSTS:
            wrong.append(f"{block.place}: there is no machine `{how.host}`, only {HOSTS}")
    assert not wrong


def test_most_blocks_are_run() -> None:
    marks = [mark(b) for path in pages() for b in of_page(path) if b.language == "sh"]
    run = [m for m in marks if isinstance(m, Run | Elsewhere)]
    assert len(run) > len([m for m in marks if isinstance(m, NotRun)])


@pytest.mark.system
@needs_sumrate
@needs_emulator
@pytest.mark.parametrize("page", stories())
def test_the_commands_of_a_page_work(page: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if missing := have_programs():
        pytest.skip(f"{missing} is not installed")
    # Not below /run, which experiments cover with one of their own; short, for names of sockets.
    folder = tmp_path_factory.mktemp("s")
    isolated(lambda _scratch: tell(stories()[page], page, folder))
    if (folder / BUSY).exists():
        pytest.skip("this machine is too busy: every run was void because the emulator was late")


NO_RUN_COUNTS = "no run counts"
"""What the laboratory says when the emulator was late in all runs."""
BUSY = "busy"


def tell(story: list[Block], page: str, scratch: Path) -> None:
    """Runs the blocks of a page in their order; those that keep running end with it."""
    machines = {how.host for block in story if isinstance(how := mark(block), Run)}
    where = nowhere(scratch) if machines <= {"here"} else world(scratch, page)
    with where as made, ExitStack() as running:
        for block in story:
            if isinstance(given := mark(block), Given):
                (made.folder / given.name).write_text(made.substituted(block.text))
        for number, block in enumerate(story):
            print(f"{block.place}:\n{block.text}", flush=True)
            try:
                step(made, block, running, scratch / f"block-{number}.log")
            except AssertionError as failed:
                if NO_RUN_COUNTS not in str(failed):
                    raise
                (scratch / BUSY).touch()
                return


def step(made: World, block: Block, running: ExitStack, log: Path) -> None:
    how = mark(block)
    if isinstance(how, Run) and how.keeps_running:
        running.enter_context(made.start(how.host, block.text, how.says, log))
    elif isinstance(how, Run):
        output = made.run(how.host, block.text)
        print(output, flush=True)
        assert how.says in output, f"{block.place}: no `{how.says}` in\n{output}"


MARKED = """
<!-- run: laptop, prints "yes" -->
```sh
echo yes
```

<!-- run: server, keeps running once it says "up" -->

```sh
echo up; sleep 9
```
<!-- not run: needs two real radios -->
```sh
reboot
```
<!-- run elsewhere: step fuzz -->
```sh
make fuzz TIME=30   # half a minute
```
<!-- file: a.toml -->
```toml
x = 1
```
"""


def test_marks_are_understood() -> None:
    assert [mark(block) for block in blocks(MARKED, "x.md")] == [
        Run("laptop", "yes"),
        Run("server", "up", keeps_running=True),
        NotRun("needs two real radios"),
        Elsewhere("fuzz"),
        Given("a.toml"),
    ]


@pytest.mark.parametrize(
    "planted",
    [
        "```sh\nmake demo\n```",
        "<!-- run: laptop -->\nwords between\n```sh\nmake demo\n```",
        "<!-- not run: no -->\n```sh\nmake demo\n```",
        "<!-- run -->\n```sh\nmake demo\n```",
        "```bash\nmake demo\n```",
        "```\nsome data\n```",
        "Text:\n\n    sumrate up LINK\n",
    ],
)
def test_a_block_that_is_neither_run_nor_marked_is_found(planted: str) -> None:
    (block,) = blocks(planted, "x.md")
    with pytest.raises(BlockError, match=r"x\.md:\d"):
        mark(block)


@pytest.mark.parametrize(
    ("comment", "says"),
    [
        ("step fuzz", ""),
        ("step soak", "has no `make fuzz"),
        ("step dance", "no step dance"),
        ("step test, tests/none.py", "there is no tests/none.py"),
        ("step test, tests/conftest.py", ""),
        ("step fuzz, tests/conftest.py", "runs no tests"),
    ],
)
def test_a_step_that_does_not_run_it_is_found(comment: str, says: str) -> None:
    text = f"<!-- run elsewhere: {comment} -->\n```sh\nmake fuzz TIME=4\n```"
    (block,) = blocks(text, "x.md")
    where = mark(block)
    assert isinstance(where, Elsewhere)
    ci = "step soak\nmake soak\nstep fuzz\nmake fuzz TIME=30\nstep test\nmake test\n"
    found = not_elsewhere(block, where, ci)
    assert bool(found) == bool(says)
    assert says in "".join(found)


@needs_sumrate
@needs_emulator
def test_a_command_that_fails_or_says_something_else_is_seen() -> None:
    def planted(scratch: Path) -> None:
        for text in ("false | cat", "echo no"):
            folder = scratch / str(len(text))
            folder.mkdir()
            block = Block("x.md", 1, "sh", text, 'run: here, prints "yes"')
            with pytest.raises(AssertionError):
                tell([block], "x.md", folder)

    isolated(planted)
