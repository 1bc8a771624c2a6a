"""What the player loads from: files over connections that stay open."""

import http.client
import threading
from pathlib import Path

from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.player import player_command
from sumrate.lab.video.web_server import Server


def test_files_come_over_one_connection(tmp_path: Path) -> None:
    (tmp_path / "a.m4s").write_bytes(b"x" * 100_000)
    (tmp_path / "stream.m3u8").write_text("#EXTM3U\n", encoding="ascii")
    server = Server(tmp_path, "127.0.0.1", 0, "cubic", mptcp=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        port = server.socket.getsockname()[1]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        for name, size in (("a.m4s", 100_000), ("stream.m3u8", 8), ("a.m4s", 100_000)):
            connection.request("GET", f"/{name}")
            answer = connection.getresponse()
            assert (answer.status, len(answer.read())) == (200, size)
            assert not answer.will_close
        connection.request("GET", "/../pyproject.toml")
        assert connection.getresponse().status == 404
    finally:
        server.shutdown()
        server.server_close()


def test_the_browser_goes_the_way_of_the_scheme(tmp_path: Path) -> None:
    plain = player_command(Reach("10.1.1.2", "10.1.1.2"), 25.0, 10.0, tmp_path / "x")
    assert plain[0] == "node"
    assert "http://10.1.1.2:5202/" in plain
    assert "--socks" not in plain
    proxied = Reach("192.168.77.1", "192.168.77.1", socks=("127.0.0.1", 1080))
    assert player_command(proxied, 25.0, 10.0, tmp_path / "x")[-2:] == ["--socks", "127.0.0.1:1080"]
    both = player_command(Reach("10.1.1.2", "10.1.1.2", mptcp=True), 25.0, 10.0, tmp_path / "x")
    assert both[:3] == ["mptcpize", "run", "node"]
