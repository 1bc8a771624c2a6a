"""A relay of TCP connections in front of a server: while it is cut, a path through it is lost."""

import contextlib
import socket
import threading


class Relay:
    """Listens on an address of this machine and copies bytes to and from a target."""

    def __init__(self, address: str, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = self._listen(address, 0)
        self.address = f"{address}:{self._listener.getsockname()[1]}"

    def _listen(self, address: str, port: int) -> socket.socket:
        listener = socket.create_server((address, port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def cut(self) -> None:
        """Resets all connections and refuses new ones."""
        # A thread that waits in `accept` keeps the socket open after `close`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def mend(self) -> None:
        """Takes connections again, at the same address."""
        host, _, port = self.address.rpartition(":")
        self._listener = self._listen(host, int(port))

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
                with self._lock:
                    self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
