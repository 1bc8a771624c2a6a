"""Hooks of the documentation site (mkdocs.yml).

The pages are the same files that are read in the repository, where they link to sources and tests
too. On the site each such source is a page of its own, so that every link works without a network.
`SUMRATE_RUSTDOC` names the folder that `cargo doc` wrote; it becomes `rust/` of the site.
"""

import os
import re
import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(?P<target>\.\./[^)\s#]+)(?:#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".rs": "rust", ".sh": "sh", ".toml": "toml", ".json": "json"}
RUSTDOC = "SUMRATE_RUSTDOC"
RUST_PAGE = "reference/rust.md"


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


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for every source that a page links to."""
    docs = Path(config.docs_dir).resolve()
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

    found = LINK.sub(here, markdown)
    if uri == RUST_PAGE and os.environ.get(RUSTDOC):
        found += '\n<a class="md-button" href="../rust/fbdt/index.html">Open the Rust API</a>\n'
    return found


def on_post_build(config: MkDocsConfig) -> None:
    """Takes what `cargo doc` wrote into the site."""
    if folder := os.environ.get(RUSTDOC):
        shutil.copytree(folder, Path(config.site_dir) / "rust", dirs_exist_ok=True)
