"""The status page in a real Chromium: what it shows and changes, keyboard, phone; no stranger."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.programs import binary_folder
from tests.watch.relay import Relay
from tests.watch.running import PATIENCE_S, Running, needs_sumrate, running

REPOSITORY = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("status_page.mjs")
PLAYWRIGHT = Path(
    os.environ.get("PLAYWRIGHT_CORE")
    or REPOSITORY / "python/sumrate/qoe/browser/node_modules/playwright-core"
)
"""Folder of the npm package playwright-core."""

pytestmark = [
    pytest.mark.system,
    needs_sumrate,
    pytest.mark.skipif(
        not PLAYWRIGHT.exists(), reason="playwright-core is missing: `make browser`"
    ),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]


def listed(both: Running) -> dict[str, dict[str, Any]]:
    """The paths as `sumrate path list` reports them, by name."""
    argv = ["path", "list", "--json", "--socket", both.client["status_socket"]]
    asked = subprocess.run([binary_folder() / "sumrate", *argv], capture_output=True, check=True)
    return {path["name"]: path for path in json.loads(asked.stdout)["paths"]}


def driven(both: Running, relay: Relay, pictures: Path) -> dict[str, Any]:
    """What the driver finds; it is given what it asks for."""
    chromium = shutil.which("chromium") or ""
    argv = [both.client["web"], both.server["web"], f"http://{both.web}/10", str(pictures)]
    driver = subprocess.Popen(
        ["node", str(DRIVER), str(PLAYWRIGHT), chromium, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdin is not None
    assert driver.stdout is not None
    found: dict[str, Any] = {}
    for line in driver.stdout:
        found = json.loads(line)
        answer: Any = None
        match found.get("request"):
            case "cut":
                relay.cut()
            case "mend":
                relay.mend()
            case "paths":
                answer = listed(both)
            case None:
                break
        driver.stdin.write(json.dumps(answer) + "\n")
        driver.stdin.flush()
    assert driver.wait(PATIENCE_S) == 0, found
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser finds on the pages of both ends during a download."""
    scratch = tmp_path_factory.mktemp("page")
    pictures = Path(os.environ.get("SUMRATE_PICTURES") or scratch)
    pictures.mkdir(parents=True, exist_ok=True)
    relays: list[Relay] = []

    def flags(listen: str) -> list[str]:
        relays.append(Relay("127.0.0.3", listen))
        return [
            *("--path", "wlan0=127.0.0.1", "--path", f"usb0=127.0.0.2@{relays[0].address}"),
            *("--policy", "wlan0=rate=40M", "--policy", "usb0=rate=15M,quota=20G", "--web", "0"),
        ]

    with running(scratch, serve=["--web", "0"], up=flags) as both:
        download = both.fetch(1 << 34)
        try:
            found = driven(both, relays[0], pictures)
        finally:
            download.kill()
            download.wait()
    urls = {
        end: ready["web"].split("/#token=")
        for end, ready in (("client", both.client), ("server", both.server))
    }
    return found | {"urls": urls, "web": both.web}


def test_the_token_is_sent_in_no_address_and_nothing_is_loaded_from_elsewhere(
    page: dict[str, Any],
) -> None:
    (origin, token), (far_origin, far_token) = page["urls"]["client"], page["urls"]["server"]
    assert page["address"] == f"{origin}/", "the token is not left in the address"
    for request in page["requests"]:
        assert token not in request and far_token not in request, "nor sent in one"
        assert request.startswith((origin, far_origin, "data:", f"http://{page['web']}"))
    assert page["complaints_with_token"] == []


def test_one_look_says_how_fast_over_what_and_whether_it_is_well(page: dict[str, Any]) -> None:
    assert "Mbit/s down over wlan0 and usb0" in page["sentence"], page["sentence"]
    assert page["sentence"].endswith("both fine")
    assert page["live"].endswith("both fine"), "it is read out"
    assert "down" in page["rates"] and "up" in page["rates"]
    wlan0, usb0 = page["cards"]
    assert wlan0.startswith("wlan0") and usb0.startswith("usb0")
    for words in (
        "Receiving",
        "Mbit/s",
        "Round trip",
        "Since start",
        "primary",
        "Make backup",
    ):
        assert words in wlan0, wlan0
    assert "This month" in usb0 and "quota 20.0 GB a month" in usb0, usb0
    assert page["kinds"] == ["WiFi", "phone by USB"]
    down, rtt = page["charts"]
    assert down.startswith("Down, Mbit/s: total ") and "wlan0" in down and "usb0" in down
    assert rtt.startswith("Round trip, ms: wlan0 "), rtt


def test_the_keyboard_reaches_every_control_and_changes_a_path(page: dict[str, Any]) -> None:
    of = ("Pause", "Make backup", "Limit", "Quota")
    controls = [f"{control}: {path}" for path in ("wlan0", "usb0") for control in of]
    assert page["order"] == ["Show as a table", *controls, "Internals"]
    assert page["paused"]["usb0"]["why"] == "paused"
    assert page["paused"]["wlan0"]["why"] != "paused"
    assert page["focus_after"] == "Resume: usb0", "the focus stays where it was"
    assert page["backup"]["usb0"]["priority"] == "backup"
    assert page["limited"]["usb0"]["rate_cap_mbps"] == 12.5
    assert "no other path is in use" in page["refusal"]


def test_the_history_is_there_after_a_reload(page: dict[str, Any]) -> None:
    after = page["after_reload"]
    assert after["seconds"] >= 0, "no sample is lost"
    assert "usb0: paused" in after["events"], after["events"]
    assert not after["trouble"]


def test_a_lost_path_is_an_event_and_red(page: dict[str, Any]) -> None:
    lost = page["lost"]
    assert (lost["level"], lost["hero"]) == ("down", "degraded")
    assert "usb0" in lost["sentence"] and "usb0" in lost["live"], "it is read out"
    assert lost["colour"] == "rgb(179, 38, 30)"
    assert "usb0 is lost" in lost["event"] and "ago" in lost["event"]
    assert page["mended"] >= 2, "the chart marks both"


def test_names_and_contrast_are_good_for_everybody(page: dict[str, Any]) -> None:
    assert page["misnamed"] == []
    assert page["contrasts"] == {"light": [], "dark": []}
    assert page["ground"] == "rgb(15, 20, 25)", "it follows the system's dark theme"
    assert page["table"] >= 1, "the chart as a table"
    for words in ("in flight", "interactive", "in-order delay"):
        assert words in page["internals"]


def test_nothing_lies_beside_a_narrow_screen(page: dict[str, Any]) -> None:
    assert (page["width"], page["beside"]) == (400, [])


def test_the_page_of_a_server_shows_its_clients_and_changes_nothing(page: dict[str, Any]) -> None:
    assert page["far_panels"] == ["Up", "Down", "Round trip"], "a download leaves the server"
    assert [card.split("\n")[0] for card in page["far_cards"]] == ["wlan0", "usb0"]
    assert all("Sending" in card for card in page["far_cards"])
    assert page["far_buttons"] == 0


def test_a_strangers_page_sees_nothing_and_changes_nothing(page: dict[str, Any]) -> None:
    assert set(page["strange"]) <= {"refused", "opaque"}, "no answer is readable"
    assert page["after_strange"]["usb0"]["why"] != "paused"
    assert "token" in page["stranger"]
    assert page["stranger_cards"] == 0


def test_pictures_are_taken(page: dict[str, Any]) -> None:
    names = [Path(picture).name for picture in page["pictures"]]
    assert names == ["lost.png", "light.png", "dark.png", "narrow.png"]
