"""The matrices, delays and names of a block whose delays are pulled out."""

from __future__ import annotations

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["Parts"]


class Parts:
    """What `fluidcc.DelayLTI` is made of, see there; it cannot be changed."""

    _block: Blocks
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    A = property(lambda self: self._block.A, doc="State matrix, shape (n, n).")
    B = property(lambda self: self._block.B, doc="Input matrix, shape (n, m + K).")
    C = property(lambda self: self._block.C, doc="Output matrix, shape (p + K, n).")
    D = property(lambda self: self._block.D, doc="Feedthrough, shape (p + K, m + K).")
    delays = property(lambda self: self._block.delays, doc="Delays of the channels [s], all positive.")
    n_states = property(lambda self: len(self._block.A), doc="n.")
    n_inputs = property(lambda self: self._block.ports[0], doc="External inputs m.")
    n_outputs = property(lambda self: self._block.ports[1], doc="External outputs p.")
    B1 = property(lambda self: self.B[:, : self.n_inputs], doc="From the external inputs to the states.")
    B2 = property(lambda self: self.B[:, self.n_inputs :], doc="From the channels to the states.")
    C1 = property(lambda self: self.C[: self.n_outputs], doc="From the states to the external outputs.")
    C2 = property(lambda self: self.C[self.n_outputs :], doc="From the states to the channels.")
    D11 = property(lambda self: self.D[: self.n_outputs, : self.n_inputs], doc="From inputs to outputs.")
    D12 = property(lambda self: self.D[: self.n_outputs, self.n_inputs :], doc="From channels to outputs.")
    D21 = property(lambda self: self.D[self.n_outputs :, : self.n_inputs], doc="From inputs to channels.")
    D22 = property(lambda self: self.D[self.n_outputs :, self.n_inputs :], doc="From channels to channels.")

    def __repr__(self) -> str:
        lags = ", ".join(f"{lag:.4g}" for lag in self.delays[:4]) + (", ..." if len(self.delays) > 4 else "")
        return (
            f"DelayLTI({self.n_states} states, {self.n_inputs} inputs, {self.n_outputs} outputs, "
            f"{len(self.delays)} delays{f' of {lags} s' if lags else ''})"
        )

    def _repr_html_(self) -> str:
        from html import escape

        rows = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        body = "".join(f"<tr><th>{k}</th><td>{escape(', '.join(v))}</td></tr>" for k, v in rows.items() if len(v) <= 20)
        lags = ", ".join(f"{1e3 * lag:.4g}" for lag in self.delays[:20])
        return f"<p>{escape(repr(self))}</p><table>{body}<tr><th>delays [ms]</th><td>{lags}</td></tr></table>"
