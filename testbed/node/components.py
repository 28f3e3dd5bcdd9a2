"""The programs of a node, each with its configuration and the command that starts it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.credentials import write_kubeconfig
from testbed.node.images import PAUSE
from testbed.node.network import BRIDGE, DOMAIN, NODE_IP, POD_NETWORK

NODE_NAME = "node-1"
SERVICE_IP = "10.0.0.1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"

CONTAINERD = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{folder}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
"""


def containerd(folder: Path, packages: Path) -> list[str]:
    """With a network of one bridge, which every pod of the node is on."""
    configuration = folder / "containerd"
    configuration.mkdir()
    ranges = [[{"subnet": POD_NETWORK}]]
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    network = {"cniVersion": "0.4.0", "name": "node", "plugins": [bridge]}
    (configuration / "10-bridge.conflist").write_text(json.dumps(network))
    plugins = packages / "usr/lib/cni"
    settings = {
        "socket": CONTAINERD_SOCKET,
        "pause": PAUSE,
        "cni": plugins if plugins.is_dir() else Path("/usr/lib/cni"),
        "folder": configuration,
        "runc": shutil.which("runc"),
    }
    (configuration / "config.toml").write_text(CONTAINERD.format(**settings))
    return ["containerd", f"--config={configuration / 'config.toml'}", "--log-level=warn"]


def kubelet(binary: Path, folder: Path, url: str, ca_file: Path, token: str) -> list[str]:
    """With the rights of its own node and no others; asks the API server who may ask it."""
    config: Mapping[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCAFile": str(ca_file)}, "webhook": {"enabled": True}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "clusterDNS": [NODE_IP],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{folder.name}",
        "failCgroupV1": False,
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        "failSwapOn": False,
        # The machine's disk and its other programs are none of the node's business.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "2s",
        "maxPods": 100,
    }
    file = folder / "kubelet.json"
    file.write_text(json.dumps(config))
    kubeconfig = write_kubeconfig(folder / "kubelet.kubeconfig", url, ca_file, token)
    return [
        *(str(binary), f"--config={file}", f"--kubeconfig={kubeconfig}"),
        *(f"--hostname-override={NODE_NAME}", f"--node-ip={NODE_IP}", f"--cert-dir={folder / 'kubelet-certificates'}"),
    ]


def kube_proxy(binary: Path, folder: Path, kubeconfig: Path) -> list[str]:
    """Services by iptables; nothing of it is the machine's, because the network is the node's own."""
    config: Mapping[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": NODE_NAME,
        "mode": "iptables",
        "clusterCIDR": POD_NETWORK,
        "conntrack": {"maxPerCore": 0, "min": 0},  # settings of the whole machine: left alone
        "iptables": {"minSyncPeriod": "0s"},
    }
    file = folder / "kube-proxy.json"
    file.write_text(json.dumps(config))
    return [str(binary), f"--config={file}"]


def controller_manager(binary: Path, kubeconfig: Path, ca_file: Path, service_account_key: Path) -> list[str]:
    """All controllers of a cluster."""
    return [
        *(str(binary), f"--kubeconfig={kubeconfig}", "--leader-elect=false"),
        *(f"--root-ca-file={ca_file}", f"--service-account-private-key-file={service_account_key}"),
        *("--bind-address=127.0.0.1", "--node-monitor-period=1s", "--kube-api-qps=200", "--kube-api-burst=400"),
    ]


def scheduler(binary: Path, folder: Path, kubeconfig: Path) -> list[str]:
    """As a cluster has it that knows nothing of Joulie."""
    flags = (f"--{name}kubeconfig={kubeconfig}" for name in ("", "authentication-", "authorization-"))
    return [
        *(str(binary), *flags, "--leader-elect=false", "--bind-address=127.0.0.1"),
        *(f"--cert-dir={folder / 'scheduler-certificates'}", "--kube-api-qps=200", "--kube-api-burst=400"),
    ]


def iptables_programs(folder: Path, packages: Path) -> None:
    """Names that an installation would have made, in a folder that comes first on the search path."""
    programs = packages / "usr/sbin/xtables-nft-multi"
    if not programs.is_file():
        return  # the machine has an iptables of its own
    folder.mkdir()
    for suffix in ("", "-save", "-restore"):
        for family in ("iptables", "ip6tables"):
            (folder / f"{family}{suffix}").symlink_to(programs)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
