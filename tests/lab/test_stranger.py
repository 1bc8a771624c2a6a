"""A stranger's TLS is real: a server that reads it answers, and refuses its proof."""

import random
import ssl
import subprocess
from pathlib import Path

import pytest

from sumrate.lab.faults import stranger

REFUSAL = bytes([stranger.REFUSED, 0, 3, 2]) + b"no"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    folder = tmp_path_factory.mktemp("key")
    make_key(folder)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "crt", folder / "key")
    made.set_alpn_protocols([stranger.ALPN])
    return made


def make_key(folder: Path) -> None:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "crt")]
    words = ["openssl", "req", "-x509", *curve, *files, "-subj", "/CN=x", "-days", "2"]
    subprocess.run(words, check=True, capture_output=True)


def test_a_client_hello_is_one_record_that_a_server_answers(server: ssl.SSLContext) -> None:
    knock = stranger.Knock(stranger.context(), b"")
    hello = knock.turn()
    assert hello[:2] == b"\x16\x03"
    assert hello[5] == 1, "a ClientHello"
    assert len(hello) == 5 + int.from_bytes(hello[3:5])
    came, answer = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = server.wrap_bio(came, answer, server_side=True)
    came.write(hello)
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    assert len(answer.read()) > 500, "key share, certificate, signature"


def test_half_a_client_hello_gets_no_answer(server: ssl.SSLContext) -> None:
    came, answer = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = server.wrap_bio(came, answer, server_side=True)
    came.write(stranger.Knock(stranger.context(), b"").turn()[:11] * 20)
    with pytest.raises(ssl.SSLError):
        end.do_handshake()
    assert len(answer.read()) < 100, "at most an alert"


def test_a_whole_handshake_ends_in_a_hello_that_is_refused(server: ssl.SSLContext) -> None:
    message = stranger.hello(b"12345678", random.Random(1))
    knock = stranger.Knock(stranger.context(), message)
    came, answer = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = server.wrap_bio(came, answer, server_side=True)
    came.write(knock.turn())
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    came.write(knock.turn(answer.read()))
    end.do_handshake()
    assert end.selected_alpn_protocol() == stranger.ALPN
    assert end.read(512) == message
    assert not knock.refused
    end.write(REFUSAL)
    knock.turn(answer.read())
    assert knock.refused


def test_a_hello_is_of_the_length_that_the_protocol_says() -> None:
    message = stranger.hello(bytes(8), random.Random(2))
    assert message[0] == stranger.HELLO
    assert int.from_bytes(message[1:3]) == len(message) - 3 == 2 + 8 + 1 + 24 + 32
