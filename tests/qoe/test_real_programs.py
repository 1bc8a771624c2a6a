"""Real servers and unmodified programs over real links: through Sumrate and kernel MPTCP."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from sumrate.lab.endpoints import KernelMptcp, Scheme, Sumrate, Unavailable
from sumrate.lab.experiment.workloads import needed, quiet_settings
from sumrate.lab.links import Impairment, Link, Sleep
from sumrate.lab.programs import MissingProgramError
from sumrate.lab.scene import Scene, scene
from sumrate.qoe import browser_process, daily, files, pages
from sumrate.qoe.carriage import Carriage, carried
from sumrate.qoe.names import resolved
from sumrate.qoe.nginx import nginx
from sumrate.qoe.settings import DailySetting, FileSize, FilesSetting, PagesSetting
from sumrate.qoe.ssh import sshd
from sumrate.qoe.values import Value
from tests.system.scenario import isolated, needs_emulator, needs_sumrate

pytestmark = [pytest.mark.system, needs_emulator, needs_sumrate]

RATE = Impairment(rate_mbps=100.0, delay_ms=1.0)
LINKS = (
    Link("wifi", 1, down=RATE, up=RATE, sleep=Sleep(200.0, 10.0)),
    Link("wigig", 2, down=RATE, up=RATE, sleep=Sleep(200.0, 100.0)),
)
SCHEMES: dict[str, Scheme] = {"sumrate": Sumrate(), "mptcp": KernelMptcp()}


def carry_out(
    name: str, ports: tuple[int, ...], work: Callable[[Scene, Carriage, ExitStack], None]
) -> None:
    """Does the work over a scheme between two hosts; skips, with the reason, what is not there."""
    scheme = SCHEMES[name]
    try:
        scheme.check()
    except Unavailable as reason:
        pytest.skip(str(reason))

    def body(folder: Path) -> None:
        with (
            scene(LINKS, seed=1, folder=folder / "run", settings=quiet_settings()) as built,
            ExitStack() as stack,
        ):
            work(built, stack.enter_context(carried(scheme, built, ports)), stack)

    isolated(body)


def present(*programs: str) -> None:
    """Skips, with the reason, where a program is missing."""
    try:
        needed(programs)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_files_come_whole_and_are_timed(scheme: str) -> None:
    present(*files.PROGRAMS)
    setting = FilesSetting(
        sizes=(
            FileSize(name="10KB", bytes=10_000, times=2),
            FileSize(name="1MB", bytes=1_000_000),
            FileSize(name="12MB", bytes=12_000_000),
        ),
        pause_s=0.3,
        share_link="wigig",
    )

    def work(built: Scene, carriage: Carriage, stack: ExitStack) -> None:
        root = files.content(setting, built.folder.parent / "files")
        stack.enter_context(nginx(built, root, files.SERVERS, carriage.prefix))
        numbers: list[int] = []
        found = list(files.run(built, carriage, setting, numbers.append))
        assert numbers == [0, 1, 2, 3]
        times = [v for v in found if v.metric.startswith("time_")]
        downloads = ["10KB", "10KB", "1MB", "12MB"]
        assert [v.metric for v in times] == [f"time_{size}_ms" for size in downloads]
        assert all(v.value > 0 and v.unit == "ms" for v in times)
        shares = [v for v in found if v.metric.startswith("wigig_share")]
        assert [v.metric for v in shares] == [
            *[f"wigig_share_{size}" for size in downloads[:3]],
            "wigig_share",  # of large ones only
            "wigig_share_12MB",
        ]
        assert all(0 <= v.value <= 1 for v in shares)

    carry_out(scheme, files.PORTS, work)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_page_loads_whole_by_both_http_versions(scheme: str) -> None:
    present(*pages.PROGRAMS)
    try:
        executable = browser_process.check()
    except MissingProgramError as reason:
        pytest.skip(str(reason))
    setting = PagesSetting(sites=("msn",), pause_s=0.3)

    def work(built: Scene, carriage: Carriage, stack: ExitStack) -> None:
        root, keys = pages.content(setting, built.folder.parent / "pages")
        stack.enter_context(resolved(built, pages.hosts(setting), carriage.address))
        servers = pages.servers(setting, keys)
        stack.enter_context(nginx(built, root, servers, carriage.prefix))
        wrapper = built.folder / "browser.sh"
        how = browser_process.settings(executable, carriage, keys.key_hash(), wrapper)
        browser = stack.enter_context(browser_process.browser(built, how))
        found: dict[str, Value] = {v.metric: v for v in pages.run(built, browser, setting)}
        for version in ("h1", "h2"):
            cold, warm = (found[f"onload_msn_{version}_{s}_ms"].value for s in ("cold", "warm"))
            assert cold > 0
            assert warm > 0
            assert f"fcp_msn_{version}_cold_ms" in found
        assert found["objects_msn"].value == 33

    carry_out(scheme, pages.PORTS, work)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_clone_packages_and_keys_in_a_shell(scheme: str) -> None:
    present(*daily.PROGRAMS)
    setting = DailySetting(texts=5, blobs=1, packages=20, keys=5, times=1, pause_s=0.3)

    def work(built: Scene, carriage: Carriage, stack: ExitStack) -> None:
        offered = daily.content(setting, built.folder.parent / "daily")
        stack.enter_context(nginx(built, offered.root, daily.SERVERS, carriage.prefix))
        stack.enter_context(sshd(built, offered.keys, carriage))
        found = [v.metric for v in daily.run(built, carriage, setting, offered)]
        assert found == [
            "git_clone_ms",
            "git_clone_least_link_kbytes",
            "packages_ms",
            "packages_least_link_kbytes",
            "prompt_ms",
            *["key_ms"] * 5,
            "key_p95_ms",
            "typing_least_link_kbytes",
        ]
        assert (built.folder / "clone" / "HEAD").exists()

    carry_out(scheme, daily.PORTS, work)
