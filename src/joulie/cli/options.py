"""Options shared by commands, gathered into one argument each: where objects come from, and how results are printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from joulie.cli.output import Format
    from joulie.model.selector import Selector

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only in newer versions

Callback = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """Where the objects come from, the time to decide at, and what overrides the environment."""

    filenames: tuple[str, ...]
    now_s: float
    policy: str | None = None
    selector: Selector | None = None
    ambient_c: float | None = None
    kubeconfig: str = ""  # this and `context` select the live cluster, which is read if there are no files
    context: str = ""
    now_is_given: bool = False  # by --now; no clock is read then


class _Parsed(ParamType):
    """A value parsed by the code that owns its format; a ValueError becomes a usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _PolicyName(ParamType):
    """The name of an installed policy. It is looked up when used, so that a plug-in is loaded at most once."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from joulie import plugins

        return [CompletionItem(name) for name in plugins.policy_names() if name.startswith(incomplete)]


def _time(text: str) -> float:
    from joulie.model.rfc3339 import parse_time_s

    return parse_time_s(text)


def _selector(text: str) -> Selector:
    from joulie.model.selector import parse_selector

    return parse_selector(text)


def _ambient(text: str) -> float:
    """Parsed like `AMBIENT_TEMP_C`, which it overrides."""
    from dataclasses import fields

    from joulie.settings import TwinSettings

    return _as_setting(
        next(field.metadata["parser"] for field in fields(TwinSettings) if field.name == "ambient_c"), text
    )


def _duration_s(text: str) -> float:
    from joulie.settings.parsing import DURATION

    return _as_setting(DURATION, text)


def above_zero(maximum: float) -> ParamType:
    """A finite number above 0 and up to the maximum, parsed like a setting."""

    def parse(text: str) -> float:
        from joulie.settings.parsing import number

        return _as_setting(number(0, maximum, above=True), text)

    return _Parsed("number", parse)


def _as_setting(parser: Any, text: str) -> float:
    try:
        return float(parser.parse(text))
    except ValueError:
        raise ValueError(f"{text!r} cannot be used: allowed is {parser.allowed}") from None


filename_option = click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="A file with Kubernetes objects (YAML, JSON, List), a folder of such files, or - for standard input; "
    "repeatable. Without it, Joulie reads the live cluster that kubectl would use.",
)
now_option = click.option(
    "--now",
    type=_Parsed("rfc3339", _time),
    metavar="TIME",
    help="The time to decide at, such as 2026-11-01T12:00:00Z.  [default: now]",
)
_POLICY = click.option(
    "--policy", type=_PolicyName(), metavar="NAME", help="The policy to plan with; overrides POLICY_TYPE."
)
_SELECTOR = click.option(
    "--selector",
    type=_Parsed("selector", _selector),
    metavar="SELECTOR",
    help="The nodes in scope, as for kubectl -l; overrides NODE_SELECTOR. '' selects all nodes.",
)
ambient_option = click.option(
    "--ambient",
    "ambient_c",
    type=_Parsed("number", _ambient),
    metavar="C",
    help="Inlet air temperature in °C; overrides AMBIENT_TEMP_C.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="A table for people, or JSON or YAML for programs, with nothing else on standard output.",
)
_KUBECONFIG = click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="As for kubectl.  [default: $KUBECONFIG, ~/.kube/config, then the pod's own account]",
)
_CONTEXT = click.option("--context", default="", metavar="NAME", help="The kubeconfig context to use.")
log_level_option = click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
no_color_option = click.option("--no-color", is_flag=True, help="Disable colours; NO_COLOR=1 does the same.")

_POD = click.option("--pod", metavar="NAMESPACE/NAME", help="A pod among the objects.")
_POD_FILE = click.option(
    "--pod-file",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="A file with one pod that is not among the objects.",
)
what_if_option = click.option(
    "--what-if",
    is_flag=True,
    help="Score against the twins that the operator would write now instead of the stored ones; "
    "gives real numbers for a cluster without Joulie.",
)


def pod_options(function: Callback) -> Callback:
    """Adds --pod, --pod-file and --what-if."""
    return _POD(_POD_FILE(what_if_option(function)))


def kubeconfig_options(function: Callback) -> Callback:
    """Adds --kubeconfig and --context."""
    return _KUBECONFIG(_CONTEXT(function))


def reads_objects(function: Callback) -> Callback:
    """Adds -f, cluster, --now, --policy and --selector; the function gets one `ObjectSource` as its first argument."""

    @filename_option
    @kubeconfig_options
    @_SELECTOR
    @_POLICY
    @now_option
    @wraps(function)
    def command(
        filenames: tuple[str, ...],
        kubeconfig: str,
        context: str,
        now: float | None,
        policy: str | None,
        selector: Selector | None,
        **rest: Any,
    ) -> None:
        now_s = clock_s() if now is None else now
        source = ObjectSource(
            filenames, now_s, policy, selector, rest.pop("ambient_c", None), kubeconfig, context, now is not None
        )
        function(source, **rest)

    return command


def reads_cluster(function: Callback) -> Callback:
    """Adds --kubeconfig and --context only: for commands that need a live cluster."""

    @kubeconfig_options
    @wraps(function)
    def command(kubeconfig: str, context: str, **rest: Any) -> None:
        source = ObjectSource((), clock_s(), None, None, rest.pop("ambient_c", None), kubeconfig, context)
        function(source, **rest)

    return command


def duration_option(flag: str, name: str, **more: Any) -> Callable[[Callback], Callback]:
    """A duration such as 2h or 90s, parsed like a setting."""
    return click.option(flag, name, type=_Parsed("duration", _duration_s), metavar="TIME", **more)


def prints_result(function: Callback) -> Callback:
    """Adds -o and --no-color; the function gets them as the keyword argument `out`, an `Output`."""

    @_OUTPUT
    @no_color_option
    @wraps(function)
    def command(*args: Any, form: Format, no_color: bool, **rest: Any) -> None:
        from joulie.cli.output import Output

        function(*args, out=Output(form, no_color), **rest)

    return cast(Callback, command)


def clock_s() -> float:
    """The only place that reads the clock."""
    import time

    return time.time()
