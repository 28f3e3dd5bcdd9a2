"""Everything that may happen to a cluster under budgets, in any order, with the invariant checked after every step."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from joulie.control.budget.envelopes import Pair
from joulie.control.budget.memory import GroupLimit
from tests.control.budget.actors import MACHINES, Agent
from tests.control.budget.world import World

GROUPS = ("cluster", "feed", "rack-a", "rack-b")
NODES = ("n0", "n1", "n2", "n3", "n4")
SHARES = (0.3, 0.5, 0.6, 0.7, 0.85, 1.2)  # of what a group's nodes draw without caps

FAULTS = ("limits", "nodes", "twins", "network", "operators", "agents", "losses")
CRASHES = ("", "", "", "before it is kept", "before it is set", "before it speaks")

which = st.integers(0, 10_000)


class BudgetMachine(RuleBasedStateMachine):
    """A limit that is kept stays kept; one that a person or a machine broke is exceeded by ever less."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.faults: frozenset[str] = frozenset()
        self.allowed_w: dict[str, float] = {}
        self.checked: dict[str, tuple[float, frozenset[str]]] = {}

    # People.

    @initialize(
        share=st.sampled_from(SHARES[1:5]),
        restarts=st.integers(0, 1),
        kinds=st.lists(st.sampled_from((0, 1)), min_size=2, max_size=4),
        faults=st.frozensets(st.sampled_from(FAULTS), max_size=3),
    )
    def begin(self, share: float, restarts: int, kinds: list[int], faults: frozenset[str]) -> None:
        """Of all that may happen only some in one history: where everything happens, no limit can be kept for long."""
        self.faults = faults
        for number, kind in enumerate(kinds):
            self.world.set_node(NODES[number], ("cluster", f"rack-{'ab'[number % 2]}"), MACHINES[kind])
            self.world.make_twin(NODES[number])
        self._limit("cluster", share, restarts)
        for _ in range(8):  # until the limit is kept by confirmed caps
            self.all_components_do_their_work()

    @precondition(lambda self: "limits" in self.faults)
    @rule(group=st.sampled_from(GROUPS), share=st.sampled_from(SHARES), restarts=st.integers(0, 1))
    def a_limit_is_set(self, group: str, share: float, restarts: int) -> None:
        self._limit(group, share, restarts)

    @precondition(lambda self: "limits" in self.faults and self.world.limits)
    @rule(number=which)
    def a_budget_is_removed(self, number: int) -> None:
        self.world.set_limit(sorted(self.world.limits)[number % len(self.world.limits)], None)

    @precondition(lambda self: "nodes" in self.faults)
    @rule(name=st.sampled_from(NODES), groups=st.sets(st.sampled_from(GROUPS)), kind=st.sampled_from((0, 1)))
    def a_node_joins_or_moves(self, name: str, groups: set[str], kind: int) -> None:
        agent = self.world.agents.get(name)
        self.world.set_node(name, tuple(sorted(groups)), agent.machine if agent else MACHINES[kind])

    @precondition(lambda self: "nodes" in self.faults and self.world.nodes)
    @rule(number=which)
    def a_node_is_deleted(self, number: int) -> None:
        self.world.delete_node(sorted(self.world.nodes)[number % len(self.world.nodes)])

    @precondition(lambda self: "twins" in self.faults and self.world.twins)
    @rule(number=which)
    def a_twin_is_deleted(self, number: int) -> None:
        self.world.delete_twin(sorted(self.world.twins)[number % len(self.world.twins)])

    @precondition(lambda self: "twins" in self.faults and self.world.nodes)
    @rule(number=which)
    def a_policy_makes_a_twin(self, number: int) -> None:
        self.world.make_twin(sorted(self.world.nodes)[number % len(self.world.nodes)])

    @rule(name=st.sampled_from(NODES), cpu_w=st.integers(0, 200), gpu_w=st.integers(0, 400))
    def the_work_changes(self, name: str, cpu_w: int, gpu_w: int) -> None:
        self.world.demand[name] = Pair(cpu_w, gpu_w)

    # The network and the clock.

    @rule(seconds=st.sampled_from((0.5, 2.0, 5.0, 11.0, 16.0, 61.0, 700.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.now_s += seconds

    @precondition(lambda self: self.world.requests)
    @rule(number=which, answered=st.booleans(), again=st.booleans())
    def an_order_arrives(self, number: int, answered: bool, again: bool) -> None:
        requests = self.world.requests
        request = requests[number % len(requests)]
        self.world.arrive(request, answered=answered)
        if not again:
            requests.remove(request)

    @precondition(lambda self: "network" in self.faults and self.world.requests)
    @rule(number=which)
    def an_order_is_lost(self, number: int) -> None:
        del self.world.requests[number % len(self.world.requests)]

    @precondition(lambda self: self.world.reports)
    @rule(number=which, lost=st.booleans(), again=st.booleans())
    def a_report_arrives(self, number: int, lost: bool, again: bool) -> None:
        reports = self.world.reports
        report = reports[number % len(reports)]
        if not lost:
            self.world.report_arrives(*report)
        if not again:
            reports.remove(report)

    @rule(number=st.integers(0, 1), kind=st.sampled_from(("nodes", "twins", "limits")), events=st.integers(1, 4))
    def an_operator_is_told(self, number: int, kind: str, events: int) -> None:
        view = self.world.operators[number].view
        for _ in range(min(events, len(view.coming[kind]))):
            view.take(kind)

    @precondition(lambda self: self.world.agents)
    @rule(number=which, heard=st.booleans(), events=st.integers(0, 2))
    def an_agent_is_told(self, number: int, heard: bool, events: int) -> None:
        agent = self._agent(number)
        if agent.runs:
            for _ in range(min(events, len(agent.view.coming["twins"]))):
                agent.view.take("twins")
            if heard and self.world.leader[1] > self.world.now_s:
                agent.heard_at_s = self.world.now_s

    # Processes and machines.

    @rule(number=st.integers(0, 1), renews=st.booleans(), favoured=st.sampled_from((None, *NODES)))
    def an_operator_decides(self, number: int, renews: bool, favoured: str | None) -> None:
        self._favour(favoured)
        self.world.turn(self.world.operators[number], renews=renews)

    @precondition(lambda self: "operators" in self.faults)
    @rule(number=st.integers(0, 1))
    def an_operator_is_restarted(self, number: int) -> None:
        self.world.restart_operator(self.world.operators[number])

    @precondition(lambda self: self.world.agents)
    @rule(number=which, crash=st.sampled_from(CRASHES))
    def an_agent_acts(self, number: int, crash: str) -> None:
        self.world.agent_acts(self._agent(number), crash=crash if "agents" in self.faults else "")

    @precondition(lambda self: "agents" in self.faults and self.world.agents)
    @rule(number=which)
    def an_agent_stops(self, number: int) -> None:
        self.world.stop_agent(self._agent(number))

    @precondition(lambda self: "agents" in self.faults and self.world.agents)
    @rule(number=which)
    def an_agent_starts(self, number: int) -> None:
        self.world.start_agent(self._agent(number))

    @precondition(lambda self: "losses" in self.faults and self.world.agents)
    @rule(number=which, blocked=st.booleans())
    def caps_are_lost(self, number: int, blocked: bool) -> None:
        agent = self._agent(number)
        if blocked:
            self.world.block(agent)
        else:
            self.world.reboot(agent)

    @precondition(lambda self: "losses" in self.faults and self.world.agents)
    @rule(number=which)
    def caps_can_be_set_again(self, number: int) -> None:
        self._agent(number).blocked = False

    # Many steps at once, without any fault, so that runs get somewhere.

    @rule(seconds=st.sampled_from((1.0, 3.0, 5.0)))
    def all_components_do_their_work(self, seconds: float = 3.0) -> None:
        self.world.now_s += seconds
        self.operators_do_their_work(None)
        self.agents_do_their_work()

    @rule(favoured=st.sampled_from((None, *NODES)))
    def operators_do_their_work(self, favoured: str | None) -> None:
        """Orders are written, and nothing of them has reached the agents yet."""
        self._favour(favoured)
        for operator in self.world.operators:
            for kind, coming in operator.view.coming.items():
                while coming:
                    operator.view.take(kind)
            self._check()
            self.world.turn(operator)
        self._check()
        for request in self.world.requests:
            self.world.arrive(request, answered=True)
        self.world.requests.clear()

    @rule()
    def agents_do_their_work(self) -> None:
        world = self.world
        for agent in world.agents.values():
            while agent.view.coming["twins"]:
                agent.view.take("twins")
            if agent.runs and world.leader[1] > world.now_s:
                agent.heard_at_s = world.now_s
            world.agent_acts(agent)
            self._check()
        for report in world.reports:
            world.report_arrives(*report)
        world.reports.clear()

    @rule(first=st.sampled_from((None, *NODES)), then=st.sampled_from((None, *NODES)))
    def another_operator_takes_over(self, first: str | None, then: str | None) -> None:
        """The leader's last orders are still on their way when its lease ends."""
        world = self.world
        holder, until_s = world.leader
        if holder >= 0 and until_s >= world.now_s:
            world.now_s = max(world.now_s, until_s - 2.0)
            self._favour(first)
            world.turn(world.operators[holder], renews=False)
            world.now_s = until_s + 0.5
            self._check()
            self._favour(then)
            world.turn(world.operators[1 - holder])

    @rule(favoured=st.lists(st.sampled_from(NODES), min_size=2, max_size=4))
    def an_operator_is_not_answered(self, favoured: list[str]) -> None:
        """The work moves while its orders are still on their way."""
        world = self.world
        leader = world.operators[max(world.leader[0], 0)]
        for kind, coming in leader.view.coming.items():
            while coming:
                leader.view.take(kind)
        for name in favoured:
            world.now_s += 1.0
            self._check()
            self._favour(name)
            world.turn(leader)
            self._check()

    def _favour(self, favoured: str | None) -> None:
        """One node has all the work."""
        if favoured is not None:
            agents = self.world.agents
            self.world.demand = {name: agent.machine.floor for name, agent in agents.items()}
            if favoured in agents:
                self.world.demand[favoured] = agents[favoured].machine.top

    def _limit(self, group: str, share: float, restarts: int) -> None:
        world = self.world
        members = [
            agent for name, agent in world.agents.items() if name in world.nodes and group in world.nodes[name].groups
        ]
        limit_w = share * sum(world.charge_w(agent, agent.machine.top) for agent in members) or 1000.0
        world.set_limit(group, GroupLimit(group, limit_w, 0.8 * limit_w, restarts=restarts))

    # The truth.

    @invariant()
    def no_limit_that_was_kept_is_exceeded(self) -> None:
        self._check()

    def _check(self) -> None:
        world = self.world
        for group in GROUPS:
            members = world.members_of(group)
            lost = {f"{agent.node} has lost its caps" for agent in members if world.is_known_to_be_lost(agent)}
            who = frozenset(agent.node for agent in members) | lost
            now_w = sum(world.charge_w(agent, world.may_hold(agent)) for agent in members)
            silent_w = sum(world.charge_w(agent, world.may_fall_back_to(agent)) for agent in members)
            self._is_kept(f"{group} now", who, world.limit_of(group), now_w)
            self._is_kept(f"{group} in silence", who, world.lowest_of(group), silent_w)

    def _is_kept(self, what: str, who: frozenset[str], limit_w: float, may_w: float) -> None:
        """Within the limit, or where a person or a machine had broken it, not worse than before."""
        before = self.checked.get(what)
        if before is None or limit_w < before[0] or not who <= before[1]:  # a person or a machine changed it
            self.allowed_w[what] = may_w
        allowed_w = max(limit_w, self.allowed_w[what])
        said = f"{what}: its nodes may draw {may_w:.1f} W, {allowed_w:.1f} W are allowed, limit {limit_w:.1f} W"
        assert may_w <= allowed_w + 1e-6, said
        self.allowed_w[what] = may_w
        self.checked[what] = (limit_w, who)

    def _agent(self, number: int) -> Agent:
        return self.world.agents[sorted(self.world.agents)[number % len(self.world.agents)]]
