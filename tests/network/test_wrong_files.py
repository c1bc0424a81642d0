"""Wrong values of every key of a scenario file: each is one sentence, and no traceback."""

from __future__ import annotations

import pytest

import fluidcc as fc
from fluidcc.base.errors import ScenarioError

GOOD = {
    "": {"until": '"1 s"', "seed": "0", "delays": '"fifo"', "samples": "11", "title": '"t"',
    "ref": '"r"'},
    "links.l": {
        "law": '"DropTail"', "params": "{}", "capacity": '"3 Mbit/s"', "delay": '"25 ms"',
        "buffer": '"100 packets"', "initial": "{q=0}", "packet": '"1 KB"'},
    "flows.a": {
        "law": '"LDCC"', "params": "{beta=0.1}", "route": '["l"]', "start": "0", "stop": "5",
        "access_delay": "0", "return_delay": '"25 ms"', "packet": '"1 KB"', "initial": "{x=1e5}"},
    "flows.b": {"law": '"CBR"', "route": '["l"]', "pattern": "[[0, 1e6]]"},
}  # fmt: skip
WRONG = (
    "nan",
    "-inf",
    "-1",
    "true",
    '""',
    '"abc"',
    "[]",
    "[1, 2]",
    "1979-05-27",
    "{a=1}",
    '["a"]',
    '"-3 s"',
    "1e400",
)
TEXT = {'""', '"abc"', '"-3 s"'}
TAKEN = {"title": TEXT, "ref": TEXT, "buffer": {"1e400"}, "stop": {"1e400"}, "start": {"-inf"}}


def text(changes: dict[tuple[str, str], str]) -> str:
    lines = []
    for table, keys in GOOD.items():
        lines += [f"[{table}]"] if table else []
        lines += [f"{key} = {changes.get((table, key), value)}" for key, value in keys.items()]
    return "\n".join(lines)


def test_the_good_one_is_read() -> None:
    assert fc.Scenario.loads(text({})).net.flow_names == ("a", "b")


@pytest.mark.parametrize(
    ("table", "key"), [(table, key) for table, keys in GOOD.items() for key in keys]
)
def test_every_key_names_itself_where_its_value_is_wrong(table: str, key: str) -> None:
    for wrong in WRONG:
        if wrong in TAKEN.get(key, ()):
            continue
        with pytest.raises(ScenarioError, match=rf"mine.toml, .*{key}") as caught:
            fc.Scenario.loads(text({(table, key): wrong}), "mine.toml")
        assert "\n" not in str(caught.value), wrong
