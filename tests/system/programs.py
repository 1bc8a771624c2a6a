"""Real programs, each asked to fetch one token, and the table of what reaches which of them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sumrate.lab.endpoints.sumrate import SOCKS_PORT
from sumrate.lab.namespaces import Host
from sumrate.lab.programs import program

MARK = "cd2f5b3a-reached"
NAME = "service.example"
"""A name that only the server's name server knows."""
HTTP_PROXY_PORT = 3128
PLAIN_PORT, TLS_PORT, SSH_PORT = 8080, 8443, 2222
TIMEOUT_S = 60

WAYS = ("SOCKS5", "HTTP CONNECT", "`sumrate run`", "`--redirect`", "`--tproxy`", "`--tun`")
WORKS = "works"


@dataclass(frozen=True)
class Way:
    """How a program's connections come to Sumrate in one column of the table."""

    name: str
    prefix: tuple[str, ...] = ()
    """What the command line begins with."""
    socks: bool = False
    http: bool = False

    @property
    def by_name(self) -> bool:
        """Names are resolved at the far end."""
        return self.socks or self.http or bool(self.prefix)


@dataclass
class Place:
    """Where the programs run, and what was prepared for them."""

    client: Host
    folder: Path
    way: Way
    address: str
    """Host part of URLs: a name where the far end resolves it, else an address."""

    @property
    def url(self) -> str:
        """Of the token, over TLS: what HTTP CONNECT is for."""
        return f"https://{self.address}:{TLS_PORT}/token.html"


Command = tuple[list[str], dict[str, str]]
"""A command line and environment variables."""


def _curl(place: Place) -> Command:
    options = ["--noproxy", ""]
    if place.way.socks:
        options += ["--proxy", f"socks5h://127.0.0.1:{SOCKS_PORT}"]
    if place.way.http:
        options += ["--proxy", f"http://127.0.0.1:{HTTP_PROXY_PORT}"]
    return ["curl", "-sSk", "--max-time", "30", *options, place.url], {}


def _proxy_variables(place: Place) -> dict[str, str]:
    """What programs heed that read the usual environment variables."""
    if place.way.socks:
        proxy = f"socks5://127.0.0.1:{SOCKS_PORT}"
    elif place.way.http:
        proxy = f"http://127.0.0.1:{HTTP_PROXY_PORT}"
    else:
        return {}
    return {name: proxy for key in ("http", "https", "all") for name in _both(f"{key}_proxy")}


def _both(name: str) -> tuple[str, str]:
    return name, name.upper()


def _wget(place: Place) -> Command:
    options = ["-nv", "-O", "-", "--no-check-certificate", "--timeout=30", "--tries=1"]
    return ["wget", *options, place.url], _proxy_variables(place)


PYTHON = """
import ssl, sys, urllib.request
context = ssl._create_unverified_context()
print(urllib.request.urlopen(sys.argv[1], timeout=30, context=context).read().decode())
"""
PYTHON_ASYNCIO = """
import asyncio, sys
async def main():
    reader, writer = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))
    address = writer.get_extra_info("peername")
    writer.write(b"GET /token.html HTTP/1.0\\r\\n\\r\\n")
    print((await reader.read()).decode(), address)
asyncio.run(main())
"""


def _python(place: Place) -> Command:
    return [sys.executable, "-c", PYTHON, place.url], _proxy_variables(place)


def _asyncio(place: Place) -> Command:
    argv = [sys.executable, "-c", PYTHON_ASYNCIO, place.address.strip("[]"), str(PLAIN_PORT)]
    return argv, _proxy_variables(place)


NODE = """
fetch(process.argv[1]).then(r => r.text())
  .then(t => console.log(t), e => { console.log(e); process.exit(1); });
"""


def _node(place: Place) -> Command:
    environment = {"NODE_TLS_REJECT_UNAUTHORIZED": "0", **_proxy_variables(place)}
    return ["node", "-e", NODE, place.url], environment


JAVA = """
import java.io.*; import java.net.*; import javax.net.ssl.*; import java.security.cert.*;
public class Fetch {
    public static void main(String[] arguments) throws Exception {
        var all = new X509ExtendedTrustManager() {
            public void checkClientTrusted(X509Certificate[] c, String a) {}
            public void checkServerTrusted(X509Certificate[] c, String a) {}
            public void checkClientTrusted(X509Certificate[] c, String a, Socket s) {}
            public void checkServerTrusted(X509Certificate[] c, String a, Socket s) {}
            public void checkClientTrusted(X509Certificate[] c, String a, SSLEngine e) {}
            public void checkServerTrusted(X509Certificate[] c, String a, SSLEngine e) {}
            public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
        };
        var context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {all}, null);
        var connection = (HttpsURLConnection) new URL(arguments[0]).openConnection();
        connection.setSSLSocketFactory(context.getSocketFactory());
        connection.setHostnameVerifier((host, session) -> true);
        connection.setConnectTimeout(30000);
        System.out.println(new String(connection.getInputStream().readAllBytes()));
    }
}
"""


def _java(place: Place) -> Command:
    options = []
    if place.way.socks:
        options = ["-DsocksProxyHost=127.0.0.1", f"-DsocksProxyPort={SOCKS_PORT}"]
    if place.way.http:
        options = ["-Dhttps.proxyHost=127.0.0.1", f"-Dhttps.proxyPort={HTTP_PROXY_PORT}"]
    return ["java", *options, "-cp", str(place.folder), "Fetch", place.url], {}


GO = """
package main

import ("crypto/tls"; "fmt"; "io"; "net/http"; "os"; "time")

func main() {
    transport := &http.Transport{Proxy: http.ProxyFromEnvironment,
        TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
    client := http.Client{Transport: transport, Timeout: 30 * time.Second}
    answer, err := client.Get(os.Args[1])
    if err != nil { fmt.Println(err); os.Exit(1) }
    body, _ := io.ReadAll(answer.Body)
    fmt.Println(string(body))
}
"""


def _go(place: Place) -> Command:
    return [str(place.folder / "fetch-go"), place.url], _proxy_variables(place)


def _git(place: Place) -> Command:
    target = place.folder / f"clone-{place.way.name.strip('`-').replace(' ', '-')}"
    shutil.rmtree(target, ignore_errors=True)
    url = f"https://{place.address}:{TLS_PORT}/project.git"
    options = ["-c", "http.sslVerify=false", "-c", f"core.hooksPath={place.folder}"]
    if place.way.socks:
        options += ["-c", f"http.proxy=socks5h://127.0.0.1:{SOCKS_PORT}"]
    clone = ["git", *options, "clone", "-q", url, str(target)]
    script = 'shift; "$@" && cat "$0/token.html"'
    return ["sh", "-c", script, str(target), "--", *clone], _proxy_variables(place)


def _ssh(place: Place) -> Command:
    options = {
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "IdentityFile": str(place.folder / "ssh-client"),
        "BatchMode": "yes",
    }
    if place.way.socks or place.way.http:
        port = SOCKS_PORT if place.way.socks else HTTP_PROXY_PORT
        kind = "5" if place.way.socks else "connect"
        options["ProxyCommand"] = f"nc -X {kind} -x 127.0.0.1:{port} %h %p"
    flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    host = place.address.strip("[]")
    command = [
        "ssh",
        "-F",
        "none",
        *flags,
        "-p",
        str(SSH_PORT),
        host,
        "cat",
        str(place.folder / "www/token.html"),
    ]
    return command, {}


def _chromium(place: Place) -> Command:
    profile = place.folder / "chromium-profile"
    shutil.rmtree(profile, ignore_errors=True)
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", "--disable-background-networking", "--ignore-certificate-errors"),
        f"--user-data-dir={profile}",
    ]
    if place.way.socks:
        options.append(f"--proxy-server=socks5://127.0.0.1:{SOCKS_PORT}")
    elif place.way.http:
        options.append(f"--proxy-server=http://127.0.0.1:{HTTP_PROXY_PORT}")
    else:
        options.append("--no-proxy-server")
    return ["chromium", *options, "--dump-dom", place.url], {"HOME": str(place.folder)}


@dataclass(frozen=True)
class No:
    """A way that leads nowhere for a program."""

    reason: str
    """As the table says it."""
    said: str
    """A regular expression: what it, or `sumrate run`, then says, which shows the reason."""


@dataclass(frozen=True)
class Row:
    """A program, and what is said of it in the table."""

    title: str
    command: Callable[[Place], Command]
    needs: tuple[str, ...]
    """Programs that have to be installed."""
    refused: Mapping[str, No] = field(default_factory=dict)
    """Why, by way, where it does not work."""
    file: str = ""
    """A file that has to have been built in the folder."""

    def cell(self, way: str) -> str:
        """What the table says."""
        return f"no: {self.refused[way].reason}" if way in self.refused else WORKS

    def missing(self, folder: Path) -> str:
        """Why it cannot be tried here; empty if it can."""
        path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
        lacking = [name for name in self.needs if shutil.which(name, path=path) is None]
        if lacking:
            return f"{', '.join(lacking)} not installed"
        if "sshd" in self.needs and os.getuid() != 0:
            return "sshd needs root"
        if self.file and not (folder / self.file).exists():
            return f"{self.file} could not be built"
        return ""


def no_socks(said: str) -> dict[str, No]:
    """A program that cannot be given a SOCKS proxy, and what it says when it is."""
    return {"SOCKS5": No("no SOCKS support", said)}


def no_proxy(said: str) -> dict[str, No]:
    """A program that heeds no proxy: it asks by itself for the name that only the far end knows."""
    return {**no_socks(said), "HTTP CONNECT": No("no proxy support", said)}


OUT_OF_REACH = No("static; `run` refuses it", "the preload library cannot reach it")
PROGRAMS = (
    Row("curl", _curl, ("curl",)),
    Row("wget", _wget, ("wget",), no_socks("Unsupported scheme")),
    Row(
        "Python (urllib)",
        _python,
        (),
        no_socks("RemoteDisconnected|BadStatusLine|ConnectionResetError"),
    ),
    Row("Python (asyncio)", _asyncio, (), no_proxy("gaierror")),
    Row("Node.js (fetch)", _node, ("node",), no_proxy("EAI_AGAIN|ENOTFOUND")),
    Row("Java", _java, ("java",), {}, "Fetch.class"),
    Row("Go, static", _go, (), {"`sumrate run`": OUT_OF_REACH}, "fetch-go"),
    Row("git", _git, ("git",)),
    Row("ssh", _ssh, ("ssh", "sshd", "nc")),
    Row("Chromium", _chromium, ("chromium",)),
)


def table() -> str:
    """The table of the README, in Markdown."""
    lines = [f"| | {' | '.join(WAYS)} |", "|---" * (len(WAYS) + 1) + "|"]
    for row in PROGRAMS:
        lines.append(f"| {row.title} | {' | '.join(row.cell(way) for way in WAYS)} |")
    return "\n".join(lines)


def build(folder: Path) -> None:
    """Compiles what has to be compiled, where the compilers are."""
    if shutil.which("javac"):
        (folder / "Fetch.java").write_text(JAVA, encoding="utf-8")
        subprocess.run(
            ["javac", "-nowarn", "-d", str(folder), str(folder / "Fetch.java")], check=True
        )
    if shutil.which("go"):
        (folder / "fetch.go").write_text(GO, encoding="utf-8")
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=mod",
            "GO111MODULE": "off",
        }
        command = ["go", "build", "-o", str(folder / "fetch-go"), str(folder / "fetch.go")]
        subprocess.run(command, check=True, env=environment)


def attempt(row: Row, place: Place) -> tuple[bool, str]:
    """Runs the program; whether it got the token, and what it said."""
    argv, environment = row.command(place)
    prefix: Sequence[str] = place.way.prefix
    cleared = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    try:
        done = subprocess.run(
            place.client.command([*prefix, *argv]),
            env={**cleared, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return False, f"ran past {TIMEOUT_S} s: {late.stdout!r} {late.stderr!r}"
    return MARK in done.stdout, (done.stdout + done.stderr)[-1500:]


def run_prefix(folder: Path) -> tuple[str, ...]:
    """`sumrate run` with the `up` of this test."""
    return (str(program("sumrate")), "run", "--socket", str(folder / "up.sock"), "--")
