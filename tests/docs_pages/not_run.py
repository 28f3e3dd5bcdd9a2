"""The one list of commands in the documents that these tests do not run, each with the reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.docs_pages.blocks import Block, Command


class NotRun(NamedTuple):
    pages: str  # a regular expression of the page's path
    command: str  # how the command begins, as a regular expression
    reason: str


ANY = r".*"
TABLE = (
    NotRun(ANY, r"make (?:run|demo)\b", "tests/demo starts the demo as a process, with and without a terminal"),
    NotRun(ANY, r"joulie demo(?! replay)", "tests/demo starts it, lets it run and interrupts it"),
    NotRun(ANY, r"make (?:test|docs)\b", "this is what runs the tests and builds the site"),
    NotRun(ANY, r"make cluster\b", "goes on until Ctrl-C; tests/testbed starts it"),
    NotRun(ANY, r"export (?:PATH|KUBECONFIG)=", "the reader of these tests has both"),
    NotRun(
        ANY, r"docker ", "there is no container engine; tests/chart/test_image.py carries out the Dockerfile's steps"
    ),
    NotRun(r".*/install\.md", r"joulie doctor", "finds that no pod runs; tests/cli_live has a healthy cluster"),
    NotRun(ANY, r"kubectl delete namespace ", "without a controller nobody empties a namespace"),
    NotRun(ANY, r"kubectl .*\blogs\b", "without a kubelet pods have no logs"),
    NotRun(ANY, r"kubectl .*\bport-forward\b", "without a kubelet there is no pod to forward to"),
    NotRun(ANY, r"helm .*monitoring\.enabled=true", "needs the Prometheus operator's kinds; tests/chart renders them"),
    NotRun(ANY, r"helm uninstall ", "its job needs controllers; tests/chart/test_life.py plays them"),
    NotRun(ANY, r"joulie cleanup --crds$", "asks first; tests/cli_live/test_cleaning_up.py says yes"),
    NotRun(r".*/policy\.md", r"pip install \.", "tests/test_policy_howto.py installs the page's package"),
    NotRun(r".*/policy\.md", r"joulie plan .*night_eco", "tests/test_policy_howto.py runs it with the package"),
    NotRun(
        r".*/cooling\.md", ANY, "tests/test_policy_howto.py and tests/test_fmu_cooling.py install and run the models"
    ),
    NotRun(r".*/kwok\.md", r"kwok ", "building KWOK takes minutes; the test cluster's nodes stand in for its nodes"),
)


def reason_not_to_run(block: Block, command: Command) -> str | None:
    """Why this command is left out; None where it is to be run."""
    return next((row.reason for row in TABLE if applies(row, block, command)), None)


def applies(row: NotRun, block: Block, command: Command) -> bool:
    return bool(re.fullmatch(row.pages, block.page) and re.match(row.command, command.text))
