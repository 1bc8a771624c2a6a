"""Generated pages against the thesis's table 4.1, and what their files refer to."""

import re
import statistics
from pathlib import Path

import pytest

from sumrate.qoe.page_files import name, write
from sumrate.qoe.sites import TABLE, Item, page, sizes

PUBLISHED = {
    "msn": (33, 5.8e6, 179e3, 389e3),
    "cnn": (277, 21e6, 75e3, 231e3),
    "amazon": (325, 8.9e6, 27e3, 121e3),
    "facebook": (162, 20e6, 122e3, 249e3),
}
"""Objects, bytes of all, mean, standard deviation: table 4.1."""


@pytest.mark.parametrize("site", PUBLISHED)
def test_sizes_have_the_published_count_total_mean_and_deviation(site: str) -> None:
    count, total, mean, deviation = PUBLISHED[site]
    found = sizes(TABLE[site])
    assert len(found) == count
    assert sum(found) == pytest.approx(total, rel=0.02)
    assert statistics.fmean(found) == pytest.approx(mean, rel=1e-4)
    assert statistics.stdev(found) == pytest.approx(deviation, rel=2e-3)
    assert found == sorted(found)
    assert statistics.median(found) < mean / 2, "sizes are heavy-tailed"


@pytest.mark.parametrize("site", PUBLISHED)
def test_a_page_has_those_objects_whatever_the_seed(site: str) -> None:
    first, again, other = page(site, 1), page(site, 1), page(site, 2)
    assert first == again
    assert first != other
    for found in (first, other):
        assert sorted(item.bytes for item in found.items) == sizes(TABLE[site])
        assert found.items[0].kind == "document"
        assert [item.kind for item in found.items].count("document") == 1
        assert {item.origin for item in found.items} == set(range(found.origins))
        assert all(item.parent != item.number for item in found.items[1:])
        assert {found.items[item.parent].kind for item in found.items} <= {
            "document",
            "script",
            "style",
        }
        assert 0.5 < statistics.fmean(item.cached for item in found.items) < 0.85


@pytest.mark.parametrize("site", PUBLISHED)
def test_files_are_as_large_as_wanted_and_refer_to_every_object_once(
    site: str, tmp_path: Path
) -> None:
    made = page(site, 1)

    def address(item: Item) -> str:
        return f"https://o{item.origin}.{site}.test:8444/h2/{site}/{name(item)}"

    write(made, tmp_path, address, seed=1)
    seen: list[str] = []
    for item in made.items:
        content = (tmp_path / site / name(item)).read_bytes()
        assert len(content) == item.bytes
        if item.kind == "image":
            assert content.startswith(b"\x89PNG\r\n\x1a\n")
        else:
            seen += re.findall(r"https://[^\"]+", content.decode("ascii"))
    assert sorted(seen) == sorted(address(item) for item in made.items[1:])


def test_an_unknown_page_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="msn, cnn, amazon, facebook"):
        page("bing", 1)
