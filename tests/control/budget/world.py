"""A cluster under budgets in miniature: operators, agents, an API server and devices that are slow, lossy and mortal.

What decides is the real code: `plan` for operators, `followed` and `caps_to_hold` for agents. Around it is what a
network and machines do. Watches are late but in order; everything else may be lost, repeated and reordered.
"""

from __future__ import annotations

from dataclasses import replace

from joulie.control.budget import holding, planning
from joulie.control.budget.counting import Confirmation, Order, counted, newest
from joulie.control.budget.envelopes import Envelope, Pair
from joulie.control.budget.memory import LEAVING_S, GroupLimit, Member
from tests.control.budget.actors import LEASE_S, SILENCE_S, WRITE_S, Agent, Node, Operator, Request, Twin, Views


class World:
    """All of them; every method is one thing that may happen."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.nodes: dict[str, Node] = {}
        self.twins: dict[str, Twin] = {}
        self.limits: dict[str, GroupLimit] = {}
        self.version = 1
        self.leader: tuple[int, float] = (-1, -1.0)
        self.operators = [Operator(0), Operator(1)]
        self.agents: dict[str, Agent] = {}
        self.requests: list[Request] = []
        self.reports: list[tuple[str, Confirmation]] = []
        self.left_at_s: dict[tuple[str, str], float] = {}  # node and group: what is plugged in stays so for a while
        self.demand: dict[str, Pair] = {}
        self.raises_at_once = False  # a fault on purpose
        self.restores_on_stop = False  # another

    # The API server.

    def _publish(self, kind: str, name: str, value: object) -> None:
        objects: dict[str, object] = getattr(self, kind)
        if value is None:
            objects.pop(name, None)
        else:
            objects[name] = value
        for watcher in (*self.operators, *(self.agents.values() if kind == "twins" else ())):
            if isinstance(watcher, Operator) or watcher.node == name:
                watcher.view.coming[kind].append((name, value))

    def _next_version(self) -> int:
        self.version += 1
        return self.version

    def set_limit(self, name: str, limit: GroupLimit | None) -> None:
        self._publish("limits", name, limit)

    def set_node(self, name: str, groups: tuple[str, ...], machine: Envelope) -> None:
        known = self.nodes.get(name)
        for group in known.groups if known else ():
            if group not in groups:
                self.left_at_s[name, group] = self.now_s
        agent = self.agents.get(name)
        if agent is None:
            agent = self.agents[name] = Agent(name, machine, machine.top, f"boot-{name}-0", heard_at_s=self.now_s)
            if name in self.twins:
                agent.view.coming["twins"].append((name, self.twins[name]))
        self._publish("nodes", name, Node(name, groups, agent.boot_id))

    def delete_node(self, name: str) -> None:
        for group in self.nodes[name].groups:
            self.left_at_s[name, group] = self.now_s
        self._publish("nodes", name, None)

    def make_twin(self, name: str) -> None:
        """A policy's, without an order."""
        if name not in self.twins:
            version = self._next_version()
            self._publish("twins", name, Twin(f"uid-{version}", version, f"{self.now_s:09.1f}"))

    def delete_twin(self, name: str) -> None:
        self._publish("twins", name, None)

    def arrive(self, request: Request, *, answered: bool) -> None:
        """An order reaches the server, or dies on its way; the answer may be lost."""
        twin = self.twins.get(request.node)
        accepted = self.could_be_accepted(request)
        if accepted:
            if twin is None:
                twin = Twin(f"uid-{self.version}+", 0, f"{self.now_s:09.1f}")
            order = replace_uid(request.order, twin.uid)
            twin = replace(twin, version=self._next_version(), order=order)
            self._publish("twins", request.node, twin)
        operator = self.operators[request.operator]
        if answered and request.node in operator.in_flight:
            del operator.in_flight[request.node]
            if twin is not None and accepted:
                operator.view.twins[request.node] = twin

    def could_be_accepted(self, request: Request) -> bool:
        twin = self.twins.get(request.node)
        return self.now_s <= request.dies_at_s and (0 if twin is None else twin.version) == request.version

    def report_arrives(self, node: str, confirmation: Confirmation) -> None:
        if (twin := self.twins.get(node)) is not None:
            self._publish("twins", node, replace(twin, version=self._next_version(), confirmation=confirmation))

    # Operators.

    def turn(self, operator: Operator, *, renews: bool = True) -> None:
        """One interval of the budget loop; the lease may be about to end."""
        holder, until_s = self.leader
        if holder != operator.number and until_s > self.now_s:
            operator.leads_until_s = -1.0
            return
        if operator.leads_until_s < self.now_s:  # a new leader, also where it is the old one
            operator.leads_since_s, operator.listed_at_s = self.now_s, -1.0
            self._list(operator)
            renews = True
        if renews:
            operator.leads_until_s = self.now_s + LEASE_S
        self.leader = (operator.number, operator.leads_until_s)
        ready_at_s = operator.leads_since_s + WRITE_S
        if operator.listed_at_s < 0 and self.now_s > ready_at_s:
            self._list(operator)
            operator.listed_at_s = self.now_s
        for name, (_, dies_at_s) in list(operator.in_flight.items()):
            if self.now_s > dies_at_s:  # ask what became of it
                del operator.in_flight[name]
                self._get(operator, name)
        may_raise = self.raises_at_once or operator.listed_at_s >= 0
        result, operator.memory = planning.plan(
            self._members(operator), operator.view.limits, operator.memory, self.now_s, may_raise=may_raise
        )
        for write in result.writes:
            if write.node not in operator.in_flight:
                self._send(operator, write)

    def _send(self, operator: Operator, write: planning.OrderWrite) -> None:
        twin = operator.view.twins.get(write.node)
        version = 0 if twin is None else twin.version
        dies_at_s = self.now_s + WRITE_S
        self.requests.append(Request(operator.number, write.node, version, write.order, dies_at_s))
        operator.in_flight[write.node] = (write.order.caps, dies_at_s)

    def _members(self, operator: Operator) -> list[Member]:
        view = operator.view
        members = []
        for name in sorted({*view.nodes, *view.twins}):
            node, twin, machine = view.nodes.get(name), view.twins.get(name), self.agents[name].machine
            order, told = (twin.order, twin.confirmation) if twin else (None, None)
            boot_id = node.boot_id if node else told.boot_id if told else ""
            members.append(
                Member(
                    name,
                    twin.uid if twin else "",
                    boot_id,
                    machine,
                    machine.per_watt(rest_follows=True),
                    node.groups if node else (),
                    ceiling=machine.top,
                    demand=self.demand.get(name, machine.top),
                    has_left=node is None,
                    order=order,
                    confirmation=told,
                    in_flight=operator.in_flight[name][0] if name in operator.in_flight else None,
                )
            )
        return members

    def _list(self, operator: Operator) -> None:
        view = operator.view = Views()
        view.nodes, view.twins, view.limits = dict(self.nodes), dict(self.twins), dict(self.limits)

    def _get(self, operator: Operator, name: str) -> None:
        if name in self.twins:
            operator.view.twins[name] = self.twins[name]
        else:
            operator.view.twins.pop(name, None)

    def restart_operator(self, operator: Operator) -> None:
        """It forgets everything; another process takes its place."""
        fresh = Operator(operator.number)
        self.operators[operator.number] = fresh
        if self.leader[0] == operator.number:  # a new process has another identity: it waits for the lease to end
            self.leader = (-1, self.leader[1])
        self._list(fresh)

    # Agents and devices.

    def agent_acts(self, agent: Agent, *, crash: str = "") -> None:
        """It looks at its twin and its clock, sets the devices, and says what they hold."""
        if not agent.runs:
            return
        twin = agent.view.twins.get(agent.node)
        kept = holding.followed(agent.kept, twin.order if twin else None, twin.created_at if twin else "")
        if crash == "before it is kept":
            self._set_device(agent, kept, twin is not None)
            agent.runs = False
            return
        agent.kept = kept
        if crash == "before it is set":
            agent.runs = False
            return
        self._set_device(agent, kept, twin is not None)
        if crash:
            agent.runs = False
            return
        agent.sequence += 1
        if kept is not None:
            uid, number = kept.order.uid, kept.order.number
        elif twin is not None:
            uid, number = twin.uid, twin.order.number if twin.order else 0
        else:
            return
        held = None if agent.blocked or kept is None else agent.device
        report = Confirmation(uid, number, agent.boot_id, agent.session, agent.sequence, held)
        self.reports.append((agent.node, report))

    def _set_device(self, agent: Agent, kept: holding.Kept | None, has_twin: bool) -> None:
        if agent.blocked:
            return
        agent.lost = None
        if kept is None:
            agent.device = agent.machine.top
            return
        in_contact = has_twin and self.now_s - agent.heard_at_s < SILENCE_S
        agent.device = holding.caps_to_hold(kept, in_contact=in_contact)

    def stop_agent(self, agent: Agent) -> None:
        """A clean end, as in a rollout."""
        if agent.runs and agent.kept is not None and not agent.blocked:
            agent.device = agent.device.at_most(holding.caps_to_hold(agent.kept, in_contact=False))
            if self.restores_on_stop:
                agent.device = agent.machine.top
        agent.runs = False

    def start_agent(self, agent: Agent) -> None:
        if agent.runs:
            return
        agent.runs, agent.session, agent.sequence = True, agent.session + 1, 0
        agent.view = Views()
        if agent.node in self.twins:
            agent.view.twins[agent.node] = self.twins[agent.node]

    def reboot(self, agent: Agent) -> None:
        """Caps are gone; the Node says so at once, its agent begins later."""
        self._lose_caps(agent)
        agent.runs, agent.blocked = False, False
        agent.boot_id = f"{agent.boot_id}+"
        node = self.nodes.get(agent.node)
        if node is not None:
            self._publish("nodes", node.name, replace(node, boot_id=agent.boot_id))

    def block(self, agent: Agent) -> None:
        """A firmware takes the caps away and lets none be set."""
        self._lose_caps(agent)
        agent.blocked = True

    def _lose_caps(self, agent: Agent) -> None:
        agent.lost = agent.lost or agent.device  # orders under way count as long as they can arrive
        agent.device = agent.machine.top

    # What is true, whatever operator and agents believe.

    def may_hold(self, agent: Agent) -> Pair:
        """The largest caps that this node's devices hold or may be given by what is already under way.

        Caps that devices lost by themselves count as held until every leader can know better.
        """
        if agent.kept is None or (agent.lost is not None and self.is_known_to_be_lost(agent)):
            return agent.machine.top
        result = (agent.device if agent.lost is None else agent.lost).at_least(agent.kept.order.caps)
        for after in self._may_be_kept(agent):
            if after is None:
                return agent.machine.top
            result = result.at_least(after.order.caps)
        return result

    def _may_be_kept(self, agent: Agent) -> list[holding.Kept | None]:
        """What the agent would hold on to after each order that it may still see."""
        twins = [value for _, value in agent.view.coming["twins"] if isinstance(value, Twin)]
        twins += [twin for twin in (agent.view.twins.get(agent.node), self.twins.get(agent.node)) if twin is not None]
        orders = [(twin.order, twin.created_at) for twin in twins if twin.order is not None]
        for request in self.requests:
            if request.node == agent.node and self.could_be_accepted(request):
                known = self.twins.get(agent.node) or Twin("new", 0, f"{self.now_s:09.1f}")
                orders.append((replace_uid(request.order, known.uid), known.created_at))
        return [holding.followed(agent.kept, order, created_at) for order, created_at in orders]

    def is_known_to_be_lost(self, agent: Agent) -> bool:
        leaders = self.believers()
        return agent.lost is not None and bool(leaders) and all(self._counts_as_lost(each, agent) for each in leaders)

    def _counts_as_lost(self, leader: Operator, agent: Agent) -> bool:
        twin, node = leader.view.twins.get(agent.node), leader.view.nodes.get(agent.node)
        if twin is None:
            return True
        seen = newest(leader.memory.seen.get(agent.node), twin.confirmation, self.now_s)
        boot_id = node.boot_id if node else seen.confirmation.boot_id if seen else ""
        found = counted(twin.uid, twin.order, seen, boot_id, agent.machine.top, self.now_s)
        return found.standing in ("unknown", "free")

    def may_fall_back_to(self, agent: Agent) -> Pair:
        """The largest failsafe caps that its agent has, or may be given by what is already under way."""
        if agent.kept is None or agent.kept.order.failsafe is None:
            return agent.machine.top
        result = agent.kept.order.failsafe
        for after in self._may_be_kept(agent):
            if after is None or after.order.failsafe is None:
                return agent.machine.top
            result = result.at_least(after.order.failsafe)
        return result

    def charge_w(self, agent: Agent, caps: Pair) -> float:
        per_watt = agent.machine.per_watt(rest_follows=True)
        return caps[0] * per_watt[0] + caps[1] * per_watt[1] + agent.machine.rest_w

    def members_of(self, group: str) -> list[Agent]:
        """Who is plugged into it, as far as every leader knows."""
        leaders = self.believers()
        result = []
        for name, agent in self.agents.items():
            node = self.nodes.get(name)
            inside = node is not None and group in node.groups
            inside = inside and all(
                name in leader.view.nodes and group in leader.view.nodes[name].groups for leader in leaders
            )
            left_at_s = self.left_at_s.get((name, group), -LEAVING_S)
            if inside or (self.now_s - left_at_s < LEAVING_S - 1.0 and self._was_known(name, group, leaders)):
                result.append(agent)
        return result

    def _was_known(self, name: str, group: str, leaders: list[Operator]) -> bool:
        return all(group in leader.memory.groups.get(name, ()) for leader in leaders)

    def limit_of(self, group: str) -> float:
        """The largest that a leader may still believe in."""
        known = [self.limits, *(leader.view.limits for leader in self.believers())]
        return max(limits[group].limit_w if group in limits else float("inf") for limits in known)

    def lowest_of(self, group: str) -> float:
        """The same of the lowest limit of any window."""
        known = [self.limits, *(leader.view.limits for leader in self.believers())]
        return max(limits[group].lowest_w if group in limits else float("inf") for limits in known)

    def believers(self) -> list[Operator]:
        return [operator for operator in self.operators if operator.leads_until_s >= self.now_s]


def replace_uid(order: Order, uid: str) -> Order:
    return Order(uid, order.number, order.caps, order.at_most, order.failsafe, order.groups, order.released)
