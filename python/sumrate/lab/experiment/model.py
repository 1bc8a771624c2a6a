"""Types of experiment files: `experiments/NAME.toml` is an experiment of one of the methods.

Every key is one attribute here, with its bounds; other keys and values are refused.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

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
Medium = Literal["emulated", "veth"]
Buffers = Literal["default", "large", "50k", "100k", "200k", "500k", "1000k"]
TraceKind = Literal["wigig-los", "wigig-nlos", "wigig-mobility", "wifi-los"]
Statistic = Literal["median", "min", "max", "mean", "p5", "p99", "count", "band"]
"""Band: half the width of the 95 % confidence interval of the mean (Student's t)."""
EVERY = "*"

# Bounds of links are those of the emulator.
Milliseconds = Annotated[float, Meta(ge=0, le=3.6e6)]
Rate = Annotated[float, Meta(ge=0.001, le=1e6)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Burst = Annotated[int, Meta(ge=0, le=1_000_000_000)]
LossBurst = Annotated[float, Meta(ge=1, le=1e6)]
Mtu = Annotated[int, Meta(ge=576, le=65_535)]
RadioTime = Annotated[float, Meta(ge=0.001, le=3.6e6)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]
WarmUp = Annotated[float, Meta(ge=0, le=3600)]
Count = Annotated[int, Meta(ge=1)]
Repetitions = Annotated[int, Meta(ge=1, le=1000)]
Positive = Annotated[float, Meta(gt=0)]
Intervals = tuple[tuple[float, float], ...]


class Setting(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of all tables of an experiment file: no other keys, no changes."""


def refuse(wrong: object, message: str) -> None:
    """Raises ValueError with the message if `wrong` is true."""
    if wrong:
        raise ValueError(message)


def check_intervals(name: str, intervals: Intervals) -> None:
    """Refuses intervals that begin before 0 or end before they begin."""
    for start, end in intervals:
        refuse(not 0 <= start < end, f"`{name}` from {start:g} to {end:g} s ends before it starts")


def check_rising(name: str, times: Sequence[float]) -> None:
    """Refuses times that are negative or do not rise."""
    rising = all(before < after for before, after in pairwise(times))
    refuse(not rising or min(times, default=0.0) < 0, f"`{name}` needs rising times from 0 s on")


class SleepSetting(Setting, frozen=True):
    """A radio that sleeps after this time without a packet, and takes a while to wake."""

    after_ms: RadioTime
    wake_ms: RadioTime


class Impairments(Setting, frozen=True):
    """Keys that both a link and a condition's change of it may have; the change wins."""

    rate_up_mbps: Rate | None = None
    """Towards the server, if that is another rate."""
    jitter_sd_ms: Milliseconds | None = None
    """Standard deviation of the delay of each packet, in each direction."""
    reorder: bool | None = None
    """Whether packets of different delays overtake each other; else each waits for the earlier."""
    policer: bool | None = None
    """Whether packets beyond `burst_bytes` are dropped instead of queued."""
    gather_ms: Milliseconds | None = None
    """The client's packets leave together, at multiples of this time: gathered acknowledgements."""
    loss_burst: LossBurst | None = None
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
    rate_mbps: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    rtt_ms: Milliseconds = 0.0
    queue_ms: Milliseconds = 20.0
    mtu: Mtu = 1500
    """Largest IP packet on the link, in bytes."""
    burst_bytes: Burst = 0
    """Token bucket: what an idle line saves up, and lets out without spacing."""
    sleep: SleepSetting | None = None
    shares: str = ""
    returns: str = ""


class Flap(Setting, frozen=True):
    """A link that goes dark for `dark_s` in every `every_s` seconds, first at `first_s`."""

    first_s: float
    dark_s: float
    every_s: Positive


class AckDelay(Setting, frozen=True):
    """Packets towards the server wait for `hold_ms` in every `every_ms`, then leave together.

    As a receiver that delays and gathers its acknowledgements.
    """

    hold_ms: RadioTime
    every_ms: RadioTime

    def __post_init__(self) -> None:
        """Refuses a hold that never ends."""
        refuse(self.hold_ms >= self.every_ms, "`hold_ms` must be less than every_ms")


class Change(Impairments, frozen=True):
    """A condition's changes of one link; it has the keys of Impairments too."""

    loss: Probability | None = None
    """Loss probability of each segment towards the client."""
    loss_up: Probability | None = None
    """Loss probability of each segment towards the server."""
    extra_rtt_ms: Milliseconds = 0.0
    rate_mbps: Rate | None = None
    rtt_ms: Milliseconds | None = None
    queue_ms: Milliseconds | None = None
    mtu: Mtu | None = None
    burst_bytes: Burst | None = None
    ack_delay: AckDelay | None = None
    """Not together with blackouts or a trace."""
    ssthresh: Annotated[int, Meta(ge=2, le=1_000_000)] | None = None
    """Segments at which TCP's slow start ends, as after an earlier connection over the link."""
    blackouts: Intervals = ()
    """Intervals in which nothing passes, seconds after the first byte (method `bench`: after the
    start of the scheme's programs)."""
    up_blackouts: Intervals = ()
    """Intervals in which nothing passes towards the server only."""
    flap: Flap | None = None
    unplugged: Intervals = ()
    """Intervals in which the client's interface is down, seconds after the first byte."""
    trace: TraceKind | None = None
    rate_steps: Intervals = ()
    """From these seconds after the first byte on, the rate times a factor; not with a trace."""
    trace_scale: Annotated[float, Meta(ge=0.01, le=100)] = 1.0
    """The trace's rates are multiplied by it, and by the experiment's."""
    awake: bool = False
    """The radio never sleeps."""
    absent: bool = False
    """The link does not exist in this condition."""

    def __post_init__(self) -> None:
        """Refuses changes that exclude each other, and times that make no sense."""
        check_intervals("blackouts", self.blackouts)
        check_intervals("up_blackouts", self.up_blackouts)
        check_intervals("unplugged", self.unplugged)
        check_rising("rate_steps", [at for at, _ in self.rate_steps])
        refuse(self.trace_scale != 1 and not self.trace, "`trace_scale` is of a trace")
        dark = self.blackouts or self.up_blackouts or self.flap
        refuse(
            self.ack_delay and (dark or self.trace),
            "`ack_delay` excludes blackouts, flap and trace",
        )
        refuse(
            self.rate_steps and (self.trace or self.ack_delay),
            "with `rate_steps` a link cannot have a trace or an ack_delay",
        )


class ConditionSetting(Setting, frozen=True):
    """A named state of the links."""

    name: str
    title: str
    seconds: Seconds | None = None
    repetitions: Repetitions | None = None
    """Of this condition, where that is fewer than of the others."""
    schemes: tuple[str, ...] = ()
    """Only these run in this condition; all if not given."""
    why_not: dict[str, str] = field(default_factory=dict)
    """Why a scheme does not run in this condition."""
    few_runs: dict[str, str] = field(default_factory=dict)
    """Why most runs of a scheme may be void here; how many count stands beside its values."""
    stream_buffer_bytes: Annotated[int, Meta(ge=0)] = 0
    """Most bytes of a received stream that Sumrate's ends hold; their own limit if 0."""
    beside: tuple[str, ...] = ()
    """On each of these links one plain TCP sends at the same time."""
    congestion_control: tuple[str, ...] = ()
    """It runs only with these; with all if not given."""
    buffers: tuple[Buffers, ...] = ()
    """It runs only with these; with all if not given."""
    medium: Medium | None = None
    """Instead of the experiment's: on `veth` this machine's processors are the limit."""
    links: dict[str, Change] = field(default_factory=dict)

    @property
    def workload(self) -> tuple[object, ...]:
        """The settings that only conditions of this method have."""
        own = self.__struct_fields__[len(ConditionSetting.__struct_fields__) :]
        return tuple(getattr(self, name) for name in own)


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

    def __post_init__(self) -> None:
        """Refuses settings of other kinds."""
        with_backup = self.kind in ("sumrate", "mptcp-backup")
        refuse(self.backup and not with_backup, f"kind {self.kind} has no `backup`")
        for key in ("policy", "event_log"):
            given = bool(getattr(self, key)) and self.kind != "sumrate"
            refuse(given, f"kind {self.kind} has no `{key}`")


class Selection(Setting, frozen=True):
    """Selects measured values; `*` as condition, congestion control or buffers selects each."""

    metric: str
    scheme: str
    condition: str = ""
    """The check's own condition if empty."""
    congestion_control: str = ""
    buffers: str = ""
    statistic: Statistic = "median"


class Check(Setting, frozen=True):
    """A condition under which a claim or a goal holds."""

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
    slack: Annotated[float, Meta(ge=0)] = 0.0
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

    def __post_init__(self) -> None:
        """Refuses checks that can only hold or only fail."""
        low, high, said = self.at_least, self.at_most, f"`{self.statement}`"
        refuse(not (self.claim or self.goal), f"{said} names neither a claim nor a goal")
        refuse(self.over == self.value, f"{said} divides a value by itself: cannot fail")
        refuse(self.slack and self.over is None, f"`slack` of {said} is of a quotient")
        if low is not None and high is not None:
            refuse(low > high, f"{said} has at_least above at_most: it can only fail")
        unlimited = low is None and high is None
        refuse(self.reported and not unlimited, f"{said} has a limit although it is only reported")
        refuse(
            unlimited and not self.reported,
            f"{said} has neither at_least nor at_most: cannot fail",
        )
        refuse(not self.value.condition, f"{said} names no condition")


class Experiment(Setting, frozen=True, tag_field="method"):
    """Keys of every experiment file; `method` decides about the others."""

    schema: Literal[1]
    name: str
    title: str
    question: str
    seconds: Seconds
    links: tuple[LinkSetting, ...]
    conditions: tuple[ConditionSetting, ...]
    schemes: tuple[SchemeSetting, ...]
    checks: tuple[Check, ...] = ()
    each: dict[str, tuple[dict[str, str], ...]] = field(default_factory=dict)
    """Rows for checks that are made more than once (`each` of a check): values by their names."""
    medium: Medium = "emulated"
    """`veth`: bare interfaces, as fast as this machine's processors."""
    repetitions: Repetitions = 5
    seed: int = 1
    warmup_s: WarmUp = 0.0
    quick_seconds: Seconds | None = None
    """Instead of `seconds` with `run --quick`, where those make it long."""
    trace_scale: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Rates of traces are multiplied by it, where the emulator would be late at their own."""
    benefit: bool = False
    """Goodput is compared with the links alone over all repetitions (benefit.py)."""
    carried: bool = False
    """What each emulated link carried towards the client is noted."""
    padhye: bool = False
    """Goodput of the links alone is compared with the TCP throughput formula."""
    congestion_control: tuple[str, ...] = ("cubic",)
    """Names as for TCP_CONGESTION; those that begin with `sumrate_` are loaded for the time."""
    beside_congestion_control: str = ""
    """Of the TCPs beside; the same as the scheme's if empty."""
    buffers: tuple[Buffers, ...] = ("default",)
    quick: tuple[str, ...] = ()
    """The conditions that `--quick` runs; all if not given."""
    why_not: dict[str, str] = field(default_factory=dict)
    """Why a peer is in no condition, or not with every congestion control or buffers."""
    baseline: str = ""
    """The condition whose single-path goodputs are the links' rates where links go dark."""

    @property
    def method(self) -> str:
        """How it is measured."""
        return str(self.__struct_config__.tag)

    def __post_init__(self) -> None:
        """Refuses names that stand for two things, and rates that are missing."""
        for names in (scheme_names(self), [condition.name for condition in self.conditions]):
            refuse(len(names) != len(set(names)), f"two have the same `name`: {', '.join(names)}")
        for condition in self.conditions:
            most = self.repetitions
            said = f"the repetitions of `{condition.name}` must be 1 to {most}, the experiment's"
            refuse((condition.repetitions or 1) > most, f"{said}, not {condition.repetitions}")
        for link in self.links:
            lacking = self.medium == "emulated" and not link.rate_mbps
            refuse(lacking, f"link `{link.name}` needs a rate_mbps above 0")


def scheme_names(experiment: Experiment) -> list[str]:
    """Names of all schemes in results, the links alone by the links' names."""
    found: list[str] = []
    for scheme in experiment.schemes:
        if scheme.kind == "alone":
            found += [link.name for link in experiment.links]
        else:
            found.append(scheme.name or scheme.kind)
    return found
