"""The emulator's configuration, the payload, and how sockets are read from `ss`."""

import hashlib
import os
import tomllib
from dataclasses import replace
from pathlib import Path

from sumrate.lab.demo.setting import setting
from sumrate.lab.links import configuration
from sumrate.lab.payload import Sink, make_payload
from sumrate.lab.scene import radio
from sumrate.lab.traffic import parse

LINKS = setting(1.0, 2 << 30).links


def test_demo_configuration_has_the_blockage() -> None:
    config = tomllib.loads(configuration(LINKS, seed=7))
    assert (config["version"], config["seed"]) == (1, 7)
    wifi, wigig = config["link"]
    assert "schedule" not in wifi
    assert wigig["schedule_start"] == "trigger"
    assert [(s["at_s"], s["blackout"]) for s in wigig["schedule"]] == [(2.0, True), (4.0, False)]
    assert wigig["b_to_a"] == {"rate_mbps": 1800.0, "delay_ms": 1.0, "queue_ms": 20.0}
    assert wigig["a"]["address"] == ["10.1.2.1/24"]


def test_a_token_bucket_is_of_both_directions() -> None:
    bursting = replace(LINKS[0].down, burst_bytes=65_536)
    bursts = replace(LINKS[0], down=bursting, up=bursting)
    (link,) = tomllib.loads(configuration([bursts], seed=1))["link"]
    assert [link[way]["burst_bytes"] for way in ("a_to_b", "b_to_a")] == [65_536, 65_536]
    (plain,) = tomllib.loads(configuration(LINKS[:1], seed=1))["link"]
    assert "burst_bytes" not in plain["a_to_b"]


def test_links_on_one_wire_are_one_link_with_more_addresses() -> None:
    second = replace(radio("second", 1, 20.0, 2.0), wire="first", host=13)
    config = tomllib.loads(configuration([radio("first", 1, 20.0, 2.0), second], seed=1))
    (link,) = config["link"]
    assert link["a"]["address"] == ["10.1.1.1/24", "10.1.1.13/24"]
    assert link["b"]["address"] == ["10.1.1.2/24", "10.1.1.14/24"]
    assert (second.interface, second.server_ip) == ("first0", "10.1.1.14")


def test_payload_is_seeded_and_its_checksum_right(tmp_path: Path) -> None:
    first = make_payload(tmp_path / "a", (16 << 20) + 5, seed=3)
    again = make_payload(tmp_path / "b", (16 << 20) + 5, seed=3)
    other = make_payload(tmp_path / "c", 100, seed=4)
    assert first.sha256 == again.sha256
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()
    assert first.path.stat().st_size == (16 << 20) + 5
    assert other.sha256 != first.sha256


def test_connections_are_read_from_ss() -> None:
    text = (
        "ESTAB 0 0 10.1.1.2:8080 10.1.1.1:40000\n"
        "\t cubic wscale:9,9 rto:204 rtt:3/1 bytes_acked:5000000 tcp-ulp-mptcp flags:Mm\n"
        "ESTAB 0 0 10.1.2.2:8080 10.1.2.1:40002\n"
        "\t bbr wscale:9,9 rto:204 bytes_acked:1200\n"
    )
    (only,) = parse(text)
    assert only["remote"] == "10.1.1.1:40000"
    assert (only["congestion_control"], only["mptcp"]) == ("cubic", True)


def test_sink_accepts_the_payload_and_nothing_else(tmp_path: Path) -> None:
    payload = make_payload(tmp_path / "sent", 3 << 20, seed=3)
    sent = payload.path.read_bytes()
    sink = Sink(tmp_path / "received", payload.size)
    for written, right in (
        (sent, True),
        (sent[:-1], False),
        (sent + b"x", False),
        (bytes([sent[0] ^ 1]) + sent[1:], False),
        (b"", False),
        (sent, True),
    ):
        sink.clear()
        assert sink.received() == 0
        os.write(sink.file, written)
        assert sink.received() == len(written)
        assert sink.matches(payload) is right
    sink.close()
    assert not sink.path.exists()
