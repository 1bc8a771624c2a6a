"""A git repository made by rule: a few commits over many small files and some large ones."""

import os
import random
import shutil
import subprocess
from pathlib import Path

COMMITS = 12
CHANGED_SHARE = 0.2
"""Of the files in each further commit."""
TEXT_MEAN_BYTES = 6000
BLOB_BYTES = 1_000_000
"""Size of the incompressible files: pictures, archives."""
PERSON = {
    "GIT_AUTHOR_NAME": "Sumrate laboratory",
    "GIT_AUTHOR_EMAIL": "laboratory@example.test",
    "GIT_COMMITTER_NAME": "Sumrate laboratory",
    "GIT_COMMITTER_EMAIL": "laboratory@example.test",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def git(folder: Path, *words: str, date: int = 0) -> None:
    """Runs git in a folder.

    Raises:
        RuntimeError: it failed; the message has what it said.

    """
    stamp = f"{1_700_000_000 + date} +0000"
    env = {**os.environ, **PERSON, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"`git {' '.join(words)}`: {done.stderr.strip()}")


def make(folder: Path, *, texts: int, blobs: int, seed: int) -> Path:
    """Makes a bare repository, packed as a server keeps it, once; returns its folder.

    Args:
        folder: where.
        texts: small files of words, as source code compresses.
        blobs: files of 1 MB that do not compress.
        seed: of their contents.

    """
    bare = folder / "sample.git"
    if bare.exists():
        return bare
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    chance = random.Random(f"repository {seed}")
    git(work, "init", "--quiet", "--initial-branch=main")
    for commit in range(COMMITS):
        for number in range(texts):
            if commit == 0 or number == 0 or chance.random() < CHANGED_SHARE:
                path = work / f"part{number % 17}" / f"file{number}.txt"
                path.parent.mkdir(exist_ok=True)
                path.write_text(_words(chance), encoding="ascii")
        if commit == 0:
            for number in range(blobs):
                (work / f"blob{number}.bin").write_bytes(chance.randbytes(BLOB_BYTES))
        git(work, "add", "--all")
        git(work, "commit", "--quiet", "--message", f"Step {commit}", date=commit)
    partial = folder / "partial.git"
    shutil.rmtree(partial, ignore_errors=True)
    git(folder, "clone", "--quiet", "--bare", "--no-local", str(work), str(partial))
    git(partial, "repack", "-adq")
    shutil.rmtree(work)
    partial.rename(bare)
    return bare


def _words(chance: random.Random) -> str:
    size = chance.expovariate(1 / TEXT_MEAN_BYTES)
    words = (f"{chance.getrandbits(20):x}" for _ in range(1 + int(size / 6)))
    return " ".join(words) + "\n"
