"""The impairments of a link under a condition's change."""

from sumrate.lab.experiment.model import Change, Impairments, LinkSetting, refuse

LEAST_MBPS, MOST_MBPS = 0.001, 1e6
"""Rates that the emulator takes."""


def merged(link: Impairments, change: Impairments) -> Impairments:
    """The settings of a link under a condition's change."""
    chosen = {
        key: getattr(link if getattr(change, key) is None else change, key)
        for key in Impairments.__struct_fields__
    }
    return Impairments(**chosen)


def check_together(link: LinkSetting, change: Change) -> None:
    """Refuses settings that the emulator refuses when a change meets its link.

    Raises ValueError: a policer's burst, a burst of losses or a step of the rate is out of
    bounds.
    """
    found = merged(link, change)
    burst = link.burst_bytes if change.burst_bytes is None else change.burst_bytes
    mtu = change.mtu or link.mtu
    small = found.policer and burst < mtu
    refuse(small, f"the policer of `{link.name}` needs burst_bytes of at least {mtu}, its mtu")
    for loss in (change.loss or 0.0, change.loss_up or 0.0):
        least = loss / (1.0 - loss) if loss < 1.0 else 0.0
        short = 1.0 < (found.loss_burst or 1.0) < least
        refuse(short, f"the loss_burst of `{link.name}` must be at least {least:.2f}")
    rate_mbps = change.rate_mbps or link.rate_mbps
    for _, factor in change.rate_steps:
        for rate in (rate_mbps * factor, (found.rate_up_mbps or rate_mbps) * factor):
            said = (
                f"a factor of {factor:g} in the rate_steps of `{link.name}` makes {rate:g} Mbit/s"
            )
            within = LEAST_MBPS <= rate <= MOST_MBPS
            refuse(not within, f"{said}, not {LEAST_MBPS:g} to {MOST_MBPS:g}")
