"""A player with a circular buffer that shows whole GOPs (thesis, section 4.4.3 and figure 4.7).

Pure: times are arguments, in seconds after the first byte. The thesis checks at every GOP whether
all of it is there, and pauses if it is not. Its pause shares are 1 - R/V for a download at a rate R
of a video of rate V: those of a player that waits for each GOP and goes on the moment it is whole.
That is the rule here; how many of the checks at fixed times find no GOP is told beside it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

SHOWN_PSNR_DB, PAUSED_PSNR_DB = 55.0, 17.2
"""Average PSNR of what is shown, and of a pause: the line through the thesis's pairs of pause share
and PSNR (figures 4.7a and 4.7b), PSNR = 55 - 37.8 x pause share."""


class PlaybackError(ValueError):
    """A video or buffer that cannot be played; the message says which value, and what to do."""


@dataclass(frozen=True)
class Video:
    """A video cut into GOPs of equal length."""

    gop_bytes: tuple[int, ...]
    """Bytes of each GOP, in order."""
    gop_s: float
    """Seconds that each GOP is shown for."""
    psnr_db: tuple[float, ...] = ()
    """PSNR of each GOP against its source; empty where it was not measured."""
    frozen_psnr_db: tuple[float, ...] = ()
    """PSNR of each GOP's last frame, which a pause shows, against the frames that follow it in its
    clip, whatever follows it here."""

    def __post_init__(self) -> None:
        """Refuses what cannot be played.

        Raises:
            PlaybackError: a GOP is empty, or there is none, or lists differ in length.

        """
        if not self.gop_bytes or min(self.gop_bytes) < 1:
            raise PlaybackError("a video needs GOPs, each of at least one byte")
        if not self.gop_s > 0:
            raise PlaybackError(f"a GOP lasts more than 0 s, not {self.gop_s}")
        for name in ("psnr_db", "frozen_psnr_db"):
            if len(getattr(self, name)) not in (0, len(self.gop_bytes)):
                raise PlaybackError(f"{name} must have one value for each GOP")

    @property
    def mbps(self) -> float:
        """Mean rate over all of it, in Mbit/s."""
        return sum(self.gop_bytes) * 8e-6 / (len(self.gop_bytes) * self.gop_s)


@dataclass(frozen=True)
class Watched:
    """What a viewer had until the end of a run."""

    startup_s: float
    """From the first byte until the first GOP is shown."""
    watched_s: float
    """From then, or from when it counts, to the end."""
    pauses: int
    pause_s: float
    longest_pause_s: float
    checks: int
    """Times, one GOP apart, at which a GOP had to be there."""
    failed_checks: int
    """Of these, how many found none."""
    shown: int
    """GOPs that were begun."""
    shown_mbps: float
    """Mean rate of the GOPs that were shown while it counts."""
    measured_psnr_db: float | None
    """Mean over the time watched: each GOP's own PSNR, in pauses that of its frozen last frame."""
    stock_s: float
    """Seconds of video that were there, and not yet shown, when it began to count."""

    @property
    def pause_share(self) -> float:
        """Share of the time watched in which the picture stood."""
        return self.pause_s / self.watched_s if self.watched_s > 0 else 1.0

    @property
    def failed_share(self) -> float:
        """Share of the checks that found no GOP."""
        return self.failed_checks / self.checks if self.checks else 1.0

    @property
    def psnr_db(self) -> float:
        """Average PSNR by the thesis's rule."""
        return average_psnr_db(self.pause_share)


def average_psnr_db(
    pause_share: float, shown_db: float = SHOWN_PSNR_DB, paused_db: float = PAUSED_PSNR_DB
) -> float:
    """Average PSNR in dB of a video that pauses for this share of the time."""
    return shown_db + (paused_db - shown_db) * pause_share


def expected_pause_share(rate_mbps: float, video_mbps: float) -> float:
    """Pause share of a video of this rate over a link of constant rate: max(0, 1 - R/V)."""
    return max(0.0, 1.0 - rate_mbps / video_mbps)


def least_pause_share(
    rate_mbps: float, video_mbps: float, *, stock_s: float, counted_s: float, gop_s: float
) -> float:
    """The least pause share over a link of constant rate for a player that begins with a stock.

    What is shown is the stock and what comes, less what is left at the end. That is at least R/V
    of a GOP, which comes while one is shown: only a stock beyond it spares pauses.

    Args:
        rate_mbps: R, of the link, in Mbit/s.
        video_mbps: V, mean rate of the GOPs that are shown, in Mbit/s.
        stock_s: seconds of video that are there when the time that counts begins.
        counted_s: length of that time in seconds, to the end.
        gop_s: seconds that a GOP is shown for.

    """
    expected = expected_pause_share(rate_mbps, video_mbps)
    if not counted_s > 0:
        return expected
    spared_s = max(0.0, stock_s - gop_s * min(1.0, rate_mbps / video_mbps))
    return max(0.0, expected - spared_s / counted_s)


class Playback:
    """The player while bytes come in, in order. Memory: times of each GOP, a mark at each read."""

    def __init__(self, video: Video, capacity_bytes: int) -> None:
        """Begins empty.

        Args:
            video: what is played.
            capacity_bytes: of the circular buffer. A GOP leaves it when it begins to be shown.

        Raises:
            PlaybackError: the buffer could fill up without a whole GOP in it.

        """
        needed = 2 * max(video.gop_bytes)
        if capacity_bytes < needed:
            raise PlaybackError(
                f"a buffer of {capacity_bytes} bytes cannot hold two of the largest GOPs: give it "
                f"at least {needed}"
            )
        self.video = video
        self.capacity_bytes = capacity_bytes
        self.received = 0
        self._ends = list(accumulate(video.gop_bytes))
        self.complete_at_s: list[float] = []
        """When each GOP was whole."""
        self.begins_at_s: list[float] = []
        """When each whole GOP is shown."""
        self._marks: list[tuple[float, int]] = []
        """Times, and what had come by then in bytes."""

    @property
    def finished(self) -> bool:
        """Whether everything has been received."""
        return self.received >= self._ends[-1]

    def space(self, now_s: float) -> int:
        """Bytes that the buffer takes now; never more than are still to come."""
        begun = bisect_right(self.begins_at_s, now_s)
        released = self._ends[begun - 1] if begun else 0
        buffered = self.received - released
        return min(self.capacity_bytes - buffered, self._ends[-1] - self.received)

    def next_release_s(self, now_s: float) -> float | None:
        """When the next GOP leaves the buffer; None while that depends on what comes."""
        begun = bisect_right(self.begins_at_s, now_s)
        return self.begins_at_s[begun] if begun < len(self.begins_at_s) else None

    def add(self, now_s: float, count: int) -> None:
        """`count` bytes have come, no more than there was space for."""
        self.received += count
        self._marks.append((now_s, self.received))
        while len(self.complete_at_s) < len(self._ends):
            index = len(self.complete_at_s)
            if self.received < self._ends[index]:
                return
            self.complete_at_s.append(now_s)
            before = self.begins_at_s[-1] + self.video.gop_s if index else now_s
            self.begins_at_s.append(max(now_s, before))

    def watched(self, end_s: float, from_s: float = 0.0) -> Watched:
        """What the viewer had to `end_s`, or to the end of the video.

        Args:
            end_s: when nothing counts any more.
            from_s: what was before does not count, nor what was before the first GOP.

        """
        gop_s, begins = self.video.gop_s, self.begins_at_s
        shown = bisect_left(begins, end_s)
        if not shown:
            return Watched(end_s, 0.0, 0, 0.0, 0.0, 0, 0, 0, 0.0, None, 0.0)
        if shown == len(self._ends):
            end_s = min(end_s, begins[-1] + gop_s)
        from_s = min(max(from_s, begins[0]), end_s)
        first = min(max(0, bisect_right(begins, from_s) - 1), shown - 1)
        following = [*begins[1:shown], end_s]
        pauses = [
            max(0.0, after - max(begin + gop_s, from_s))
            for begin, after in zip(begins[:shown], following, strict=True)
        ]
        checks, failed = self._checked(end_s, from_s)
        counted = self.video.gop_bytes[first:shown]
        return Watched(
            startup_s=begins[0],
            watched_s=end_s - from_s,
            pauses=sum(pause > 0 for pause in pauses),
            pause_s=sum(pauses),
            longest_pause_s=max(pauses),
            checks=checks,
            failed_checks=failed,
            shown=shown,
            shown_mbps=sum(counted) * 8e-6 / (len(counted) * gop_s),
            measured_psnr_db=self._measured_psnr_db(pauses, following, from_s),
            stock_s=self._stock_s(from_s),
        )

    def _stock_s(self, at_s: float) -> float:
        """Seconds of video that have come by the last read before then, and have not been shown.

        A part of a GOP counts by its bytes. A GOP has been shown before.
        """
        gop_s = self.video.gop_s
        whole = bisect_right(self.complete_at_s, at_s)
        marked = bisect_right(self._marks, at_s, key=lambda mark: mark[0])
        came_s = whole * gop_s
        if marked and whole < len(self._ends):
            before = self._ends[whole - 1] if whole else 0
            part = max(0, self._marks[marked - 1][1] - before)
            came_s += part / self.video.gop_bytes[whole] * gop_s
        begun = bisect_right(self.begins_at_s, at_s)
        return came_s - (begun - 1) * gop_s - min(gop_s, at_s - self.begins_at_s[begun - 1])

    def _checked(self, end_s: float, from_s: float) -> tuple[int, int]:
        """The thesis's checks, one GOP apart: how many counted, and how many of these failed."""
        at = made = checks = failed = 0
        first = self.begins_at_s[0]
        while (now := first + made * self.video.gop_s) < end_s and at < len(self._ends):
            there = at < len(self.complete_at_s) and self.complete_at_s[at] <= now
            at += there
            made += 1
            if now >= from_s:
                checks += 1
                failed += not there
        return checks, failed

    def _measured_psnr_db(
        self, pauses: Sequence[float], following: Sequence[float], from_s: float
    ) -> float | None:
        video = self.video
        if not video.psnr_db or not video.frozen_psnr_db:
            return None
        total = length = 0.0
        for index, (pause, after) in enumerate(zip(pauses, following, strict=True)):
            played = max(0.0, after - max(self.begins_at_s[index], from_s) - pause)
            total += played * video.psnr_db[index] + pause * video.frozen_psnr_db[index]
            length += played + pause
        return total / length if length > 0 else None


def fluid(
    video: Video,
    capacity_bytes: int,
    arrivals: Sequence[tuple[float, float]],
    end_s: float,
    from_s: float = 0.0,
) -> Watched:
    """The same player fed by rates: `arrivals` are ends of intervals (s) and bytes until then.

    What does not fit into the buffer is not taken and not kept: a link that is not read is idle.
    """
    player = Playback(video, capacity_bytes)
    owed = 0.0
    for at_s, count in arrivals:
        owed += count
        taken = min(int(owed), player.space(at_s))
        if taken > 0:
            player.add(at_s, taken)
        owed = owed - taken if taken == int(owed) else 0.0
    return player.watched(end_s, from_s)
