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
    NotRun(ANY, r"make node\b", "goes on until Ctrl-C; tests/node starts it"),
    NotRun(ANY, r".venv/bin/python -m soak\b", "takes half an hour; tests/soak runs its short form"),
    NotRun(ANY, r"export (?:PATH|KUBECONFIG)=", "the reader of these tests has both"),
    NotRun(ANY, r"docker ", "there is no container engine; tests/image builds the Dockerfile with buildah"),
    NotRun(ANY, r"make release\b", "tests/image makes a release and tries what is in it"),
    NotRun(r".*/release\.md", r"skopeo|cosign|kubectl krew|helm install joulie oci:", "needs a registry and keys"),
    NotRun(r".*/install\.md", r"joulie doctor", "finds that no pod runs; tests/node/test_pages.py has pods that do"),
    NotRun(ANY, r"kubectl delete namespace ", "needs a controller; tests/node/test_pages.py has one"),
    NotRun(ANY, r"kubectl .*\blogs\b", "without a kubelet pods have no logs"),
    NotRun(ANY, r"kubectl .*\bport-forward\b", "needs a kubelet; tests/node/test_pages.py has one"),
    NotRun(ANY, r"helm .*monitoring\.enabled=true", "needs the Prometheus operator's kinds; tests/chart renders them"),
    NotRun(ANY, r"helm test ", "its pod needs a kubelet; tests/node/test_pages.py has one"),
    NotRun(ANY, r"helm uninstall ", "its job needs controllers; tests/node/test_pages.py has them"),
    NotRun(ANY, r"joulie cleanup --crds$", "asks first; tests/cli/act/test_cleanup.py says yes"),
    NotRun(r".*/policy\.md", r"pip install \.", "tests/plugins/test_howto_packages.py installs the page's package"),
    NotRun(
        r".*/policy\.md", r"joulie plan .*night_eco", "tests/plugins/test_howto_packages.py runs it with the package"
    ),
    NotRun(
        r".*/cooling\.md",
        ANY,
        "tests/plugins/test_howto_packages.py and tests/sources/test_fmu_cooling.py install and run the models",
    ),
    NotRun(r".*/kwok\.md", r"kwok |kubectl wait .*node/fake", "tests/node/test_pages.py reads the page with KWOK"),
)


def reason_not_to_run(block: Block, command: Command) -> str | None:
    """Why this command is left out; None where it is to be run."""
    return next((row.reason for row in TABLE if applies(row, block, command)), None)


def applies(row: NotRun, block: Block, command: Command) -> bool:
    return bool(re.fullmatch(row.pages, block.page) and re.match(row.command, command.text))
