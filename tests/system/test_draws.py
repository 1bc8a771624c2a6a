"""One small draw of conditions on real sockets; nothing is timed."""

from pathlib import Path

import pytest

from sumrate.lab.draws.sockets import run_alone, run_session
from tests.lab.test_draws import OTHERWISE, PATH, draw
from tests.system.scenario import isolated, needs_emulator, needs_sumrate

pytestmark = [pytest.mark.system, needs_emulator, needs_sumrate]


@pytest.mark.parametrize("kind", ["bulk_down", "bulk_up", "stream"])
def test_a_session_and_a_plain_tcp_do_the_work_of_a_draw(kind: str) -> None:
    path = PATH | {key: OTHERWISE[key] for key in ("burst_bytes", "steps", "outages", "sleep")}
    path |= {"others": 1}
    work: dict[str, object] = {"kind": kind}
    if kind == "stream":
        work |= {"bytes": 2000, "every_ms": 20.0}
    small = draw(path, work=work, time_s=1.5)

    def body(scratch: Path) -> None:
        session = run_session(small, scratch / "session")
        assert session.paths_mbps.keys() == {"path0", "path1"}
        alone = run_alone(small, 1, scratch / "alone")
        for outcome in (session, alone):
            assert outcome.goodput_mbps > 0
            assert 0 < outcome.stall_ms <= 1500
        assert alone.goodput_mbps < (12.0 if kind == "bulk_up" else 24.0), "the path limits it"
        if kind == "stream":
            assert 0 < session.latency_p50_ms <= session.latency_p99_ms

    isolated(body)
