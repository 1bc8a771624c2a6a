"""Workloads of users as methods of experiments: files, pages, daily programs."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from sumrate.lab.endpoints import Scheme, Unavailable
from sumrate.lab.experiment.by_method import (
    DailyExperiment,
    FilesExperiment,
    PagesCondition,
    PagesExperiment,
    expect,
)
from sumrate.lab.experiment.methods import Traffic
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import next_traces
from sumrate.lab.links import Emulator
from sumrate.lab.programs import MissingProgramError, require
from sumrate.lab.scene import Scene
from sumrate.qoe import browser_process
from sumrate.qoe import daily as daily_programs
from sumrate.qoe import files as file_downloads
from sumrate.qoe import pages as page_loads
from sumrate.qoe.carriage import Carriage, carried
from sumrate.qoe.names import resolved
from sumrate.qoe.nginx import nginx
from sumrate.qoe.ssh import sshd
from sumrate.qoe.values import Renew, Value

IPV6 = "net.ipv6.conf.default.disable_ipv6"


def quiet_settings() -> dict[str, str]:
    """What keeps fresh interfaces from talking by themselves, so that their radios fall asleep.

    For ten seconds after they come up, IPv6 looks for neighbours and routers on them. The loopback
    interface, which is there before, keeps it.
    """
    there = Path("/proc/sys", *IPV6.split(".")).exists()
    return {IPV6: "1"} if there else {}


def needed(programs: Sequence[str]) -> None:
    """Says which programs a workload lacks.

    Raises Unavailable: at least one is not installed; the run is reported as missing.
    """
    search = os.environ.get("PATH", "")
    if "/usr/sbin" not in search.split(os.pathsep):  # servers' place, which users do not search
        os.environ["PATH"] = os.pathsep.join([search, "/usr/sbin", "/sbin"])
    try:
        require(*programs)
    except MissingProgramError as error:
        raise Unavailable(str(error)) from error


def shared_folder(built: Scene, name: str) -> Path:
    """A folder that all runs of an experiment have in common."""
    return built.folder.parent / name


def renewing(run: Run, built: Scene, traffic: Traffic) -> Renew:
    """Gives the links that follow traces the trace of the next download or page."""
    emulator, folder = built.emulator, shared_folder(built, "next-traces")

    def renew(number: int) -> None:
        if not isinstance(emulator, Emulator):
            return
        found = next_traces(traffic.experiment, traffic.condition, run.seed, number, folder)
        for name, path in found.items():
            emulator.set(name, "both", trace=path)

    return renew


def note(run: Run, values: Iterator[Value], carriage: Carriage, command: str) -> None:
    """Adds what was timed, what the scheme counted meanwhile, and the commands."""
    for timed in values:
        run.add(timed.metric, timed.value, timed.unit)
    for name, (value, unit) in carriage.counters().items():
        run.add(name, value, unit)
    run.detail |= {"command": command, "other_commands": list(carriage.commands)}


def files(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """Downloads by curl from nginx."""
    setting = expect(traffic.experiment, FilesExperiment).files
    needed(file_downloads.PROGRAMS)
    root = file_downloads.content(setting, shared_folder(built, "files"))
    with ExitStack() as stack:
        carriage = stack.enter_context(carried(scheme, built, file_downloads.PORTS))
        server = stack.enter_context(nginx(built, root, file_downloads.SERVERS, carriage.prefix))
        values = file_downloads.run(built, carriage, setting, renewing(run, built, traffic))
        note(run, values, carriage, file_downloads.shown(carriage, setting))
        run.detail["other_commands"].append(server.command_line)


def pages(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """Pages in a real browser from nginx over TLS."""
    setting = expect(traffic.experiment, PagesExperiment).pages
    needed(page_loads.PROGRAMS)
    try:
        executable = browser_process.check()
    except MissingProgramError as error:
        raise Unavailable(str(error)) from error
    run.detail["emulator_real_time"] = built.raise_emulator()
    root, keys = page_loads.content(setting, shared_folder(built, "pages"))
    with ExitStack() as stack:
        carriage = stack.enter_context(carried(scheme, built, page_loads.PORTS))
        stack.enter_context(resolved(built, page_loads.hosts(setting), carriage.address))
        found = page_loads.servers(setting, keys)
        server = stack.enter_context(nginx(built, root, found, carriage.prefix))
        wrapper = built.folder / "browser.sh"
        how = browser_process.settings(executable, carriage, keys.key_hash(), wrapper)
        browser = stack.enter_context(browser_process.browser(built, how))
        loaded = replace(
            setting, sites=expect(traffic.condition, PagesCondition).sites or setting.sites
        )
        values = page_loads.run(built, browser, loaded, renewing(run, built, traffic))
        note(run, values, carriage, browser.process.command_line)
        run.detail["other_commands"].append(server.command_line)


def daily(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """A repository, packages and a remote shell."""
    setting = expect(traffic.experiment, DailyExperiment).daily
    needed(daily_programs.PROGRAMS)
    run.detail["emulator_real_time"] = built.raise_emulator()
    offered = daily_programs.content(setting, shared_folder(built, "daily"))
    with ExitStack() as stack:
        carriage = stack.enter_context(carried(scheme, built, daily_programs.PORTS))
        web = stack.enter_context(
            nginx(built, offered.root, daily_programs.SERVERS, carriage.prefix)
        )
        shell = stack.enter_context(sshd(built, offered.keys, carriage))
        renew = renewing(run, built, traffic)
        values = daily_programs.run(built, carriage, setting, offered, renew)
        note(run, values, carriage, daily_programs.shown(carriage, offered))
        run.detail["other_commands"] += [web.command_line, shell.command_line]


WORKLOADS: Mapping[str, Callable[[Run, Scheme, Scene, Traffic], None]] = {
    "files": files,
    "pages": pages,
    "daily": daily,
}
