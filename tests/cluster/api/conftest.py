"""Certificates for the tests of this folder."""

from __future__ import annotations

import pytest

from testbed.credentials import Certificates, write_certificates


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return write_certificates(tmp_path_factory.mktemp("certificates"))
