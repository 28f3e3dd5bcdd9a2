"""`joulie budget`: limits in watts, what is allocated and drawn, and which nodes are cut; answers what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from joulie.cli.lazy import LazyCommand, LazyGroup
from joulie.cli.name_completion import complete_group, complete_what_if
from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

TABLE = {
    "forget": LazyCommand("joulie.cli.act.budget_forget", "Afterwards", "Free the watts of a node that is gone."),
}
_EPILOG = """\b
Examples:
  joulie budget
  joulie budget --nodes --group racks/r7
  joulie budget --what-if watts=8000
  joulie budget --what-if feed-a:watts=70% --what-if racks/r7:watts=9000
  joulie budget -f cluster.yaml -f budgets.yaml
  joulie budget forget node-17

\b
How to read it:
  limit      the most that the group may draw now: the lowest of spec, windows, signal and meter
  allocated  the most that its nodes can draw now, with the caps that they hold and what no cap limits
  measured   what they draw
  floor      what they would draw at their lowest caps: no limit below it can be held
  state      within      caps are confirmed and add up to no more than the limit
             settling    within the limit, but not every cap is confirmed yet
             exceeded    nodes may draw more than the limit: a cap is missing or not confirmed
             infeasible  the floors alone need more than the limit
             reported    its mode is report: nothing is capped
             unseen      the operator has not answered to the budget as it is now

\b
To brake: joulie pause. More: docs/how-to/budgets/feed.md
"""


@click.group(cls=LazyGroup, table=TABLE, invoke_without_command=True, subcommand_metavar="[forget]", epilog=_EPILOG)
@click.option(
    "--what-if",
    "questions",
    multiple=True,
    metavar="[NAME[/GROUP]:]watts=W",
    shell_complete=complete_what_if,
    help="Show which nodes would be cut, and by how much, under another limit, in watts or percent of the present. "
    "Without a name it is the only budget, or one over all nodes if there is none. Nothing is written; repeatable.",
)
@click.option("--nodes", "-v", "with_nodes", is_flag=True, help="Also list each group's nodes, with cap and reason.")
@click.option(
    "--group", "only", metavar="NAME[/GROUP]", shell_complete=complete_group, help="Show only this budget or group."
)
@reads_objects
@prints_result
def command(source: ObjectSource, out: Output, questions: tuple[str, ...], with_nodes: bool, only: str | None) -> None:
    """Power budgets as a tree: limit, allocated, measured, floor, state and reason of each group.

    On a live cluster this is what the operator last reported. From files it is what the operator would make of the
    PowerBudgets in them, once all caps are confirmed.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    _show(source, out, questions, with_nodes, only)


def _show(source: ObjectSource, out: Output, questions: tuple[str, ...], with_nodes: bool, only: str | None) -> None:
    from joulie.cli.context import read_cluster
    from joulie.cli.views.budget_tree import tree_of

    cluster = read_cluster(source)
    if questions:
        from joulie.cli.inspect.budget_what_if import answer, print_answer

        found: Any = answer(cluster, questions)
        if out.for_people:
            print_answer(out.console(), found)
        else:
            out.document(found)
        return
    from joulie.cli.inspect.budget_table import only_group, print_tree

    tree = only_group(tree_of(cluster), only)
    if out.for_people:
        print_tree(out.console(), tree, cluster.now_s, with_nodes=with_nodes)
    else:
        out.document(tree)
