"""Names in an experiment file that stand for something else in it, which must be there."""

import difflib
from collections.abc import Collection, Iterable, Iterator

from sumrate.lab.experiment import metrics, simulated
from sumrate.lab.experiment.by_method import (
    CallsExperiment,
    FilesExperiment,
    PagesCondition,
    PagesExperiment,
    SimulationExperiment,
    StreamCondition,
    TilesCondition,
    TilesExperiment,
)
from sumrate.lab.experiment.impairments import check_together
from sumrate.lab.experiment.model import (
    EVERY,
    Change,
    Check,
    ConditionSetting,
    Experiment,
    scheme_names,
)
from sumrate.verdict.model import BESIDE

Problem = tuple[str, str]
"""A word of the file, and the sentence about it."""
Reference = tuple[Iterable[str], Collection[str], str]
"""Names, those that there are, and a sentence with `{}` for a name that is not among them."""


def problems(experiment: Experiment, stem: str) -> Iterator[Problem]:
    """Names that stand for nothing, and settings of links that exclude each other."""
    if experiment.name != stem:
        yield experiment.name, f"the name `{experiment.name}` is not the file's"
    for words, known, sentence in _references(experiment):
        for word in words:
            if word and word not in known:
                near = difflib.get_close_matches(word, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield word, sentence.replace("{}", f"`{word}`") + hint
    simulation = isinstance(experiment, SimulationExperiment)
    for condition in experiment.conditions:
        changes = [condition.links.get(link.name, Change()) for link in experiment.links]
        if not simulation and all(change.absent for change in changes):
            yield condition.name, f"condition `{condition.name}` leaves no link"
        for link, change in zip(experiment.links, changes, strict=True):
            try:
                check_together(link, change)
            except ValueError as error:
                yield link.name, str(error)
    yield from metrics.problems(experiment)


def _references(experiment: Experiment) -> Iterator[Reference]:
    links = [link.name for link in experiment.links]
    conditions = [condition.name for condition in experiment.conditions]
    yield [experiment.baseline], conditions, "baseline {} is no condition"
    yield experiment.quick, conditions, "`quick` names {}, which is no condition"
    beside = ", ".join(BESIDE)
    yield experiment.why_not, BESIDE, f"`why_not` speaks of {{}}; what can be left out is {beside}"
    own = [link.name for link in experiment.links if not link.shares]
    for link in experiment.links:
        yield [link.shares], own, f"`{link.name}` shares {{}}, which has no wire of its own"
        yield [link.returns], own, f"`{link.name}` returns by {{}}, which has no wire"
    for scheme in experiment.schemes:
        yield [scheme.first], links, "a scheme starts on {}, which is no link"
        yield [scheme.backup], links, "{} stands by in a scheme, but is no link"
        of_links = [policy.partition("=")[0] for policy in scheme.policy]
        yield of_links, links, "a policy is of {}, which is no link"
        if experiment.method in ("bench", "crowd"):
            yield scheme.policy, (), f"policy {{}}: method {experiment.method} has no `policy`"
        if scheme.kind == "messages" and not isinstance(experiment, TilesExperiment):
            yield [scheme.kind], (), "a scheme of kind {} carries tiles only"
        yield from _selected(scheme, "a scheme", experiment)
    for condition in experiment.conditions:
        yield from _of_condition(condition, experiment)
    yield from _of_method(experiment)
    for check in experiment.checks:
        yield from _of_check(check, experiment)


def _selected(of: object, title: str, experiment: Experiment) -> Iterator[Reference]:
    """The congestion controls and buffers of a scheme or condition."""
    for key in ("congestion_control", "buffers"):
        words, known = getattr(of, key), getattr(experiment, key)
        yield words, known, f"{title} is for {{}}, which the experiment's {key} lacks"


def _of_condition(condition: ConditionSetting, experiment: Experiment) -> Iterator[Reference]:
    title = f"condition {condition.name}"
    links = [link.name for link in experiment.links]
    schemes = scheme_names(experiment)
    yield condition.links, links, f"{title} changes {{}}, which is no link"
    yield condition.beside, links, f"{title} has a TCP beside on {{}}, which is no link"
    yield condition.schemes, schemes, f"{title} runs {{}}, which is no scheme"
    yield condition.few_runs, schemes, f"{title} expects few runs of {{}}: no scheme"
    out = set(schemes) - set(condition.schemes or schemes)
    yield condition.why_not, out, f"{title} says why {{}} is out, which is not"
    yield from _selected(condition, title, experiment)
    if isinstance(condition, StreamCondition):
        forward = [name for _, name in condition.forward_wanted]
        yield forward, links, f"{{}} is wanted forward in {condition.name}, but is no link"
    if isinstance(condition, PagesCondition) and isinstance(experiment, PagesExperiment):
        sites = experiment.pages.sites
        yield condition.sites, sites, f"{title} loads {{}}, which is none of the `sites`"
    if isinstance(condition, TilesCondition):
        names = [other.name for other in experiment.conditions]
        yield [condition.tiles_over], names, "{} is no condition"


def _of_method(experiment: Experiment) -> Iterator[Reference]:
    """Names in the method's own table."""
    links = [link.name for link in experiment.links]
    if isinstance(experiment, CallsExperiment):
        schemes = [*scheme_names(experiment), *links]
        yield experiment.calls.over_tcp, schemes, "{} in over_tcp is no scheme"
    if isinstance(experiment, FilesExperiment):
        yield [experiment.files.share_link], links, "`share_link` is {}, which is no link"
    if isinstance(experiment, SimulationExperiment):
        try:
            known = simulated.figures()
        except ModuleNotFoundError:
            return  # the file can be listed; running it says what is missing
        there = ", ".join(known)
        yield experiment.simulation.figures, known, f"{{}} is no figure; there are {there}"


def _of_check(check: Check, experiment: Experiment) -> Iterator[Reference]:
    conditions = [condition.name for condition in experiment.conditions]
    yield (*check.causes, *check.without), conditions, "a check speaks of {}, which is no condition"
    known: dict[str, Collection[str]] = {
        "scheme": scheme_names(experiment),
        "condition": [*conditions, EVERY],
        "congestion_control": [*experiment.congestion_control, EVERY],
        "buffers": [*experiment.buffers, EVERY],
    }
    for selection in (check.value, check.over):
        for key, allowed in known.items() if selection else ():
            words = [getattr(selection, key)]
            yield words, allowed, f"{{}} is no {key.replace('_', ' ')} of this experiment"
