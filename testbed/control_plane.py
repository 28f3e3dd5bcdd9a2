"""A running control plane: etcd and kube-apiserver on free loopback ports, in a temporary folder, ours alone."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from joulie.cluster.crds.definitions import crds
from testbed.api import Api, ApiError, Object
from testbed.build import binaries, say
from testbed.credentials import write_certificates, write_kubeconfig
from testbed.etcd import Etcd
from testbed.golang import Report
from testbed.processes import Child, Processes, ProcessFailed, free_port
from testbed.requests_seen import Request, requests_seen
from testbed.scheduler import Scheduler

READY_S = 180.0  # seconds when empty; minutes with a hundred thousand objects on a busy machine
ATTEMPTS = 3
# ServiceAccount wants a controller that makes default accounts. TaintNodesByCondition marks each new node as not ready
# and waits for a controller to say otherwise. There is no controller manager here.
ADMISSION_OFF = "ServiceAccount,TaintNodesByCondition"


class User(NamedTuple):
    """A user whom the API server knows by a token."""

    token: str
    name: str
    group: str


class ControlPlane:
    """`with ControlPlane() as plane:` starts it, and the end of the block leaves nothing behind."""

    def __init__(
        self,
        apiserver_flags: Sequence[str] = (),
        report: Report = say,
        addresses: Sequence[str] = (),
        users: Sequence[User] = (),
    ) -> None:
        """`apiserver_flags` replace those of the same name; `addresses` go into the server's certificate."""
        self._binaries = binaries(report=report)
        self._given_flags = list(apiserver_flags)
        self._apiserver: Child | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="joulie-testbed-"))
        self._processes = Processes(self.folder)
        self._ends = contextlib.ExitStack()  # last started, first stopped
        self._ends.callback(self._processes.close)
        self.certificates = write_certificates(self.folder, addresses)
        self.ca_file = self.certificates.ca
        self.admin_token = secrets.token_hex(16)
        self._token_file = self.folder / "tokens.csv"
        self._token_file.touch(mode=0o600)
        users = [User(self.admin_token, "admin", "system:masters"), *users]
        self._token_file.write_text("".join(f'{one.token},{one.name},{one.name},"{one.group}"\n' for one in users))
        try:
            self._start_on_free_ports()
        except BaseException:
            self.stop()
            raise

    # Life

    def stop(self) -> None:
        """Stop everything. The API server before etcd: without etcd it waits and ignores the request to end."""
        self._ends.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start_apiserver(self) -> None:
        """Start it, or do nothing while it runs. Always on the same port: clients are to find it again."""
        if self._apiserver is None or not self._apiserver.running:
            self._apiserver = self._processes.start("kube-apiserver", self._apiserver_command())
        self._apiserver.wait_until(self._ready, READY_S)

    def stop_apiserver(self) -> None:
        """Stop it in good order, which ends every watch."""
        if self._apiserver:
            self._apiserver.stop()

    def restart_apiserver(self) -> None:
        """Stop and start. Its watch cache begins anew: a watch from before the restart may be told 410."""
        self.stop_apiserver()
        self.start_apiserver()

    def kill_apiserver(self) -> None:
        """As by the kernel's out-of-memory killer; `start_apiserver` brings it back."""
        if self._apiserver:
            self._apiserver.kill()

    @contextlib.contextmanager
    def frozen_apiserver(self) -> Iterator[None]:
        """In this block connections stay open and get no answer."""
        apiserver = self._apiserver
        if apiserver is None:
            raise ProcessFailed("the API server is not running")
        apiserver.freeze()
        try:
            yield
        finally:
            apiserver.thaw()

    @property
    def pids(self) -> list[int]:
        """Of everything that runs now."""
        return self._processes.pids

    # What tests do with it

    def compact_etcd(self) -> int:
        """Drop the history; the revision up to which it is gone.

        The API server's watch cache hides this: a watch of an old version is told 410 after `restart_apiserver`, or at
        once with the flag `--watch-cache=false`.
        """
        return self.etcd.compact()

    def api_as(self, token: str) -> Api:
        """The same server with other rights."""
        return Api(self.url, self.ca_file, token)

    def apply(self, objects: Iterable[Object]) -> None:
        """Create or replace, status included, in the given order."""
        self.api.apply(objects)

    def install_crds(self) -> None:
        """Apply Joulie's definitions and wait until their objects can be written."""
        definitions = crds()
        self.apply(definitions)
        deadline_s = time.monotonic() + READY_S
        for definition in definitions:
            spec = definition["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            while not self._served(path):
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"{definition['metadata']['name']} was not established after {READY_S:.0f} s")
                time.sleep(0.05)

    def service_account_token(self, namespace: str, name: str, lifetime_s: int = 3600) -> str:
        """A token of an existing service account, as its pods would get it."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime_s},
        }
        answer = self.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
        return str(answer["status"]["token"])

    def pod_token(self, namespace: str, account: str, node: str = "") -> str:
        """A token as a kubelet gets it for a pod of this account, which it names, and the node it runs on with it."""
        pod = f"bearer-{account}-{node}".rstrip("-")
        spec = {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": namespace}}
        try:
            placed = {"nodeName": node} if node else {}
            self.api.post(f"/api/v1/namespaces/{namespace}/pods", {**manifest, "spec": {**spec, **placed}})
        except ApiError as error:
            if error.status != 409:  # there since an earlier token
                raise
        bound = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod}}}
        answer = self.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", bound)
        return str(answer["status"]["token"])

    def metrics(self) -> Counter[Request]:
        """How many requests of each kind the API server has answered since it last started."""
        return requests_seen(self.api.raw("GET", "/metrics").decode())

    def scheduler(self, config: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None) -> Scheduler:
        """Start a kube-scheduler with this KubeSchedulerConfiguration; how to reach the API server is filled in."""
        scheduler = Scheduler(self._binaries["kube-scheduler"], self._processes, self.kubeconfig, config or {}, env)
        self._ends.callback(scheduler.stop)
        return scheduler

    # Within

    def _start_on_free_ports(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self.etcd = Etcd(self._binaries["etcd"], self._processes)
                self._ends.callback(self.etcd.process.stop)
                self._ends.callback(self.stop_apiserver)
                self.port = free_port()
                self.url = f"https://127.0.0.1:{self.port}"
                self.api = Api(self.url, self.ca_file, self.admin_token)
                self.start_apiserver()
                break
            except ProcessFailed as failure:
                # Between looking for a free port and using it another process may have taken it.
                if "address already in use" not in str(failure) or attempt == ATTEMPTS:
                    raise
        self.kubeconfig = write_kubeconfig(self.folder / "kubeconfig", self.url, self.ca_file, self.admin_token)

    def _apiserver_command(self) -> list[str]:
        files = self.certificates
        flags = [
            f"--etcd-servers={self.etcd.url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={files.server}",
            f"--tls-private-key-file={files.server_key}",
            f"--service-account-key-file={files.service_account_key}",
            f"--service-account-signing-key-file={files.service_account_key}",
            f"--service-account-issuer={self.url}",
            f"--token-auth-file={self._token_file}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",  # as every installer sets it; pod security standards decide
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--disable-admission-plugins={ADMISSION_OFF}",
            "--endpoint-reconciler-type=none",  # nothing routes to the service `kubernetes`, and loopback is refused
            "--delete-collection-workers=16",
            f"--kubelet-client-certificate={files.kubelet_client}",
            f"--kubelet-client-key={files.kubelet_client_key}",
        ]
        by_name = {flag.partition("=")[0]: flag for flag in (*flags, *self._given_flags)}
        return [str(self._binaries["kube-apiserver"]), *by_name.values()]

    def _ready(self) -> bool:
        try:
            self.api.raw("GET", "/readyz", timeout_s=5)
        except (OSError, HTTPException, ApiError):
            return False
        return True

    def _served(self, path: str) -> bool:
        try:
            self.api.get(f"{path}?limit=1")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True
