"""What an experiment file says about a workload."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sumrate.qoe.sites import TABLE

HttpVersion = Literal["http/1.1", "h2"]
Count = Annotated[int, Meta(ge=1)]
Pause = Annotated[float, Meta(ge=0)]


class Workload(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base: no other keys, no changes."""


class FileSize(Workload, frozen=True):
    """Files of one size: its name in metrics, bytes, and how often one is downloaded in a run."""

    name: str
    bytes: Count
    times: Count = 1


class FilesSetting(Workload, frozen=True):
    """Method files: downloads by curl from nginx, one after the other."""

    sizes: Annotated[tuple[FileSize, ...], Meta(min_length=1)]
    pause_s: Pause = 1.0
    """Silence before each download; radios that sleep fall asleep in it."""
    share_link: str = ""
    """The link whose share of each download's bytes is noted; none if empty."""

    def __post_init__(self) -> None:
        """Refuses two sizes of one name."""
        names = [size.name for size in self.sizes]
        if len(set(names)) != len(names):
            raise ValueError("`sizes` need a name of their own each")


class PagesSetting(Workload, frozen=True):
    """Method pages: pages of table 4.1 in a real browser, cold and warm."""

    sites: tuple[str, ...]
    versions: tuple[HttpVersion, ...] = ("http/1.1", "h2")
    pause_s: Pause = 1.0
    """Silence before each load; radios that sleep fall asleep in it."""
    timeout_s: Annotated[float, Meta(gt=0)] = 60.0
    seed: int = 1
    """Which object of a page has which role."""

    def __post_init__(self) -> None:
        """Refuses unknown pages, and versions that are given twice."""
        if not self.sites or not set(self.sites) <= set(TABLE):
            raise ValueError(f"`sites` are some of {', '.join(TABLE)}")
        if not self.versions or len(set(self.versions)) != len(self.versions):
            raise ValueError("`versions` has http/1.1, h2 or both")


class DailySetting(Workload, frozen=True):
    """Method daily: a repository cloned over ssh, packages over one connection, keys in a shell."""

    texts: Count = 1500
    """Small files of the repository."""
    blobs: Count = 12
    """Its files of 1 MB that do not compress."""
    packages: Annotated[int, Meta(ge=20)] = 40
    """Fewer cannot be as unequal as they are to be."""
    keys: Count = 60
    """Typed once in a run, after everything else."""
    times: Count = 2
    """How often a run clones and fetches."""
    pause_s: Pause = 1.0
