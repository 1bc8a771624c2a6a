"""The status page in a real Chromium: live charts, keyboard, phone; no stranger sees it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.watch.running import PATIENCE_S, needs_sumrate, running

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
    pytest.mark.skipif(not PLAYWRIGHT.exists(), reason="playwright-core is not installed (npm)"),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]


def test_the_page_shows_what_happens_and_only_to_its_owner(tmp_path: Path) -> None:
    pictures = Path(os.environ.get("SUMRATE_PICTURES") or tmp_path)
    long = "lte-of-the-neighbour"
    paths = [
        *("--path", "wifi=127.0.0.1", "--path", f"{long}=127.0.0.2"),
        *("--policy", "wifi=rate=40M", "--policy", f"{long}=rate=15M,metered"),
    ]
    with running(tmp_path, serve=["--web", "0"], up=[*paths, "--web", "0"]) as both:
        url, far = both.client["web"], both.server["web"]
        download = both.fetch(1 << 34)
        try:
            driven = subprocess.run(
                [
                    *("node", str(DRIVER), str(PLAYWRIGHT), shutil.which("chromium") or ""),
                    *(url, far, str(pictures)),
                ],
                capture_output=True,
                text=True,
                timeout=3 * PATIENCE_S,
                check=False,
            )
        finally:
            download.kill()
            download.wait()
    assert driven.returncode == 0, driven.stderr
    found = json.loads(driven.stdout)
    origin, token = url.split("/#token=")
    far_origin, far_token = far.split("/#token=")
    assert found["address"] == f"{origin}/", "the token is not left in the address"
    for request in found["requests"]:
        assert token not in request and far_token not in request, "nor sent in one"
        assert request.startswith((origin, far_origin, "data:"))
    assert found["complaints_with_token"] == []
    assert [name.replace("\n", "") for name in found["paths"]] == ["Awifi", f"B{long}"]
    wifi, lte = found["now"]
    assert "; at most 40 Mbit/s each way" in wifi and "metered" not in wifi
    assert "; at most 15 Mbit/s each way; metered" in lte
    assert "Mbit/s now" in found["words"]
    assert "ms now" in found["rtt_words"], "the keyboard reaches the choice"
    assert not found["trouble_after_reload"]
    assert len(found["streams"]) == 1, found["streams"]
    assert (found["first"], found["far_first"]) == ("received", "sent"), "a download, at both ends"
    assert [phone["inner"] for phone in found["phones"]] == [360, 390]
    for phone in found["phones"]:
        assert phone["page"] <= phone["inner"], phone
        assert phone["beside"] == [], "nothing has to be pushed aside to be read"
        assert phone["broken"] == [], "a name and its value are in one line"
        assert phone["labels"] == [
            *("health", "priority", "out", "in", "link out", "link in", "RTT", "commit", "now"),
        ], "each value has its name"
        assert phone["cells"] == 10, "it is a table to those who do not see it"
    assert found["wide_labels"] == [], "there the columns have heads"
    assert "token" in found["stranger"]
    assert found["stranger_paths"] == 0
    assert len(found["pictures"]) == 3
