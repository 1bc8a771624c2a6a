"""The files of a page: real HTML, style sheets, scripts and images of exactly the wanted sizes."""

import random
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from sumrate.qoe.sites import SUFFIX, Item, Page

Address = Callable[[Item], str]
"""The URL of an object."""

HERO = (640, 360)
"""Width and height of the page's largest picture in sight, in pixels."""
SMALL = (48, 48)
WORDS = (
    "The quick measurement of a page begins when its address is known and ends when nothing is "
    "missing. "
)


class TooSmallError(ValueError):
    """An object has no room for what it must hold; the message says which."""


def name(item: Item) -> str:
    """Its file, in a folder that says whether it may be cached."""
    return f"{'kept' if item.cached else 'fresh'}/{item.number}.{SUFFIX[item.kind]}"


def write(page: Page, folder: Path, address: Address, seed: int) -> None:
    """Writes all objects below `folder`/NAME-OF-PAGE.

    Raises:
        TooSmallError: an object cannot hold its references.

    """
    below: dict[int, list[Item]] = defaultdict(list)
    for item in page.items[1:]:
        below[item.parent].append(item)
    for item in page.items:
        path = folder / page.name / name(item)
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = random.Random(f"{page.name} {item.number} {seed}")
        text = _content(page, item, below[item.number], address, noise)
        if len(text) != item.bytes:
            raise TooSmallError(
                f"object {item.number} of {page.name} has {item.bytes} bytes, needs {len(text)}"
            )
        path.write_bytes(text)


def hero(page: Page) -> Item:
    """The page's largest picture in sight."""
    return next(item for item in page.items if item.kind == "image")


def _content(
    page: Page, item: Item, below: Sequence[Item], address: Address, noise: random.Random
) -> bytes:
    if item.kind == "image":
        return _image(item.bytes, HERO if item is hero(page) else SMALL, noise)
    if item.kind == "document":
        inner = _document(page, below, address)
        rest = item.bytes - len(inner.encode()) - len(CLOSING)
        return (inner + _text(rest) + CLOSING).encode()
    inner = _style(below, address) if item.kind == "style" else _script(below, address)
    rest = item.bytes - len(inner.encode()) - len("/**/\n")
    return (inner + f"/*{_text(rest)}*/\n").encode()


CLOSING = "--></body></html>\n"
"""Behind the comment that fills the document up: what is seen is one line and the pictures."""


def _document(page: Page, below: Sequence[Item], address: Address) -> str:
    first = hero(page)
    head = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{page.name}</title>'
    ]
    head += [f'<link rel="stylesheet" href="{address(i)}">' for i in below if i.kind == "style"]
    head += [f'<script defer src="{address(i)}"></script>' for i in below if i.kind == "script"]
    body = [f"</head><body><h1>{page.name}</h1>"]
    body.append(f'<img src="{address(first)}" width="{HERO[0]}" height="{HERO[1]}" alt="">')
    body += [f"<i class=b{i.number}></i>" for i in page.items if _in_style(page, i)]
    body += [
        f'<img src="{address(i)}" width="48" height="48" alt="">'
        for i in below
        if i.kind == "image" and i is not first
    ]
    return "\n".join([*head, *body, f"<p>{WORDS}</p><!--"])


def _in_style(page: Page, item: Item) -> bool:
    return item.kind == "image" and page.items[item.parent].kind == "style"


def _style(below: Sequence[Item], address: Address) -> str:
    rules = [
        f".b{i.number}{{display:inline-block;width:48px;height:48px;"
        f'background-image:url("{address(i)}")}}\n'
        for i in below
    ]
    return "body{font:16px sans-serif}\n" + "".join(rules)


def _script(below: Sequence[Item], address: Address) -> str:
    urls = ",".join(f'"{address(i)}"' for i in below)
    return f"for(const u of [{urls}]){{const i=new Image(48,48);i.src=u;document.body.append(i)}}\n"


def _text(length: int) -> str:
    return (WORDS * (max(0, length) // len(WORDS) + 1))[: max(0, length)]


def _image(size: int, pixels: tuple[int, int], noise: random.Random) -> bytes:
    """A PNG of one colour, filled up with bytes behind its end, which decoders do not read."""
    width, height = pixels
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    row = b"\0" + bytes((width + 7) // 8)
    image = (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(row * height, 9))
        + _chunk(b"IEND", b"")
    )
    return image + noise.randbytes(size - len(image)) if size > len(image) else image


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
