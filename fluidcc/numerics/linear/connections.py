"""Linear blocks joined to larger ones: what the methods and operators of `DelayLTI` do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.linear.ports import Pick, indices, matrix, merged
from fluidcc.numerics.linear.wiring import Blocks, stack, wire

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

__all__ = ["append", "at_delays", "connect", "delayed", "feedback", "lift", "parallel", "select", "series"]


def _made(block: Blocks, **names: Sequence[str]) -> DelayLTI:
    from fluidcc.numerics.linear.dlti import DelayLTI

    return DelayLTI(*block[:4], delays=block.delays, **names)


def append(parts: Sequence[DelayLTI]) -> DelayLTI:
    """All blocks side by side, unconnected."""
    for part in parts:
        if not hasattr(part, "_block"):
            raise InvalidInput(f"a block to append is {shown(part)}; give a DelayLTI")
    return _made(
        stack(*(part._block for part in parts)),
        states=merged(part.states for part in parts),
        inputs=merged(part.inputs for part in parts),
        outputs=merged(part.outputs for part in parts),
    )


def connect(
    block: DelayLTI,
    back: ArrayLike,
    enter: ArrayLike | None,
    leave: ArrayLike | None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> DelayLTI:
    """Close ``u = back @ y + enter @ w`` and read ``leave @ y``."""
    m, p = block.n_inputs, block.n_outputs
    into = np.eye(m) if enter is None else np.atleast_2d(matrix(enter, "enter"))
    out = np.eye(p) if leave is None else np.atleast_2d(matrix(leave, "leave"))
    gain = np.atleast_2d(matrix(back, "back"))
    if gain.shape != (m, p) or len(into) != m or out.shape[1] != p:
        raise InvalidInput(
            f"connect needs back of shape {(m, p)}, enter with {m} rows and leave with {p} columns; "
            f"got {gain.shape}, {into.shape}, {out.shape}"
        )
    keep_in = block.inputs if enter is None else ()
    keep_out = block.outputs if leave is None else ()
    return _made(
        wire(block._block, gain, into, out), states=block.states, inputs=inputs or keep_in, outputs=outputs or keep_out
    )


def feedback(block: DelayLTI, other: DelayLTI | ArrayLike | None, sign: float) -> DelayLTI:
    """The loop with `other` from the outputs back to the inputs."""
    m, p = block.n_inputs, block.n_outputs
    if other is None:
        if m != p:
            raise InvalidInput(f"unit feedback needs as many outputs as inputs, here {p} and {m}; give `other`")
        return connect(block, sign * np.eye(m), None, None)
    behind = lift(other, (m, p))
    if (behind.n_inputs, behind.n_outputs) != (p, m):
        raise InvalidInput(
            f"feedback around {p} outputs and {m} inputs needs a block of {p} inputs and {m} outputs, "
            f"got {behind.n_inputs} and {behind.n_outputs}"
        )
    back = np.block([[np.zeros((m, p)), sign * np.eye(m)], [np.eye(p), np.zeros((p, m))]])
    both = append((block, behind))
    return connect(both, back, np.eye(m + p)[:, :m], np.eye(p + m)[:p], block.inputs, block.outputs)


def series(block: DelayLTI, other: DelayLTI | ArrayLike) -> DelayLTI:
    """The block after the other."""
    if np.isscalar(other):
        other = float(other) * np.eye(block.n_inputs)  # type: ignore[arg-type]
    first = lift(other, (block.n_inputs, 0))
    if first.n_outputs != block.n_inputs:
        raise InvalidInput(f"series g * h: g has {block.n_inputs} inputs and h has {first.n_outputs} outputs")
    m, p = block.n_inputs, block.n_outputs
    back = np.zeros((m + first.n_inputs, p + m))
    back[:m, p:] = np.eye(m)
    enter, leave = np.eye(m + first.n_inputs)[:, m:], np.eye(p + m)[:p]
    return connect(append((block, first)), back, enter, leave, first.inputs, block.outputs)


def parallel(block: DelayLTI, other: DelayLTI | ArrayLike, sign: float) -> DelayLTI:
    """The sum or the difference."""
    if np.isscalar(other):
        other = np.full((block.n_outputs, block.n_inputs), matrix(other, "the other block"))
    second = lift(other, (block.n_outputs, block.n_inputs))
    m, p = block.n_inputs, block.n_outputs
    if (second.n_inputs, second.n_outputs) != (m, p):
        raise InvalidInput(f"a sum needs blocks of one shape, here {(p, m)} and {(second.n_outputs, second.n_inputs)}")
    enter, leave = np.vstack((np.eye(m), np.eye(m))), np.hstack((np.eye(p), sign * np.eye(p)))
    return connect(append((block, second)), np.zeros((2 * m, 2 * p)), enter, leave, block.inputs, block.outputs)


def delayed(block: DelayLTI, extra: float | ArrayLike, inputs: Pick) -> DelayLTI:
    """The block behind a bank of pure delays on the picked inputs: y = v, z = u."""
    at = indices(inputs, block.inputs, "input")
    lags = matrix(extra, "the extra delay")
    if lags.shape not in ((), (len(at),)):
        raise InvalidInput(f"the extra delay is {shown(extra)}; give one time in seconds, or one for each of {len(at)}")
    lags = np.broadcast_to(lags, (len(at),))
    m, k = block.n_inputs, len(at)
    passing = np.diag([0.0 if i in set(at) else 1.0 for i in range(m)])
    picked = np.eye(m)[:, at]
    through = np.block([[passing, picked], [picked.T, np.zeros((k, k))]])
    bank = Blocks(np.zeros((0, 0)), np.zeros((0, m + k)), np.zeros((m + k, 0)), through, np.array(lags))
    return series(block, _made(bank, inputs=block.inputs))


def at_delays(block: DelayLTI) -> DelayLTI:
    """The return ratio of a closed loop that is broken at all its delayed signals."""
    m, p = block.n_inputs, block.n_outputs
    k, (A, B, C, D, delays) = len(block.delays), block._block
    if not k:
        raise InvalidInput(f"{block!r} has no delayed signal at which a loop could be broken; see at='ports'")
    late = [f"delay{i}" for i in range(k)]
    return _made(
        Blocks(
            A,
            np.hstack((B[:, m:], np.zeros((len(A), k)))),
            np.vstack((np.zeros((k, len(A))), C[p:])),
            np.block([[np.zeros((k, k)), -np.eye(k)], [D[p:, m:], np.zeros((k, k))]]),
            delays,
        ),
        states=block.states,
        inputs=late,
        outputs=late,
    )


def select(block: DelayLTI, outputs: Pick, inputs: Pick) -> DelayLTI:
    """The block between some inputs and some outputs."""
    i, o = indices(inputs, block.inputs, "input"), indices(outputs, block.outputs, "output")
    return connect(
        block,
        np.zeros((block.n_inputs, block.n_outputs)),
        np.eye(block.n_inputs)[:, i],
        np.eye(block.n_outputs)[o],
        [block.inputs[j] for j in i],
        [block.outputs[j] for j in o],
    )


def lift(other: DelayLTI | ArrayLike, shape: tuple[int, int]) -> DelayLTI:
    """A block as it is; a gain as a block, a number as a diagonal one of that shape."""
    from fluidcc.numerics.linear.dlti import DelayLTI

    if isinstance(other, DelayLTI):
        return other
    gain = matrix(other, "the other block")
    gain = gain * np.eye(*shape) if gain.ndim == 0 else np.atleast_2d(gain)
    p, m = gain.shape
    return DelayLTI(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), gain)
