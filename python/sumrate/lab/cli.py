"""Experiments, faults, traces and the 60 GHz model of Sumrate."""

import os
import sys

from cyclopts import App, CycloptsError, Parameter

from sumrate import __version__
from sumrate.lab.namespaces import INTERRUPTED, IsolationUnavailableError
from sumrate.lab.options import shown
from sumrate.lab.programs import MissingProgramError
from sumrate.lab.refusal import USAGE, RefusedError

BROKEN_PIPE = 141
"""Exit status of a program that SIGPIPE ended, as shells report it."""
LAB, GHZ, SCENES = "sumrate.lab.", "sumrate.access.command:", "sumrate.traces.scene_"
STYLE = Parameter(negative=(), show_default=shown)
COMMANDS = {
    "demo": ("demo.command:demo", "Download one file over two links, one of them blocked."),
    "list": ("experiment.commands:list_experiments", "List the experiments with their questions."),
    "run": ("experiment.execute:run", "Run experiments."),
    "bench": ("experiment.execute:bench", "Measure the performance goals P1 to P10."),
    "report": ("experiment.commands:report", "Draw all results: out/lab/report.html."),
    "compare": ("experiment.commands:compare", "Compare two results."),
    "keep": ("experiment.keeping:keep", "Keep results in results/."),
    "verdicts": ("experiment.verdicts:verdicts", "Print claims and goals with their verdicts."),
    "values": ("experiment.values:values", "Print the medians of a kept result."),
    "results": ("experiment.record_results:results", "Record the results page again."),
    "draws": ("draws.command:draws", "Compare simulated draws with real sockets."),
    "tournament": ("tournament:tournament", "Rank all schedulers in simulated conditions."),
    "faults": ("faults.commands:faults", "Cause real faults on real sockets."),
    "soak": ("faults.commands:soak", "Run random traffic under random faults for hours."),
    "attacks": ("faults.commands:attacks", "Attack a server while checked sessions transfer."),
    "load": ("faults.commands:load", "Run many sessions; measure handshakes per second."),
    "events": ("events_command:events", "Summarise or plot an event log."),
    "phy": ("phy_command:phy", "Compare the 60 GHz model with published measurements."),
}
"""Where each command is, which is loaded when it is wanted, and its line in the list."""
GROUPS = {
    "trace": (
        "Link traces of 60 GHz scenes.",
        {
            "make": (f"{SCENES}commands:make_trace", "Make a link trace from a scene."),
            "show": (f"{SCENES}commands:show", "Summarise or plot a link trace."),
            "play": (f"{LAB}trace_play:play", "Measure one TCP stream over a link trace."),
            "contention": (f"{SCENES}tables:contention", "Compare access protocols."),
            "calibrate": (
                f"{SCENES}tables:calibrate",
                "Compare scenes with measurements.",
            ),
        },
    ),
    "access": (
        "Initial access at 60 GHz: 802.11ad/ay and JPOC.",
        {
            "run": (f"{GHZ}run", "Simulate one protocol, or compare several, in one condition."),
            "sweep": (f"{GHZ}sweep", "Simulate protocols over scenes, clients and blockage."),
            "figure": (f"{GHZ}figure", "Draw a figure of the thesis, or a study beyond it."),
        },
    ),
}
EXTRAS = {"numpy": "ghz", "numba": "ghz"}
"""The extra that brings a package, if not `lab`."""


def command_line(*words: str) -> App:
    """All commands; each is imported when it is run or its help is wanted.

    Lists of commands have a line of each without importing any; the one that the words of the
    command line begin with has its own help.
    """
    app = App(
        name="sumrate-lab",
        help=__doc__,
        version=f"sumrate-lab {__version__}",
        help_format="plaintext",
        help_formatter="plain",
        default_parameter=STYLE,
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for name, (place, help_line) in COMMANDS.items():
        own = {} if words[:1] == (name,) else {"help": help_line}
        app.command(f"{LAB}{place}", name=name, default_parameter=STYLE, **own)
    for group, (title, commands) in GROUPS.items():
        app.command(below := App(name=group, help=title, default_parameter=STYLE))
        for name, (place, help_line) in commands.items():
            own = {} if words[:2] == (group, name) else {"help": help_line}
            below.command(place, name=name, default_parameter=STYLE, **own)
    return app


def main() -> int:
    """Runs a command; returns the exit status."""
    try:
        words = sys.argv[1:]
        incomplete = not words or (len(words) == 1 and words[0] in GROUPS)
        status = int(command_line(*words)(words) or (USAGE if incomplete else 0))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as in `sumrate-lab list | head`: nothing is flushed to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (
        CycloptsError,
        IsolationUnavailableError,
        MissingProgramError,
        RefusedError,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("sumrate"):
            raise
        extra = EXTRAS.get(error.name, "lab")
        print(f"error: {error}: `pip install '.[{extra}]'`", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return INTERRUPTED
    return status
