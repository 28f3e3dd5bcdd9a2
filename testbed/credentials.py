"""Certificates and keys of a control plane that lives for minutes, and the kubeconfigs that go with them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=30)  # `make cluster` may run for a while


class Certificates(NamedTuple):
    """The files, all in one folder."""

    ca: Path
    server: Path
    server_key: Path
    service_account_key: Path
    kubelet_client: Path  # by which the API server shows a kubelet who it is
    kubelet_client_key: Path


NAMES = ("ca.crt", "server.crt", "server.key", "service-account.key", "kubelet-client.crt", "kubelet-client.key")


def write_certificates(folder: Path, addresses: Iterable[str] = (), names: Iterable[str] = ()) -> Certificates:
    """Make them anew; elliptic curves, because RSA would cost a second of waiting.

    The server is known by loopback, by `addresses` and by `names`.
    """
    files = Certificates(*(folder / name for name in NAMES))
    ca_key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca_name = _name("joulie-testbed-ca")
    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    authority = (
        _unsigned(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    known_by = [
        *(x509.DNSName(name) for name in ("localhost", *names)),
        *(x509.IPAddress(IPv4Address(address)) for address in ("127.0.0.1", *addresses)),
    ]
    server = (
        _end_entity(_name("kube-apiserver"), server_key, ca_name, identifier, ExtendedKeyUsageOID.SERVER_AUTH)
        .add_extension(x509.SubjectAlternativeName(known_by), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    administrator = _name("kube-apiserver-kubelet-client", group="system:masters")
    client = _end_entity(administrator, client_key, ca_name, identifier, ExtendedKeyUsageOID.CLIENT_AUTH).sign(
        ca_key, hashes.SHA256()
    )
    for file, certificate in ((files.ca, authority), (files.server, server), (files.kubelet_client, client)):
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(files.server_key, server_key)
    _write_key(files.kubelet_client_key, client_key)
    _write_key(files.service_account_key, ec.generate_private_key(ec.SECP256R1()))
    return files


def _name(common_name: str, group: str = "") -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _end_entity(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    ca_name: x509.Name,
    ca_identifier: x509.SubjectKeyIdentifier,
    purpose: x509.ObjectIdentifier,
) -> x509.CertificateBuilder:
    return (
        _unsigned(subject, ca_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_identifier), critical=False)
    )


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    # Not PKCS #8: the API server would not find the public half of a service-account key in it.
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    file.touch(mode=0o600)
    file.write_bytes(pem)


def write_kubeconfig(file: Path, url: str, ca_file: Path, token: str, name: str = "joulie-testbed") -> Path:
    """Write it as JSON, which every reader of YAML takes."""
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(config, indent=2) + "\n")
    return file
