"""`joulie explain pod`: where a pod would go, and why not elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.name_completion import complete_pod
from joulie.cli.options import prints_result, reads_objects, what_if_option

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie explain pod ml/finetune-0
  joulie explain pod ml/finetune-0 -f cluster.yaml
  joulie explain pod ml/finetune-0 -f cluster.yaml --why-not gpu-c2
  kubectl get nodes,pods -A -o json | joulie explain pod ml/finetune-0 -f - --what-if

\b
How to read it:
  headroom  free percentage of the node's power budget, without the pod → with it; weight 0.7
  cooling   0.15 points for each percent of free cooling capacity
  trend     falling power gains up to 25 points, rising power loses up to 25
  profile   eco nodes attract standard pods
  relief    busy performance nodes push standard pods away
"""


@click.command(epilog=_EPILOG)
@click.argument("pod", metavar="NAMESPACE/NAME", shell_complete=complete_pod)
@reads_objects
@click.option("--why-not", metavar="NODE", help="Compare the best node with this one instead of the second best.")
@what_if_option
@prints_result
def command(source: ObjectSource, out: Output, pod: str, why_not: str | None, what_if: bool) -> None:
    """Where a pod would go, and why not elsewhere.

    Nodes are listed best first: those that would take the pod, then those that Joulie's filter rejects, then those
    without room for it. Taints, labels, free cores and GPUs are checked as kube-scheduler does; its other rules
    (memory, volumes, spreading) are not.
    """
    from joulie.cli.views.candidates import candidates
    from joulie.cli.views.pod_placement import print_story, story_document

    found = candidates(source, pod, None, what_if=what_if)
    if out.for_people:
        print_story(out.console(), found, why_not)
    else:
        out.document(story_document(found, why_not))
