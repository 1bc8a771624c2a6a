"""Results follow their schemas, and reports say what the results say."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sumrate.lab.demo.command import status
from sumrate.lab.lateness import why_late
from sumrate.report.demo_page import demo_page
from sumrate.report.demo_words import summary
from tests.samples import demo_result

SCHEMAS = Path("python/sumrate/lab/schemas")


def validate(repository: Path, name: str, document: dict[str, Any]) -> None:
    schema = json.loads((repository / SCHEMAS / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)


def test_sample_results_follow_the_schemas(repository: Path) -> None:
    validate(repository, "lab-demo.v1.json", demo_result())


def test_schema_refuses_a_scheme_without_checksum(repository: Path) -> None:
    broken = demo_result()
    del broken["schemes"]["wifi"]["sha256_ok"]
    with pytest.raises(jsonschema.ValidationError):
        validate(repository, "lab-demo.v1.json", broken)


def test_pages_refer_to_nothing_outside_and_escape_text() -> None:
    page = demo_page(demo_result())
    assert "<script" not in page
    assert "<link" not in page
    assert "src=" not in page
    assert "b=&lt;2&gt;" in page


def test_missing_and_failed_schemes_are_shown() -> None:
    result = demo_result()
    result["schemes"]["mptcp"] = {"missing": "this kernel has no MPTCP"}
    result["schemes"]["wigig"] = {"error": "curl ended with 56"}
    result["sum_ratio"] = result["sum_ratio_without_margin"] = None
    for words in (demo_page(result), summary(result)):
        assert "not available: this kernel has no MPTCP" in words
        assert "failed: curl ended with 56" in words
    assert 'data-scheme="mptcp"' not in demo_page(result)
    assert status(result, strict=False) == 1


def test_a_disturbed_run_is_approximate_and_a_result() -> None:
    result = demo_result()
    reason = why_late({"lateness_since_reset": {"worst_ms": 31.0, "late_over_2ms": 1, "events": 9}})
    result["schemes"]["mptcp"] |= {"void": True, "void_reason": reason}
    result |= {"approximate": True, "busy": [{"name": "rustc", "cores": 0.9}]}
    page, text = demo_page(result), summary(result)
    for words in (page, text):
        assert "Approximate: this machine was busy (rustc used 0.9 of 2 cores)." in words
        assert "Kernel MPTCP: the emulator sent a packet 31 ms late" in words
        assert "carried about 98.0 % of the sum of both links" in words
        assert "void" not in words.lower().replace("class='void'", "").replace(
            ".void ", ""
        ).replace("avoid", "")
    assert (status(result, strict=False), status(result, strict=True)) == (0, 4)
    result["schemes"]["wifi"]["sha256_ok"] = False
    assert (status(result, strict=False), status(result, strict=True)) == (1, 1)
    assert "DAMAGED" in summary(result)


def test_an_undisturbed_run_says_what_was_seen() -> None:
    result = demo_result()
    sentence = (
        "Sumrate carried 98.0 % of the sum of both links, and stood still for 10 ms while WiGig "
        "was blocked; WiFi alone needed 8 s for the file instead of 8 s."
    )
    for words in (demo_page(result), summary(result)):
        assert sentence in words
        assert "Approximate" not in words
    assert (status(result, strict=False), status(result, strict=True)) == (0, 0)


def dump_dom(page: Path, profile: Path) -> str:
    """The document as a real browser has built it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions"),
            *("--disable-background-networking", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={profile}", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_demo_page_opens_in_a_real_browser(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(demo_page(demo_result()), encoding="utf-8")
    dom = dump_dom(page, tmp_path / "profile")
    for scheme in ("wifi", "wigig", "mptcp", "sumrate"):
        assert dom.count(f'data-scheme="{scheme}"') == 2  # in the wide picture and the narrow one
