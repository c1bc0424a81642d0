"""Sources on one link, and links that mark, for the tests of this room."""

import fluidcc as fc


def on_one_link(
    capacity: float, *laws: fc.Source, delay: float = 0.025, buffer: float | str | None = None
) -> fc.Network:
    """Flows f0, f1, ... of these laws, the link as far before as behind it."""
    net = fc.Network().link("l", fc.DropTail, capacity=capacity, delay=delay, buffer=buffer)
    for i, law in enumerate(laws):
        net.flow(f"f{i}", law, route=["l"])
    return net


def marking(ratio: float) -> fc.Link:
    """A queue that marks at that ratio, whatever is sent."""
    q = fc.DropTail
    return fc.Link(
        "Marks", q.flow, {"mark": ratio}, units=q.units, queue=q.queue, lower=q.lower,
        initial=q.initial,
    )  # fmt: skip
