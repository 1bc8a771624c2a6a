"""How often the code has changed since something was made of it: what git knows."""

import subprocess
from collections.abc import Sequence
from pathlib import Path


def commits_since(commit: str, paths: Sequence[str], root: Path) -> int | None:
    """How many commits changed one of the paths since then, up to what is checked out.

    Args:
        commit: a commit of which what is checked out is a descendant; else nothing is known.
        paths: files or directories, from `root`.
        root: a working tree.

    Returns:
        None where git does not know that commit as an ancestor, is not installed, or this is no
        repository.

    """
    if _git(root, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        return None
    count = _git(root, "rev-list", "--count", f"{commit}..HEAD", "--", *paths)
    return None if count is None else int(count)


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails."""
    argv = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
