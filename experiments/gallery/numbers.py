"""What is kept of an experiment in the repository: the measures of every run, and how to know its bits again.

Everything that the page says is computed from these files, so a claim that no longer follows from them is found without
running anything.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from joulie.lab.analysis.compare import Comparison, Entry, compare
from joulie.lab.analysis.measures import KNOWN, Measures
from joulie.lab.experiment.definition import CATALOGUE, Case, Experiment, read_experiment
from joulie.lab.runs.perform import perform
from joulie.lab.runs.store import Provenance, Results

HERE = Path(__file__).resolve().parents[1]
SHORTENED = 16  # digits of a digest
_WORDS = ("question", "claim", "claims", "name")
_VERSIONS = ("joulie", "python", "numpy", "numba", "platform")


class Runs(Struct, frozen=True):
    """One variant under one facet; lists are in the order of the seeds."""

    facet: str
    variant: str
    seeds: list[int]
    digests: list[str]  # of results
    work: list[str]  # of jobs
    measures: dict[str, list[int | float | None]]  # counts stay whole numbers


class ShortRun(Struct, frozen=True):
    """A run of the short form, on its first seed."""

    facet: str
    variant: str
    digest: str
    facility_kwh: float


class Kept(Struct, frozen=True):
    """One file in `results`."""

    asked: str  # digest of what was to be run
    versions: dict[str, str]
    code: str  # digest of the sources that computed it
    runs: list[Runs]
    short: list[ShortRun]


def files(names: tuple[str, ...] = ()) -> list[Path]:
    """The experiments, by name."""
    return [path for path in sorted(HERE.glob("*.toml")) if is_experiment(path) and (not names or path.stem in names)]


def is_experiment(path: Path) -> bool:
    """Whether it asks something; the other file is a catalogue."""
    return "\nquestion = " in f"\n{path.read_text(encoding='utf-8')}"


def kept_file(path: Path) -> Path:
    """Where the numbers of an experiment lie."""
    return path.parent / "results" / f"{path.stem}.json"


def read_kept(path: Path) -> Kept:
    return msgspec.json.decode(kept_file(path).read_bytes(), type=Kept)


def write_kept(path: Path, kept: Kept) -> None:
    """A line for each measure: a change is read as such."""
    target = kept_file(path)
    target.parent.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(kept), indent=1).decode()
    target.write_text(_rows_in_lines(text) + "\n", encoding="utf-8")


def kept_of(path: Path, experiment: Experiment, results: Results) -> Kept:
    """From results that are all there; the short form is run here."""
    runs = [
        Runs(
            facet,
            variant,
            list(by_seed),
            [run.provenance.digest[:SHORTENED] for run in by_seed.values()],
            [run.provenance.jobs_digest[:SHORTENED] for run in by_seed.values()],
            {
                name: [_rounded(getattr(run.measures, name)) for run in by_seed.values()]
                for name in Measures.__struct_fields__
            },
        )
        for facet, by_variant in results.runs.items()
        for variant, by_seed in by_variant.items()
    ]
    first = next(run for by in results.runs.values() for one in by.values() for run in one.values()).provenance
    return Kept(asked_for(experiment), versions(first), first.code, runs, list(short_runs(path)))


def short_runs(path: Path) -> Iterator[ShortRun]:
    """Every variant of the short form, on its first seed."""
    experiment = read_experiment(path, short=True)
    for case in experiment.cases:
        done = perform(case, experiment.seeds[0])
        kwh = round(done.measures.facility_kwh, 3)
        yield ShortRun(case.facet, case.variant, done.provenance.digest[:SHORTENED], kwh)


def versions(provenance: Provenance) -> dict[str, str]:
    """Of what may decide about the last bits: numpy has other exponentials for processors with wider registers."""
    built: Any = np.show_config(mode="dicts")
    registers = ", ".join(built.get("SIMD Extensions", {}).get("found", []))
    return {name: getattr(provenance, name) for name in _VERSIONS} | {"simd": registers}


def asked_for(experiment: Experiment) -> str:
    """Digest of what the file asks for, and of the files that it names; words about it may change."""
    asked = {key: value for key, value in tomllib.loads(experiment.text).items() if key not in _WORDS}
    named = [_content(path) for case in experiment.cases for path in _named_files(case)]
    parts = [asked, experiment.seeds, sorted(set(named))]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:SHORTENED]


def _named_files(case: Case) -> list[Path]:
    catalogue = case.setup.settings.get(CATALOGUE)
    return [*(Path(module.file) for module in case.own.values()), *([Path(str(catalogue))] if catalogue else [])]


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def comparisons_of(kept: Kept, baseline: str) -> tuple[Comparison, ...]:
    """The same as the lab makes, one a facet; refused where the work was not the same."""
    by_facet: dict[str, dict[str, dict[int, Entry]]] = {}
    for runs in kept.runs:
        by_facet.setdefault(runs.facet, {})[runs.variant] = {
            seed: Entry(_measures(runs, place), runs.work[place]) for place, seed in enumerate(runs.seeds)
        }
    return tuple(compare(by_variant, baseline, facet) for facet, by_variant in by_facet.items())


def _measures(runs: Runs, place: int) -> Measures:
    known = {name: values[place] for name, values in runs.measures.items()}
    return msgspec.convert(dict.fromkeys(KNOWN) | known, Measures)  # a measure may be younger than the file


def _rounded(value: float | None) -> float | int | None:
    """To seven digits: more than any claim rests on."""
    return value if value is None or isinstance(value, int) else float(f"{value:.7g}")


def _rows_in_lines(text: str) -> str:
    """Lists of numbers and digests on one line each."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        bare = line.strip()
        if inside:
            lines[-1] += bare + (" " if bare.endswith(",") and bare != "]," else "")
        else:
            lines.append(line)
        if bare.endswith("[") and bare not in ('"runs": [', '"short": ['):
            inside = True
        elif bare in ("]", "],"):
            inside = False
    return "\n".join(lines)
