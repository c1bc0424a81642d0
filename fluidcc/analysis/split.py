"""One flow taken out of its class, so that it can be judged by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fluidcc.analysis.operating_point import Point, with_groups

__all__ = ["with_alone"]


def with_alone(point: Point, name: str) -> tuple[Point, int]:
    """The point with the flow `name` in a class of its own, and the number of that class."""
    k = next(k for k, f in enumerate(point.classes) if name in f.names)
    one = point.classes[k]
    if one.count == 1:
        return point, k
    rest = replace(one, names=tuple(n for n in one.names if n != name))
    classes = (*point.classes[:k], replace(one, names=(name,)), rest, *point.classes[k + 1 :])
    twice = [*range(k + 1), *range(k, len(point.classes))]
    count = np.array([float(f.count) for f in classes])
    arrays = {key: getattr(point, key)[twice] for key in ("access", "back", "packet", "x")}
    return with_groups(
        point.changed(
            classes=classes, z=[point.z[i] for i in twice], p=[point.p[i] for i in twice], count=count, **arrays
        )
    ), k
