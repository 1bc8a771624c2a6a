"""Pages in a real browser: load event, first and largest contentful paint, cold and warm."""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from sumrate.lab.process import ProcessFailedError
from sumrate.lab.scene import Scene
from sumrate.qoe.browser_process import Browser, Loaded
from sumrate.qoe.certificates import Authority, authority
from sumrate.qoe.nginx import VirtualHost
from sumrate.qoe.page_files import name, write
from sumrate.qoe.settings import HttpVersion, PagesSetting
from sumrate.qoe.sites import Item, Page, page
from sumrate.qoe.values import Renew, Value, nothing

PROGRAMS = ("nginx", "openssl", "mount")
HTTP_PORTS: dict[HttpVersion, int] = {"http/1.1": 8443, "h2": 8444}
LABELS: dict[HttpVersion, str] = {"http/1.1": "h1", "h2": "h2"}
PORTS = tuple(HTTP_PORTS.values())
LOCATIONS = (
    "add_header Timing-Allow-Origin *; location = /favicon.ico { return 204; } "
    'location ~ /kept/ { add_header Cache-Control "max-age=86400"; '
    "add_header Timing-Allow-Origin *; } "
    "location ~ /fresh/ { add_header Cache-Control no-store; add_header Timing-Allow-Origin *; }"
)


def host(page_name: str, origin: int) -> str:
    """Name of one of a page's origins."""
    return f"o{origin}.{page_name}.test"


def url(page_name: str, item: Item, version: HttpVersion) -> str:
    """Address of an object."""
    place = f"{LABELS[version]}/{page_name}/{name(item)}"
    return f"https://{host(page_name, item.origin)}:{HTTP_PORTS[version]}/{place}"


def hosts(setting: PagesSetting) -> list[str]:
    """Names of all origins of all pages."""
    pages = [page(site, setting.seed) for site in setting.sites]
    return [host(found.name, origin) for found in pages for origin in range(found.origins)]


def content(setting: PagesSetting, folder: Path) -> tuple[Path, Authority]:
    """All pages for every HTTP version, and certificates of their origins; made once."""
    made = folder / "made"
    if not made.exists():
        for version in setting.versions:
            for site in setting.sites:
                found = page(site, setting.seed)
                write(
                    found,
                    folder / LABELS[version],
                    lambda item, site=site, version=version: url(site, item, version),  # type: ignore[misc]
                    setting.seed,
                )
    keys = authority(folder / "keys", hosts(setting))
    made.touch()
    return folder, keys


def servers(setting: PagesSetting, keys: Authority) -> list[VirtualHost]:
    """One virtual host for each origin and HTTP version."""
    return [
        VirtualHost(
            HTTP_PORTS[version],
            origin,
            keys.chain(origin),
            keys.server_key,
            http2=version == "h2",
            locations=LOCATIONS,
        )
        for version in setting.versions
        for origin in hosts(setting)
    ]


def run(
    built: Scene, browser: Browser, setting: PagesSetting, renew: Renew = nothing
) -> Iterator[Value]:
    """Loads every page with every HTTP version, cold and then warm, with a pause before each.

    Yields `onload_PAGE_VERSION_STATE_ms`, `fcp_...` and `lcp_...`.

    Raises:
        ProcessFailedError: a page did not load, or not as it was made.

    """
    del built
    number = 0
    for version in setting.versions:
        for site in setting.sites:
            found = page(site, setting.seed)
            for state in ("cold", "warm"):
                renew(number)
                number += 1
                if state == "cold":
                    # Before the pause: the ends of old connections keep radios awake.
                    browser.begin_afresh()
                time.sleep(setting.pause_s)
                address = url(site, found.items[0], version)
                loaded = browser.load(
                    address,
                    objects=len(found.items),
                    timeout_s=setting.timeout_s,
                )
                check(found, version, state, loaded)
                label = f"{site}_{LABELS[version]}_{state}_ms"
                if state == "cold":
                    yield Value(f"objects_{site}", len(set(loaded.names)), "objects")
                    yield Value(f"bytes_{site}", loaded.body_bytes, "B")
                    # All of these came, and their sum is what came (`check`).
                    sizes = [item.bytes for item in found.items]
                    yield Value(f"object_mean_{site}", fmean(sizes), "B")
                    yield Value(f"object_deviation_{site}", stdev(sizes), "B")
                yield Value(f"onload_{label}", loaded.onload_ms, "ms")
                if loaded.fcp_ms is not None:
                    yield Value(f"fcp_{label}", loaded.fcp_ms, "ms")
                if loaded.lcp_ms is not None:
                    yield Value(f"lcp_{label}", loaded.lcp_ms, "ms")


def check(found: Page, version: HttpVersion, state: str, loaded: Loaded) -> None:
    """Refuses a load that was not of the whole page, by this HTTP version, cold or warm.

    Raises:
        ProcessFailedError: it was something else; the message says what.

    """
    where = f"{found.name}, {version}, {state}"
    expected = {url(found.name, item, version) for item in found.items}
    if missing := expected - set(loaded.names):
        raise ProcessFailedError(f"{where}: {len(missing)} objects missing, such as {min(missing)}")
    if further := set(loaded.names) - expected:
        raise ProcessFailedError(f"{where}: {min(further)} is not of this page")
    if loaded.protocols != (version,):
        raise ProcessFailedError(f"{where}: came by {', '.join(loaded.protocols)}")
    anew = sum(item.bytes for item in found.items if not item.cached)
    if loaded.body_bytes != found.bytes:
        raise ProcessFailedError(f"{where}: {loaded.body_bytes} of {found.bytes} bytes")
    if state == "cold" and loaded.bytes < found.bytes:
        raise ProcessFailedError(f"{where}: {loaded.bytes} bytes came, cold, of {found.bytes}")
    if state == "warm" and not 0 < loaded.bytes <= anew + 2000 * len(found.items):
        raise ProcessFailedError(f"{where}: {loaded.bytes} bytes although {anew} are not cached")
