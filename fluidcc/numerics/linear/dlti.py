"""A linear time-invariant block with every delay pulled out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import choice, explained, number, numbers, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.linear import connections
from fluidcc.numerics.linear.forms import delayed_terms, rational
from fluidcc.numerics.linear.parts import Parts
from fluidcc.numerics.linear.pencil import Pencil
from fluidcc.numerics.linear.ports import Pick, checked, names

if TYPE_CHECKING:
    from fluidcc.numerics.linear.count import RootCount
    from fluidcc.numerics.linear.margins import Margins
    from fluidcc.numerics.linear.roots import Search

__all__ = ["DelayLTI"]

Matrix = NDArray[np.float64]


class DelayLTI(Parts):
    """An LTI block with all delays pulled out.

    The last K columns of `B`, `D` and the last K rows of `C`, `D` are the delay channels::

        x' = A x + B1 u + B2 v
        y  = C1 x + D11 u + D12 v
        z  = C2 x + D21 u + D22 v,      v_k(t) = z_k(t - delays[k])

    Parameters
    ----------
    A, B, C, D : array_like
        Shapes (n, n), (n, m + K), (p + K, n), (p + K, m + K), for n states, m inputs and p outputs.
    delays : array_like
        The K delays [s], none negative. Channels of zero delay are closed algebraically.
    states, inputs, outputs : sequence of str
        Names; x0, x1, ..., u0, ... and y0, ... without them.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, numbers that are not finite, a negative delay, or an algebraic loop through channels
        of zero delay.

    Notes
    -----
    `*` is series as in python-control: ``g * h`` is g after h. ``+``, ``-`` are parallel, `feedback` closes a loop.
    """

    @explained
    def __init__(
        self,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        D: ArrayLike,
        *,
        delays: ArrayLike = (),
        states: Sequence[str] = (),
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
    ) -> None:
        block = checked(A, B, C, D, delays)
        self._block = block
        for array in block:
            array.setflags(write=False)
        m, p = block.ports
        self.states = names("states", states, len(block.A), "x")
        self.inputs = names("inputs", inputs, m, "u")
        self.outputs = names("outputs", outputs, p, "y")

    @classmethod
    @explained
    def transfer(cls, num: ArrayLike, den: ArrayLike, delay: float = 0.0, **names: Sequence[str]) -> DelayLTI:
        """The scalar ``num(s) / den(s) * exp(-s delay)``.

        Parameters
        ----------
        num, den : array_like
            Coefficients by falling powers, as in python-control.
        delay : float
            [s]

        Raises
        ------
        InvalidInput
            The degree of `num` exceeds that of `den`, or `den` is zero.
        """
        system = cls(*rational(num, den), **names)
        lag = number(delay, "delay", "a time in seconds, not negative", least=0.0)
        return system.delayed(lag) if lag else system

    @classmethod
    @explained
    def retarded(cls, A0: ArrayLike, *terms: tuple[ArrayLike, float], B: ArrayLike = (), C: ArrayLike = ()) -> DelayLTI:
        """The equation ``x' = A0 x + sum A_k x(t - tau_k) + B u``, ``y = C x``.

        Each A_k has a channel for each of its rows that is no multiple of another, or for each such column if these are
        fewer; no entry is lost, however small it is beside others.

        Parameters
        ----------
        A0 : array_like
            Shape (n, n); a number for a scalar equation.
        *terms : tuple of (array_like, float)
            A_k and its delay [s].
        B, C : array_like
            Without them every state is driven and read.
        """
        *parts, delays = delayed_terms(A0, terms, B, C)
        return cls(*parts, delays=delays)

    # Values

    @cached_property
    def pencil(self) -> Pencil:
        """What evaluates the block at many complex frequencies."""
        return Pencil(self._block)

    def __call__(self, s: complex | ArrayLike) -> NDArray[np.complex128]:
        """The transfer matrix at complex `s` [1/s]: shape (outputs, inputs, *shape of s)."""
        points = numbers(s, "s", kind=complex)
        values = self.pencil.values(points.ravel(), slope=False).response
        return np.moveaxis(values, 0, -1).reshape(self.n_outputs, self.n_inputs, *points.shape)

    @explained
    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """The transfer matrix at ``s = j omega``, shape (outputs, inputs, len(omega)).

        Parameters
        ----------
        omega : array_like
            Frequencies [rad/s].
        """
        return self(1j * np.atleast_1d(numbers(omega, "omega", "finite frequencies in rad/s")))

    def characteristic(self, s: complex | ArrayLike) -> NDArray[np.complex128]:
        """det of the pencil at complex `s`, of the shape of `s`: an entire function whose zeros are the poles."""
        points = numbers(s, "s", kind=complex)
        values = self.pencil.values(points.ravel(), slope=False)
        return np.asarray(values.phase * np.exp(values.log)).reshape(points.shape)

    @cached_property
    def neutral(self) -> bool:
        """Whether the delayed derivative acts on itself: det(I - D22 E(s)) depends on s."""
        return self._search.neutral

    @cached_property
    def difference_norm(self) -> float:
        """A bound of the spectral radius of D22; below one the difference operator is strongly stable."""
        from fluidcc.numerics.linear.bounds import difference_norm

        return difference_norm(self._block)

    @cached_property
    def essential_abscissa(self) -> float:
        """Right of it the number of roots is finite [1/s]; minus infinity for a retarded system (an upper bound)."""
        return self._search.essential / self._search.pencil.time

    def roots(
        self, count: int | None = None, region: tuple[float, float, float, float] | None = None
    ) -> NDArray[np.complex128]:
        """Characteristic roots [1/s], by falling real part, multiple ones repeated.

        Parameters
        ----------
        count : int, optional
            How many of the rightmost; 6 without a region. One more comes where conjugates would be parted, fewer
            where the system has fewer.
        region : tuple of float, optional
            All roots in the box (re_min, re_max, im_min, im_max) [1/s].

        Raises
        ------
        Undecided
            The roots found and the argument principle do not agree.
        Unsupported
            A neutral system has infinitely many roots right of the line that would have to be searched.
        """
        from fluidcc.numerics.linear.roots import Search, rightmost, roots_in

        if count is not None and region is not None:
            raise InvalidInput("give count or region, not both")
        if region is not None:
            return roots_in(Search(self._block), region)
        return rightmost(self._search, 6 if count is None else whole(count, "count", least=1, most=10_000))

    @cached_property
    def _search(self) -> Search:
        """The roots found so far: what one question finds, the next does not search again."""
        from fluidcc.numerics.linear.roots import Search

        return Search(self._block)

    def count_unstable(self) -> RootCount:
        """The number of roots right of the imaginary axis, by the argument principle and by finding them.

        Roots on the axis and at the origin are reported apart, see `RootCount`.

        Raises
        ------
        Unsupported
            The system is neutral and its difference operator is not strongly stable.
        Undecided
            The two counts disagree after two refinements.
        """
        from fluidcc.numerics.linear.count import count_right

        return count_right(self._search)

    @explained
    def margins(self, channel: str | int | None = None, at: str = "ports") -> Margins:
        """Gain, phase, delay and modulus margins of a loop, with their frequencies.

        Parameters
        ----------
        channel : str or int, optional
            One of the signals at which the loop is broken: margins of its own loop, all others closed. Without it all
            of them change together, by one factor, one phase or one extra delay.
        at : {"ports", "delays"}
            Where the loop is broken. ``"ports"``: the block is the return ratio L, closed by ``u = -y``, as with
            python-control. ``"delays"``: the block is a closed loop, broken at all its delayed signals together; the
            channels are ``delay0``, ``delay1`` and so on, as in `delays`.

        Raises
        ------
        InvalidInput
            The return ratio is not square, or the block has no delayed signal.
        UnknownName
            There is no such channel, or no such place.

        Notes
        -----
        Stability does not depend on where a loop is broken, but margins do, since it is there that gain, phase and
        delay change. What reaches a controller without delay is not touched at the delays, and what passes two of them
        is changed twice, so that phase margins of networks differ there by some degrees, 6 in published loops and 15
        in others, from those at a queue or at the flows. Give both with the place.

        Examples
        --------
        >>> import fluidcc as fc
        >>> found = fc.DelayLTI.transfer([2], [1, 0], 0.25).margins()  # 2 exp(-0.25 s) / s
        >>> f"{found.gain:.4f} {found.phase:.4f} deg at {found.crossover:.4f} rad/s, {found.delay:.4f} s"
        '3.1416 61.3521 deg at 2.0000 rad/s, 0.5354 s'
        """
        from fluidcc.numerics.linear.margins import margins

        choice(at, "at", ("ports", "delays"))
        return margins(self if at == "ports" else connections.at_delays(self), channel)

    @explained
    def step(self, t: ArrayLike) -> Matrix:
        """Response of every output to a unit step in every input, from rest: shape (outputs, inputs, len(t)).

        Exact to about 1e-12 of its size: the method of steps, collocation on pieces between all kinks. At a jump the
        value is that after it.

        Parameters
        ----------
        t : array_like
            Times [s], none negative.
        """
        from fluidcc.numerics.linear.respond import respond

        return respond(self._block, t)

    @explained
    def impulse(self, t: ArrayLike) -> Matrix:
        """Response to a Dirac impulse, without the Dirac masses that come straight through; shaped as `step`.

        Parameters
        ----------
        t : array_like
            Times [s], none negative.
        """
        from fluidcc.numerics.linear.respond import respond

        return respond(self._block, t, impulse=True)

    def to_control(self, omega: ArrayLike | None = None, pade: int | None = None) -> Any:
        """The block as an object of python-control.

        Parameters
        ----------
        omega : array_like, optional
            Gives exact frequency response data (FRD) at these frequencies [rad/s].
        pade : int, optional
            Gives a state space with every delay replaced by its Pade approximant of this order.

        Raises
        ------
        InvalidInput
            Neither or both are given and the block has delays.
        """
        from fluidcc.numerics.linear.export import to_control

        return to_control(self, omega, pade)

    # Interconnection

    def append(self, *others: DelayLTI) -> DelayLTI:
        """All blocks side by side, unconnected; names that would stand twice get the number of their block."""
        return connections.append((self, *others))

    @explained
    def connect(
        self,
        back: ArrayLike,
        enter: ArrayLike | None = None,
        leave: ArrayLike | None = None,
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
    ) -> DelayLTI:
        """Close ``u = back @ y + enter @ w`` and read ``leave @ y``; identities without `enter`, `leave`.

        Parameters
        ----------
        back, enter, leave : array_like
            Shapes (inputs, outputs), (inputs, new inputs), (new outputs, outputs).
        inputs, outputs : sequence of str
            New names.

        Raises
        ------
        InvalidInput
            Shapes that do not fit, or an algebraic loop.
        """
        return connections.connect(self, back, enter, leave, inputs, outputs)

    def feedback(self, other: DelayLTI | ArrayLike | None = None, sign: float = -1.0) -> DelayLTI:
        """The loop with `other` (unity without it) from the outputs back to the inputs, ``u = w + sign other(y)``."""
        return connections.feedback(self, other, sign)

    def __mul__(self, other: DelayLTI | ArrayLike) -> DelayLTI:
        return connections.series(self, other)

    def __rmul__(self, other: ArrayLike) -> DelayLTI:
        gain = float(other) * np.eye(self.n_outputs) if np.isscalar(other) else other  # type: ignore[arg-type]
        return connections.lift(gain, (0, self.n_outputs)) * self

    def __add__(self, other: DelayLTI | ArrayLike) -> DelayLTI:
        return connections.parallel(self, other, 1.0)

    def __sub__(self, other: DelayLTI | ArrayLike) -> DelayLTI:
        return connections.parallel(self, other, -1.0)

    def __radd__(self, other: ArrayLike) -> DelayLTI:
        return connections.parallel(self, other, 1.0)

    def __rsub__(self, other: ArrayLike) -> DelayLTI:
        return connections.parallel(-self, other, 1.0)

    def __neg__(self) -> DelayLTI:
        p = self.n_outputs
        return self.connect(np.zeros((self.n_inputs, p)), None, -np.eye(p), outputs=self.outputs)

    def __pos__(self) -> DelayLTI:
        return self

    __array_ufunc__ = None  # so that an array on the left leaves the operation to us

    @explained
    def delayed(self, extra: float | ArrayLike, inputs: Pick = None) -> DelayLTI:
        """The block with an extra delay before its inputs, all of them or those named.

        Parameters
        ----------
        extra : float or array_like
            Delay [s], one for all or one an input.
        inputs : str, int or a sequence of these, optional
            Which.
        """
        return connections.delayed(self, extra, inputs)

    def select(self, outputs: Pick = None, inputs: Pick = None) -> DelayLTI:
        """The block between some inputs and some outputs, by name or number."""
        return connections.select(self, outputs, inputs)
