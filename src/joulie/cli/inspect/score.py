"""`joulie score`: what every node scores for one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import pod_options, prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie score -f cluster.yaml --pod ml/finetune-0
  joulie score -f cluster.yaml --pod-file new-pod.yaml -o json
  kubectl get nodes,pods -A -o json | joulie score -f - --pod ml/finetune-0 --what-if

\b
How to read it:
  score = 0.7 × headroom after the pod + cooling + trend + profile + relief, limited to 0–100
  50 is the neutral score of a node without a twin, or with a stale one

\b
For an explanation of the numbers: joulie explain pod ml/finetune-0 -f cluster.yaml
"""


@click.command(epilog=_EPILOG)
@reads_objects
@pod_options
@prints_result
def command(source: ObjectSource, out: Output, pod: str | None, pod_file: str | None, what_if: bool) -> None:
    """What every node scores for one pod.

    Like the scheduler extender: first the filter (performance pods stay off eco and draining nodes), then a score from
    0 to 100. Infeasible nodes are scored too. Whether the pod fits a node is up to kube-scheduler.

    Scores are based on the NodeTwins as the operator last wrote them. A cluster without Joulie has none: use --what-if
    to score against the twins that the operator would write now.
    """
    from joulie.cli.views.candidates import candidates

    found = candidates(source, pod, pod_file, what_if=what_if)
    if not out.for_people:
        out.document(found.document())
        return
    from joulie.cli.views.score_table import print_scores

    print_scores(out.console(), found)
