"""No field that holds a secret is of a type that `Debug` shows, in a type that derives it."""

import re
from pathlib import Path

import pytest

SECRET = re.compile(
    r"\b(?P<name>link|links|operands|password|passwords|secret|token|auth|socks_auth|pkcs8|web"
    r"|web_url|private_key)\s*:\s*(?P<type>[^,\n}]+)"
)
SHOWN = re.compile(r"\b(String|OsString|str|u8|ArgMatches)\b")
"""Types whose `Debug` shows what they hold, alone or in others."""
ITEM = re.compile(
    r"#\[derive\((?P<traits>[^)]*)\)\]\s*(?:#\[[^\]]*\]\s*|///[^\n]*\n\s*)*"
    r"(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum)\s+(?P<item>\w+)[^{;(]*\{"
)
CRATES = ("fbdt", "sumrate-capture", "sumrate-cli", "sumrate-preload")


def body(source: str, begin: int) -> str:
    """What stands between the brace at `begin` - 1 and the one that closes it."""
    depth = 1
    for at in range(begin, len(source)):
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        if depth == 0:
            return source[begin:at]
    return source[begin:]


def shown(source: str) -> list[str]:
    """Fields of types that derive `Debug` which would show a secret."""
    code = re.sub(r"(?<!/)//(?!/)[^\n]*", "", source)
    return [
        f"{item['item']}.{field['name']}: {field['type'].strip()}"
        for item in ITEM.finditer(code)
        if "Debug" in item["traits"]
        for field in SECRET.finditer(re.sub(r"///[^\n]*|#\[[^\]]*\]", "", body(code, item.end())))
        if SHOWN.search(field["type"])
    ]


def test_no_secret_is_in_a_field_that_is_shown(repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}: {line}"
        for crate in CRATES
        for path in sorted((repository / "crates" / crate / "src").rglob("*.rs"))
        for line in shown(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "use PrivateText, or write Debug by hand"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("#[derive(Debug, Args)]\npub struct A {\n    link: String,\n}", ["A.link: String"]),
        (
            "#[derive(Debug)]\n#[command(x)]\n/// of it\nenum B { C { web: Option<String> } }",
            ["B.web: Option<String>"],
        ),
        (
            "#[derive(Debug)]\nstruct D { auth: Option<(Vec<u8>, Vec<u8>)> }",
            ["D.auth: Option<(Vec<u8>"],
        ),
        ("#[derive(Debug)]\nstruct E { link: PrivateText, auth: Option<ProxyAuth> }", []),
        ("#[derive(Clone)]\nstruct F { link: String }", []),
        ("#[derive(Debug)]\nstruct G { /// the link: String\n    name: String }", []),
    ],
)
def test_a_planted_field_is_found(source: str, found: list[str]) -> None:
    assert shown(source) == found
