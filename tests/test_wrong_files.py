"""Wrong values of every key of a scenario file, and wrong commands: each is one sentence, and no traceback."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.cli import main
from fluidcc.errors import ScenarioError

GOOD = {
    "": {"until": '"1 s"', "seed": "0", "delays": '"fifo"', "samples": "11", "title": '"t"', "ref": '"r"'},
    "links.l": {
        "law": '"DropTail"', "params": "{}", "capacity": '"3 Mbit/s"', "delay": '"25 ms"', "buffer": '"100 packets"',
        "initial": "{q=0}", "packet": '"1 KB"'},
    "flows.a": {
        "law": '"LDCC"', "params": "{beta=0.1}", "route": '["l"]', "start": "0", "stop": "5", "access_delay": "0",
        "return_delay": '"25 ms"', "packet": '"1 KB"', "initial": "{x=1e5}"},
    "flows.b": {"law": '"CBR"', "route": '["l"]', "pattern": "[[0, 1e6]]"},
}  # fmt: skip
WRONG = ("nan", "-inf", "-1", "true", '""', '"abc"', "[]", "[1, 2]", "1979-05-27", "{a=1}", '["a"]', '"-3 s"', "1e400")
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


@pytest.mark.parametrize(("table", "key"), [(table, key) for table, keys in GOOD.items() for key in keys])
def test_every_key_names_itself_where_its_value_is_wrong(table: str, key: str) -> None:
    for wrong in WRONG:
        if wrong in TAKEN.get(key, ()):
            continue
        with pytest.raises(ScenarioError, match=rf"mine.toml, .*{key}") as caught:
            fc.Scenario.loads(text({(table, key): wrong}), "mine.toml")
        assert "\n" not in str(caught.value), wrong


COMMANDS = {
    "a folder for a scenario": (["simulate", "folder"], "folder is a folder; give a TOML file"),
    "bytes that are no text": (["simulate", "bytes.toml"], "bytes.toml is not TOML"),
    "nothing in it": (["simulate", "empty.toml"], "empty.toml, until is missing; give a time"),
    "no number for a time": (["simulate", "mine.toml", "--until", "soon"], "until is 'soon'"),
    "time that runs back": (["simulate", "mine.toml", "--until=-1"], "until is -1.0; give a positive number"),
    "a tolerance that is none": (["simulate", "mine.toml", "--rtol", "nan"], "rtol is nan; give a number between"),
    "a folder for an output": (["simulate", "mine.toml", "--output", "folder.nc", "--force"], "is a folder"),
    "a full disk": (["simulate", "mine.toml", "--output", "full.nc", "--figure", "f.png", "--force"],
                    "full.nc: no space left on device; make room there, or give another place"),
    "a change of nothing": (["simulate", "mine.toml", "--set", "=3"], "--set =3: give KEY=VALUE"),
    "a stranger to change": (["simulate", "mine.toml", "--set", "flows.z.start=3"], "there is no flow 'z' to change"),
    "a time in words": (["stability", "mine.toml", "--at", "late"], "--at is 'late'"),
    "a picture that is text": (["stability", "mine.toml", "-o", "f.txt"], "must end in .pdf, .png or .svg"),
    "a folder that is a file": (["reproduce", "--folder", "mine.toml"], "mine.toml: file exists"),
    "a paper that is not there": (["claims", "nopaper"], "there are no claims of 'nopaper'; the papers are ldcc"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", COMMANDS)
def test_wrong_commands_are_one_line(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "full.nc").symlink_to("/dev/full")
    (tmp_path / "mine.toml").write_text(text({}))
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    arguments, said = COMMANDS[mistake]
    if "full.nc" in arguments and not (os.path.exists("/dev/full") and stat.S_ISCHR(os.stat("/dev/full").st_mode)):
        pytest.skip("this system has no /dev/full")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("fluidcc: ")
    assert said in error
    assert error.count("\n") == 1
