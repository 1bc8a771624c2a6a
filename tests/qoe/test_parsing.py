"""What curl, the browser's driver and the typing program say, and what is refused of it."""

import json
import os
import socket
from pathlib import Path

import pytest

from sumrate.lab.process import ProcessFailedError
from sumrate.qoe import browser_process, curl
from sumrate.qoe.browser_process import Loaded
from sumrate.qoe.carriage import Carriage
from sumrate.qoe.keystrokes import LEAST_S, MOST_S, NoEchoError, pauses, until
from sumrate.qoe.nginx import VirtualHost, configuration
from sumrate.qoe.pages import check, url
from sumrate.qoe.sites import page

SAID = {
    "http_code": 200,
    "size_download": 100_000,
    "time_total": 0.0123,
    "time_starttransfer": 0.0045,
    "num_connects": 1,
}


def said(**changed: object) -> str:
    return json.dumps({**SAID, **changed})


def test_a_download_is_timed_by_curl() -> None:
    assert curl.parse(said(), 100_000) == (0.0123, 0.0045)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (said(http_code=404), "status 404"),
        (said(size_download=99_999), "99999 of 100000 bytes"),
        ("", "no timing"),
        ("{}", "no timing"),
        ("[]", "no timing"),
        (said(time_total=None), "no timing"),
    ],
)
def test_what_is_not_the_whole_file_is_refused(answer: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        curl.parse(answer, 100_000)


def test_several_downloads_add_up() -> None:
    lines = [said(num_connects=1), said(num_connects=0, time_total=0.02)]
    seconds, connections = curl.parse_many("\n".join(lines) + "\n", [100_000] * 2)
    assert seconds == pytest.approx(0.0323)
    assert connections == 1
    with pytest.raises(ValueError, match="1 of 2 files"):
        curl.parse_many(lines[0], [100_000] * 2)


def test_curl_goes_where_the_carriage_leads() -> None:
    plain = curl.command("http://h/f", Carriage("h"))
    assert plain[0] == "curl"
    assert "--proxy" not in plain
    proxied = curl.command("http://h/f", Carriage("h", socks=("127.0.0.1", 1080)))
    assert "socks5h://127.0.0.1:1080" in proxied
    wrapped = curl.command("http://h/f", Carriage("h", prefix=("mptcpize", "run")))
    assert wrapped[:3] == ["mptcpize", "run", "curl"]


WHOLE = page("msn", 1).bytes
NAMES = tuple(url("msn", item, "h2") for item in page("msn", 1).items)
LOADED = {
    "onload_ms": 812.5,
    "fcp_ms": 120.0,
    "lcp_ms": None,
    "names": ["https://a.test/"],
    "failed": [],
    "bytes": 6_000_000,
    "body_bytes": 5_907_000,
    "protocols": ["h2"],
}


def test_a_load_is_what_the_browser_says() -> None:
    found = browser_process.parse(json.dumps(LOADED))
    assert found == Loaded(812.5, 120.0, None, ("https://a.test/",), 6_000_000, WHOLE, ("h2",))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": "net::ERR_TIMED_OUT"}, "ERR_TIMED_OUT"),
        ({**LOADED, "failed": ["https://a.test/x"]}, "failed: https://a.test/x"),
        ({"onload_ms": 3.0}, "no answer"),
        (None, "no answer"),
    ],
)
def test_a_page_that_did_not_load_is_refused(answer: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        browser_process.parse(json.dumps(answer))


@pytest.mark.parametrize(
    ("state", "loaded", "why"),
    [
        (
            "cold",
            Loaded(1.0, None, None, NAMES[1:], 6_000_000, WHOLE, ("h2",)),
            "1 objects missing, such as",
        ),
        (
            "cold",
            Loaded(1.0, None, None, (*NAMES, "https://b.test/"), 6_000_000, WHOLE, ("h2",)),
            "b.test",
        ),
        (
            "cold",
            Loaded(1.0, None, None, NAMES, 6_000_000, WHOLE, ("http/1.1",)),
            "came by http/1.1",
        ),
        (
            "cold",
            Loaded(1.0, None, None, NAMES, 6_000_000, WHOLE, ("h2", "http/1.1")),
            "came by h2, http",
        ),
        ("cold", Loaded(1.0, None, None, NAMES, 5_000_000, WHOLE, ("h2",)), "5000000 bytes came"),
        ("cold", Loaded(1.0, None, None, NAMES, 6_000_000, WHOLE - 1, ("h2",)), "5906999 of"),
        ("warm", Loaded(1.0, None, None, NAMES, 6_000_000, WHOLE, ("h2",)), "are not cached"),
        ("warm", Loaded(1.0, None, None, NAMES, 0, WHOLE, ("h2",)), "are not cached"),
    ],
)
def test_a_load_of_something_else_does_not_count(state: str, loaded: Loaded, why: str) -> None:
    with pytest.raises(ProcessFailedError, match=why):
        check(page("msn", 1), "h2", state, loaded)


def test_whole_loads_count() -> None:
    check(page("msn", 1), "h2", "cold", Loaded(1.0, None, None, NAMES, 6_000_000, WHOLE, ("h2",)))
    check(page("msn", 1), "h2", "warm", Loaded(1.0, None, None, NAMES, 30_000, WHOLE, ("h2",)))


def test_the_browser_gets_proxy_or_none_and_a_wrapper_only_where_one_is_needed(
    tmp_path: Path,
) -> None:
    wrapper = tmp_path / "browser.sh"
    proxied = browser_process.settings(
        "/usr/bin/chromium", Carriage("h", socks=("127.0.0.1", 1080)), "HASH", wrapper
    )
    assert proxied["proxy"] == "socks5://127.0.0.1:1080"
    assert not wrapper.exists()
    wrapped = browser_process.settings(
        "/usr/bin/chromium", Carriage("h", prefix=("mptcpize", "run")), "HASH", wrapper
    )
    assert "--no-proxy-server" in wrapped["arguments"]
    assert wrapped["executable"] == str(wrapper)
    assert wrapper.read_text().endswith('exec mptcpize run /usr/bin/chromium "$@"\n')
    assert os.access(wrapper, os.X_OK)


def test_a_driver_that_does_not_listen_yet_is_waited_for(tmp_path: Path) -> None:
    """Its socket is in the folder a moment before: once a run failed by that."""
    path = tmp_path / "browser.sock"
    with socket.socket(socket.AF_UNIX) as near, socket.socket(socket.AF_UNIX) as driver:
        assert not browser_process.connected(near, path)
        driver.bind(str(path))
        assert not browser_process.connected(near, path)
        driver.listen()
        assert browser_process.connected(near, path)


def test_nginx_is_told_of_every_host_and_of_no_user() -> None:
    hosts = [VirtualHost(8080), VirtualHost(8444, "a.test", Path("c"), Path("k"), http2=True)]
    text = configuration(Path("/root-folder"), Path("/run-folder"), hosts)
    assert "listen 0.0.0.0:8080;" in text
    assert "listen 0.0.0.0:8444 ssl http2;" in text
    assert "\nuser" not in text
    assert text.count("{") == text.count("}")


def test_pauses_between_keys_are_those_of_a_person_and_the_same_for_a_seed() -> None:
    found = list(pauses(500, 1))
    assert found == list(pauses(500, 1))
    assert found != list(pauses(500, 2))
    assert all(LEAST_S <= pause <= MOST_S for pause in found)
    assert 0.17 < sorted(found)[250] < 0.23


def test_a_terminal_that_ends_is_no_echo() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"bye")
    os.close(theirs)
    with pytest.raises(NoEchoError, match="bye"):
        until(ours, b"ready")
    os.close(ours)
