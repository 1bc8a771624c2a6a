"""The player: reads a progressive download as far as its circular buffer has room.

The sender is the endless source of `sumrate.lab.ends source`: which bytes belong to which GOP, the
player knows from the video's file, as a real one from the index of the container. While its buffer
is full it does not read, and the transport's own back-pressure stops the sender.
"""

import argparse
import gc
import json
import time
from dataclasses import asdict
from typing import Any

from sumrate.lab.stream.ends import FIRST_BYTE, READ_BYTES, Read, connect, reported
from sumrate.lab.stream.ends import socket_reader as reader_of
from sumrate.lab.stream.record import Recorder
from sumrate.qoe.video.playback import Playback, Video

SCHEMA = "sumrate.lab.playback.v1"
LEAST_READ = 1 << 16
"""With less room than this in the buffer the player waits for the next GOP to leave it."""
NAP_S = 0.05
"""How long it sleeps at most."""


def video_of(document: dict[str, Any]) -> tuple[Video, int]:
    """The video in the file that the laboratory wrote, and the buffer's bytes."""
    video = Video(
        gop_bytes=tuple(document["gop_bytes"]),
        gop_s=document["gop_s"],
        psnr_db=tuple(document["psnr_db"]),
        frozen_psnr_db=tuple(document["frozen_psnr_db"]),
    )
    return video, document["buffer_bytes"]


def document_of(video: Video, buffer_bytes: int) -> dict[str, Any]:
    """What `video_of` reads."""
    return {**asdict(video), "buffer_bytes": buffer_bytes}


def play(read: Read, player: Playback, recorder: Recorder, patience_s: float) -> int | None:
    """Reads until the measured time is over or the video is there; when the sender ended (ns).

    Raises TimeoutError: no first byte within `patience_s` seconds.
    """
    buffer = memoryview(bytearray(READ_BYTES))
    clock = time.monotonic_ns
    end = clock() + round(patience_s * 1e9)
    while (now := clock()) < end:
        at_s = (now - recorder.first_ns) / 1e9 if recorder.started else 0.0
        space = player.space(at_s)
        if recorder.started and space < LEAST_READ:
            if player.finished:
                return None
            release_s = player.next_release_s(at_s)
            nap_s = NAP_S if release_s is None else min(NAP_S, max(0.0, release_s - at_s))
            if release_s is not None or space < 1:
                time.sleep(nap_s)
                continue
        count = read(buffer[: min(space, READ_BYTES)])
        now = clock()
        if now >= end:
            break
        if count is None:
            continue
        if count == 0:
            return now
        if not recorder.started:
            print(FIRST_BYTE, flush=True)
            recorder.start(now)
            end = recorder.end_ns
        recorder.add(now, count)
        player.add((now - recorder.first_ns) / 1e9, count)
    if not recorder.started:
        raise TimeoutError(f"no byte came within {patience_s:g} s")
    return None


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Connects, plays, and gives the result."""
    video, capacity = video_of(json.loads(args.video.read_text(encoding="utf-8")))
    player = Playback(video, capacity)
    recorder = Recorder(warmup_ns=0, time_ns=round(args.time * 1e9))
    gc.disable()  # a collection would be measured as a pause
    used = time.process_time()
    ended = play(reader_of(connect(args)), player, recorder, args.patience)
    watched = player.watched(args.time, args.counted_from)
    return {
        "schema": SCHEMA,
        **recorder.finish(ended),
        "first_byte_at_s": round(recorder.first_ns / 1e9, 6),
        "cpu_s": round(time.process_time() - used, 4),
        "watched": {
            **asdict(watched),
            "pause_share": watched.pause_share,
            "failed_share": watched.failed_share,
            "psnr_db": watched.psnr_db,
        },
        "complete_at_s": [round(at, 4) for at in player.complete_at_s],
        "error": "the connection ended before the time was over" if ended is not None else None,
    }


def run(args: argparse.Namespace) -> int:
    """Plays and writes the result; the exit status is 1 if the transfer broke."""
    return reported(measure, args)
