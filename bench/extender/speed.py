"""The extender's answers over HTTP, against `json.loads` of what it was asked.

The extender is the process that a cluster runs, on a cluster that another process plays (bench.twin_feed); the client
keeps one connection and does nothing but send and receive. A request takes from its first byte sent to the last byte of
its answer received.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.extender.client import Connection, Times, in_turns
from bench.extender.process import ExtenderProcess, fed_extender
from bench.extender.requests import CLASSES, VERBS, message, names_body, nodes_body, one_unknown_body
from bench.figures import Figure

NODES = 5_000
GROWTH = (1_250, NODES, 20_000)
EVENTS_PER_S = 500.0
MAX_GROWTH = 5.0
MAX_P99 = 2.0


class Form(NamedTuple):
    """One way to ask: how a body is made, how often it is asked, and how much an answer may cost in `json.loads`."""

    name: str
    body: Callable[[int, str], bytes]
    rounds: int
    rounds_under_events: int
    growth_rounds: int
    loads_every: int  # rounds
    limits: Mapping[str, tuple[float, float]]  # by verb: of p50 and p99


FORMS = (
    Form("names", names_body, 1_000, 3_000, 200, 1, {"prioritize": (6.0, 12.0), "filter": (5.0, 10.0)}),
    Form("whole nodes", nodes_body, 100, 100, 20, 4, {"prioritize": (0.25, 0.35), "filter": (0.4, 0.6)}),
)
# Half of the nodes are refused, too, and one is new: the scheduler knows it, the extender does not.
ONE_UNKNOWN = Form(
    "names, one unknown", one_unknown_body, 1_000, 0, 0, 1, {"prioritize": (6.0, 12.0), "filter": (5.0, 10.0)}
)


class Measured(NamedTuple):
    """The same requests, many times."""

    times: Mapping[str, Times]  # by verb and class
    loads: Times

    def worst(self, verb: str, of: Callable[[Times], float]) -> tuple[float, str]:
        """The larger of both classes, and which it is."""
        return max((of(self.times[f"{verb} {each}"]), each) for each in CLASSES)


def extender_figures(console: Console) -> list[Figure]:
    """the extender over HTTP"""
    figures: list[Figure] = []
    quiet: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running, console.status("") as status:
        folder = Path(name)
        status.update(f"starting extenders that know {', '.join(f'{nodes:,}' for nodes in GROWTH)} nodes")
        extenders = {nodes: running.enter_context(fed_extender(folder, nodes)) for nodes in GROWTH}
        for form in (*FORMS, ONE_UNKNOWN):
            status.update(f"extender: {NODES:,} {form.name}")
            quiet[form.name] = measured = measure(extenders[NODES], form, NODES, form.rounds)
            _print_times(console, f"{NODES:,} {form.name}, nothing else happens", measured)
            figures += _against_loads(form, measured)
            if form.growth_rounds:
                status.update(f"extender: {form.name}, growth")
                figures += _growth(form, extenders)
        for nodes, extender in extenders.items():
            console.print(f"{nodes:>6,} nodes: {_memory(extender)}", highlight=False)
    for form in FORMS:
        with console.status(f"extender: {NODES:,} {form.name} while twins change"):
            figures += _under_events(console, form, quiet[form.name])
    return figures


def measure(extender: ExtenderProcess, form: Form, nodes: int, rounds: int) -> Measured:
    """Both verbs for both classes, in turns with the yardstick. The first answers are looked at, not measured."""
    bodies = {each: form.body(nodes, each) for each in CLASSES}
    with Connection(extender.port, largest=2 * max(map(len, bodies.values())) + 4_000_000) as connection:
        requests = {
            f"{verb} {each}": (connection, message(verb, body)) for verb in VERBS for each, body in bodies.items()
        }
        for each in CLASSES:
            _check(connection, {verb: requests[f"{verb} {each}"][1] for verb in VERBS}, nodes, each)
        return Measured(*in_turns(requests, rounds, bodies["standard"], form.loads_every))


def _check(connection: Connection, messages: Mapping[str, bytes], nodes: int, workload_class: str) -> None:
    """A wrong answer could be a fast one."""
    connection.seconds(messages["prioritize"])
    scored = len(connection.answer())
    connection.seconds(messages["filter"])
    answer = connection.answer()
    kept = len(answer["NodeNames"] or answer["Nodes"]["items"])
    expected = nodes if workload_class == "standard" else nodes // 2  # every other generated node is eco
    if scored != nodes or abs(kept - expected) > 1:  # one may be unknown
        raise SystemExit(f"{nodes} nodes, {workload_class}: {scored} were scored and {kept} kept: nothing was measured")


def _against_loads(form: Form, measured: Measured) -> Iterable[Figure]:
    base_s = measured.loads.p50_s
    for verb in VERBS:
        for point, of, limit in (("p50", _p50_s, form.limits[verb][0]), ("p99", _p99_s, form.limits[verb][1])):
            took_s, workload_class = measured.worst(verb, of)
            yield Figure(
                f"{verb} {NODES:,} {form.name}, {point}",
                "json.loads",
                took_s / base_s,
                limit,
                f"{took_s * 1e3:.2f} ms of {base_s * 1e3:.2f} ms, {workload_class}",
            )


def _under_events(console: Console, form: Form, quiet: Measured) -> list[Figure]:
    """The slowest of a hundred, while twins change and Prometheus scrapes."""
    with tempfile.TemporaryDirectory() as folder, fed_extender(Path(folder), NODES, EVENTS_PER_S) as extender:
        before = extender.state()
        measured = measure(extender, form, NODES, form.rounds_under_events)
        after = extender.state()
        changed = sum(state["measuredPowerW"] != before[node]["measuredPowerW"] for node, state in after.items())
        title = f"{NODES:,} {form.name}, {EVENTS_PER_S:.0f} changes of twins a second, a scrape a second"
        _print_times(console, title, measured)
        console.print(f"{changed:,} of {len(after):,} nodes changed meanwhile; {_memory(extender)}", highlight=False)
    if changed == 0:
        raise SystemExit("no twin changed: nothing was measured")
    machine = _spread(measured.loads)  # what it does itself to work that never waits
    return [
        Figure(
            f"{name}, {form.name}, while twins change: p99",
            "its p50",
            _spread(times),
            MAX_P99,
            f"{times.p99_s * 1e3:.2f} ms of {times.p50_s * 1e3:.2f} ms; "
            f"where nothing happens {_spread(quiet.times[name]):.2f}, json.loads alone {machine:.2f}",
        )
        for name, times in measured.times.items()
    ]


def _spread(times: Times) -> float:
    return times.p99_s / times.p50_s


def _growth(form: Form, extenders: Mapping[int, ExtenderProcess]) -> Iterable[Figure]:
    """Four times the nodes, asked about in turns."""
    bodies = {nodes: {each: form.body(nodes, each) for each in CLASSES} for nodes in extenders}
    with contextlib.ExitStack() as open_connections:
        requests: dict[str, tuple[Connection, bytes]] = {}
        for nodes, extender in extenders.items():
            largest = 2 * len(bodies[nodes]["standard"]) + 4_000_000
            connection = open_connections.enter_context(Connection(extender.port, largest))
            for verb, each in itertools.product(VERBS, CLASSES):
                requests[f"{verb} {each} {nodes}"] = connection, message(verb, bodies[nodes][each])
        times, _ = in_turns(requests, form.growth_rounds)
    for few, many in itertools.pairwise(extenders):
        for verb in VERBS:
            ratio, each = max(
                (times[f"{verb} {each} {many}"].p50_s / times[f"{verb} {each} {few}"].p50_s, each) for each in CLASSES
            )
            seconds = [times[f"{verb} {each} {nodes}"].p50_s for nodes in (many, few)]
            detail = f"{many / few:g} × the nodes: {seconds[0] * 1e3:.2f} ms of {seconds[1] * 1e3:.2f} ms, {each}"
            yield Figure(f"{verb} {form.name}, {few:,} → {many:,} nodes", "itself", ratio, MAX_GROWTH, detail)


def _p50_s(times: Times) -> float:
    return times.p50_s


def _p99_s(times: Times) -> float:
    return times.p99_s


def _memory(extender: ExtenderProcess) -> str:
    return f"extender's memory {extender.memory_mb():.0f} MB, peak {extender.peak_mb():.0f} MB"


def _print_times(console: Console, title: str, measured: Measured) -> None:
    table = Table(title=title)
    for heading in ("request", "p50", "p99", "slowest", "p50 / json.loads", "p99 / json.loads"):
        table.add_column(heading, justify="left" if heading == "request" else "right")
    base_s = measured.loads.p50_s
    for name, times in ({"json.loads": measured.loads} | dict(measured.times)).items():
        seconds = (times.p50_s, times.p99_s, max(times.seconds))
        ratios = (times.p50_s / base_s, times.p99_s / base_s)
        table.add_row(name, *(f"{each * 1e3:.2f} ms" for each in seconds), *(f"{each:.3f}" for each in ratios))
    console.print(table)
