"""`joulie explain pod`: where a pod would go, and why not elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.complete import complete_pod
from joulie.cli.options import prints_result, reads_objects, what_if_option

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie explain pod ml/finetune-0
  joulie explain pod ml/finetune-0 -f cluster.yaml
  joulie explain pod ml/finetune-0 -f cluster.yaml --why-not gpu-c2
  kubectl get nodes,pods -A -o json | joulie explain pod ml/finetune-0 -f - --what-if

\b
How to read it:
  headroom  percent of its power budget that is free: without the pod → with it; weighs 0.7
  cooling   0.15 points for each percent of cooling capacity that is left
  trend     falling power is worth up to +25, rising power down to −25
  profile   eco nodes attract standard pods
  relief    busy performance nodes push standard pods away
"""


@click.command(epilog=_EPILOG)
@click.argument("pod", metavar="NAMESPACE/NAME", shell_complete=complete_pod)
@reads_objects
@click.option("--why-not", metavar="NODE", help="Compare the best node with this one, not with the second best.")
@what_if_option
@prints_result
def command(source: Source, out: Output, pod: str, why_not: str | None, what_if: bool) -> None:
    """Where a pod would go, and why not elsewhere.

    Nodes are listed best first: those that would take the pod, then those that Joulie's filter rejects, then those
    without room for it. Free cores and GPUs are counted from the pods there are, as kube-scheduler would; its other
    rules (taints, affinities, volumes) are not looked at.
    """
    from joulie.cli.candidates import candidates
    from joulie.cli.pod_story import print_story, story_document

    found = candidates(source, pod, None, what_if=what_if)
    if out.for_people:
        print_story(out.console(), found, why_not)
    else:
        out.document(story_document(found, why_not))
