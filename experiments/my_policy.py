"""A policy of one's own in ten lines: the lab runs it from this file, and packaged it runs on a cluster."""

from joulie.control.policies import Choice, PolicyView


class GpuEco:
    """Boards are where caps save: every second node with boards is capped, unless performance-only pods run there."""

    name = "gpu_eco"

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        choices = {}
        for place, node in enumerate(view.nodes):  # densest first, so those with boards come first
            if node.gpu_max_w == 0:
                choices[node.name] = Choice("performance", "a cap on its CPUs would save nothing")
            elif place % 2 == 0 or node.performance_pods:
                choices[node.name] = Choice("performance", "for performance-only pods")
            else:
                choices[node.name] = Choice("eco", "its boards do more for each watt when capped")
        return choices
