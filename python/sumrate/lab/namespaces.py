"""Private network, mount and process namespaces that vanish with the process that made them.

Nothing outside is touched: as an ordinary user the namespaces hang below a new user namespace, as
root they are unshared just the same. Everything that is started inside lives in one process
namespace whose first process dies with the driver, so SIGKILL of the driver leaves nothing behind.
This is the only module that enters namespaces.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
MS_NOSUID_NODEV_NOEXEC = 0x2 | 0x4 | 0x8
MS_REC_PRIVATE = 0x4000 | 0x4_0000
PR_SET_PDEATHSIG = 1

NETNS_DIR = Path("/run/netns")
INTERRUPTED = 130
"""Exit status after SIGINT or SIGTERM."""

_libc = ctypes.CDLL(None, use_errno=True)


class IsolationUnavailableError(RuntimeError):
    """The kernel refused private namespaces; the message says which and what to do."""


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _checked(result, f"mount {kind} on {target}")


def mount_tmpfs(target: Path, size: int | None = None) -> None:
    """Mounts an empty memory file system, private to these namespaces.

    Args:
        target: an empty folder.
        size: bytes that fit, whole pages, for its owner only; half of the memory, and for
            everybody, if absent.

    """
    _mount("tmpfs", str(target), "tmpfs", 0, f"mode=0700,size={size}" if size else "")


def _unshare_all() -> None:
    """Moves this process into new namespaces; without root, below a new user namespace."""
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC
    try:
        _unshare(flags if uid == 0 else flags | CLONE_NEWUSER)
        if uid != 0:
            proc = Path("/proc/self")
            (proc / "setgroups").write_text("deny", encoding="ascii")
            (proc / "uid_map").write_text(f"0 {uid} 1", encoding="ascii")
            (proc / "gid_map").write_text(f"0 {gid} 1", encoding="ascii")
    except OSError as error:
        raise IsolationUnavailableError(
            f"private namespaces were refused ({error}). Allow them "
            "(sysctl kernel.unprivileged_userns_clone=1, and on Ubuntu "
            "kernel.apparmor_restrict_unprivileged_userns=0) or run as root."
        ) from error


def _die_with_parent(lifeline: int) -> None:
    """Has the kernel kill this process when its parent dies; exits if that happened already."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    readable, _, _ = select.select([lifeline], [], [], 0)
    if readable:
        os._exit(1)


def _prepare_mounts() -> None:
    """A private /run for named network namespaces, and a /proc of the new process namespace."""
    try:
        _mount("none", "/", "none", MS_REC_PRIVATE)
        mount_tmpfs(Path("/run"))
    except OSError as error:
        raise IsolationUnavailableError(
            f"a private /run was refused ({error}); run as root or outside a restricted container."
        ) from error
    with contextlib.suppress(OSError):  # masked /proc in some containers: nothing here needs it
        _mount("proc", "/proc", "proc", MS_NOSUID_NODEV_NOEXEC)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _child(main: Callable[[], int], lifeline: int) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        _die_with_parent(lifeline)
        _prepare_mounts()
        run(["ip", "link", "set", "lo", "up"])
        return main()
    except KeyboardInterrupt:
        print("\nstopped; everything that was started is gone", file=sys.stderr)
        return INTERRUPTED
    except IsolationUnavailableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except Exception:
        traceback.print_exc()
        return 1


def run_isolated(main: Callable[[], int]) -> int:
    """Runs `main` as the first process of new namespaces and returns its exit status.

    SIGINT and SIGTERM sent to the calling process reach `main` as KeyboardInterrupt, once. The
    calling process enters the namespaces too (all but the process namespace) and stays there,
    unless it has several threads and no root: then a child does, which has one.

    Raises IsolationUnavailableError: the kernel refuses such namespaces; nothing was started.
    """
    if os.getuid() != 0 and len(list(Path("/proc/self/task").iterdir())) > 1:
        return _isolated_in_child(main)
    _unshare_all()
    return _forked(lambda lifeline: _child(main, lifeline))


def _isolated_in_child(main: Callable[[], int]) -> int:
    """The kernel gives a user namespace to processes with one thread only: a fork is one.

    Libraries such as pyarrow start threads of their own when they are imported.
    """
    heard, refusal = os.pipe()

    def body(lifeline: int) -> int:
        try:
            _unshare_all()
        except IsolationUnavailableError as error:
            os.write(refusal, str(error).encode())
            return 1
        # Not before: a change of credentials takes the signal of the parent's death away.
        _die_with_parent(lifeline)
        os.close(refusal)
        return _forked(lambda inner: _child(main, inner))

    status = _forked(body)
    os.close(refusal)
    with os.fdopen(heard, "rb") as reasons:
        if said := reasons.read():
            raise IsolationUnavailableError(said.decode())
    return status


def _forked(body: Callable[[int], int]) -> int:
    """Runs `body` in a child and returns its exit status; SIGINT and SIGTERM are passed on.

    The child is told a file that can be read once this process is gone.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(write_end)
            status = body(read_end)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(read_end)

    def forward(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    _, status = os.waitpid(child, 0)
    os.close(write_end)
    return os.waitstatus_to_exitcode(status) & 0xFF


def run(argv: Sequence[str]) -> str:
    """Runs a short command to its end and returns its standard output.

    Raises RuntimeError: it failed; the message has the command and what it said.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(argv)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Host:
    """A network namespace that stands for a machine."""

    def __init__(self, name: str) -> None:
        """Makes the namespace and brings its loopback up."""
        self.name = name
        run(["ip", "netns", "add", name])
        self.run(["ip", "link", "set", "lo", "up"])

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` on this host; the process stays the same one (exec)."""
        return ["nsenter", f"--net={NETNS_DIR / self.name}", "--", *argv]

    def run(self, argv: Sequence[str]) -> str:
        """Runs a short command on this host and returns its standard output."""
        return run(self.command(argv))

    def sysctl(self, key: str, value: str | None = None) -> str:
        """Sets (if a value is given) and returns a network sysctl of this host."""
        if value is not None:
            self.run(["sysctl", "-qw", f"{key}={value}"])
        return " ".join(self.run(["sysctl", "-n", key]).split())

    def delete(self) -> None:
        """Removes the namespace's name; it ends when its last process does."""
        run(["ip", "netns", "delete", self.name])
