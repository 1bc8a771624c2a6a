"""Documents that are written from templates beside this file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader


def rendered(template: str, macro: str, *values: object, **filters: Callable[..., Any]) -> str:
    """What a macro of a template writes; of blank lines in a row one stays."""
    place = FileSystemLoader(Path(__file__).parent)
    page = Environment(loader=place, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 (Markdown)
    page.filters |= filters
    made = getattr(page.get_template(template).module, macro)(*values)
    return re.sub(r"\n{3,}", "\n\n", str(made)).strip() + "\n"
