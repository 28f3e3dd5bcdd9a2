"""Policies: which nodes run at full power and which are capped.

A policy is an object with a `name` and one pure method `plan(view)` that gives every node of the view a `Choice`. It
is found through the entry-point group `joulie.policies`; the built-in ones are registered in the same way.
"""

from joulie.control.policies.interface import Choice, NodeView, Policy, PolicyView

__all__ = ["Choice", "NodeView", "Policy", "PolicyView"]
