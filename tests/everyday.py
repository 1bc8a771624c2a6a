"""Which tests `make test` leaves to `make test-all`, and which need the machine for themselves.

A system test is long unless it is one of the real runs here: one of each kind.
"""

EVERYDAY = {
    "proxy": ("tests/system/test_http_proxy.py::", "tests/system/test_exit_addresses.py::"),
    "capture": (
        "tests/system/test_capture.py::test_it_carries_both_families_and_leaves_nothing_behind",
        "tests/system/test_capture_run.py::test_run_keeps_addresses_truthful_and_follows_children",
    ),
    "copy": ("tests/system/test_copies.py::",),
    "metrics": (
        "tests/watch/test_event_log.py::test_both_ends_write_what_happens_to_them",
        "tests/watch/test_prometheus.py::test_promtool_finds_nothing_to_say",
        "tests/watch/test_top.py::test_it_draws_its_keys_work_and_q_gives_the_terminal_back",
    ),
    "status page": ("tests/watch/test_status_page.py::",),
    "paths": ("tests/system/test_paths_fail.py::test_transfer_uses_both_paths",),
    "lab": ("tests/system/test_demo.py::",),
    "world": ("tests/world/test_scene.py::",),
    "access": ("tests/access/test_command.py::", "tests/traces/test_trace_command.py::"),
}
"""Beginnings of the names of the real runs in `make test`, by what they show."""
REAL_RUNS = tuple(begin for kind in EVERYDAY.values() for begin in kind)

LONG = (
    "tests/access/test_command.py::test_every_figures_table_has_metrics_and_bands",
    "tests/access/test_experiments.py::test_the_documents_example_runs",
    "tests/access/test_simulation.py::test_single_clients_need_one_mini_slot_per_beam",
    "tests/access/test_simulation.py::test_mini_slots_fail_as_the_exact_formula",
    "tests/access/test_tasks.py::",
    "tests/docs/test_site.py::",
    "tests/phy/test_experiments.py::test_the_studies_are_run_and_judged",
    "tests/phy/test_studies.py::test_the_command_draws_and_prints",
    "tests/qoe_video/test_ends.py::test_tiles",
    "tests/system/test_package.py::test_the_package",
    "tests/traces/test_generate.py::test_statistics_are_as_measured",
    "tests/traces/test_scenes.py::test_statistics_are_near_the_measured_ones",
    "tests/traces/test_tables.py::test_a_table_is_what_its_command_prints",
)
"""Beginnings of the names of further tests that take long: half the time of all that are not of
real processes."""

ALONE = (
    "tests/docs/test_commands.py::test_the_commands_of_a_page_work",
    "tests/qoe/test_real_programs.py::",
    "tests/system/test_demo.py::",
    "tests/system/test_experiments.py::",
    "tests/system/test_fault_commands.py::",
    "tests/system/test_faults.py::",
    "tests/system/test_paths_fail.py::",
    "tests/system/test_stream.py::",
    "tests/traces/test_trace_command.py::test_a_trace_is_played",
    "tests/watch/test_idle.py::",
)
"""Beginnings of the names of tests that emulate links or watch stalls: others disturb them."""


def is_long(test: str, *, system: bool) -> bool:
    """Whether a test, by its name in pytest, runs in `make test-all` only."""
    if test.startswith(LONG):
        return True
    return system and not test.startswith(
        tuple(begin for kind in EVERYDAY.values() for begin in kind)
    )


def is_alone(test: str) -> bool:
    """Whether a test runs while no other does."""
    return test.startswith(ALONE)


def beginnings() -> tuple[str, ...]:
    """All beginnings of names that are listed here."""
    return (*REAL_RUNS, *LONG, *ALONE)
