"""Measured capacities: what a file says, in bins, and outages."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc


def trace(folder: Path, text: str) -> Path:
    file = folder / "trace"
    file.write_text(text, "utf-8")
    return file


def test_rows_are_averaged_over_bins(tmp_path: Path) -> None:
    file = trace(tmp_path, "\ufeffs; bit/s\n# measured\n5;100\n5.25;300\n\n6;0\n7;50\n8;50\n")
    assert fc.read_trace(file, 0.5) == ((0.0, 200.0), (0.5, 300.0), (1.0, 0.0), (2.0, 50.0))
    assert fc.read_trace(file, "1 s") == ((0.0, 250.0), (1.0, 0.0), (2.0, 50.0))
    assert fc.read_trace(file, "10 s") == ((0.0, (25 + 225 + 8 * 50) / 10), (10.0, 50.0))
    assert fc.read_trace(str(file), 1, unit="kbit/s")[0] == (0.0, 250e3)
    assert fc.read_trace(str(file), 1, unit="KB/s")[0] == (0.0, 2e6)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("0,10\n0.25,2\n0.3,2", ((0.0, 10e6), (0.2, 4e6), (0.4, 2e6))),  # the last row stays
        ("0,10\n0.25,2", ((0.0, 10e6), (0.2, 4e6), (0.4, 2e6))),
        ("0,10\n0.2,2", ((0.0, 10e6), (0.2, 2e6))),  # nothing is left of a bin
        ("0,10\n0.1,2", ((0.0, 6e6), (0.2, 2e6))),
        ("3,8", ((0.0, 8e6),)),
        ("0,10\n0.1,4\n0.1,2\n0.2,8\n0.2,6", ((0.0, 6e6), (0.2, 6e6))),  # the later counts
        ("0,1\n0,3\n0.5,3", ((0.0, 3e6),)),
    ],
)
def test_bins_and_the_end_of_two_columns(tmp_path: Path, text: str, right: Any) -> None:
    found = np.array(fc.read_trace(trace(tmp_path, text), "200 ms", unit="Mbit/s"))
    joined = [p for k, p in enumerate(right) if not k or p[1] != right[k - 1][1]]
    np.testing.assert_allclose(found, joined)


def delivered(pairs: Any, until: float) -> float:
    """What pairs of times and rates that hold from then on come to, the last one for ever."""
    times = [*(min(t, until) for t, _ in pairs), until]
    return sum(r * (b - a) for (_, r), a, b in zip(pairs, times, times[1:], strict=False))


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 100)), min_size=1, max_size=30),
    st.integers(1, 2000),
)
def test_what_is_delivered_in_whole_bins_is_what_the_file_says(steps: Any, width: int) -> None:
    """In exact arithmetic of milliseconds; beyond the last row too."""
    times = np.cumsum([k for k, _ in steps])
    rows = [(int(t - times[0]), rate) for t, (_, rate) in zip(times, steps, strict=True)]
    with TemporaryDirectory() as folder:
        text = "".join(f"{t / 1000!r} {rate}\n" for t, rate in rows)
        pairs = fc.read_trace(trace(Path(folder), text), f"{width} ms")
    for count in range(1, rows[-1][0] // width + 4):
        right = delivered(rows, count * width) / 1000
        assert delivered(pairs, count * width / 1000) == pytest.approx(right, rel=1e-7, abs=1e-6)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=60), st.integers(1, 1200))
def test_packets_of_whole_bins_are_those_of_the_file(due: list[int], width: int) -> None:
    with TemporaryDirectory() as folder:
        text = "".join(f"{ms}\n" for ms in sorted(due))
        pairs = fc.read_trace(trace(Path(folder), text), f"{width} ms")
    last = max(max(due), 1)
    for count in range(1, last // width + 1):
        right = sum(max(ms, 1) <= count * width for ms in due) * 12e3
        assert delivered(pairs, count * width / 1000) == pytest.approx(right, rel=1e-7, abs=1e-3)
    if last % width:  # what holds for ever is the mean over one bin before the end
        few = min(width, last)
        right = sum(max(ms, 1) > last - few for ms in due) * 12e6 / few
        assert pairs[-1][1] == pytest.approx(right)


def test_a_trace_of_mahimahi(tmp_path: Path) -> None:
    """Two packets in the first 100 ms, none in the next, five in the last: a packet is 12 kbit."""
    file = trace(tmp_path, "0\n100\n201\n201\n250\n299\n300\n")
    assert fc.read_trace(file) == (
        (0.0, pytest.approx(240e3)), (0.1, 0.0), (0.2, pytest.approx(600e3))
    )  # fmt: skip
    assert fc.read_trace(file, "1 s") == ((0.0, pytest.approx(7 * 12e3 / 0.3)),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no numbers"),
        ("time,capacity\n", "holds no numbers"),
        ("0,1\n1\n", "line 2 is '1'; give a time and a capacity"),
        ("a\nb\n", "line 2 is 'b'; give a time"),
        ("0,1\n1,nan\n", "line 2 is '1,nan'; give a time"),
        ("0,1,2\n", "line 1 is '0,1,2'"),
        ("0,1\n2,1\n1.5,3\n", "line 3 is '1.5,3', and comes after 2; sort the lines"),
        ("0,1\n1,-5\n", "line 2 is '1,-5'; give no negative numbers"),
        ("1\n2.5\n", "line 2 is '2.5'; give whole milliseconds"),
        ("7\n3\n", "line 2 is '3', and comes after 7"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(fc.errors.InvalidInput, match=says):
        fc.read_trace(trace(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for args, says in (
        ([tmp_path / "nowhere.csv"], "no such file or directory; give a file"),
        ([3], "the trace is 3; give the path"),
        ([tmp_path, 0], "bin is 0; give a positive number"),
        ([trace(tmp_path, "0,1\n9e9,2"), "1 ms"], "bin is '1 ms', of which .* 9e[+]12; give a lo"),
    ):
        with pytest.raises(fc.errors.InvalidInput, match=says):
            fc.read_trace(*args)


# --- outages --------------------------------------------------------------------------------------


def link(law: fc.Link = fc.DropTail, **given: Any) -> fc.Network:
    given.setdefault("capacity", [(0, 1e6), (5, 0), (7, 1e6)])
    return fc.Network().link("l", law, **given)


def test_in_an_outage_the_queue_grows_and_nothing_leaves() -> None:
    """0.5 Mbit/s come, for 2 s nothing leaves, then the queue of 1 Mbit drains in 2 s."""
    net = link().flow("a", fc.CBR(rate=0.5e6), route=["l"])
    run = fc.simulate(net, 12, t_eval=[4.9, 6, 7, 8, 9.1])
    np.testing.assert_allclose(run.backlog[:, 0], [0, 0.5e6, 1e6, 0.5e6, 0], atol=1e-3 * 1e6)
    assert float(run.throughput.sel(time=6).squeeze()) < 1e-3 * 1e6
    np.testing.assert_allclose(run.queueing_delay.sel(time=6), 1.5, atol=1e-3)  # 1 s, then 0.5 s


def test_a_full_buffer_loses_all_that_comes_in_an_outage() -> None:
    net = link(buffer=0.25e6).flow("a", fc.CBR(rate=0.5e6), route=["l"])
    run = fc.simulate(net, 8, t_eval=[5.4, 6.5, 8])
    np.testing.assert_allclose(run.link_loss[:, 0], [0, 1, 0], atol=1e-3)
    assert float(run.lost[-1].sum()) == pytest.approx(0.5e6 * 1.5, rel=1e-3)


def test_a_buffer_in_seconds_is_that_of_the_first_capacity_there_is() -> None:
    assert link(capacity=[(0, 0), (1, 2e6)], buffer="0.5 s").links["l"].buffer == 1e6


def test_what_cannot_be_an_outage_is_refused() -> None:
    with pytest.raises(fc.errors.InvalidInput, match="capacity of link 'l' is 0 throughout"):
        link(capacity=[(0, 0), (1, 0)])
    with pytest.raises(fc.errors.InvalidInput, match="is 0; give a positive number"):
        link(capacity=0)
    for law in (fc.RED, fc.PI, fc.PAQM, fc.DualLink, fc.PenaltyLink):
        with pytest.raises(fc.errors.Unsupported, match=f"is 0 for a while, and {law.name} "):
            link(law)
    link(fc.RED, capacity=[(0, 1e6), (5, 1), (7, 1e6)])


def test_a_measured_link_runs(tmp_path: Path) -> None:
    file = trace(tmp_path, "0,3e6\n2,0\n2.3,1e6\n4,3e6\n")
    net = fc.dumbbell(
        [fc.StaticReno] * 2, {"capacity": fc.read_trace(file), "buffer": "300 ms"}, "50 ms"
    )
    run = fc.simulate(net, 20)
    sent = float(run.throughput.isel(link=0).integrate("time"))
    assert 0.5 < sent / (2 * 3e6 + 1.7 * 1e6 + 16 * 3e6) <= 1
