"""Links and schemes of an experiment, as the laboratory builds them."""

from dataclasses import replace
from itertools import count, takewhile
from math import gcd
from pathlib import Path
from typing import Any
from zlib import crc32

from sumrate.lab.endpoints import (
    Aggligator,
    Handover,
    KernelMptcp,
    KernelMptcpBackup,
    Paced,
    Parallel,
    Scaled,
    Scheme,
    SinglePath,
    Sumrate,
    SumrateMessages,
    TlsPump,
    Together,
    Tquic,
)
from sumrate.lab.experiment.by_method import WarmedCondition
from sumrate.lab.experiment.impairments import merged
from sumrate.lab.experiment.model import (
    Change,
    ConditionSetting,
    Experiment,
    LinkSetting,
    SchemeSetting,
)
from sumrate.lab.links import AckDelay, Blackout, Impairment, Link, Sleep
from sumrate.traces import Trace, generate, read, statistics, write


def sized_buffers(most: int) -> dict[str, str]:
    """Send and receive buffers that grow to `most` bytes and begin at the kernel's usual sizes."""
    return {
        "net.ipv4.tcp_rmem": f"4096 {min(131_072, most)} {most}",
        "net.ipv4.tcp_wmem": f"4096 {min(16_384, most)} {most}",
    }


BUFFER_SETTINGS = {
    "default": {},
    "large": {
        "net.ipv4.tcp_rmem": "4096 131072 134217728",
        "net.ipv4.tcp_wmem": "4096 16384 134217728",
    },
    **{f"{size}k": sized_buffers(size * 1024) for size in (50, 100, 200, 500, 1000)},
}
"""What each name of buffers sets on both hosts; `default` leaves the kernel's, which is recorded.
128 MiB hold a 500 ms round trip at 2 Gbit/s."""


FURTHER_HOST = 11
"""Fourth octet of the client's address from which links that share a wire count."""

NEXT_TRACE_S = 30.0
"""Length of the trace under one download or page; it repeats."""
TRACE_SPARE_S = 2.0
"""A trace is this much longer than the run: programs take a moment to start."""


def seconds_of(experiment: Experiment, condition: ConditionSetting) -> float:
    """How long a run takes in this condition."""
    return condition.seconds or experiment.seconds


def warmup_of(experiment: Experiment, condition: ConditionSetting) -> float:
    """How long a run sends in this condition before it counts."""
    own = condition.warmup_s if isinstance(condition, WarmedCondition) else None
    return experiment.warmup_s if own is None else own


def on_wires(experiment: Experiment, condition: ConditionSetting) -> bool:
    """Whether this condition is on bare interfaces instead of emulated links."""
    return (condition.medium or experiment.medium) == "veth"


def links_of(experiment: Experiment, condition: ConditionSetting) -> tuple[Link, ...]:
    """The links that exist in a condition."""
    found = []
    seconds = seconds_of(experiment, condition)
    subnets = {setting.name: number for number, setting in enumerate(experiment.links, start=1)}
    for setting in experiment.links:
        change = condition.links.get(setting.name, Change())
        if not change.absent:
            subnet = subnets[setting.shares or setting.name]
            found.append(_link(setting, change, subnet, seconds))
    return tuple(
        replace(link, host=FURTHER_HOST + 2 * number) if link.wire else link
        for number, link in enumerate(found)
    )


def traced_links(
    experiment: Experiment, condition: ConditionSetting, seed: int, folder: Path
) -> tuple[Link, ...]:
    """The links with their traces, which are written into `folder`.

    All schemes of a repetition get the same traces; links of one kind differ, and so do those of
    other experiments.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for link in links_of(experiment, condition):
        change = condition.links.get(link.name, Change())
        if change.trace is None:
            found.append(link)
            continue
        seconds = seconds_of(experiment, condition) + warmup_of(experiment, condition)
        seconds += TRACE_SPARE_S
        path = folder / f"{link.name}-{change.trace}-{change.trace_scale:g}-{seed}.trace"
        own = _trace_seed(experiment, seed, link)
        write(_scaled(experiment, change, own, seconds), path)
        found.append(link.with_trace(path))
    return tuple(found)


def traces_shown(links: tuple[Link, ...], seconds: float) -> dict[str, dict[str, float]]:
    """What each trace allows in a run of so many seconds, as it is used there.

    Mean, standard deviation and percentiles of the TCP goodput of whole seconds, Mbit/s: a trace
    of a few seconds has not the statistics of the process that it is a piece of.
    """
    found = {}
    for link in links:
        if link.down.trace is None or seconds < 1:
            continue
        values = statistics(_used(read(link.down.trace), seconds)).values()
        found[link.name] = {k: round(v, 1) for k, v in values.items() if "auto" not in k}
    return found


def _used(trace: Trace, seconds: float) -> Trace:
    """The whole seconds of it that a run of so many seconds sees."""
    unit = gcd(round(trace.step_ms), 1000)
    rates = [rate for rate in trace.rates_mbps for _ in range(round(trace.step_ms) // unit)]
    return Trace(unit, tuple(rates[: int(seconds) * 1000 // unit]))


def full_queues_ms(links: tuple[Link, ...], seconds: float) -> dict[str, float]:
    """For how long a full queue delays at most, on each link that follows a trace, in ms."""
    return {
        link.name: longest_drain_ms(_used(read(link.down.trace), seconds), link.down.queue_ms)
        for link in links
        if link.down.trace is not None and seconds >= 1
    }


def longest_drain_ms(trace: Trace, queue_ms: float) -> float:
    """How long a full queue takes to drain, at most: its bytes are `queue_ms` of the mean rate."""
    steps = trace.rates_mbps
    full, waiting, end, longest = queue_ms * trace.mean_rate_mbps, 0.0, 0, 0
    for begin, rate in enumerate(steps):
        while waiting < full and end < len(steps):
            waiting += steps[end] * trace.step_ms
            end += 1
        if waiting < full:
            break
        longest = max(longest, end - begin)
        waiting -= rate * trace.step_ms
    return longest * trace.step_ms


def next_traces(
    experiment: Experiment, condition: ConditionSetting, seed: int, number: int, folder: Path
) -> dict[str, Path]:
    """Another trace for each link that follows one, by link; the same for the same number.

    Args:
        experiment: whose links.
        condition: which traces they follow.
        seed: the repetition's.
        number: 0 and up: of the thing that is timed next.
        folder: where the traces are kept; what is there already is not made again.

    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for link in links_of(experiment, condition):
        change = condition.links.get(link.name, Change())
        if change.trace is not None:
            scale = experiment.trace_scale * change.trace_scale
            path = folder / f"{link.name}-{change.trace}-{scale:g}-{seed}-{number}.trace"
            if not path.exists():
                write(next_trace(experiment, change, link, seed, number), path)
            found[link.name] = path
    return found


def next_trace(experiment: Experiment, change: Change, link: Link, seed: int, number: int) -> Trace:
    """The trace of a link for the thing that is timed under this number."""
    own = _trace_seed(experiment, seed, link) * 4096 + number
    return _scaled(experiment, change, own, NEXT_TRACE_S)


def _trace_seed(experiment: Experiment, seed: int, link: Link) -> int:
    """One for each experiment, repetition and link: experiments are draws of their own."""
    return (crc32(experiment.name.encode()) * 1024 + seed) * 64 + link.subnet


def _scaled(experiment: Experiment, change: Change, seed: int, seconds: float) -> Trace:
    trace = generate(str(change.trace), seed=seed, seconds=seconds)
    return trace.scaled(experiment.trace_scale * change.trace_scale)


def _link(setting: LinkSetting, change: Change, subnet: int, seconds: float) -> Link:
    found = merged(setting, change)
    rate_mbps = change.rate_mbps or setting.rate_mbps

    def direction(loss: float | None, rate_mbps: float, gather_ms: float) -> Impairment:
        rtt = setting.rtt_ms if change.rtt_ms is None else change.rtt_ms
        return Impairment(
            rate_mbps=rate_mbps,
            delay_ms=(rtt + change.extra_rtt_ms) / 2,
            queue_ms=change.queue_ms or setting.queue_ms,
            loss=loss or 0.0,
            loss_burst=found.loss_burst or 1.0,
            burst_bytes=setting.burst_bytes if change.burst_bytes is None else change.burst_bytes,
            policer=found.policer or False,
            jitter_sd_ms=found.jitter_sd_ms or 0.0,
            reorder=found.reorder or False,
            gather_ms=gather_ms,
        )

    return Link(
        setting.name,
        subnet,
        down=direction(change.loss, rate_mbps, 0.0),
        up=direction(change.loss_up, found.rate_up_mbps or rate_mbps, found.gather_ms or 0.0),
        blackouts=blackouts_of(change, seconds),
        mtu=change.mtu or setting.mtu,
        rate_steps=change.rate_steps,
        ack_delay=_ack_delay(change),
        sleep=None if change.awake else _sleep(setting),
        wire=setting.shares,
        returns=setting.returns,
        ssthresh=change.ssthresh or 0,
    )


def _sleep(setting: LinkSetting) -> Sleep | None:
    found = setting.sleep
    return Sleep(found.after_ms, found.wake_ms) if found else None


def _ack_delay(change: Change) -> AckDelay | None:
    found = change.ack_delay
    return AckDelay(found.hold_ms / 1e3, found.every_ms / 1e3) if found else None


def blackouts_of(change: Change, seconds: float) -> tuple[Blackout, ...]:
    """The dark intervals of a link during a run."""
    dark = [Blackout(start, end) for start, end in change.blackouts]
    dark += [Blackout(start, end, "a_to_b") for start, end in change.up_blackouts]
    if change.flap:
        flap = change.flap
        starts = (flap.first_s + i * flap.every_s for i in count())
        dark += [
            Blackout(round(s, 6), round(s + flap.dark_s, 6))
            for s in takewhile(lambda s: s + flap.dark_s <= seconds, starts)
        ]
    return tuple(sorted(dark, key=lambda b: b.start_s))


def dark_share(
    link: Link, unplugged: tuple[tuple[float, float], ...], start_s: float, end_s: float
) -> float:
    """The share of an interval in which a link carries nothing in either direction.

    Because it is dark, or because the client's interface is down.
    """
    dark = [(b.start_s, b.end_s) for b in link.blackouts if b.direction == "both"]
    covered, until = 0.0, start_s
    for begin, end in sorted([*dark, *unplugged]):
        covered += max(0.0, min(end, end_s) - max(begin, until))
        until = max(until, min(end, end_s))
    return covered / (end_s - start_s)


def with_stream_buffer(scheme: Scheme, size_bytes: int) -> Scheme:
    """The scheme, with a limit on what an end holds of a received stream if it is Sumrate."""
    if not size_bytes or not isinstance(scheme, Sumrate):
        return scheme
    return replace(scheme, options=(*scheme.options, "--stream-buffer", str(size_bytes)))


def schemes_of(
    experiment: Experiment, links: tuple[Link, ...], congestion_control: str, buffers: str
) -> list[Scheme]:
    """The schemes as they are at a point with these links, the links alone first."""
    titles = {link.name: link.title for link in experiment.links}
    found: list[Scheme] = []
    for setting in experiment.schemes:
        if congestion_control not in (setting.congestion_control or (congestion_control,)):
            continue
        if buffers not in (setting.buffers or (buffers,)):
            continue
        if setting.kind == "alone":
            found += [SinglePath(link, f"{titles[link.name]} alone") for link in links]
        else:
            found.append(_scheme(setting))
    return found


def _scheme(setting: SchemeSetting) -> Scheme:
    made: Scheme = {
        "mptcp": KernelMptcp,
        "mptcp-backup": KernelMptcpBackup,
        "handover": Handover,
        "sumrate": Sumrate,
        "aggligator": Aggligator,
        "tquic": Tquic,
        "together": Together,
        "parallel": Parallel,
        "paced": Paced,
        "scaled": Scaled,
        "tls-pump": TlsPump,
        "messages": SumrateMessages,
    }[setting.kind]()
    keys = ("name", "title", "options", "first", "backup", "policy", "event_log")
    given = {key: getattr(setting, key) for key in keys if getattr(setting, key)}
    return replace(made, **given) if given else made  # type: ignore[type-var]


def _shown_delay(link: Link) -> str:
    delay = link.ack_delay
    return f"{delay.hold_s * 1e3:g} of every {delay.every_s * 1e3:g} ms" if delay else ""


def _shown_trace(experiment: Experiment, condition: ConditionSetting, link: Link) -> str:
    change = condition.links.get(link.name, Change())
    scale = experiment.trace_scale * change.trace_scale
    kind = change.trace or ""
    return f"{kind}, rates times {scale:g}" if kind and scale != 1.0 else kind


def _shown_beside(count: int) -> str:
    return {0: "", 1: "a plain TCP"}.get(count, f"{count} plain TCPs")


def _shown_sleep(link: Link) -> str:
    sleep = link.sleep
    return f"after {sleep.after_ms:g} ms, wakes in {sleep.wake_ms:g} ms" if sleep else ""


def links_shown(experiment: Experiment) -> list[dict[str, Any]]:
    """The calibration of every link in every condition, for the manifest."""
    titles = {link.name: link.title for link in experiment.links}
    return [
        {
            "condition": condition.name,
            "name": link.name,
            "title": titles[link.name],
            "rate_mbps": link.down.rate_mbps,
            "rate_up_mbps": link.up.rate_mbps if link.up.rate_mbps != link.down.rate_mbps else 0,
            "rtt_ms": link.down.delay_ms + link.up.delay_ms,
            "queue_ms": link.down.queue_ms,
            "mtu": link.mtu,
            "burst_bytes": link.down.burst_bytes,
            "policer": link.down.policer,
            "jitter_sd_ms": link.down.jitter_sd_ms,
            "reorder": link.down.reorder,
            "gather_ms": link.up.gather_ms,
            "ack_delay": _shown_delay(link),
            "ssthresh": link.ssthresh,
            "sleep": _shown_sleep(link),
            "loss": link.down.loss,
            "loss_up": link.up.loss,
            "loss_burst": link.down.loss_burst if link.down.loss_burst > 1 else 0,
            "blackouts": [[b.start_s, b.end_s, b.direction] for b in link.blackouts],
            "unplugged": [list(i) for i in condition.links.get(link.name, Change()).unplugged],
            "rate_steps": [list(step) for step in link.rate_steps],
            "trace": _shown_trace(experiment, condition, link),
            "medium": "bare interface" if on_wires(experiment, condition) else "",
            "shares": link.wire,
            "returns": link.returns,
            "beside": _shown_beside(condition.beside.count(link.name)),
        }
        for condition in experiment.conditions
        for link in links_of(experiment, condition)
    ]
