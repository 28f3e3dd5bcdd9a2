"""Credentials in addresses are never shown, and an address names one device whatever its password."""

from __future__ import annotations

import pytest

from joulie.errors import SettingError, without_credentials
from joulie.model.addresses import device_name
from tests.support.cli_runner import joulie


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://host:8080/control/a", "http://host:8080/control/a"),
        ("http://user:sesame@host:8080/control/a", "http://host:8080/control/a"),
        ("http://sesame@host/", "http://host/"),
        ("http://user:ses@me@host/x", "http://host/x"),
        ("http://user:ses/ame@host/x", "http://host/x"),
        ("http://host:8080/path@2", "http://host:8080/path@2"),
        ("http://host/x?token=sesame", "http://host/x?…"),
        ("GET http://u:sesame@host/x: HTTP 500", "GET http://host/x: HTTP 500"),
        ("no address at all?", "no address at all?"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    assert without_credentials(address) == shown
    assert "sesame" not in device_name(address)


def test_a_device_keeps_its_name_when_the_password_changes_and_queries_tell_devices_apart() -> None:
    assert device_name("http://u:one@host/a") == device_name("http://u:two@host/a") == "http://host/a"
    assert device_name("http://host/a?rack=1") != device_name("http://host/a?rack=2")


@pytest.mark.parametrize(
    "mistyped",
    [
        *("u:sesame@host:9090", "http:/u:sesame@host", "http:u:sesame@host", "//u:sesame@host", "https//u:sesame@host"),
        *("http://u:open sesame@host", "http://my user:sesame@host/", r"http:\\u:sesame@host", "htp://u:sesame@host"),
    ],
)
def test_a_mistyped_address_is_refused_without_showing_its_password(mistyped: str) -> None:
    for variable in ("OPERATOR_NODE_POWER_HTTP_ENDPOINT", "FACILITY_PROMETHEUS_ADDRESS"):
        refused = joulie("config", "operator", env={variable: mistyped})
        assert refused.code == 2
        assert variable in refused.complaint
        assert "host" in refused.complaint
        assert "sesame" not in refused.out + refused.err


@pytest.mark.parametrize("address", ["http://u:sesame@host", "http://host/x?token=sesame"])
def test_settings_do_not_show_their_passwords_and_keys(address: str) -> None:
    assert "sesame" not in str(SettingError("X", address, "something else"))
    shown = joulie("config", "operator", "-o", "json", env={"OPERATOR_NODE_POWER_HTTP_ENDPOINT": address})
    assert shown.code == 0
    assert "sesame" not in shown.out
