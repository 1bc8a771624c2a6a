"""The scene is the network that its tests speak of; nothing of Sumrate runs here."""

import json

import pytest

from sumrate.lab.links import Impairment
from tests.world.scene import INTERNET_IP, LTE, SERVER_IP, WIFI, World

SLOW = Impairment(rate_mbps=100.0, delay_ms=40.0)


@pytest.mark.situation("the scene itself: two radios behind NAT", plain="reaches the Internet")
def test_the_client_reaches_the_internet_by_either_radio(world: World) -> None:
    world.web()
    direct = json.loads(world.curl(f"http://{INTERNET_IP}/page", proxy=""))
    assert direct["source"] == world.radios[WIFI].uplink, "the first router translates"
    by_lte = world.curl(f"http://{INTERNET_IP}/", "--interface", LTE, proxy="")
    assert json.loads(by_lte)["source"] == world.radios[LTE].uplink
    assert "10.11.0.2" in world.curl("http://internet.test/", proxy=""), "names are known"
    server = world.run(world.server, ["curl", "-sS", "http://internet.test/"])
    assert json.loads(server.stdout)["source"] == "8.20.0.1", "the server has its own resolver"
    refused = world.run(world.client, ["curl", "-sS", f"http://{SERVER_IP}:4433/"])
    assert "curl: (7)" in refused.stderr, refused.stderr
    assert world.syns(WIFI) == {f"{INTERNET_IP}:80": 2, f"{SERVER_IP}:4433": 1}
    assert world.syns(LTE) == {f"{INTERNET_IP}:80": 1}
    world.measured("not started")


@pytest.mark.situation("the scene itself: a silent, refusing, unplugged radio", plain="fails")
def test_a_radio_is_cut_and_restored(world: World) -> None:
    world.web()
    url = f"http://{INTERNET_IP}/"

    def by_wifi() -> str:
        return world.curl(url, "--interface", WIFI, "--connect-timeout", "0.5", proxy="")

    assert "source" in by_wifi()
    world.cut(WIFI)
    assert "curl: (28)" in by_wifi()
    assert world.syns(WIFI)[f"{INTERNET_IP}:80"] >= 2, "SYNs count where they are dropped"
    world.reset_counts()
    assert world.syns(WIFI) == {}
    world.cut(WIFI, "reject with tcp reset")
    assert "curl: (7)" in by_wifi()
    world.restore(WIFI)
    assert "source" in by_wifi()
    world.unplug(WIFI)
    assert world.radios[LTE].uplink in world.curl(url, proxy=""), "the other default route is left"
    world.plug(WIFI)
    assert "source" in by_wifi()
    world.carrier(WIFI, up=False)
    assert "NO-CARRIER" in world.client.run(["ip", "link", "show", WIFI])
    world.measured("not started")


@pytest.mark.situation(
    "the scene itself: a radio of 80 ms, and IPv6",
    plain="waits as long",
    shapes={WIFI: SLOW},
    ipv6=True,
)
def test_a_radio_has_a_delay_and_both_families(world: World) -> None:
    world.web()
    took = ["-o", "/dev/null", "-w", "%{time_connect} %{remote_ip}"]
    slow, address = world.curl("http://internet.test/", *took, "-4", proxy="").split()
    assert float(slow) >= 0.08 and address == INTERNET_IP
    _, address = world.curl("http://internet.test/", *took, "-6", proxy="").split()
    assert ":" in address
    world.shape(WIFI, blackout=True)
    assert "curl: (28)" in world.curl(f"http://{INTERNET_IP}/", "-m", "0.5", proxy="")
    world.measured("not started")
