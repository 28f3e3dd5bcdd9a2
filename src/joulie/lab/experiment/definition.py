"""An experiment: one small TOML or YAML file that says what is run, on which seeds, and what is compared with what.

Keys of `RunSetup` stand at the top level and are what all variants share; a variant overrides some of them, nested or
with dots (`policy.gpu_cap_pct = 70`). `sweep` makes a variant of every combination of values. What differs between
comparisons rather than within one, such as the load, stands under `facets`: each of its values gets a comparison of
its own, because runs of different work cannot be compared. `short` overrides keys for a form that is quick to try and
claims nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field, structs

from joulie.errors import InputError
from joulie.lab.analysis.claims import Claim
from joulie.lab.analysis.measures import KNOWN
from joulie.lab.experiment.budget_checks import refuse_unknown_fields
from joulie.lab.experiment.checks import check_setup
from joulie.lab.experiment.digests import key_of
from joulie.lab.experiment.seeds import Seeds, parse_seeds, refuse_same_jobs
from joulie.lab.experiment.text import SHORT_FORM, combinations, content_of, with_overrides
from joulie.lab.model.refusals import refuse_other_meters, refuse_same_seeds
from joulie.lab.model.setup import RunSetup, TraceSetup
from joulie.lab.simulation.user_sources import OwnModules, own_modules
from joulie.model.api.budget import PowerBudgetSpec

ALONE = "as given"  # the one variant of a file that names none
DEFAULT_SEEDS = 20
CATALOGUE = "HARDWARE_CATALOG_PATH"  # a setting that names a file

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Tune(Struct, frozen=True, forbid_unknown_fields=True):
    """The best of some variants is chosen on seeds of its own. Without `among`: where settings were tuned before."""

    seeds: Seeds
    minimise: str = "facility_kwh"
    among: list[str] = field(default_factory=list)


class _Written(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a file beside those of RunSetup."""

    name: Name = ""
    question: str = ""
    claim: str = ""
    claims: list[Claim] = field(default_factory=list)
    seeds: Seeds = DEFAULT_SEEDS
    trace: dict[str, Any] = field(default_factory=dict)
    variants: dict[Name, dict[str, Any] | None] = field(default_factory=dict)
    baseline: str = ""
    sweep: dict[str, list[Any]] = field(default_factory=dict)
    facets: dict[str, list[Any]] = field(default_factory=dict)
    tune: Tune | None = None
    short: dict[str, Any] = field(default_factory=dict)


class Case(Struct, frozen=True):
    """Everything about a run but its seed."""

    facet: str
    variant: str
    setup: RunSetup
    trace: TraceSetup
    own: OwnModules = field(default_factory=dict)  # the user's code, as it was when the file was read
    yardstick: RunSetup | None = None  # whose cluster slowdowns are measured by; None: its own

    def key(self, seed: int) -> str:
        """Of all that decides a run's result."""
        own = key_of(self.setup, self.trace, seed, self.own)
        if self.yardstick is None:
            return own
        return hashlib.sha256(f"{own} {key_of(self.yardstick, self.trace, seed)}".encode()).hexdigest()


class Experiment(Struct, frozen=True, kw_only=True):
    """A file that was read and checked."""

    name: str
    question: str
    claim: str  # in words
    claims: tuple[Claim, ...] = ()  # in numbers
    seeds: tuple[int, ...]
    baseline: str
    cases: tuple[Case, ...]  # facet by facet, in the order of the file
    tune: Tune | None
    tune_seeds: tuple[int, ...]
    text: str  # the file, what it is called, and where it lies
    filename: str
    folder: str
    was_run: bool

    @property
    def facets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case.facet for case in self.cases))

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case.variant for case in self.cases))

    def asks_for_the_same_as(self, other: Experiment) -> bool:
        """Whether the same runs are compared; comments, words and claims may differ."""

        def asked(one: Experiment) -> tuple[object, ...]:
            runs = [(case.facet, case.variant, case.setup, case.trace) for case in one.cases]
            chosen = one.tune and (one.tune.minimise, one.tune.among)
            return runs, one.seeds, one.baseline, chosen, one.tune_seeds

        return asked(self) == asked(other)

    def case(self, variant: str, facet: str) -> Case:
        for case in self.cases:
            if (case.variant, case.facet) == (variant, facet):
                return case
        of_facet = facet not in self.facets
        name, there = (f"facet {facet!r}", self.facets) if of_facet else (f"variant {variant!r}", self.variants)
        raise InputError(f"{self.filename}: there is no {name}: there are {', '.join(filter(None, there)) or 'none'}")


def read_experiment(path: Path, *, short: bool = False) -> Experiment:
    """InputError in one line that names file and key."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_experiment(SHORT_FORM + text if short else text, str(path), path.parent)


def parse_experiment(text: str, filename: str, folder: Path, *, was_run: bool = False) -> Experiment:
    """The experiment that this text describes; files that it names lie in the folder.

    Of one that was run, only the results are looked at: what it names need not be there any more.
    """
    folder = folder.resolve()
    content = content_of(text, filename)
    own = {key: value for key, value in content.items() if key in _Written.__struct_fields__}
    base = {key: value for key, value in content.items() if key not in own}
    written: _Written = _convert(own, _Written, filename)
    seeds = _seeds(written.seeds, f"{filename}: seeds")
    tune = written.tune
    tune_seeds = _seeds(tune.seeds, f"{filename}: tune.seeds") if tune else ()
    refuse_same_seeds(tune_seeds, seeds, filename)
    overrides = dict(_variants(written, filename))
    # Several seeds of one file are drawn from it, unless it says otherwise.
    trace = {**({"block_hours": "auto"} if len(seeds) + len(tune_seeds) > 1 else {}), **written.trace}
    cases = [
        _case(facet, variant, {**base, "trace": trace}, (facet_keys, keys), filename, folder, was_run)
        for facet, facet_keys in combinations(written.facets, f"{filename}: facets") or [("", {})]
        for variant, keys in overrides.items()
    ]
    baseline = written.baseline or next(iter(overrides))
    _check_names(baseline, written, overrides, filename)
    refuse_other_meters({(case.facet, case.variant): case.setup for case in cases}, baseline, filename)
    if tune and not was_run:
        refuse_same_jobs([case.trace for case in cases], filename)
    return Experiment(
        name=(written.name or Path(filename).stem) + ("-short" if text.startswith(SHORT_FORM) else ""),
        question=written.question,
        claim=written.claim,
        claims=() if text.startswith(SHORT_FORM) else tuple(written.claims),
        seeds=seeds,
        baseline=baseline,
        cases=tuple(_with_yardstick(cases, baseline)),
        tune=tune,
        tune_seeds=tune_seeds,
        text=text,
        filename=Path(filename).name,
        folder=str(folder),
        was_run=was_run,
    )


def _variants(written: _Written, filename: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and overrides: what is written out, then the combinations of the sweep."""
    yield from ((name, keys or {}) for name, keys in written.variants.items())
    for name, keys in combinations(written.sweep, f"{filename}: sweep"):
        if name in written.variants:
            raise InputError(f"{filename}: sweep: its variant {name!r} is there already")
        yield name, keys
    if not written.variants and not written.sweep:
        yield ALONE, {}


def _case(
    facet: str,
    variant: str,
    base: dict[str, Any],
    overrides: Sequence[Mapping[str, Any]],
    filename: str,
    folder: Path,
    was_run: bool,
) -> Case:
    place = filename if variant == ALONE else f"{filename}: {variant}"
    content: dict[str, Any] = base
    for keys in overrides:
        content = with_overrides(content, keys, place)
    asked = content.pop("trace")
    if not asked.get("file") and asked.get("block_hours") == "auto":
        asked = {key: value for key, value in asked.items() if key != "block_hours"}
    trace: TraceSetup = _convert(asked, TraceSetup, place, "trace.")
    _check_budgets(content.get("budgets"), place)
    setup: RunSetup = _convert(content, RunSetup, place)
    if trace.file:
        trace = structs.replace(trace, file=str(folder / trace.file))
    if setup.weather.file:
        setup = structs.replace(setup, weather=structs.replace(setup.weather, file=str(folder / setup.weather.file)))
    if setup.settings.get(CATALOGUE):
        path = str(folder / str(setup.settings[CATALOGUE]))
        setup = structs.replace(setup, settings={**setup.settings, CATALOGUE: path})
    if not was_run:
        check_setup(setup, place)
    return Case(facet, variant, setup, trace, {} if was_run else own_modules(setup, folder))


def _with_yardstick(cases: Sequence[Case], baseline: str) -> Iterator[Case]:
    """Slower nodes must not make a slow job look quick: a variant with other nodes is measured by the baseline's."""
    of_facet = {case.facet: _yardstick(case.setup) for case in cases if case.variant == baseline}
    for case in cases:
        shared = of_facet[case.facet]
        yield case if _yardstick(case.setup) == shared else structs.replace(case, yardstick=shared)


def _yardstick(setup: RunSetup) -> RunSetup:
    """What says how fast a job could be: nodes, and the file that knows their models."""
    models = {key: value for key, value in setup.settings.items() if key == CATALOGUE}
    return RunSetup(cluster=setup.cluster, settings=models)


def _convert(content: object, kind: type[Any], place: str, below: str = "") -> Any:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$")
        key = below + path.rstrip("`").lstrip(".")
        raise InputError(f"{place}: {key.rstrip('.')}: {said}" if key else f"{place}: {said}") from None


def _check_budgets(budgets: object, place: str) -> None:
    """By name: an error within a mapping would not say where."""
    for name, spec in budgets.items() if isinstance(budgets, dict) else ():
        key = f"budgets.{name}"
        try:
            refuse_unknown_fields(spec, key)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        _convert(spec, PowerBudgetSpec, place, f"{key}.")


def _seeds(written: Seeds, origin: str) -> tuple[int, ...]:
    try:
        return parse_seeds(written)
    except ValueError as error:
        raise InputError(f"{origin}: {error}") from None


def _check_names(baseline: str, written: _Written, variants: Mapping[str, object], filename: str) -> None:
    named = [("baseline", baseline), *(("claims", claim.variant) for claim in written.claims)]
    measures = [("claims", claim.measure) for claim in written.claims]
    if written.tune:
        named += [("tune.among", name) for name in written.tune.among]
        measures.append(("tune.minimise", written.tune.minimise))
    for key, name in named:
        if name not in variants:
            raise InputError(f"{filename}: {key}: there is no variant {name!r}: there are {', '.join(variants)}")
    for key, name in measures:
        if name not in KNOWN:
            raise InputError(f"{filename}: {key}: there is no measure {name!r}: there are {', '.join(KNOWN)}")
