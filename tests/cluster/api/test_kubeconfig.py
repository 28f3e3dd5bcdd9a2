"""What a kubeconfig may say, and exec plug-ins: as kubectl has it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from joulie.cluster.api import kubeconfig as kubeconfig_module
from joulie.cluster.api.credentials import find_credentials
from joulie.errors import InputError
from testbed.credentials import Certificates
from tests.cluster.api.kubeconfigs import SERVER, credential, header, plugin, write


def test_a_plug_in_is_asked_again_when_its_token_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig_module, "CHECK_S", 0.0)
    user = plugin(tmp_path, credential(token="old", expirationTimestamp="2020-01-01T00:00:00Z"))
    credentials = find_credentials({}, kubeconfig=str(write(tmp_path / "config", user)))
    plugin(tmp_path, credential(token="new", expirationTimestamp="2120-01-01T00:00:00Z"))
    assert header(credentials) == "Bearer new"
    plugin(tmp_path, credential(token="newer"))
    assert header(credentials) == "Bearer new"
    credentials.forget()  # refused all the same
    assert header(credentials) == "Bearer newer"


def test_a_plug_in_that_fails_is_an_error_and_not_a_missing_token(tmp_path: Path) -> None:
    file = write(tmp_path / "config", plugin(tmp_path, "echo 'please log in' >&2; exit 3"))
    with pytest.raises(InputError, match="please log in"):
        find_credentials({}, kubeconfig=str(file))


def test_a_plug_in_is_told_what_the_kubeconfig_says_about_it(tmp_path: Path) -> None:
    user = plugin(tmp_path, f'echo "$1 $FLAVOUR $KUBERNETES_EXEC_INFO" > {tmp_path / "told"}\n{credential(token="t")}')
    user["exec"] |= {"args": ["login"], "env": [{"name": "FLAVOUR", "value": "sweet"}], "provideClusterInfo": True}
    find_credentials({}, kubeconfig=str(write(tmp_path / "config", user)))
    arguments, told = (tmp_path / "told").read_text().split(" {", 1)
    assert arguments == "login sweet"
    assert json.decode("{" + told)["spec"] == {"interactive": False, "cluster": {"server": SERVER}}


def test_a_plug_in_beside_the_kubeconfig_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = plugin(tmp_path, credential(token="near"))
    user["exec"]["command"] = "./plugin"
    file = write(tmp_path / "config", user)
    monkeypatch.chdir("/")
    assert header(find_credentials({}, kubeconfig=str(file))) == "Bearer near"


def test_a_plug_in_may_give_a_certificate_instead_of_a_token(tmp_path: Path, certificates: Certificates) -> None:
    given = {
        "clientCertificateData": certificates.server.read_text(),
        "clientKeyData": certificates.server_key.read_text(),
    }
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": given}
    (tmp_path / "answer").write_bytes(json.encode(body))
    credentials = find_credentials(
        {}, kubeconfig=str(write(tmp_path / "config", plugin(tmp_path, f"cat {tmp_path / 'answer'}")))
    )
    assert header(credentials) is None


@pytest.mark.parametrize(
    ("change", "body", "reason"),
    [
        ({"command": "joulie-no-such-plug-in", "installHint": "get it there"}, "", "cannot be run .*; get it there"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "", "v1alpha1: supported are"),
        ({"interactiveMode": "Always"}, credential(token="t"), "needs a terminal"),
        ({}, "echo nothing", "did not print an ExecCredential"),
        ({}, credential(), "neither a token nor a certificate"),
        ({"apiVersion": "client.authentication.k8s.io/v1beta1"}, credential(token="t"), "answered in"),
    ],
)
def test_what_is_wrong_with_a_plug_in_is_said_in_one_line(
    tmp_path: Path, change: dict[str, str], body: str, reason: str
) -> None:
    user = plugin(tmp_path, body)
    user["exec"] |= change
    with pytest.raises(InputError, match=reason) as caught:
        find_credentials({}, kubeconfig=str(write(tmp_path / "config", user)))
    assert "\n" not in str(caught.value)


def test_a_plug_in_that_fails_later_leaves_the_last_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig_module, "CHECK_S", 0.0)
    user = plugin(tmp_path, credential(token="old", expirationTimestamp="2020-01-01T00:00:00Z"))
    credentials = find_credentials({}, kubeconfig=str(write(tmp_path / "config", user)))
    plugin(tmp_path, "exit 1")
    assert header(credentials) == "Bearer old"
    plugin(tmp_path, credential(token="new"))
    assert header(credentials) == "Bearer new"


def test_a_token_that_another_tool_writes_into_the_file_is_read_when_the_old_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig_module, "CHECK_S", 0.0)
    file = write(tmp_path / "config", {"token": "old"})
    credentials = find_credentials({}, kubeconfig=str(file))
    write(file, {"token": "new"})
    assert header(credentials) == "Bearer old"
    credentials.forget()
    assert header(credentials) == "Bearer new"


def test_tokens_in_files_and_passwords_count_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    file = write(tmp_path / "config", {"tokenFile": "token", "token": "loses"})
    assert header(find_credentials({}, kubeconfig=str(file))) == "Bearer from-a-file"
    write(file, {"username": "ann", "password": "é"})
    assert header(find_credentials({}, kubeconfig=str(file))) == "Basic YW5uOsOp"


def test_certificates_inside_the_file_win_over_files_beside_it(tmp_path: Path, certificates: Certificates) -> None:
    def inside(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    user = {
        "client-certificate": "missing",
        "client-certificate-data": inside(certificates.server),
        "client-key-data": inside(certificates.server_key),
    }
    more = {"certificate-authority": "missing", "certificate-authority-data": inside(certificates.ca)}
    context = find_credentials({}, kubeconfig=str(write(tmp_path / "config", user, **more))).ssl_context
    assert context is not None
    assert len(context.get_ca_certs()) == 1
    (tmp_path / "ca.crt").write_bytes(certificates.ca.read_bytes())
    beside = write(tmp_path / "beside", {"token": "t"}, **{"certificate-authority": "ca.crt"})
    context = find_credentials({}, kubeconfig=str(beside)).ssl_context
    assert context is not None
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("user", "more", "reason"),
    [
        ({"auth-provider": {"name": "gcp"}}, {}, "auth-provider is not supported: use an exec plug-in"),
        ({"as": "admin", "token": "t"}, {}, "as is not supported"),
        ({"client-certificate-data": "%"}, {}, "client-certificate-data is not base64"),
        ({"client-certificate-data": "aGVsbG8="}, {}, "the client certificate cannot be used"),
        ({"token": "t"}, {"certificate-authority-data": "aGVsbG8="}, "certificate-authority cannot be used"),
        ({"token": "t"}, {"certificate-authority": "nowhere.crt"}, "nowhere.crt: cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused_and_never_passed_over(
    tmp_path: Path, user: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        find_credentials({}, kubeconfig=str(write(tmp_path / "config", user, **more)))
