"""What YAML means here: the core schema, and limits that no honest manifest meets."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from joulie.cluster.decoding.numbers import UnusableNumber
from joulie.cluster.files import yaml_documents
from joulie.cluster.files.yaml_documents import YamlError, documents


def value_of(text: str) -> Any:
    (document,) = documents(f"value: {text}".encode())
    assert isinstance(document, dict)
    return document["value"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("text", "text"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("tRUE", "tRUE"),
        ("2026-11-01", "2026-11-01"),
        ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("100m", "100m"),
        ("1.2.3", "1.2.3"),
        ("[~]", [None]),
        ("-1-", "-1-"),
        ("0b11", "0b11"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("!!int '12'", 12),
        ("!!float 12", 12.0),
        ("!!bool 'true'", True),
        ("!!null ''", None),
        ("!!map {}", {}),
        ("!!seq []", []),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        (">-\n  folded\n  text\n", "folded text"),
        ("[1, [a, {b: c}], ]", [1, ["a", {"b": "c"}]]),
        ("é", "é"),
    ],
)
def test_a_value_is_what_the_core_schema_says(text: str, value: object) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.Inf", "+.INF", "1e999", "-1e999", "9" * 30, "9" * 5000])
def test_unusable_numbers_are_kept_apart(text: str) -> None:
    found = value_of(text)
    assert isinstance(found, UnusableNumber)
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4: the key 'c' appears twice in one mapping"),
        ("1: a\n'1': b\n", "line 2: the key '1' appears twice in one mapping"),
        ("a: 1\n? [b]\n: c\n", "line 2: a key is not plain text"),
        ("a: &x [1]\n*x : 2\n", "line 2: a key is not plain text"),
        ("a: !!python/object:os.system x\n", "line 1: the tag 'tag:yaml.org,2002:python/object:os.system' is not supp"),
        ("a: !mine {}\n", "line 1: the tag '!mine' is not supported"),
        ("a: !!int many\n", "line 1: 'many' does not fit its tag !!int"),
        ("a: !!int true\n", "line 1: 'true' does not fit its tag !!int"),
        ("a: !!bool 1\n", "line 1: '1' does not fit its tag !!bool"),
        ("a: *nobody\n", "line 1: the alias *nobody has no anchor before it"),
        ("a: &x 1\n---\nb: *x\n", "line 3: the alias *x has no anchor before it"),
        ("a: &x\n  b: *x\n", "line 2: the alias *x contains itself"),
        ("a:\n  <<: 1\n", "line 2: the value of << is not a mapping"),
        ("a:\n  <<: [{}, 1]\n", "line 2: the value of << is not a mapping"),
        ("a: [1, 2\nb: 3\n", "line 2: "),
        ("a: 1\n  b: 2\n", "line 2: mapping values are not allowed"),
        ("a: {\n", "line 2: "),
        ("a: 'unfinished\n", "line 2: found unexpected end of stream"),
        ("a:\n\t- b\n", "line 2: found character"),
        ("a: \x07\n", "unacceptable character #x0007"),
        ("[" * 101 + "]" * 101, "line 1: nested more than 100 levels deep"),
        ("\n" + "- " * 200_000, "line 2: nested more than 100 levels deep"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(YamlError) as caught:
        documents(text.encode())
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


def test_a_hundred_levels_are_fine() -> None:
    assert documents(b"[" * 100 + b"]" * 100) != []


def test_aliases_repeat_what_was_anchored() -> None:
    text = "a: &x {b: [1]}\nc: *x\nd: &k key\n*k : [*x, *k]\n"
    assert documents(text.encode()) == [{"a": {"b": [1]}, "c": {"b": [1]}, "d": "key", "key": [{"b": [1]}, "key"]}]


def test_own_entries_win_over_merged_ones_and_earlier_sources_over_later() -> None:
    text = "base: &b {x: 1, y: 1, z: 1}\nmore: &m {y: 2, w: 2}\nall: {z: 3, <<: [*m, *b], v: 3}\none: {<<: *m}\n"
    (document,) = documents(text.encode())
    assert isinstance(document, dict)
    assert document["all"] == {"x": 1, "y": 2, "z": 3, "w": 2, "v": 3}
    assert document["one"] == {"y": 2, "w": 2}
    assert document["base"] == {"x": 1, "y": 1, "z": 1}


@pytest.mark.parametrize("repeated", ["[{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]", "{{a: {0}, b: {0}, c: {0}, d: {0}}}"])
def test_aliases_that_explode_are_refused_quickly(repeated: str) -> None:
    lines = ["- &a0 [x, x, x, x]"] + [f"- &a{n} " + repeated.format(f"*a{n - 1}") for n in range(1, 60)]
    with pytest.raises(YamlError, match=r"^line \d+: aliases expand to more than 1,000,000 values$"):
        documents("\n".join(lines).encode())


def test_aliases_spread_over_many_documents_are_counted_together() -> None:
    document = "- &a [" + "x, " * 10_000 + "]\n" + "- *a\n" * 50
    assert len(documents(document.encode())) == 1
    with pytest.raises(YamlError, match="aliases expand"):
        documents(f"{document}---\n{document}---\n{document}".encode())


def test_empty_documents_are_left_out() -> None:
    assert documents(b"---\n---\na: 1\n---\n# nothing\n---\n~\n---\n- b\n...\n") == [{"a": 1}, ["b"]]


# PyYAML writes what YAML 1.1 takes for text: it leaves `1e3` and `0o17` without quotes, which are numbers today.
_TEXTS = st.text().filter(lambda text: text[:1] not in "+-.0123456789" and text not in ("<<", "="))
_PLAIN_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_TEXTS, _PLAIN_DATA, min_size=1, max_size=4), st.booleans())
def test_what_a_yaml_writer_writes_is_read_back(document: dict[str, Any], flow: bool) -> None:
    (found,) = documents(yaml.safe_dump(document, default_flow_style=flow).encode())
    assert found == document


@pytest.mark.parametrize("text", ["a: [1, {b: 'c'}]\n---\n- d\n", "a: &x {b: c}\nd: *x\n", "a: é\n"])
def test_without_the_c_library_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    expected = documents(text.encode())
    monkeypatch.setattr(yaml_documents, "_LOADER", yaml.SafeLoader)
    assert documents(text.encode()) == expected
    with pytest.raises(YamlError, match=r"^line 2: "):
        documents(b"a: {\n")


def test_floats_keep_their_sign_and_precision() -> None:
    assert math.copysign(1, value_of("-0.0")) == -1
    assert value_of("0.1") == 0.1
