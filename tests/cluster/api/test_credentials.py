"""Where the API server is found, and who we say we are: in a pod and from kubeconfig files."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from joulie.cluster.api.credentials import REREAD_S, TokenFile, find_credentials, in_cluster
from joulie.errors import InputError
from testbed.credentials import Certificates
from tests.cluster.api.kubeconfigs import header, write

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def account(tmp_path: Path, certificates: Certificates) -> Path:
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("first\n")
    (folder / "ca.crt").write_bytes(certificates.ca.read_bytes())
    (folder / "namespace").write_text("energy")
    return folder


# In a pod


def test_a_pod_finds_its_server_token_authority_and_namespace(account: Path) -> None:
    credentials = in_cluster(IN_POD, account)
    assert credentials.url == "https://10.0.0.1:6443"
    assert credentials.namespace == "energy"
    assert header(credentials) == "Bearer first"
    assert credentials.ssl_context is not None
    assert credentials.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert len(credentials.ssl_context.get_ca_certs()) == 1  # this authority alone


def test_an_ipv6_address_is_put_in_brackets(account: Path) -> None:
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, account).url == "https://[fd00::1]:443"


def test_a_token_that_rotates_is_read_again(tmp_path: Path) -> None:
    now_s = 0.0
    file = tmp_path / "token"
    file.write_text("first")
    token = TokenFile(file, clock=lambda: now_s)
    assert asyncio.run(token.header()) == "Bearer first"
    replacement = tmp_path / "new"
    replacement.write_text("second")
    os.utime(replacement, ns=(5, 5))
    replacement.rename(file)
    assert asyncio.run(token.header()) == "Bearer second"
    file.write_text("third")
    os.utime(file, ns=(5, 5))  # changed, although its time is the same
    assert asyncio.run(token.header()) == "Bearer second"
    now_s = REREAD_S
    assert asyncio.run(token.header()) == "Bearer third"
    file.write_text("fourth")
    os.utime(file, ns=(5, 5))
    token.forget()
    assert asyncio.run(token.header()) == "Bearer fourth"


def test_a_token_file_that_vanishes_for_a_moment_leaves_the_last_token(tmp_path: Path) -> None:
    now_s = 0.0
    file = tmp_path / "token"
    file.write_text("first")
    token = TokenFile(file, clock=lambda: now_s)
    file.unlink()
    now_s = 2 * REREAD_S
    assert asyncio.run(token.header()) == "Bearer first"
    file.write_text("")
    now_s = 4 * REREAD_S
    assert asyncio.run(token.header()) == "Bearer first"


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_a_service_account_says_so(account: Path, missing: str) -> None:
    (account / missing).unlink()
    with pytest.raises(InputError, match=missing):
        in_cluster(IN_POD, account)


# From files


def test_the_order_is_kubectls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: Path) -> None:
    monkeypatch.setattr("joulie.cluster.api.credentials.SERVICE_ACCOUNT", account)
    monkeypatch.setattr("joulie.cluster.api.credentials.in_cluster", lambda env: in_cluster(env, account))
    write(tmp_path / ".kube" / "config", {"token": "home"})
    listed = write(tmp_path / "listed", {"token": "listed"})
    explicit = write(tmp_path / "explicit", {"token": "explicit"})
    env = IN_POD | {"KUBECONFIG": str(listed)}
    assert header(find_credentials(env, kubeconfig=str(explicit), home=tmp_path)) == "Bearer explicit"
    assert header(find_credentials(env, home=tmp_path)) == "Bearer listed"
    assert header(find_credentials(IN_POD, home=tmp_path)) == "Bearer home"
    assert header(find_credentials(IN_POD, home=tmp_path / "nobody")) == "Bearer first"


def test_a_context_brings_server_user_and_namespace(tmp_path: Path) -> None:
    one = write(tmp_path / "one", {"token": "1"})
    two = write(tmp_path / "two", {"token": "2"}, name="two", server="http://two:8080")
    env = {"KUBECONFIG": f"{one}{os.pathsep}{tmp_path / 'missing'}{os.pathsep}{two}"}
    first = find_credentials(env)  # of several files the first current-context counts
    assert (first.url, first.namespace, header(first)) == ("https://one:6443", "of-one", "Bearer 1")
    assert first.ssl_context is not None
    second = find_credentials(env, context="two")
    assert (second.url, second.namespace, header(second)) == ("http://two:8080", "of-two", "Bearer 2")
    assert second.ssl_context is None


def test_client_certificates_and_names_in_certificates(tmp_path: Path, certificates: Certificates) -> None:
    user = {"client-certificate": str(certificates.server), "client-key": str(certificates.server_key)}
    more = {"certificate-authority": str(certificates.ca), "tls-server-name": "kubernetes", "proxy-url": "http://p:1"}
    credentials = find_credentials({}, kubeconfig=str(write(tmp_path / "config", user, **more)))
    assert header(credentials) is None
    assert credentials.server_name == "kubernetes"
    assert credentials.proxy == "http://p:1"
    assert credentials.ssl_context is not None
    assert len(credentials.ssl_context.get_ca_certs()) == 1


def test_verification_is_left_out_only_on_demand(tmp_path: Path) -> None:
    unverified: dict[str, Any] = {"insecure-skip-tls-verify": True}
    file = write(tmp_path / "config", {"token": "1"}, **unverified)
    context = find_credentials({}, kubeconfig=str(file)).ssl_context
    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "current-context"),
        ("[]", "is not a kubeconfig"),
        ("{", "is not YAML"),
        ("current-context: a", "no context a; known: none"),
        ("current-context: a\ncontexts: [{name: b, context: {}}]", "no context a; known: b"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: x}}]", "context a"),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: x}}]\nclusters: [{name: x, cluster: {}}]",
            "server",
        ),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        find_credentials({}, kubeconfig=str(file))
    assert str(caught.value).startswith(str(file))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_any_cluster_the_next_step_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="set KUBECONFIG or use --kubeconfig"):
        find_credentials({}, home=tmp_path)
    with pytest.raises(InputError, match="no such file"):
        find_credentials({"KUBECONFIG": str(tmp_path / "x")}, home=tmp_path)
    with pytest.raises(InputError, match="no such kubeconfig"):
        find_credentials(IN_POD, kubeconfig=str(tmp_path / "x"))
    with pytest.raises(InputError, match="--context"):
        find_credentials(IN_POD, context="a", home=tmp_path)
