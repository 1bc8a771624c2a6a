"""Each test that docs/security.md names exists."""

import re
from pathlib import Path

NAME = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`")
TEST = re.compile(
    r"#\[(?:tokio::)?test\b[^\]]*\]\s*(?:#\[(?!ignore)[^\]]*\]\s*)*(?:async )?fn (?P<rust>\w+)"
    r"|^def (?P<python>test_\w+)",
    re.M,
)
WORDS = {"no_new_privs"}


SHOWN = "shown by"
"""The head of the column with tests."""

LIMITS = {
    "crates/fbdt/src/config.rs": {
        "| time for TLS and handshake | 5 s |": "handshake_timeout: Duration::from_secs(5),",
        "| bytes read | 16 KiB,": "max_handshake_bytes: 16 * 1024,",
        "| 1024; 256 from one source": "max_pending: 1024,\n            "
        "max_pending_per_source: 256,",
        "| 1024, 256 of a credential; 16 |": "max_sessions: 1024,\n            "
        "max_sessions_per_credential: 256,\n            max_paths: 16,",
    },
    "crates/fbdt/src/listen/admission.rs": {
        "beyond 256 of one source, then 20 a second": "WRONG_AT_ONCE: u32 = 256;\n"
        "const WRONG_PAUSE: Duration = Duration::from_millis(50);",
    },
    "crates/fbdt-wire/src/handshake.rs": {
        "handshake message at most 512 bytes": "MAX_LEN: usize = 512;",
    },
    "crates/sumrate-cli/src/descriptors.rs": {
        "beyond a quarter of the open files": "(self.0 / 4).clamp(",
        "a place like that: 1024 in all": "(self.0 / 64).clamp(128, 1024)",
        "at most 2048 in all": "(self.0 / 32).clamp(128, 2048)",
    },
    "crates/sumrate-cli/src/crowd.rs": {
        "(half for a credential, a quarter for a session)": "credential: all.div_ceil(2), "
        "session: all.div_ceil(4)",
    },
    "crates/sumrate-cli/src/exit/allowance.rs": {
        "16 of a credential and 64 of a server run": "COPIES: usize = 16;",
        "40 of a credential": "REPORTS: NonZeroU32 = NonZeroU32::new(40).unwrap();",
    },
    "crates/sumrate-cli/src/commands/serve.rs": {
        "| 4096 of `serve`,": "STREAMS_MAX: u32 = 4096;",
    },
    "crates/sumrate-cli/src/exit/resolve.rs": {
        "| 6 s, and a place": "RESOLVE_TIMEOUT: Duration = Duration::from_secs(6);",
    },
    "crates/sumrate-cli/src/exit/associate.rs": {
        "120 s of silence, 256 peers": "IDLE: Duration = Duration::from_secs(120);",
        "256 peers, 128 KiB": "PEERS_MAX: usize = 256;",
        "again every 30 s": "CHECKED: Duration = Duration::from_secs(30);",
    },
    "crates/sumrate-cli/src/exit/pending.rs": {
        "128 KiB that wait for names": "BYTES_MAX: usize = 128 << 10;",
    },
    "crates/sumrate-cli/src/capture/datagrams.rs": {
        "asks for 192 at a time": "ASSOCIATIONS_MAX: usize = 192;",
        "128 KiB of each wait": "WAITING_BYTES_MAX: usize = 128 << 10;",
    },
    "crates/sumrate-cli/src/web/connections.rs": {
        "| 64; 16 of one source": "MOST: usize = 64;",
        "; 16 of one source": "MOST_PER_SOURCE: usize = 16;",
    },
    "crates/sumrate-cli/src/commands/reports.rs": {
        "10 a second of a session": "LEAST_AGE: Duration = Duration::from_millis(100);",
    },
    "crates/sumrate-preload/src/names.rs": {
        "65,536, each": "CAPACITY: usize = 1 << 16;",
    },
    "crates/sumrate-cli/src/proxy/passwords.rs": {
        "64 wrong ones of one source": "AT_ONCE: u32 = 64;",
        "then one in 2 s": "PAUSE: Duration = Duration::from_secs(2);",
    },
    "crates/sumrate-cli/src/files/host.rs": {
        "At most 8 copies of a session,": "SESSION_TRANSFERS_MAX: usize = 8;",
        "of a credential and 64 of a server": "const TRANSFERS_MAX: usize = 64;",
    },
    "crates/fbdt-wire/src/limits.rs": {
        "session window (256 MiB); of `serve` a quarter of `--memory` if that is less; a stream "
        "starts with 256 KiB": "stream_window: 256 << 10,\n            session_window: 256 << 20,",
        "1024 of the library": "max_streams: 1024,",
    },
    "crates/fbdt-proto/src/config/mod.rs": {
        "to 128 MiB only while": "max_stream_window: 128 << 20,",
    },
    "crates/fbdt-proto/src/session/control.rs": {
        "| unacknowledged control messages | 1 MiB |": "MAX_BACKLOG: u64 = 1 << 20;",
    },
    "crates/fbdt-proto/src/ranges.rs": {
        "| 16384 of a stream;": "MAX_BYTE_RANGES: usize = 16 << 10;",
    },
    "crates/fbdt/src/subflow/connection.rs": {
        "| read buffer per subflow | 256 KiB |": "const BUFFER: usize = 256 * 1024;",
    },
}
"""By source file: what the page says of a limit, and the code that sets it."""


def missing(page: str, sources: str) -> list[str]:
    """Names of the page that are of no test, or of one that is left out."""
    names = [name for name in NAME.findall(page) if name not in WORDS]
    tests = {match["rust"] or match["python"] for match in TEST.finditer(sources)}
    return [name for name in names if name not in tests]


def test_every_named_test_exists(repository: Path) -> None:
    page = (repository / "docs" / "security.md").read_text(encoding="utf-8")
    files = [*(repository / "crates").rglob("*.rs"), *(repository / "tests").rglob("*.py")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(NAME.findall(page)) > 60
    assert missing(page, sources) == []


def unshown(page: str) -> list[str]:
    """Rows of tables with tests that have none."""
    found: list[str] = []
    shows = False
    for line in page.splitlines():
        if not line.startswith("|"):
            shows = False
        elif SHOWN in line:
            shows = True
        elif shows and not line.startswith("|--"):
            cell = line.strip("| ").rsplit("|", 1)[-1] if line.endswith("|") else ""
            found += [] if "`" in cell and not line.endswith("| |") else [line]
    return found


def test_every_claim_has_a_test(repository: Path) -> None:
    page = (repository / "docs" / "security.md").read_text(encoding="utf-8")
    assert page.count(SHOWN) > 6
    assert unshown(page) == []


def test_a_row_without_a_test_is_seen() -> None:
    head = "| claim | shown by |\n|---|---|\n"
    assert unshown(head + "| a | `a_test` |") == []
    bare = ["| a `flag` | |", "| a | |", "| a | nothing yet |"]
    assert [unshown(head + row) for row in bare] == [[row] for row in bare]
    assert unshown("| limit | what |\n|---|---|\n| a | |") == []


def test_the_limits_of_the_page_are_those_of_the_code(repository: Path) -> None:
    page = (repository / "docs" / "security.md").read_text(encoding="utf-8").replace("\n", " ")
    for source, limits in LIMITS.items():
        code = (repository / source).read_text(encoding="utf-8")
        for said, set_by in limits.items():
            assert said in page, f"the page does not say: {said}"
            assert set_by in code, f"{source} does not have: {set_by}, as the page says: {said}"


def test_a_claim_without_its_test_is_seen() -> None:
    page = "| a | `one_test_here`, `another_test_gone` |"
    one = "#[tokio::test(start_paused = true)]\n    async fn one_test_here() {}"
    assert missing(page, one) == ["another_test_gone"]
    assert missing(page, f"{one} fn another_test_gone() {{}}") == ["another_test_gone"]
    ignored = f"{one}\n#[test]\n#[ignore]\nfn another_test_gone() {{}}"
    assert missing(page, ignored) == ["another_test_gone"]
    assert missing("| a | `limits_hold` |", "") == ["limits_hold"]
