"""The admission policy of `deploy/` on a real API server, and which nodes a pod may go to by Kubernetes' own rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Body = dict[str, Any]

POLICY_FILE = Path(__file__).parents[3] / "deploy" / "admission" / "performance-affinity.yaml"
CLASS = "joulie.io/workload-class"
PROFILE = "joulie.io/power-profile"
DRAINING = "joulie.io/draining"
RULE = {"key": PROFILE, "operator": "NotIn", "values": ["eco"]}
DRAINS = {"key": DRAINING, "operator": "In", "values": ["true"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PATIENCE_S = 60.0


def policy_objects() -> list[Body]:
    return list(yaml.safe_load_all(POLICY_FILE.read_text()))


def pod(affinity: Body | None = None, *, workload_class: str | None = "performance", **spec: Any) -> Body:
    """A pod that was not created yet."""
    annotations = {} if workload_class is None else {"annotations": {CLASS: workload_class}}
    placement = {} if affinity is None else {"affinity": affinity}
    containers = [{"name": "work", "image": "work"}]
    metadata = {"name": "tried", **annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **placement, **spec},
    }


def admitted(plane: ControlPlane, body: Body, namespace: str = "default") -> Body:
    """The pod as the API server would store it, without what differs from one request to the next."""
    stored: Body = plane.api.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    for name in ("uid", "creationTimestamp", "managedFields"):
        del stored["metadata"][name]
    return stored


@contextmanager
def policy_installed(plane: ControlPlane, objects: Sequence[Body] | None = None) -> Iterator[None]:
    """In this block the policy acts; after it, it does not any more: the server is shared."""
    chosen = policy_objects() if objects is None else objects
    plane.apply(chosen)
    try:
        _wait_until(lambda: _acts(plane))
        yield
    finally:
        for one in chosen:
            kind = plane.api.resource_path(one["apiVersion"], one["kind"])
            plane.api.delete(f"{kind.prefix}/{kind.plural}/{one['metadata']['name']}")
        _wait_until(lambda: not _acts(plane))


def _acts(plane: ControlPlane) -> bool:
    from testbed.api import ApiError

    try:
        return "affinity" in admitted(plane, pod())["spec"]
    except ApiError:
        return True  # a policy that fails acts, too


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the admission policy did not come or go within {PATIENCE_S:.0f} s")
        time.sleep(0.1)


class Place(NamedTuple):
    """A node, as far as affinity can see it."""

    name: str
    labels: Mapping[str, str]

    @property
    def is_capped(self) -> bool:
        """Eco, and not draining: a draining node has its performance caps still."""
        return self.labels.get(PROFILE) == "eco" and self.labels.get(DRAINING) != "true"


def allows(spec: Mapping[str, Any], place: Place) -> bool:
    """Whether nodeSelector and required node affinity let a pod go there: kube-scheduler's rules, written down anew."""
    wanted = spec.get("nodeSelector") or {}
    if any(place.labels.get(key) != value for key, value in wanted.items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    if required is None:
        return True
    return any(_term_matches(term or {}, place) for term in required["nodeSelectorTerms"])


def _term_matches(term: Mapping[str, Any], place: Place) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term matches nothing
    name = {"metadata.name": place.name}
    return all(_holds(one, place.labels) for one in expressions) and all(_holds(one, name) for one in fields)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.isdigit() and int(value) > int(values[0])
        case "Lt":
            return value is not None and value.isdigit() and int(value) < int(values[0])
    raise AssertionError(expression)
