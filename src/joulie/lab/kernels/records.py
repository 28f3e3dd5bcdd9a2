"""The records of a run's tables: what is known of a node, a pod, a job and of the run itself.

What is read together stands in one line of the processor's cache (64 bytes, eight numbers).
"""

from __future__ import annotations

import numpy as np

# One record a node: what it is, how it stands, what is thought of it. Fields that are read together stand in one line
# of the cache (eight numbers); an odd number of lines, so that one field of all nodes does not crowd a part of it.
NODE = np.dtype(
    [
        # What a step of the plant looks at
        ("warm_at_s", "f8"),
        ("cpu_w", "f8"),
        ("cpu_max_w", "f8"),
        ("cpu_warm_c", "f8"),  # above the air
        ("cpu_throttle", "f8"),
        ("gpu_throttle", "f8"),
        ("frequency", "f8"),
        ("wall", "i8"),  # in WATT units
        # What decides whether a pod fits, and what the extender knows: the columns of `control.scoring`
        ("free_mcores", "i8"),
        ("free_gpus", "i8"),
        ("ready_s", "f8"),  # works from then on
        ("headroom", "f8"),  # percent of the budget that is free, recent pods taken off
        ("points_per_w", "f8"),
        ("rest_standard", "f8"),
        ("rest_performance", "f8"),
        ("sort", "i4"),  # of machine
        ("class_code", "i1"),
        ("asleep", "?"),
        ("is_reserved", "?"),  # for the first in the queue
        ("takes_cpu_work", "?"),
        # More of both
        ("inverse_cores", "f8"),
        ("inverse_gpus", "f8"),
        ("cpu_full_w", "f8"),
        ("gpu_full_standard_w", "f8"),
        ("gpu_full_performance_w", "f8"),
        ("mcores", "i8"),
        ("gpus", "i8"),
        ("gpu_model", "i4"),  # as in the trace; below ANY_MODEL: none that the trace names
        ("first_pod", "i4"),  # of a list of the pods here
        # What a pod changes that comes or goes
        ("load", "i8"),
        ("pods", "i4"),
        ("performance_pods", "i4"),
        ("bound", "i8"),  # WATT units that all pods here add, as the twin would estimate it
        ("recent", "i8"),  # WATT units that pods add which the twin has not seen
        ("capped_w", "f8"),
        ("measured_w", "f8"),
        ("budget_w", "f8"),
        ("no_room_until_s", "f8"),  # as long as no pod leaves, for requests of so much or more:
        # What is asked when one comes
        ("cpu_plain_w", "f8"),  # as `cpu_full_w`, without cooling, for pods that the twin has not seen
        ("gpu_plain_standard_w", "f8"),
        ("gpu_plain_performance_w", "f8"),
        ("core_speed", "f8"),
        ("gpu_speed", "f8"),
        ("soonest_end_s", "f8"),  # none of the pods here is expected to end before
        ("no_room_mcores", "i4"),
        ("no_room_gpus", "i4"),
        ("spare_mcores", "i4"),  # what the first in the queue leaves, where something is kept for it
        ("spare_gpus", "i4"),
        # What it draws
        ("cpu_idle_w", "f8"),
        ("cpu_floor", "f8"),
        ("cpu_cap_w", "f8"),
        ("energy_j", "f8"),
        ("metered_at_s", "f8"),
        ("empty_since_s", "f8"),
        ("zone", "i4"),
        ("curve_at", "i4"),  # of its CPUs in the tables
        ("sweep", "i4"),
        ("violating", "?"),
        # What its boards draw
        ("hottest_w", "f8"),
        ("gpu_max_w", "f8"),  # of one board
        ("gpu_warm_c", "f8"),
        ("gpu_cap_w", "f8"),
        ("gpu_idle_w", "f8"),
        ("gpu_w", "f8"),  # all boards
        ("kept_frequency", "f8"),  # for which the draw of each pod's boards is known
        ("kept_cap_w", "f8"),
    ],
    align=True,
)

# One record a pod that has come and not gone, in lines as well.
POD = np.dtype(
    [
        # What is read in passes over the pods of a node
        ("after", "i4"),  # next on its node
        ("before", "i4"),
        ("number", "i4"),  # in the trace
        ("job", "i4"),  # its record
        ("shape", "u4"),
        ("node", "i4"),
        ("bound_in", "i4"),  # the tick after which it was bound
        ("runs", "?"),
        ("is_paced", "?"),  # its rate, and what its boards draw, are as of `kept_frequency` of its node
        ("expected_end_s", "f8"),  # as of its job
        ("board_w", "f8"),  # of each board that it holds
        ("boards_w", "f8"),  # of all of them
        ("boards_demand_w", "f8"),  # uncapped
        # What it brings along
        ("load", "i8"),
        ("added", "i8"),  # WATT units, as the twin would estimate it
        ("rate", "f8"),  # share of its work a second, at the speed of its node
        ("cpu_rate", "f8"),  # on reference cores; infinite: none to do
        ("gpu_rate", "f8"),
        ("gpu_utilisation", "f8"),
        ("feed_intensity", "f8"),
        ("gpu_sensitivity", "f8"),
        # What counts where cores are slowed
        ("cpu_sensitivity", "f8"),
        ("memory_intensity", "f8"),
        ("io_intensity", "f8"),
        ("unused", "u1", 40),  # up to the end of a line
    ],
    align=True,
)

# One record a job that has come and not gone.
JOB = np.dtype(
    [
        ("number", "i4"),  # in the trace, in the order of arrival
        ("kind", "u4"),
        ("queue_place", "i4"),  # in the queue, there or before
        ("next_waiting", "i4"),  # of its kind
        ("previous_waiting", "i4"),
        ("first_pod", "i4"),
        ("last_pod", "i4"),  # the first that is not its own
        ("state", "i1"),
        ("reference_s", "f8"),  # on reference devices
        ("end_s", "f8"),
        ("left", "f8"),  # share of its work
        ("rate", "f8"),
        ("since_s", "f8"),
        ("expected_end_s", "f8"),  # as a user would have said
        ("refused_at", "i8"),  # relief that did not help it yet
    ],
    align=True,
)

# One record a place in the queue: what a pass over the queue reads of every waiting job.
PLACE = np.dtype(
    [
        ("reference_s", "f8"),
        ("job", "i4"),  # ABSENT: it has left
        ("kind", "u4"),  # where it has left: one more than there are
    ],
    align=True,
)

# One record a shape of pods, and one a kind of jobs.
SHAPE = np.dtype(
    [
        ("mcores", "i8"),
        ("gpus", "i8"),
        ("gpu_model", "i4"),
        ("performance", "?"),
        ("first_node", "i4"),  # no node before it can ever run the pod
        ("last_node", "i4"),  # nor this one or any behind it
        ("like", "i4"),  # the first shape that is ranked as this one
        ("block", "u4"),  # its tree
        ("lane", "u4"),  # in that
        ("in_gangs", "?"),
        ("relieved_at", "i8"),  # relief when a node with room for it was freed
        ("given_at", "i8"),  # the move after which scores were given
    ],
    align=True,
)
# One record a block of shapes in lanes.
BLOCK = np.dtype(
    [
        ("seen", "i8"),  # how many changes of nodes its tree knows
        ("counted", "i8"),  # how many of them its slots know
        ("counted_tick", "i8"),  # the tick after which they were counted
        ("first_node", "i4"),  # as of its shapes
        ("last_node", "i4"),
    ],
    align=True,
)
KIND = np.dtype(
    [
        ("last", "i4"),  # waiting jobs, in the order of arrival
        ("place", "i4"),  # among the kinds that a look tries
        ("tried", "u4"),  # a list of these kinds
        ("shape", "u4"),  # of its first pod
        ("pods", "i4"),  # in each job
        ("alike", "i4"),  # of that shape; 1 where others follow
        ("hopeless", "?"),  # there is not even room for these
        ("failed_s", "f8"),  # what ran as long did not fit beside the reservation
        ("counts", "i8"),  # 1: it is looked at; 0: it is left out of a look
        ("performance", "i8"),  # pods of class performance in each job
        ("fails_at", "i8"),  # nothing was freed since it last did not fit
    ],
    align=True,
)

# One record a cooling zone.
ZONE = np.dtype(
    [
        ("first_node", "i8"),
        ("last_node", "i8"),  # the first of the next zone
        ("wall", "i8"),  # WATT units of all its nodes
        ("since_s", "f8"),
        ("step_j", "f8"),  # of IT since the last step
        ("rated_w", "f8"),
        ("inlet_c", "f8"),
        ("cpu_air_c", "f8"),  # the inlet as a CPU feels it, with its lag
        ("gpu_air_c", "f8"),
        ("it_j", "f8"),
        ("fan_j", "f8"),
        ("compressor_j", "f8"),
        ("removed_j", "f8"),
        ("cooling_w", "f8"),  # of the last step
        ("throttled", "i8"),  # nodes
    ],
    align=True,
)

# One record a group of a power budget.
GROUP = np.dtype(
    [
        ("wall", "i8"),  # WATT units of all its nodes
        ("since_s", "f8"),
        ("share", "f8"),  # of its nodes' power that its feed carries
        ("reserve_w", "f8"),  # of what is no node
        ("limit_w", "f8"),
        ("above_s", "f8"),
        ("worst_w", "f8"),  # above its limit
        ("worst_pct", "f8"),  # of its limit
    ],
    align=True,
)

# Single numbers.
RUN = np.dtype(
    [
        ("now_s", "f8"),
        ("step_s", "f8"),
        ("next_step_s", "f8"),
        ("steps", "i8"),
        ("peak_w", "f8"),
        ("violations", "i8"),  # nodes above a cap
        ("violation_s", "f8"),
        ("throttled_s", "f8"),
        ("counted_at_s", "f8"),
        ("changes", "i8"),  # of nodes, ever
        ("freed", "i8"),  # times that something was freed
        ("ranking", "i8"),
        ("seed", "u8"),
        ("backfill", "?"),
        ("depth", "i8"),
        ("estimate_factor", "f8"),
        ("sleeps", "?"),
        ("sleep_after_s", "f8"),
        ("sleep_w", "f8"),
        ("wake_s", "f8"),
        ("wake_energy_j", "f8"),
        ("wakes", "i8"),
        ("slowest_core", "f8"),
        ("slowest_gpu", "f8"),
        ("tick", "i8"),
        ("counts_recent", "?"),
        ("one_class", "?"),  # all nodes are performance nodes for ever
        ("everything", "?"),  # the queue is to be looked at from the beginning
        ("newcomer", "i8"),  # or only this job
        ("moves", "i8"),  # pods bound or gone, ever
        ("asks_shape", "i8"),  # scores of this shape are wanted from Python
        ("probe_job", "i8"),  # before this job is placed, the run stops
        ("probe_from_s", "f8"),
        ("it_j", "f8"),  # since the beginning, for the series
        ("cooling_j", "f8"),
        # The queue
        ("waiting", "i8"),
        ("waiting_performance", "i8"),  # pods of class performance among them
        ("running", "i8"),
        ("done", "i8"),
        ("next_arrival", "i8"),  # a number in the trace
        # Pages of records, see `job_pages`
        ("page", "i8"),  # on which the next job comes
        ("pages", "i8"),  # that were ever used
        ("unused_page", "i8"),  # of a list of those that are free again
        ("page_jobs", "i8"),  # room on each
        ("page_pods", "i8"),
        ("next_job", "i8"),  # on this one
        ("next_pod", "i8"),
        ("queue_from", "i8"),  # places of waiting jobs
        ("queue_to", "i8"),
        ("relief", "i8"),  # times that a refused job may fit
        ("relieved_at", "i8"),  # when that was so for all jobs
        ("relieved_changes", "i8"),  # changes of nodes that were looked through for it
        ("relieved_tick", "i8"),
        ("reserved_for", "i8"),
        ("reserved_until_s", "f8"),
        ("reserved_count", "i8"),
        ("ends_count", "i8"),
        ("waking_from", "i8"),
        ("waking_count", "i8"),
        ("masked_count", "i8"),
        # The extender
        ("known", "?"),  # twins are there and not stale
        ("has_groups", "?"),  # of power budgets
        ("score_max", "i8"),
    ],
    align=True,
)
