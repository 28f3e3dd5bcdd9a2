"""HTTPS with a certificate that is replaced while the extender runs, in whatever way, and with whatever faults."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from joulie.errors import InputError
from joulie.extender import tls
from joulie.extender.tls import Certificate
from testbed.credentials import Certificates, write_certificates
from tests.extender.api_objects import node
from tests.extender.file_process import FromFiles
from tests.extender.harness import load_objects, logged, made, raw, request, scenario, serving, until

TAKEN, KEPT = "new certificate loaded", "new certificate cannot be used; keeping the old one"


class Served(NamedTuple):
    """Where it is served, and the files that it is served from."""

    port: int
    cert: Path
    key: Path


def _made(folder: Path) -> Certificates:
    folder.mkdir(parents=True)
    return write_certificates(folder)


def _serial(cert: Path) -> int:
    return x509.load_pem_x509_certificate(cert.read_bytes()).serial_number


async def _seen(port: int, server_name: str | None = None) -> int:
    """The serial number of the certificate that a new connection gets; the extender answers over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_name)
    try:
        writer.write(request("/healthz", b"", method="GET"))
        assert (await reader.read()).endswith(b"\r\n\r\nok\n")
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
    return x509.load_der_x509_certificate(shown).serial_number


@asynccontextmanager
async def https(cert: Path, key: Path) -> AsyncIterator[Served]:
    certificate = Certificate(str(cert), str(key))
    extender = made()
    load_objects(extender, nodes=[node("a")])
    following = asyncio.create_task(certificate.follow())
    try:
        async with serving(extender, certificate.context) as asker:
            yield Served(asker.port, cert, key)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CHECK_INTERVAL_S", 0.02)


def _overwrite(old: Certificates, new: Certificates) -> None:
    shutil.copyfile(new.server_key, old.server_key)
    shutil.copyfile(new.server, old.server)


def _rename(old: Certificates, new: Certificates) -> None:
    new.server.replace(old.server)
    new.server_key.replace(old.server_key)


@pytest.mark.parametrize("replace", [_overwrite, _rename])
def test_a_new_certificate_is_taken_for_new_connections(
    tmp_path: Path, replace: Callable[[Certificates, Certificates], None]
) -> None:
    old, new = _made(tmp_path / "old"), _made(tmp_path / "new")
    first, second = _serial(old.server), _serial(new.server)

    async def story() -> None:
        with logged() as lines:
            async with https(old.server, old.server_key) as served:
                assert await _seen(served.port) == first
                replace(old, new)
                await until(lambda: bool(lines.saying(TAKEN)))
                assert await _seen(served.port) == second

    scenario(story())


def test_files_that_cannot_be_used_are_tried_again_without_being_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the owner of a key is put right afterwards; what is wrong is said once."""
    old, new = _made(tmp_path / "old"), _made(tmp_path / "new")
    second, load, tries = _serial(new.server), Certificate._load, list[int]()

    def forbidden(self: Certificate) -> ssl.SSLContext:
        tries.append(1)
        if len(tries) < 5:
            raise PermissionError(13, "Permission denied")
        return load(self)

    async def story() -> None:
        with logged() as lines:
            async with https(old.server, old.server_key) as served:
                monkeypatch.setattr(Certificate, "_load", forbidden)
                _rename(old, new)
                await until(lambda: bool(lines.saying(TAKEN)))
                assert [line.fields["reason"] for line in lines.saying(KEPT)] == ["Permission denied"]
                assert "EXTENDER_TLS_KEY_FILE=" in str(lines.saying(KEPT)[0].fields["files"])
                assert await _seen(served.port) == second

    scenario(story())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda files, other: shutil.copyfile(other.server_key, files.server_key), "the key does not match the"),
        (
            lambda files, _: files.server.write_bytes(b"garbage"),
            "not a PEM certificate, or an encrypted or incomplete key",
        ),
        (lambda files, _: files.server_key.write_bytes(files.server_key.read_bytes()[:99]), "not a PEM"),
    ],
)
def test_why_files_cannot_be_used_is_said_in_words(
    tmp_path: Path, spoil: Callable[[Certificates, Certificates], object], reason: str
) -> None:
    files, other = _made(tmp_path / "one"), _made(tmp_path / "other")
    spoil(files, other)

    with pytest.raises(InputError, match=f"EXTENDER_TLS_CERT_FILE=.* cannot be used: {reason}"):
        Certificate(str(files.server), str(files.server_key))


def _with_rsa(folder: Path) -> Certificates:
    """As another issuer would make it: a key of another type."""
    files = _made(folder)
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    files.server.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files.server_key.write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    return files


def test_one_with_a_key_of_another_type_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """A context keeps one for each type and prefers elliptic curves, whatever came last."""
    served_from = _made(tmp_path / "served")
    turns = [_with_rsa(tmp_path / "rsa"), _made(tmp_path / "ec"), _with_rsa(tmp_path / "rsa again")]

    async def story() -> None:
        with logged() as lines:
            async with https(served_from.server, served_from.server_key) as served:
                for taken, turn in enumerate(turns, start=1):
                    _rename(served_from, turn)
                    expected = _serial(served_from.server)
                    await until(lambda taken=taken: len(lines.saying(TAKEN)) >= taken)
                    for name in (None, "localhost"):
                        assert await _seen(served.port, name) == expected

    scenario(story())


def test_a_secret_that_kubernetes_swaps_by_a_link_is_taken(tmp_path: Path) -> None:
    """`tls.crt -> ..data/tls.crt`, and `..data` is turned to another folder by a rename."""
    for name in ("..first", "..second"):
        made_ = _made(tmp_path / name)
        made_.server.rename(tmp_path / name / "tls.crt")
        made_.server_key.rename(tmp_path / name / "tls.key")
    (tmp_path / "..data").symlink_to("..first")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")

    async def story() -> None:
        with logged() as lines:
            async with https(tmp_path / "tls.crt", tmp_path / "tls.key") as served:
                assert await _seen(served.port) == _serial(tmp_path / "..first" / "tls.crt")
                (tmp_path / "..new").symlink_to("..second")
                (tmp_path / "..new").replace(tmp_path / "..data")
                await until(lambda: bool(lines.saying(TAKEN)))
                assert await _seen(served.port) == _serial(tmp_path / "..second" / "tls.crt")

    scenario(story())


def _no_certificate(files: Served, other: Certificates) -> None:
    files.cert.write_text("-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")


def _empty(files: Served, other: Certificates) -> None:
    files.cert.write_bytes(b"")


def _gone(files: Served, other: Certificates) -> None:
    files.key.unlink()


def _keys_do_not_match(files: Served, other: Certificates) -> None:
    shutil.copyfile(other.server, files.cert)


def _cut_off(files: Served, other: Certificates) -> None:
    shutil.copyfile(other.server, files.cert)
    files.key.write_bytes(other.server_key.read_bytes()[:80])


def _locked(files: Served, other: Certificates) -> None:
    shutil.copyfile(other.server, files.cert)
    files.key.write_bytes(_with_password(other.server_key))


def _with_password(key_file: Path) -> bytes:
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


@pytest.mark.parametrize("spoil", [_no_certificate, _empty, _gone, _keys_do_not_match, _cut_off, _locked])
def test_one_that_cannot_be_used_leaves_the_old_one_in_force(
    tmp_path: Path, spoil: Callable[[Served, Certificates], None]
) -> None:
    old, other, last = (_made(tmp_path / name) for name in ("old", "other", "last"))
    first = _serial(old.server)

    async def story() -> None:
        with logged() as lines:
            async with https(old.server, old.server_key) as served:
                spoil(served, other)
                await until(lambda: bool(lines.saying(KEPT)))
                for _ in range(3):
                    assert await _seen(served.port) == first
                assert all(line.fields["reason"] for line in lines.saying(KEPT))
                _overwrite(old, last)
                await until(lambda: bool(lines.saying(TAKEN)))
                await asyncio.sleep(0.1)
                assert await _seen(served.port) == _serial(last.server)

    scenario(story())


def test_a_key_with_a_password_is_refused_without_a_prompt(tmp_path: Path) -> None:
    files = _made(tmp_path / "files")
    files.server_key.write_bytes(_with_password(files.server_key))
    with pytest.raises(InputError, match=r"EXTENDER_TLS_KEY_FILE='.*' cannot be used: "):
        Certificate(str(files.server), str(files.server_key))


class TestProcess:
    def line(self, folder: Path, **env: str) -> str:
        """The one line with which it does not start."""
        done = FromFiles(folder, **env).run_to_its_end()
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("joulie: ")
        return line.removeprefix("joulie: ")

    def test_https_needs_both_files(self, tmp_path: Path) -> None:
        files = _made(tmp_path / "files")
        line = self.line(tmp_path, EXTENDER_TLS_CERT_FILE=str(files.server))
        assert line == "EXTENDER_TLS_KEY_FILE is not set: HTTPS needs a certificate and its key"
        line = self.line(tmp_path, EXTENDER_TLS_KEY_FILE=str(files.server_key))
        assert line == "EXTENDER_TLS_CERT_FILE is not set: HTTPS needs a certificate and its key"

    @pytest.mark.parametrize("missing", ["EXTENDER_TLS_CERT_FILE", "EXTENDER_TLS_KEY_FILE"])
    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path, missing: str) -> None:
        files = _made(tmp_path / "files")
        env = {"EXTENDER_TLS_CERT_FILE": str(files.server), "EXTENDER_TLS_KEY_FILE": str(files.server_key)}
        env[missing] = str(tmp_path / "nowhere")
        line = self.line(tmp_path, **env)
        assert line == f"{missing}='{tmp_path / 'nowhere'}' cannot be read: No such file or directory"

    def test_files_that_do_not_belong_together_are_named(self, tmp_path: Path) -> None:
        files, other = _made(tmp_path / "files"), _made(tmp_path / "other")
        line = self.line(
            tmp_path, EXTENDER_TLS_CERT_FILE=str(files.server), EXTENDER_TLS_KEY_FILE=str(other.server_key)
        )
        assert "EXTENDER_TLS_CERT_FILE=" in line
        assert "EXTENDER_TLS_KEY_FILE=" in line
        assert "cannot be used: " in line

    def test_it_serves_https_and_what_speaks_no_tls_is_turned_away_silently(self, tmp_path: Path) -> None:
        files = _made(tmp_path / "files")
        env = {"EXTENDER_TLS_CERT_FILE": str(files.server), "EXTENDER_TLS_KEY_FILE": str(files.server_key)}
        with FromFiles(tmp_path, **env) as extender:

            async def story() -> None:
                for data in (
                    b"GET /healthz HTTP/1.1\r\nHost: e\r\n\r\n",
                    b"\x16\x03\x01\xff\xff" + b"x" * 300,
                    b"\x00",
                ):
                    try:
                        answer = await raw(extender.port, data, half_close=True)
                    except ConnectionError:
                        answer = b""
                    assert b"HTTP" not in answer
                assert await _seen(extender.port) == _serial(files.server)

            scenario(story())
            assert extender.ask("GET", "/healthz")[0] == 200  # metrics and health stay plain
            extender.terminate()
            assert extender.process.wait(30) == 0
            assert '"level":"error"' not in extender.log
            assert "Traceback" not in extender.log
