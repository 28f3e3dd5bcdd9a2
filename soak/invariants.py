"""What has to hold once faults are over; all of it read past Joulie."""

from __future__ import annotations

from typing import Any

from soak import objects
from soak.machines import CLOSE, WATT, HostMachine, Limit
from soak.scene import HOSTS, SCOPES, WRONG_ROUTE, Scene
from testbed.api import ApiError

Twins = dict[str, dict[str, Any]]
Held = dict[str, dict[str, dict[str, Limit]]]  # by simulator, node and device
MEMORY_GROWTH_MB = 30.0
DESCRIPTOR_GROWTH = 20
ECO_PCT = 60.0  # by default
LIVES_OF = 6  # weighings, before growth can be told from a start


def unsettled(scene: Scene) -> list[str]:
    """Everything that is not as it should be when nothing is wrong; one line each."""
    try:
        nodes = {node["metadata"]["name"]: node for node in scene.get("/api/v1/nodes")}
        twins = {twin["metadata"]["name"]: twin for twin in scene.get(f"{objects.JOULIE}/nodetwins")}
        pods = scene.get(f"/api/v1/namespaces/{objects.NAMESPACE}/pods")
    except (OSError, ApiError) as error:
        return [f"API server: {error}"]
    held: Held = {}
    for simulator, machines in scene.machines.items():
        try:
            held[simulator] = machines.limits()
        except OSError as error:
            return [f"{simulator}: {error}"]
    wanted = {name for name, node in nodes.items() if _in_scope(scene, node)}
    return [
        *(f"process: {one.name} does not run\n{one.log_tail()}" for one in scene.components.values() if _down(one)),
        *(f"twin: {name} has none" for name in sorted(wanted - twins.keys())),
        *(f"twin: {name} has one and is out of scope" for name in sorted(twins.keys() - wanted)),
        *_simulated(scene, held, wanted, twins),
        *_hosts(scene, wanted, twins),
        *_reports(scene, twins),
        *_metrics(scene, held),
        *_pods(nodes, pods),
        *_journals(scene, held),
    ]


def _down(component: Any) -> bool:
    return bool(component.wanted and not component.running)


def _in_scope(scene: Scene, node: dict[str, Any]) -> bool:
    labels = node["metadata"].get("labels", {})
    return labels.get(objects.MANAGED) == "true" and (
        scene.selector == SCOPES[0] or labels.get(objects.HALF_LABEL) == "0"
    )


def wanted_pct(twin: dict[str, Any] | None, device: str) -> float:
    spec = (twin or {}).get("spec", {})
    cap = spec.get("cpu", {}).get("packagePowerCapPctOfMax") if device != "gpu" else None
    if device == "gpu":
        cap = spec.get("gpu", {}).get("powerCap", {}).get("capPctOfMax")
    return 100.0 if cap is None else float(cap)


def expected_pct(scene: Scene, node: str, in_scope: bool, twins: Twins, device: str) -> float:
    """What the twin asks for; out of the operator's scope a pin counts by itself, and without one nothing does."""
    if in_scope:
        return wanted_pct(twins.get(node), device)
    return ECO_PCT if scene.pins.get(node) == "eco" else 100.0


def _simulated(scene: Scene, held: Held, wanted: set[str], twins: Twins) -> list[str]:
    """Caps go where the route says; every other device is as it was found, without a limit."""
    problems = []
    for simulator, nodes in held.items():
        for node, limits in nodes.items():
            for device, limit in limits.items():
                routed = simulator == scene.route and device != "throttle"
                pct = expected_pct(scene, node, node in wanted, twins, device) if routed else 100.0
                if not limit.is_as_wanted(pct):
                    problems.append(f"device: {simulator} {node} {device} holds {shown(limit)}, wanted {pct:g} %")
    return problems


def _hosts(scene: Scene, wanted: set[str], twins: Twins) -> list[str]:
    problems = []
    for name in HOSTS:
        host, pct = scene.hosts[name], expected_pct(scene, name, name in wanted, twins, "cpu")
        if pct >= 100:
            problems += [f"device: {name} {line}" for line in _not_as_found(host)]
        else:
            problems += [
                f"device: {name} {package} holds {shown(limit)}, wanted {pct:g} %"
                for package, limit in host.limits().items()
                if not limit.is_as_wanted(pct)
            ]
    return problems


def _not_as_found(host: HostMachine) -> list[str]:
    held = host.held()
    return [
        f"{file.parent.name}/{file.name} is {held[file]}, found {found}"
        for file, found in host.found.items()
        if held[file] != found
    ]


def _reports(scene: Scene, twins: Twins) -> list[str]:
    """With every device as wanted, reports have to say so; where nothing gets through, nothing is applied."""
    problems = []
    for name, twin in twins.items():
        results = twin.get("status", {}).get("controlStatus", {})
        for device, report in results.items():
            if device not in ("cpu", "gpu") or not isinstance(report, dict):
                continue
            expected = _expected_results(scene, name, device)
            if report.get("result") not in expected:
                told = f"{report.get('result')} ({report.get('message')})"
                problems.append(f"report: {name} {device} says {told}, expected {' or '.join(sorted(expected))}")
    return problems


def _expected_results(scene: Scene, node: str, device: str) -> set[str]:
    if node in HOSTS:
        return {"applied"} if device == "cpu" else {"none", "blocked"}
    if scene.route is None:
        return {"none", "blocked"}
    return {"error", "blocked"} if scene.route == WRONG_ROUTE else {"applied"}


def _metrics(scene: Scene, held: Held) -> list[str]:
    """What agents tell Prometheus that devices hold is what they hold."""
    problems = []
    for agent in scene.agents:
        if not agent.wanted:
            continue
        try:
            told = agent.enforced_w()
        except OSError as error:
            problems.append(f"metrics: {agent.name}: {error}")
            continue
        problems += [
            f"metrics: {agent.name} says that {node} {device} holds {said_w:g} W, and it holds {really_w}"
            for (node, device), said_w in told.items()
            if (really_w := _really_held_w(scene, held, node, device)) is None
            or abs(really_w - said_w) > max(WATT, CLOSE * really_w)
        ]
    return problems


def _really_held_w(scene: Scene, held: Held, node: str, device: str) -> float | None:
    """All CPU packages together, or each GPU board; without a limit a device holds its own maximum."""
    if node in scene.hosts:
        return scene.hosts[node].total_w
    limit = held.get(scene.route or "", {}).get(node, {}).get(device)
    return None if limit is None else limit.highest_w if limit.held_w is None else limit.held_w


def _pods(nodes: dict[str, Any], pods: list[dict[str, Any]]) -> list[str]:
    problems = []
    for pod in pods:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if node is None:
            problems.append(f"pod: {name} waits")
        elif pod["metadata"]["annotations"]["joulie.io/workload-class"] == "performance" and node in nodes:
            labels = nodes[node]["metadata"]["labels"]
            if labels.get("joulie.io/power-profile") == "eco" and labels.get("joulie.io/draining") != "true":
                problems.append(f"pod: {name} is a performance pod on eco node {node}")
    return problems


def _journals(scene: Scene, held: Held) -> list[str]:
    """A device that is not as found is in a journal, with what was found."""
    journals = scene.states.journals()
    problems = []
    for name, host in scene.hosts.items():
        text = "".join(content for path, content in journals.items() if f"agent-{name}" in str(path))
        for file, value in host.found.items():
            if host.held()[file] != value and not (file.name in text and f'"found": {value}' in text):
                problems.append(f"journal: {name} {file.parent.name}/{file.name} changed, found {value} is not noted")
    for simulator, nodes in held.items():
        for node, limits in nodes.items():
            capped = any(limit.held_w is not None for limit in limits.values())
            address = scene.machines[simulator].control.replace("{node}", node)
            if capped and not any(f'"{address}"' in content for content in journals.values()):
                problems.append(f"journal: {simulator} {node} is capped, and no journal names that very device")
    return problems


def shown(limit: Limit) -> str:
    return "no limit" if limit.held_w is None else f"{limit.held_w:g} of {limit.highest_w:g} W"


def left_behind(scene: Scene) -> list[str]:
    """After every agent was stopped: all devices as found, and nothing left in a journal."""
    problems = [f"end: {path.name} still holds {content[:200]}" for path, content in scene.states.journals().items()]
    for name, host in scene.hosts.items():
        problems += [f"end: {name} {line}" for line in _not_as_found(host)]
    for simulator, machines in scene.machines.items():
        for node, limits in machines.limits().items():
            problems += [
                f"end: {simulator} {node} {device} holds {shown(limit)}"
                for device, limit in limits.items()
                if limit.held_w is not None
            ]
    return problems


def grown(scene: Scene) -> list[str]:
    """Processes that hold much more at the end of a life than after its start."""
    problems = []
    for name, component in scene.components.items():
        for life in component.lives:
            if len(life) < LIVES_OF:
                continue
            early, late = life[2], life[-1]
            if late.memory_mb - early.memory_mb > MEMORY_GROWTH_MB:
                problems.append(f"memory: {name} grew from {early.memory_mb:.0f} to {late.memory_mb:.0f} MB")
            if late.descriptors - early.descriptors > DESCRIPTOR_GROWTH:
                problems.append(f"descriptors: {name} grew from {early.descriptors} to {late.descriptors}")
    return problems
