"""What an experiment file says about a workload."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from sumrate.qoe.sites import TABLE

HttpVersion = Literal["http/1.1", "h2"]


class Workload(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base: no other keys, no changes."""


class FileSize(Workload, frozen=True):
    """Files of one size: its name in metrics, bytes, and how often one is downloaded in a run."""

    name: str
    bytes: int
    times: int = 1


class FilesSetting(Workload, frozen=True):
    """Method files: downloads by curl from nginx, one after the other."""

    sizes: tuple[FileSize, ...]
    pause_s: float = 1.0
    """Silence before each download; radios that sleep fall asleep in it."""
    share_link: str = ""
    """The link whose share of each download's bytes is noted; none if empty."""


class PagesSetting(Workload, frozen=True):
    """Method pages: pages of table 4.1 in a real browser, cold and warm."""

    sites: tuple[str, ...]
    versions: tuple[HttpVersion, ...] = ("http/1.1", "h2")
    pause_s: float = 1.0
    """Silence before each load; radios that sleep fall asleep in it."""
    timeout_s: float = 60.0
    seed: int = 1
    """Which object of a page has which role."""


class DailySetting(Workload, frozen=True):
    """Method daily: a repository cloned over ssh, packages over one connection, keys in a shell."""

    texts: int = 1500
    """Small files of the repository."""
    blobs: int = 12
    """Its files of 1 MB that do not compress."""
    packages: int = 40
    keys: int = 60
    """Typed once in a run, after everything else."""
    times: int = 2
    """How often a run clones and fetches."""
    pause_s: float = 1.0


class HasWorkloads(Protocol):
    """An experiment, as far as it has workloads."""

    @property
    def files(self) -> FilesSetting | None:
        """Of method files."""

    @property
    def pages(self) -> PagesSetting | None:
        """Of method pages."""

    @property
    def daily(self) -> DailySetting | None:
        """Of method daily."""


def problems(links: Sequence[str], experiment: HasWorkloads) -> Iterator[str]:
    """What is inconsistent: sentences that begin with the key at fault in backquotes."""
    if experiment.files is not None:
        yield from _files_problems(links, experiment.files)
    if experiment.pages is not None:
        yield from _pages_problems(experiment.pages)
    if experiment.daily is not None:
        yield from _daily_problems(experiment.daily)


def _pages_problems(pages: PagesSetting) -> Iterator[str]:
    unknown = [site for site in pages.sites if site not in TABLE]
    if unknown or not pages.sites:
        yield f"`sites` are some of {', '.join(TABLE)}"
    if not pages.versions or len(set(pages.versions)) != len(pages.versions):
        yield "`versions` has http/1.1, h2 or both"
    if pages.pause_s < 0 or pages.timeout_s <= 0:
        yield "`pause_s` is not negative and `timeout_s` above 0"


def _daily_problems(daily: DailySetting) -> Iterator[str]:
    for key in ("texts", "blobs", "keys", "times"):
        if getattr(daily, key) < 1:
            yield f"`{key}` is at least 1"
    if daily.packages < 20:
        yield "`packages` is at least 20: fewer cannot be as unequal as they are to be"
    if daily.pause_s < 0:
        yield "`pause_s` is not negative"


def _files_problems(links: Sequence[str], files: FilesSetting) -> Iterator[str]:
    names = [size.name for size in files.sizes]
    if not names or len(set(names)) != len(names):
        yield "`sizes` needs sizes with a name of their own each"
    if any(size.bytes < 1 or size.times < 1 for size in files.sizes):
        yield "`sizes` are of at least one byte, at least once"
    if files.pause_s < 0:
        yield "`pause_s` is not negative"
    if files.share_link and files.share_link not in links:
        yield f"`share_link` is {files.share_link}, which is no link"
