"""TLS as a stranger speaks it: a real ClientHello, and a whole handshake with a wrong proof."""

import random
import ssl
import struct

ALPN = "fbdt/2"
HELLO, REFUSED = 0x41, 0x44
"""Types of handshake messages (docs/wire.md, section 1)."""
VERSION = 2
LIMITS = struct.pack(">IQQI", 1 << 16, 1 << 18, 1 << 28, 1024)
"""Frame, window of a stream and of the session, streams: what a client usually says."""
CREDENTIAL_BYTES, PROOF_BYTES = 8, 32
LONGEST_MESSAGE = 512


def context() -> ssl.SSLContext:
    """TLS 1.3 towards a server whose key nobody told us."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.set_alpn_protocols([ALPN])
    return made


def hello(credential: bytes, generator: random.Random) -> bytes:
    """A Hello that is right in all but its proof."""
    body = struct.pack(">H", VERSION) + credential + b"\x01" + LIMITS
    body += generator.randbytes(PROOF_BYTES)
    return struct.pack(">BH", HELLO, len(body)) + body


class Knock:
    """The client's end of one TLS connection: it is given what came and says what to send."""

    def __init__(self, made: ssl.SSLContext, message: bytes) -> None:
        """Prepares it; `message` is sent once the handshake is over."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = made.wrap_bio(self._incoming, self._outgoing)
        self._message = message
        self._open = False
        self.refused = False
        """The server has answered the message with Refused."""

    def turn(self, data: bytes = b"") -> bytes:
        """Takes what the server sent; gives what is to be sent now: the ClientHello at first."""
        self._incoming.write(data)
        try:
            if not self._open:
                self._tls.do_handshake()
                self._open = True
                self._tls.write(self._message)
            answer = self._tls.read(LONGEST_MESSAGE)
            self.refused = self.refused or answer[:1] == bytes([REFUSED])
        except ssl.SSLError:  # it wants more, or the server has ended it
            pass
        return self._outgoing.read()
