"""The conditions of the benchmark: what is done to which link."""

from dataclasses import dataclass

from sumrate.lab.links import Link
from sumrate.lab.scene import radio

WIFI = radio("wifi", 1, 630.0, 3.0)
WIGIG = radio("wigig", 2, 1800.0, 2.0)
LOSS = 0.05
EXTRA_RTT_MS = 500.0


@dataclass(frozen=True)
class Condition:
    """A named state of the links and how long a run takes in it (seconds)."""

    name: str
    title: str
    links: tuple[Link, ...]
    seconds: float


def conditions(seconds: float, delayed_seconds: float) -> tuple[Condition, ...]:
    """The five conditions; late paths need longer runs, because TCP takes long to open them."""
    return (
        Condition("normal", "normal", (WIFI, WIGIG), seconds),
        Condition("loss-wigig", "5 % loss on WiGig", (WIFI, WIGIG.with_loss(LOSS)), seconds),
        Condition("loss-wifi", "5 % loss on WiFi", (WIFI.with_loss(LOSS), WIGIG), seconds),
        Condition(
            "delay-wigig",
            "+500 ms on WiGig",
            (WIFI, WIGIG.with_extra_rtt(EXTRA_RTT_MS)),
            delayed_seconds,
        ),
        Condition(
            "delay-wifi",
            "+500 ms on WiFi",
            (WIFI.with_extra_rtt(EXTRA_RTT_MS), WIGIG),
            delayed_seconds,
        ),
    )
