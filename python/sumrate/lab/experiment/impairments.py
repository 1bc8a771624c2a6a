"""Jitter, policers, gathering and bursts of loss: a condition's settings, and their bounds."""

from collections.abc import Iterator

from sumrate.lab.experiment.model import Change, Experiment, Impairments, LinkSetting, SleepSetting

MOST_MS = 3_600_000.0
"""As the emulator takes it, and so are the other bounds."""
MOST_MBPS = 1_000_000.0
LEAST = 0.001
MOST_LOSS_BURST = 1_000_000.0


def merged(link: Impairments, change: Impairments) -> Impairments:
    """The settings of a link under a condition's change."""
    chosen = {
        key: getattr(link if getattr(change, key) is None else change, key)
        for key in Impairments.__struct_fields__
    }
    return Impairments(**chosen)


def problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """The word to look for and what is wrong, of every link in every condition."""
    for link in experiment.links:
        yield from _values(link.name, link)
        if link.sleep:
            yield from _sleep(link.name, link.sleep)
        for change in (
            Change(),
            *(c.links.get(link.name, Change()) for c in experiment.conditions),
        ):
            yield from _values(link.name, change)
            yield from _together(link, change)
            yield from _steps(link, change)


def _values(name: str, found: Impairments) -> Iterator[tuple[str, str]]:
    for key, least, most in (
        ("rate_up_mbps", LEAST, MOST_MBPS),
        ("jitter_sd_ms", 0.0, MOST_MS),
        ("gather_ms", 0.0, MOST_MS),
        ("loss_burst", 1.0, MOST_LOSS_BURST),
    ):
        value = getattr(found, key)
        if value is not None and not least <= value <= most:
            yield name, f"the {key} of `{name}` must be {least:g} to {most:g}, not {value:g}"


def _sleep(name: str, sleep: SleepSetting) -> Iterator[tuple[str, str]]:
    for key in ("after_ms", "wake_ms"):
        if not LEAST <= getattr(sleep, key) <= MOST_MS:
            yield name, f"the {key} of the sleep of `{name}` must be 0.001 to {MOST_MS:g}"


def _together(link: LinkSetting, change: Change) -> Iterator[tuple[str, str]]:
    """What only shows when a change meets its link."""
    found = merged(link, change)
    burst = link.burst_bytes if change.burst_bytes is None else change.burst_bytes
    mtu = change.mtu or link.mtu
    if found.policer and burst < mtu:
        yield (
            link.name,
            f"the policer of `{link.name}` needs burst_bytes of at least {mtu}, its mtu",
        )
    run = found.loss_burst or 1.0
    for loss in (change.loss or 0.0, change.loss_up or 0.0):
        if run > 1.0 and loss < 1.0 and loss / (1.0 - loss) > run:
            least = loss / (1.0 - loss)
            yield link.name, f"the loss_burst of `{link.name}` must be at least {least:.2f}"


def _steps(link: LinkSetting, change: Change) -> Iterator[tuple[str, str]]:
    name, rate_mbps = link.name, change.rate_mbps or link.rate_mbps
    times = [at for at, _ in change.rate_steps]
    if times != sorted(set(times)) or min(times, default=0.0) < 0:
        yield name, f"the rate_steps of `{name}` must be at rising times of 0 s and more"
    for _, factor in change.rate_steps:
        for rate in (rate_mbps * factor, (merged(link, change).rate_up_mbps or rate_mbps) * factor):
            if not LEAST <= rate <= MOST_MBPS:
                said = f"a factor of {factor:g} in the rate_steps of `{name}` makes {rate:g} Mbit/s"
                yield name, f"{said}, not {LEAST:g} to {MOST_MBPS:g}"
    if change.rate_steps and (change.trace or change.ack_delay):
        yield name, f"`{name}` has rate_steps: it cannot have a trace or an ack_delay as well"
