"""What people do daily: clone a repository, fetch packages, type into a remote shell."""

import json
import os
import random
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.payload import make_payload
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Scene
from sumrate.qoe import repository
from sumrate.qoe.carriage import Carriage
from sumrate.qoe.curl import command, parse_many
from sumrate.qoe.files import delivered
from sumrate.qoe.nginx import HTTP_PORT, VirtualHost
from sumrate.qoe.settings import DailySetting
from sumrate.qoe.sites import Measured, sizes
from sumrate.qoe.ssh import SSH_PORT, Keys, as_words, make_keys, ssh_command
from sumrate.qoe.values import Renew, Value, nothing

PROGRAMS = ("curl", "nginx", "git", "ssh", "ssh-keygen", "sshd", "nc")
PORTS = (HTTP_PORT, SSH_PORT)
SERVERS = (VirtualHost(HTTP_PORT),)
LEAST = "_least_link_kbytes"
"""How the names of values end that say what the link that brought least has brought."""
TIMEOUT_S = 120.0
SEED = 1
"""Of the repository and of the pauses between keys, which are the same in every run."""
PACKAGE = (250e3, 500e3)
"""[choice] Mean and deviation of a package's bytes."""


@dataclass(frozen=True)
class Content:
    """What the servers offer."""

    root: Path
    """Of nginx."""
    packages: tuple[int, ...]
    """Their bytes, in the order in which they are fetched."""
    bare: Path
    """The repository."""
    keys: Keys


def content(setting: DailySetting, folder: Path) -> Content:
    """Makes everything that is offered, once.

    Raises:
        RuntimeError: git or ssh-keygen failed.

    """
    root = folder / "packages"
    root.mkdir(parents=True, exist_ok=True)
    found = sizes(Measured(setting.packages, *PACKAGE, 1))
    random.Random("packages").shuffle(found)
    for number, size in enumerate(found):
        if not (root / str(number)).exists():
            make_payload(root / str(number), size, seed=number)
    bare = repository.make(folder / "git", texts=setting.texts, blobs=setting.blobs, seed=SEED)
    return Content(root, tuple(found), bare, make_keys(folder / "keys"))


def run(
    built: Scene,
    carriage: Carriage,
    setting: DailySetting,
    offered: Content,
    renew: Renew = nothing,
) -> Iterator[Value]:
    """Clones, fetches and types, each after a pause; nginx and sshd serve already.

    Yields `git_clone_ms`, `packages_ms`, `prompt_ms` and `key_ms` of every key, and of each program
    what the link that brought least brought: nothing where it was not told to use both.

    Raises:
        ProcessFailedError: one of the programs failed.

    """
    number = 0
    for _ in range(setting.times):
        for work in (_clone, _packages):
            renew(number)
            number += 1
            time.sleep(setting.pause_s)
            before = delivered(built.emulator)
            done = work(built, carriage, offered)
            yield done
            yield from _least(built, before, done.metric.removesuffix("_ms"))
    renew(number)
    time.sleep(setting.pause_s)
    before = delivered(built.emulator)
    yield from _typing(built, carriage, setting, offered)
    yield from _least(built, before, "typing")


def _least(built: Scene, before: Mapping[str, int], name: str) -> Iterator[Value]:
    """What the link that brought least has brought since; nothing on bare wires."""
    after = delivered(built.emulator)
    came = [count - before[link] for link, count in after.items()]
    if came:
        yield Value(f"{name}{LEAST}", min(came) / 1e3, "kB")


def _clone(built: Scene, carriage: Carriage, offered: Content) -> Value:
    target = built.folder / "clone"
    shutil.rmtree(target, ignore_errors=True)
    address = f"ssh://{carriage.address}:{SSH_PORT}{offered.bare}"
    argv = ["git", "clone", "--quiet", "--bare", address, str(target)]
    env = {"GIT_SSH_COMMAND": as_words(ssh_command(offered.keys, carriage)), **repository.PERSON}
    began = time.monotonic()
    _finished(built, argv, "git.log", env)
    return Value("git_clone_ms", (time.monotonic() - began) * 1e3, "ms")


def _finished(
    built: Scene, argv: list[str], log: str, env: Mapping[str, str], answer: Path | None = None
) -> None:
    """Runs a program on the client to its end."""
    path = built.folder / log
    with Process(argv, log=path, host=built.client, env=dict(env), stdout=answer) as program:
        status = program.wait(TIMEOUT_S)
        if status != 0:
            raise ProcessFailedError(f"`{program.command_line}` ({status}): {program.tail()}")


def _packages(built: Scene, carriage: Carriage, offered: Content) -> Value:
    """One after the other over one connection, as apt fetches from one mirror."""
    answer = built.folder / "packages.json"
    answer.unlink(missing_ok=True)
    urls = [f"http://{carriage.address}:{HTTP_PORT}/{n}" for n in range(len(offered.packages))]
    argv = command(urls[0], carriage, ends="\n")
    argv += [part for url in urls[1:] for part in ("--output", "/dev/null", url)]
    _finished(built, argv, "packages.log", {}, answer)
    try:
        seconds, connections = parse_many(answer.read_text(encoding="utf-8"), offered.packages)
    except ValueError as error:
        raise ProcessFailedError(f"packages: {error}") from error
    if connections != 1:
        raise ProcessFailedError(f"packages came over {connections} connections instead of one")
    return Value("packages_ms", seconds * 1e3, "ms")


def _typing(
    built: Scene, carriage: Carriage, setting: DailySetting, offered: Content
) -> Iterator[Value]:
    answer = built.folder / "typing.json"
    answer.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "sumrate.qoe.keystrokes", "--keys", str(setting.keys)]
    argv += ["--seed", str(SEED), "--output", str(answer), "--"]
    argv += [*ssh_command(offered.keys, carriage), "-tt", carriage.address]
    path = os.pathsep.join([str(REPOSITORY / "python"), os.environ.get("PYTHONPATH", "")])
    _finished(built, argv, "typing.log", {"PYTHONPATH": path})
    found = json.loads(answer.read_text(encoding="ascii"))
    yield Value("prompt_ms", found["prompt_ms"], "ms")
    for echo in found["echo_ms"]:
        yield Value("key_ms", echo, "ms")
    echoes = sorted(found["echo_ms"])
    yield Value("key_p95_ms", echoes[rank(95, len(echoes))], "ms")


def rank(percent: int, count: int) -> int:
    """The place, from 0, of a percentile among so many sorted values (nearest rank)."""
    return max(0, -(-percent * count // 100) - 1)


def shown(carriage: Carriage, offered: Content) -> str:
    """The command that types."""
    return shlex.join([*ssh_command(offered.keys, carriage), "-tt", carriage.address])
