"""A policy of one's own in ten lines: the lab runs it from this file, and packaged it runs on a cluster."""

from joulie.control.policies import Choice, PolicyView


class WhereNeeded:
    """Full power where performance-only pods run, and on every fifth node for those to come."""

    name = "where_needed"

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        choices = {}
        for place, node in enumerate(view.nodes):  # densest first
            if not node.gpu_max_w:
                choices[node.name] = Choice("performance", "caps on CPUs save little")
            elif node.performance_pods or place % 2 == 0:
                choices[node.name] = Choice("performance", "for performance-only pods")
            else:
                choices[node.name] = Choice("eco", "boards work better for each watt")
        return choices
