"""What a twin says of power budgets: the operator's order, and the agent's confirmation of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from joulie.model.api.fields import Generation, Part, Watts


class BudgetCaps(Part, frozen=True):
    """Caps in watts of each CPU package and of each GPU board."""

    cpu_watts_per_package: Annotated[Watts, Meta(description="Watts of each CPU package.")] | None = None
    gpu_watts_per_gpu: Annotated[Watts, Meta(description="Watts of each GPU board; absent without a GPU.")] | None = (
        None
    )


class BudgetOrder(Part, frozen=True):
    """The caps that power budgets leave this node; the agent holds the lower of these and the profile's caps."""

    order: Annotated[Generation, Meta(description="Counts the orders of this twin.")]
    caps: Annotated[BudgetCaps, Meta(description="Not to be exceeded.")]
    at_most: (
        Annotated[BudgetCaps, Meta(description="The most that devices may hold until the order is confirmed.")] | None
    ) = None
    groups: (
        Annotated[
            list[Annotated[str, Meta(max_length=317)]],
            Meta(max_length=64, description="Groups of budgets that the node counts in."),
        ]
        | None
    ) = None
    released: Annotated[bool, Meta(description="No budget holds this node any more.")] | None = None
    reason: Annotated[str, Meta(max_length=1024, description="Why so much and no more.")] | None = None


class BudgetConfirmation(Part, frozen=True):
    """What the agent read back from the devices after it had followed an order."""

    twin_uid: Annotated[str, Meta(max_length=128, description="metadata.uid of the twin.")]
    order: Annotated[Generation, Meta(description="The order that was followed; 0: there was none.")]
    boot_id: Annotated[str, Meta(max_length=128, description="The node's boot in which devices were read.")]
    session: Annotated[Generation, Meta(description="Counts the lives of the node's agents.")]
    sequence: Annotated[Generation, Meta(description="Counts the confirmations of this session.")]
    held: Annotated[BudgetCaps, Meta(description="What devices hold; absent: nothing in watts.")] | None = None
