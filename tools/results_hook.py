"""A hook of the documentation site: tables of claims and commits in docs/results.md."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from sumrate.lab.experiment.claims_page import filled

RESULTS = "results.md"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page of results with its tables, made from results/*.parquet."""
    del config, files
    return filled(markdown) if page.file.src_uri == RESULTS else markdown
