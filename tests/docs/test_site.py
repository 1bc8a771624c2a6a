"""The site has no broken link, loads nothing from elsewhere, and is searched from the disk."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import site_hooks

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Elements that make a browser load something, and the attribute that says what."""
NOT_LOADED = {"canonical", "next", "prev"}
"""What a `link` may be without anything being loaded."""


class Loads(HTMLParser):
    """Addresses that a page has a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADED.get(tag, ""))
        if address and values.get("rel") not in NOT_LOADED:
            self.addresses.append(address)


def foreign(text: str) -> list[str]:
    """What a page or a style sheet loads from elsewhere."""
    page = Loads()
    page.feed(text)
    styles = re.findall(r"@import\s+[\"']([^\"']+)|url\(\s*[\"']?([^\"')]+)", text)
    addresses = [*page.addresses, *(a or b for a, b in styles)]
    return [a for a in addresses if re.match(r"(https?:)?//", a)]


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds the site of a repository as `make docs` does, without the Rust API.

    Not with --quiet: what is not said is not counted as a warning, and --strict then lets it pass.
    """
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(repository, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(repository: Path, site: Path) -> None:
    pages = {p.relative_to(repository / "docs") for p in (repository / "docs").rglob("*.md")}
    pages |= {Path(uri) for uri in site_hooks.GENERATED}
    assert len(pages) > 20
    built = {p.relative_to(site).with_suffix(".md") for p in site.rglob("*.html")}
    as_index = {p.with_name("README.md") for p in built if p.name == "index.md"}
    assert not pages - built - as_index


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 25
    found = {f.name: foreign(f.read_text(encoding="utf-8")) for f in files}
    assert not {name: addresses for name, addresses in found.items() if addresses}


@pytest.mark.parametrize(
    "planted",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        "@font-face { src: url(https://fonts.example/a.woff2) }",
    ],
)
def test_what_is_loaded_from_elsewhere_is_seen(planted: str) -> None:
    assert foreign(planted)
    assert not foreign('<a href="https://example.org/">a link is not loaded</a>')


def test_make_docs_is_as_strict(repository: Path) -> None:
    lines = (repository / "Makefile").read_text(encoding="utf-8").splitlines()
    (command,) = [line for line in lines if "mkdocs build" in line]
    assert "--strict" in command
    assert "quiet" not in command


@pytest.mark.parametrize(
    ("planted", "says"),
    [
        ("[the other](other.md)", ""),
        ("[nothing](missing.md)", "missing.md"),
        ("[no such part](other.md#parts)", "#parts"),
        ("[no such source](../crates/none.rs)", "none.rs"),
    ],
)
def test_a_broken_link_fails_the_build(
    repository: Path, tmp_path: Path, planted: str, says: str
) -> None:
    text = (repository / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(text.partition("\nnav:")[0])
    (tmp_path / "tools").mkdir()
    for tool in (repository / "tools").glob("*.py"):
        shutil.copy(tool, tmp_path / "tools")
    shutil.copytree(repository / "docs/assets", tmp_path / "docs/assets")
    (tmp_path / "docs/index.md").write_text(f"# A page\n\n{planted}\n")
    (tmp_path / "docs/other.md").write_text("# Another\n")
    done = build(tmp_path, tmp_path / "site")
    assert (done.returncode != 0) == bool(says), done.stderr
    assert says in done.stderr


def browsed(address: str, profile: Path) -> str:
    """The document as a real browser has it when its scripts have run for eight seconds.

    The seconds are the browser's own: it does not wait where nothing happens.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions"),
            *("--disable-background-networking", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={profile}", "--virtual-time-budget=8000", "--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_search_works_from_the_disk(site: Path, tmp_path: Path) -> None:
    found = re.compile(r'class="md-search-result__link"[^>]*href="([^"]*)"|href="([^"#?]*)[^"]*" '
                       r'class="md-search-result__link"')  # fmt: skip
    dom = browsed(f"{site.as_uri()}/index.html?q=redial", tmp_path / "profile")
    pages = {(a or b).rpartition("/")[2] for a, b in found.findall(dom)}
    assert "sender.html" in pages
    nothing = browsed(f"{site.as_uri()}/index.html?q=xyzzyplugh", tmp_path / "profile")
    assert not found.search(nothing)
