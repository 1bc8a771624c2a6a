"""Hooks of the documentation site (mkdocs.yml).

Reference pages that the navigation names are written from the code here; no such page is committed.
`SUMRATE_REFERENCE` names a folder with `cli.md`, which a Rust program prints (`make docs`).

Pages may link to sources and tests of the repository. On the site each such source is a page, so
every link works without a network. `SUMRATE_RUSTDOC` names the folder that `cargo doc` wrote; it
becomes `rust/` of the site.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import features  # noqa: E402 (mkdocs loads this file without its folder in the path)
import reference  # noqa: E402
import rules  # noqa: E402
from sumrate.lab.experiment.claims_page import filled  # noqa: E402

LINK = re.compile(r"(?<=\]\()(?P<target>\.\./[^)\s#]+)(?:#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".rs": "rust", ".sh": "sh", ".toml": "toml", ".json": "json"}
RUSTDOC = "SUMRATE_RUSTDOC"
RUST_PAGE = "library.md"
RESULTS_PAGE = "results.md"
CLI_FOLDER = "SUMRATE_REFERENCE"
CLI_PAGE = "reference/cli.md"
WITHOUT_CLI = """# Command line: `sumrate`

This site was built without the page of the commands, because that needs Cargo: run `make docs`.
`sumrate COMMAND --help` has the same text.
"""


def source_of(target: str, page: str, docs: Path) -> Path | None:
    """The file of the repository, outside `docs`, that a page's relative link leads to.

    Args:
        target: the link, without what is behind `#`.
        page: the page, relative to `docs`.
        docs: the folder of the pages.

    Returns:
        Relative to the repository; None if the link stays within `docs` or leads nowhere.

    """
    path = (docs / page).parent.joinpath(target).resolve()
    if path.is_relative_to(docs) or not path.is_relative_to(ROOT) or not path.is_file():
        return None
    return path.relative_to(ROOT)


def source_page(source: Path) -> str:
    """Where a source stands on the site."""
    return f"source/{source}.md"


def as_page(source: Path) -> str:
    """A source as Markdown; it is not searched."""
    text = (ROOT / source).read_text(encoding="utf-8").rstrip("\n")
    fence = "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))
    language = LANGUAGES.get(source.suffix, "text")
    head = "---\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n"
    return f'{head}# {source}\n\n{fence}{{.{language} linenums="1"}}\n{text}\n{fence}\n'


def cli_page(_root: Path) -> str:
    """Commands of `sumrate`, as a Rust program printed them."""
    folder = os.environ.get(CLI_FOLDER)
    return (Path(folder) / "cli.md").read_text(encoding="utf-8") if folder else WITHOUT_CLI


def features_page(root: Path) -> str:
    """The table of features."""
    return features.page(features.load(root), root)


def rules_page(root: Path) -> str:
    """Rules with their files and tests."""
    return rules.page(rules.load(root))


GENERATED: dict[str, Callable[[Path], str]] = {
    **{f"reference/{name}": page for name, page in reference.PAGES.items()},
    CLI_PAGE: cli_page,
    "features.md": features_page,
    "reference/rules.md": rules_page,
}
"""Pages that are written when the site is built."""


def named(entries: object) -> set[str]:
    """Pages that a navigation names."""
    if isinstance(entries, str):
        return {entries}
    inner = entries.values() if isinstance(entries, dict) else entries
    return set().union(*map(named, inner)) if isinstance(inner, Iterable) else set()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and a page for every source that a page links to."""
    docs = Path(config.docs_dir).resolve()
    for uri in sorted(named(config.nav) & GENERATED.keys()):
        files.append(File.generated(config, uri, content=GENERATED[uri](ROOT)))
    sources = set()
    for file in files.documentation_pages():
        for link in LINK.finditer(file.content_string):
            sources.add(source_of(link["target"], file.src_uri, docs))
    for source in sorted(source for source in sources if source):
        files.append(File.generated(config, source_page(source), content=as_page(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to sources lead to their pages; to what `cargo doc` wrote where it is there."""
    docs = Path(config.docs_dir).resolve()
    uri = page.file.src_uri

    def here(link: re.Match[str]) -> str:
        source = source_of(link["target"], uri, docs)
        if source is None or files.get_file_from_path(source_page(source)) is None:
            return link[0]
        return os.path.relpath(source_page(source), Path(uri).parent)

    found = LINK.sub(here, filled(markdown) if uri == RESULTS_PAGE else markdown)
    if uri == RUST_PAGE and os.environ.get(RUSTDOC):
        found += '\n<a class="md-button" href="../rust/fbdt/index.html">Open the Rust API</a>\n'
    return found


def on_post_build(config: MkDocsConfig) -> None:
    """Takes what `cargo doc` wrote into the site."""
    if folder := os.environ.get(RUSTDOC):
        shutil.copytree(folder, Path(config.site_dir) / "rust", dirs_exist_ok=True)
