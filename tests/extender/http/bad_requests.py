"""Requests that no kube-scheduler sends, each different."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.extender.api_objects import pod

PATHS = ("/filter", "/prioritize", "/preempt", "/debug/scoring")


class Bad(NamedTuple):
    """One request; may it be good by chance?"""

    data: bytes
    may_pass: bool = False


def good_body(path: str) -> dict[str, Any]:
    asking = pod(performance=True)
    asking["spec"]["initContainers"] = [{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": 1}}}]
    asking["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
            }
        }
    }
    if path == "/debug/scoring":
        return asking
    if path == "/preempt":
        return {"Pod": asking, "NodeNameToVictims": {"n1": {"Pods": [pod("v")], "NumPDBViolations": 1}}}
    return {"Pod": asking, "Nodes": None, "NodeNames": ["n1", "n2", "stranger"]}


def head_of(path: str, length: int, *headers: str, method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: extender", *headers, f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


# What has the wrong type wherever a typed field stands.
_WRONG: tuple[Any, ...] = (1, -1.5, True, "text", [], [[]], {}, {"a": 1}, [None], "\ud7ff", 10**30, [1, "a"])
# Typed places of each request, and the types that are right there.
_PLACES: dict[str, tuple[type, ...]] = {
    "Pod": (dict,),
    "NodeNames": (list,),
    "Pod.metadata": (dict,),
    "Pod.metadata.annotations": (dict,),
    "Pod.metadata.name": (str,),
    "Pod.spec.containers": (list,),
    "Pod.spec.containers.0": (dict,),
    "Pod.spec.containers.0.resources": (dict,),
    "Pod.spec.containers.0.resources.requests": (dict,),
    "Pod.spec.initContainers.0.restartPolicy": (str,),
    "Pod.spec.affinity.nodeAffinity": (dict,),
    "NodeNameToVictims": (dict,),
    "NodeNameToVictims.n1.Pods": (list,),
}


def _wrong_type(rng: Random, path: str) -> bytes:
    body = good_body(path)
    prefix = "Pod." if path == "/debug/scoring" else ""
    places = [place.removeprefix(prefix) for place in _PLACES if place.startswith(prefix)]
    while True:
        place = rng.choice(places)
        *way, last = place.split(".")
        holder: Any = body
        try:
            for step in way:
                holder = holder[int(step)] if step.isdecimal() else holder[step]
        except (KeyError, TypeError):
            continue
        key: Any = int(last) if last.isdecimal() else last
        if isinstance(holder, dict) and key not in holder:
            continue
        holder[key] = rng.choice([value for value in _WRONG if not isinstance(value, _PLACES[prefix + place])])
        return json.dumps(body).encode()


def _wrong_value(rng: Random, path: str) -> bytes:
    body = good_body(path)
    asking = body.get("Pod", body)
    choice = rng.randrange(6)
    quantity = rng.choice(["a lot", "", "1e999", "-1", "NaN", "1 000", "\n\n", "9" * 500, -1, 1e300, 10**40])
    if choice < 3:
        asking["spec"]["containers"][0]["resources"]["requests"]["cpu"] = quantity
    elif choice == 3:
        asking["metadata"]["name"] = rng.choice(["with space", "x" * 254, "new\nline", "a/b", "\x1b[31m", "\u202e"])
    elif choice == 4:
        required = asking["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        required["nodeSelectorTerms"][0]["matchExpressions"][0]["operator"] = rng.choice(["", "in", "x" * 9999, "\n"])
    else:
        asking["metadata"]["namespace"] = rng.choice(["a b", "x" * 300, "\t", "../.."])
    return json.dumps(body).encode()


def _nested(rng: Random, path: str) -> bytes:
    depth = rng.choice([2_000, 5_000, 20_000])
    deep = rng.choice([b"[" * depth, b'{"a":' * depth, (b"[" * depth) + (b"]" * depth)])
    whole = json.dumps(good_body(path)).encode()
    asking = json.dumps(pod()).encode()
    return rng.choice(
        [
            deep,
            b'{"Pod":' + deep,
            b'{"Pod":' + asking + b',"NodeNames":' + deep,
            b'{"Pod":' + asking + b',"Nodes":{"items":[' + deep,
            whole[:-1] + b',"unknown":' + deep,
            b'{"metadata":{"annotations":' + deep,
        ]
    )


def _truncated(rng: Random, path: str) -> bytes:
    whole = json.dumps(good_body(path)).encode()
    return whole[: rng.randrange(len(whole))]


def _noise(rng: Random, path: str) -> bytes:
    whole = json.dumps(good_body(path)).encode()
    return rng.choice(
        [
            rng.randbytes(rng.randrange(1, 300)),
            b"\x00" * rng.randrange(1, 50),
            gzip.compress(whole),
            b"\xef\xbb\xbf" + whole,
            whole + whole,
            whole.decode().encode("utf-16"),
            b"null",
            b"[]",
            b'"Pod"',
            b"NaN",
            b"{'Pod': 1}",
            whole.replace(b'"', b"'"),
            whole.replace(b"metadata", b"\xff\xfe"),
            b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":[]}',
        ]
    )


def _flipped(rng: Random, path: str) -> bytes:
    whole = bytearray(json.dumps(good_body(path)).encode())
    for _ in range(rng.randrange(1, 4)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    return bytes(whole)


_KINDS: tuple[Callable[[Random, str], bytes], ...] = (
    _wrong_type,
    _wrong_type,
    _wrong_value,
    _truncated,
    _truncated,
    _noise,
    _flipped,
    _nested,
)


def on_a_kept_connection(rng: Random) -> Bad:
    """A request that is HTTP: refused with one line, and the connection goes on."""
    path = rng.choice(PATHS)
    lottery = rng.random()
    if lottery < 0.03:
        odd = rng.choice(
            ["/", "/filter/", "/Filter", "/metrics/x", "//filter", "/%2e%2e/etc", "/f?x=%ff", "/" + "x" * 999]
        )
        return Bad(head_of(odd, 2) + b"{}")
    if lottery < 0.05:
        method = rng.choice(["PUT", "DELETE", "PATCH", "OPTIONS"])
        return Bad(head_of(path, 2, method=method) + b"{}")
    if lottery < 0.06:
        return Bad(head_of("/debug/scoring?pod=" + rng.choice(["x", "%00", "a%0ab", "%ff"]), 0, method="GET"))
    kind = rng.choice(_KINDS) if lottery < 0.98 else _nested
    body = kind(rng, path)
    headers = [
        rng.choice(["Content-Type: application/json", "Content-Type: odd; =;;", "X: y", "Content-Encoding: gzip"])
    ]
    if rng.random() < 0.05:
        chunked = "\r\n".join(
            [f"POST {path} HTTP/1.1", "Host: extender", "Transfer-Encoding: chunked", "", f"{len(body):x}", ""]
        ).encode()
        return Bad(chunked + body + b"\r\n0\r\n\r\n" if body else head_of(path, 0), kind is _flipped)
    return Bad(head_of(path, len(body), *headers) + body, kind is _flipped)


def not_http(rng: Random) -> bytes:
    """Something after which the connection ends."""
    whole = head_of("/filter", 2)
    return rng.choice(
        [
            rng.randbytes(rng.randrange(1, 400)) + b"\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /healthz HTTP/9.9\r\nHost: e\r\n\r\n",
            b"G\x00T /healthz HTTP/1.1\r\nHost: e\r\n\r\n",
            b"GET /health\x01z HTTP/1.1\r\nHost: e\r\n\r\n",
            b"GET http://[::/ HTTP/1.1\r\nHost: e\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: e\r\nno colon\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: e\r\n: empty\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: e\r\nA: b\x00c\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: e\r\nA: " + b"x" * 20_000 + b"\r\n\r\n",
            b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: e\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: e\r\n" + b"A: b\r\n" * 2_000 + b"\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: -1\r\n\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: 1e3\r\n\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: odd, chunked, odd\r\n\r\n0\r\n\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
            b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}\r\n0\r\n\r\n",
            whole + b"{}and then something else\r\n\r\n",
        ]
    )
