"""Results follow their schemas, and reports say what the results say."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sumrate.lab.demo import status, summary
from sumrate.lab.lateness import why_late
from sumrate.report.demo_page import demo_page
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
    page = demo_page(result)
    assert "not available: this kernel has no MPTCP" in page
    assert "failed: curl ended with 56" in page
    assert 'id="plot-mptcp"' not in page


def test_void_runs_are_shown() -> None:
    result = demo_result()
    reason = why_late({"lateness_since_reset": {"worst_ms": 31.0, "late_over_2ms": 1, "events": 9}})
    result["schemes"]["mptcp"] |= {"void": True, "void_reason": reason}
    assert "Void: Kernel MPTCP: the emulator sent a packet 31 ms late" in demo_page(result)
    assert "VOID: Kernel MPTCP: the emulator sent a packet 31 ms late" in summary(result)
    assert "VOID" not in summary(demo_result())
    assert (status(result), status(demo_result())) == (4, 0)
    result["schemes"]["wifi"]["error"] = "curl ended with 56"
    assert status(result) == 1
    assert "Void:" not in demo_page(demo_result())


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
        assert f'id="plot-{scheme}"' in dom
        assert dom.count(f'data-scheme="{scheme}"') == 2  # in the common plot and in its own
