"""A linear time-invariant block with every delay pulled out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from html import escape
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import choice, explained, explained_class, number, numbers, shown, whole
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.base.tables import in_html
from fluidcc.numerics.linear import exchange
from fluidcc.numerics.linear.count import RootCount, counted
from fluidcc.numerics.linear.margins import Closed, Margins, margins, verdict_of
from fluidcc.numerics.linear.pencil import Pencil
from fluidcc.numerics.linear.respond import Drive, respond
from fluidcc.numerics.linear.roots import Searches
from fluidcc.numerics.linear.wiring import (
    Blocks,
    Entries,
    Pick,
    checked,
    delayed_terms,
    entries_of,
    indices,
    matrix,
    merged,
    names,
    rational,
    stack,
    time,
    wire,
)

Matrix = NDArray[np.float64]


@explained_class
class DelayLTI:
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
        Shapes that do not fit, numbers that are not finite, a negative delay, or an algebraic loop
        through channels of zero delay.

    Notes
    -----
    `*` is series as in python-control: ``g * h`` is g after h. ``+``, ``-`` are parallel,
    `feedback` closes a loop, which no quotient does: ``/`` takes numbers only.

    Examples
    --------
    An integrator that hears of itself a second late, x'(t) = -x(t - 1):

    >>> import fluidcc as fc
    >>> loop = fc.DelayLTI([[0]], [[1]], [[-1]], [[0]], delays=[1.0])
    >>> loop.roots(count=2).round(4)
    array([-0.3181+1.3372j, -0.3181-1.3372j])
    >>> fc.DelayLTI.retarded([[0]], ([[-1]], 1.0)).count_unstable().unstable
    0
    """

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

    _exact = True  # whether its numbers are what is meant, to rounding

    # Construction

    @classmethod
    @explained
    def transfer(
        cls, num: ArrayLike, den: ArrayLike, delay: float = 0.0, **names: Sequence[str]
    ) -> DelayLTI:
        """The scalar ``num(s) / den(s) * exp(-s delay)``.

        Parameters
        ----------
        num, den : array_like
            Coefficients by falling powers, as in python-control.
        delay : float or str
            [s]

        Raises
        ------
        InvalidInput
            The degree of `num` exceeds that of `den`, or `den` is zero.
        """
        system = cls(*rational(num, den), **names)
        lag = time(delay, "delay")
        return system.delayed(lag) if lag else system

    @classmethod
    @explained
    def retarded(
        cls, A0: ArrayLike, *terms: tuple[ArrayLike, float], B: ArrayLike = (), C: ArrayLike = ()
    ) -> DelayLTI:
        """The equation ``x' = A0 x + sum A_k x(t - tau_k) + B u``, ``y = C x``.

        Each A_k has a channel for each of its rows that is no multiple of another, or for each such
        column if these are fewer; no entry is lost, however small it is beside others.
        ``margins(at="delays")`` are those of the equation as it stands.

        Parameters
        ----------
        A0 : array_like
            Shape (n, n); a number for a scalar equation.
        *terms : tuple of (array_like, float or str)
            A_k and its delay [s].
        B, C : array_like
            Without them every state is driven and read.
        """
        *parts, delays = delayed_terms(A0, terms, B, C)
        return cls(*parts, delays=delays)

    @classmethod
    @explained
    def from_control(cls, system: Any) -> DelayLTI:
        """The block of a linear system of python-control, with its names.

        Parameters
        ----------
        system : control.StateSpace or control.TransferFunction
            Continuous in time. A transfer function of several inputs or outputs has the states of
            all its entries, each by itself.

        Raises
        ------
        InvalidInput
            Frequency response data, a system with samples, or nothing of python-control.

        Examples
        --------
        >>> import control
        >>> import fluidcc as fc
        >>> plant = fc.DelayLTI.from_control(control.tf([1], [1, 1])).delayed(0.5)
        >>> plant.step([1.0, 1.5])[0, 0].round(4)
        array([0.3935, 0.6321])
        """
        return exchange.from_control(cls, system)

    # Parts

    A = property(lambda self: self._block.A, doc="State matrix, shape (n, n).")
    B = property(lambda self: self._block.B, doc="Input matrix, shape (n, m + K).")
    C = property(lambda self: self._block.C, doc="Output matrix, shape (p + K, n).")
    D = property(lambda self: self._block.D, doc="Feedthrough, shape (p + K, m + K).")
    delays = property(
        lambda self: self._block.delays, doc="Delays of the channels [s], all positive."
    )
    n_states = property(lambda self: len(self.states), doc="n.")
    n_inputs = property(lambda self: len(self.inputs), doc="External inputs m.")
    n_outputs = property(lambda self: len(self.outputs), doc="External outputs p.")

    def __repr__(self) -> str:
        lags = ", ".join(f"{lag:.4g}" for lag in self.delays[:4]) + (
            ", ..." if len(self.delays) > 4 else ""
        )
        return (
            f"DelayLTI({self.n_states} states, {self.n_inputs} inputs, {self.n_outputs} outputs, "
            f"{len(self.delays)} delays{f' of {lags} s' if lags else ''})"
        )

    def _repr_html_(self) -> str:
        rows = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        table = [(k, ", ".join(v)) for k, v in rows.items() if len(v) <= 20]
        lags = ", ".join(f"{1e3 * lag:.4g}" for lag in self.delays[:20])
        return f"<p>{escape(repr(self))}</p>{in_html([*table, ('delays [ms]', lags)])}"

    # Values

    @cached_property
    def pencil(self) -> Pencil:
        """What evaluates the block at many complex frequencies."""
        return Pencil(self._entries)

    @cached_property
    def _entries(self) -> Entries:
        return entries_of(self._block)

    def __call__(self, s: complex | ArrayLike) -> NDArray[np.complex128]:
        """The transfer matrix at complex `s` [1/s]: shape (outputs, inputs, *shape of s)."""
        points = numbers(s, "s", kind=complex)
        values = self.pencil.values(points.ravel()).response
        return np.moveaxis(values, 0, -1).reshape(self.n_outputs, self.n_inputs, *points.shape)

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """The transfer matrix at ``s = j omega``, shape (outputs, inputs, len(omega)).

        Parameters
        ----------
        omega : array_like
            Frequencies [rad/s].
        """
        return self(1j * np.atleast_1d(numbers(omega, "omega", "finite frequencies in rad/s")))

    def characteristic(self, s: complex | ArrayLike) -> NDArray[np.complex128]:
        """det of the pencil at complex `s`, of the shape of `s`: an entire function whose zeros
        are the poles.
        """
        points = numbers(s, "s", kind=complex)
        values = self.pencil.values(points.ravel())
        return np.asarray(values.phase * np.exp(values.log)).reshape(points.shape)

    @property
    def neutral(self) -> bool:
        """Whether the delayed derivative acts on itself: det(I - D22 E(s)) depends on s."""
        return any(part.neutral for part in self._search.parts)

    @property
    def essential_abscissa(self) -> float:
        """Right of it the number of roots is finite [1/s]; minus infinity for a retarded system
        (an upper bound).
        """
        return self._search.essential

    def roots(
        self, count: int | None = None, region: tuple[float, float, float, float] | None = None
    ) -> NDArray[np.complex128]:
        """Characteristic roots [1/s], by falling real part, multiple ones repeated.

        Rounding of the entries by e moves a root of multiplicity m by about e^(1/m) of its size.
        Roots that it does not resolve are given by their mean, which it moves by e.

        Parameters
        ----------
        count : int, optional
            How many of the rightmost; 6 without a region. One more comes where conjugates would be
            parted, fewer where the system has fewer.
        region : tuple of float, optional
            All roots in the box (re_min, re_max, im_min, im_max) [1/s].

        Raises
        ------
        Undecided
            The roots found and the argument principle do not agree.
        Unsupported
            A neutral system has infinitely many roots right of the line that would have to be
            searched.
        """
        if count is not None and region is not None:
            raise InvalidInput("give count or region, not both")
        if region is not None:
            return Searches(self._entries, self._exact).inside(region)
        return self._search.rightmost(
            6 if count is None else whole(count, "count", least=1, most=10_000)
        )

    @cached_property
    def _search(self) -> Searches:
        """The roots found so far: what one question finds, the next does not search again."""
        return Searches(self._entries, self._exact)

    def count_unstable(self) -> RootCount:
        """The number of roots right of the imaginary axis, by the argument principle; and those
        that were found.

        Roots on the axis and at the origin are reported apart, see `RootCount`.

        Raises
        ------
        Unsupported
            The system is neutral and its difference operator is not strongly stable.
        Undecided
            A root may lie on the axis, and contour and roots disagree after refinement.
        """
        return counted(self._search)

    def margins(self, channel: str | int | None = None, at: str = "ports") -> Margins:
        """Gain, phase, delay and modulus margins of a loop, with their frequencies.

        They are NaN where the closed loop is not stable; see `Margins`.

        Parameters
        ----------
        channel : str or int, optional
            One of the signals at which the loop is broken: margins of its own loop, all others
            closed. Without it all of them change together, by one factor, one phase or one extra
            delay.
        at : {"ports", "delays"}
            Where the loop is broken. ``"ports"``: the block is the return ratio L, closed by ``u =
            -y``, as with python-control. ``"delays"``: the block is a closed loop, broken at all
            its delayed signals together; the channels are ``delay0``, ``delay1`` and so on, as in
            `delays`.

        Raises
        ------
        InvalidInput
            The return ratio is not square, or the block has no delayed signal.
        UnknownName
            There is no such channel, or no such place.
        Unsupported, Undecided
            Whether the closed loop is stable cannot be decided: as `count_unstable`.

        Notes
        -----
        Stability does not depend on where a loop is broken, but margins do, since it is there that
        gain, phase and delay change. What reaches a controller without delay is not touched at the
        delays, and what passes two of them is changed twice, so that phase margins of networks
        differ there by some degrees, 6 in published loops and 15 in others, from those at a queue
        or at the flows. Give both with the place.

        Examples
        --------
        >>> import fluidcc as fc
        >>> found = fc.DelayLTI.transfer([2], [1, 0], 0.25).margins()  # 2 exp(-0.25 s) / s
        >>> at = f"{found.crossover:.4f} rad/s, {found.delay:.4f} s"
        >>> f"{found.gain:.4f} {found.phase:.4f} deg at {at}"
        '3.1416 61.3521 deg at 2.0000 rad/s, 0.5354 s'
        """
        choice(at, "at", ("ports", "delays"))
        return margins(self if at == "ports" else self._at_delays(), channel)

    def _closed_verdict(self) -> Closed:
        """The verdict on the loop closed by ``u = -y``."""
        return verdict_of(self._entries, self._exact)

    def step(self, t: ArrayLike) -> Matrix:
        """Response of every output to a unit step in every input, from rest: shape (outputs,
        inputs, len(t)).

        Exact to about 1e-12 of its size: the method of steps, collocation on pieces between all
        kinks. At a jump the value is that after it.

        Parameters
        ----------
        t : array_like
            Times [s], none negative.
        """
        return respond(self._block, t)

    def impulse(self, t: ArrayLike) -> Matrix:
        """Response to a Dirac impulse, without the Dirac masses that come straight through; shaped
        as `step`.

        Parameters
        ----------
        t : array_like
            Times [s], none negative.
        """
        return respond(self._block, t, impulse=True)

    def lsim(self, u: ArrayLike, t: ArrayLike, x0: ArrayLike | None = None) -> Matrix:
        """Response of every output to an input that is linear between its samples: shape (outputs,
        len(t)).

        As exact as `step`, with delays too.

        Parameters
        ----------
        u : array_like
            Samples of the inputs, shape (inputs, len(t)); (len(t),) for one input.
        t : array_like
            Their times [s], rising, in steps of any length. The first is the start: nothing has
            entered a delay before.
        x0 : array_like, optional
            The states there, all zero without it.

        Raises
        ------
        InvalidInput
            Times that do not rise, or shapes that do not fit.

        Examples
        --------
        A ramp of 1 s into 1/(s + 1), half a second late:

        >>> import fluidcc as fc
        >>> fc.DelayLTI.transfer([1], [1, 1], 0.5).lsim([0, 1, 1], [0, 1, 3])[0].round(4)
        array([0.    , 0.1065, 0.859 ])
        """
        times = np.atleast_1d(numbers(t, "t", "times in seconds"))
        if times.ndim != 1 or not len(times) or not (np.diff(times) > 0).all():
            raise InvalidInput(f"t is {shown(t)}; give times in seconds that rise")
        given = numbers(u, "u", "an array of finite numbers")
        given = given[None] if given.ndim == 1 else given
        start = np.zeros(self.n_states) if x0 is None else numbers(x0, "x0", "the states")
        for name, array, right in (
            ("u", given, (self.n_inputs, len(times))), ("x0", start, (self.n_states,)),
        ):  # fmt: skip
            if array.shape != right:
                raise InvalidInput(f"{name} has the shape {array.shape}; give one of {right}")
        times = times - times[0]

        def inputs(at: Matrix) -> Matrix:
            return np.stack([np.interp(at, times, one) for one in given], axis=1)[:, :, None]

        drive = Drive(times, inputs, start[:, None])
        return respond(self._block, times, drive=drive)[:, 0]

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
        return exchange.to_control(self, omega, pade)

    # Interconnection

    def append(self, *others: DelayLTI) -> DelayLTI:
        """All blocks side by side, unconnected; names that would stand twice get the number of
        their block.
        """
        parts = (self, *others)
        for part in parts:
            if not isinstance(part, DelayLTI):
                raise InvalidInput(f"a block to append is {shown(part)}; give a DelayLTI")
        return _made(
            stack(*(part._block for part in parts)),
            states=merged(part.states for part in parts),
            inputs=merged(part.inputs for part in parts),
            outputs=merged(part.outputs for part in parts),
        )

    def connect(
        self,
        back: ArrayLike,
        enter: ArrayLike | None = None,
        leave: ArrayLike | None = None,
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
    ) -> DelayLTI:
        """Close ``u = back @ y + enter @ w`` and read ``leave @ y``; identities without `enter`,
        `leave`.

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
        m, p = self.n_inputs, self.n_outputs
        into = np.eye(m) if enter is None else np.atleast_2d(matrix(enter, "enter"))
        out = np.eye(p) if leave is None else np.atleast_2d(matrix(leave, "leave"))
        gain = np.atleast_2d(matrix(back, "back"))
        if gain.shape != (m, p) or len(into) != m or out.shape[1] != p:
            raise InvalidInput(
                f"connect needs back of shape {(m, p)}, enter with {m} rows and leave with {p} "
                f"columns; got {gain.shape}, {into.shape}, {out.shape}"
            )
        return _made(
            wire(self._block, gain, into, out),
            states=self.states,
            inputs=inputs or (self.inputs if enter is None else ()),
            outputs=outputs or (self.outputs if leave is None else ()),
        )

    def feedback(self, other: DelayLTI | ArrayLike | None = None, sign: float = -1.0) -> DelayLTI:
        """The loop with `other` (unity without it) from the outputs back to the inputs, ``u = w
        + sign other(y)``.
        """
        m, p = self.n_inputs, self.n_outputs
        if sign not in (-1, 1):
            raise InvalidInput(f"sign is {shown(sign)}; give -1 or 1")
        if other is None:
            if m != p:
                raise InvalidInput(
                    f"unit feedback needs as many outputs as inputs, here {p} and {m}; give `other`"
                )
            return self.connect(sign * np.eye(m))
        behind = _lifted(other, (m, p))
        if (behind.n_inputs, behind.n_outputs) != (p, m):
            raise InvalidInput(
                f"feedback around {p} outputs and {m} inputs needs a block of {p} inputs and {m} "
                f"outputs, got {behind.n_inputs} and {behind.n_outputs}"
            )
        back = np.block([[np.zeros((m, p)), sign * np.eye(m)], [np.eye(p), np.zeros((p, m))]])
        return self.append(behind).connect(
            back,
            np.eye(m + p)[:, :m],
            np.eye(p + m)[:p],
            inputs=self.inputs,
            outputs=self.outputs,
        )

    def __mul__(self, other: DelayLTI | ArrayLike) -> DelayLTI:
        if np.isscalar(other):
            other = number(other, "the factor") * np.eye(self.n_inputs)
        first = _lifted(other, (self.n_inputs, 0))
        if first.n_outputs != self.n_inputs:
            raise InvalidInput(
                f"series g * h: g has {self.n_inputs} inputs and h has {first.n_outputs} outputs"
            )
        m, p, k = self.n_inputs, self.n_outputs, first.n_inputs
        back = np.zeros((m + k, p + m))
        back[:m, p:] = np.eye(m)
        return self.append(first).connect(
            back,
            np.eye(m + k)[:, m:],
            np.eye(p + m)[:p],
            inputs=first.inputs,
            outputs=self.outputs,
        )

    def __rmul__(self, other: ArrayLike) -> DelayLTI:
        if np.isscalar(other):
            other = number(other, "the factor") * np.eye(self.n_outputs)
        return _lifted(other, (0, self.n_outputs)) * self

    __matmul__, __rmatmul__ = __mul__, __rmul__

    def __pow__(self, times: int) -> DelayLTI:
        return reduce(mul, [self] * whole(times, "the power of a block", least=1, most=100))

    def __add__(self, other: DelayLTI | ArrayLike) -> DelayLTI:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: DelayLTI | ArrayLike) -> DelayLTI:
        return self._plus(other, -1.0)

    def __rsub__(self, other: ArrayLike) -> DelayLTI:
        return -self + other

    def _plus(self, other: DelayLTI | ArrayLike, sign: float) -> DelayLTI:
        m, p = self.n_inputs, self.n_outputs
        if np.isscalar(other):
            other = np.full((p, m), matrix(other, "the other block"))
        second = _lifted(other, (p, m))
        if (second.n_inputs, second.n_outputs) != (m, p):
            raise InvalidInput(
                f"a sum needs blocks of one shape, here {(p, m)} and "
                f"{(second.n_outputs, second.n_inputs)}"
            )
        return self.append(second).connect(
            np.zeros((2 * m, 2 * p)),
            np.vstack((np.eye(m), np.eye(m))),
            np.hstack((np.eye(p), sign * np.eye(p))),
            inputs=self.inputs,
            outputs=self.outputs,
        )

    def __truediv__(self, other: float) -> DelayLTI:
        if not np.isscalar(other):
            raise _no_quotient()
        if not (divisor := number(other, "the divisor")):
            raise InvalidInput("the divisor is 0; give a number that is not")
        return self * (1 / divisor)

    def __rtruediv__(self, other: object) -> DelayLTI:
        raise _no_quotient()

    def __neg__(self) -> DelayLTI:
        p = self.n_outputs
        return self.connect(np.zeros((self.n_inputs, p)), None, -np.eye(p), outputs=self.outputs)

    def __pos__(self) -> DelayLTI:
        return self

    __array_ufunc__ = None  # so that an array on the left leaves the operation to us

    def delayed(self, extra: float | ArrayLike, inputs: Pick = None) -> DelayLTI:
        """The block with an extra delay before its inputs, all of them or those named.

        Parameters
        ----------
        extra : float, str or array_like
            Delay [s], one for all or one an input.
        inputs : str, int or a sequence of these, optional
            Which.
        """
        at = indices(inputs, self.inputs, "input")
        what = "the extra delay"
        lags = matrix(time(extra, what) if isinstance(extra, str) else extra, what)
        if lags.shape not in ((), (len(at),)):
            raise InvalidInput(
                f"the extra delay is {shown(extra)}; give one time in seconds, or one for each of "
                f"{len(at)}"
            )
        m, every = self.n_inputs, np.zeros(self.n_inputs)
        every[at] = lags
        through = np.kron([[0, 1], [1, 0]], np.eye(m))
        bank = DelayLTI(
            np.zeros((0, 0)), np.zeros((0, 2 * m)), np.zeros((2 * m, 0)), through,
            delays=every, inputs=self.inputs,
        )  # fmt: skip
        return self * bank

    def select(self, outputs: Pick = None, inputs: Pick = None) -> DelayLTI:
        """The block between some inputs and some outputs, by name or number; states are outputs,
        too, by name. States on which no output depends are left out.

        Examples
        --------
        How the queueing delay of four flows answers marks, the plant of a queue's controller: one
        mark more in a thousand packets makes it 6 ms less.

        >>> import fluidcc as fc
        >>> link = {"law": fc.PI2, "capacity": "10 Mbit/s"}
        >>> loop = fc.linearize(fc.dumbbell([fc.Reno] * 4, link, rtt="50 ms"), "marks")
        >>> plant = loop.select("bottleneck.q")
        >>> (plant.step([0, 60])[0, 0] * 1e-3).round(4)
        array([ 0.    , -0.0063])
        """
        (m, p), n = self._block.ports, self.n_states
        seen = [k for k, z in enumerate(self.states) if z not in self.outputs]
        known = (*self.outputs, *(self.states[k] for k in seen))
        i = np.array(indices(inputs, self.inputs, "input"), int)
        picked = self.outputs if outputs is None else outputs
        o = np.array(indices(picked, known, "output or state"), int)
        # what states and delayed signals depend on, and then what the outputs do
        within = np.block([[self.A, self.B[:, m:]], [self.C[p:], self.D[p:, m:]]])
        rows = np.vstack([np.hstack([self.C[:p], self.D[:p, m:]]), np.eye(len(within))[seen]])[o]
        needed = np.any(rows != 0, axis=0)
        while np.any(new := np.any(within[needed] != 0, axis=0) & ~needed):
            needed |= new
        z, late = np.flatnonzero(needed[:n]), np.flatnonzero(needed[n:])
        direct = np.vstack([self.D[:p, :m], np.zeros((len(seen), m))])[np.ix_(o, i)]
        return DelayLTI(
            self.A[np.ix_(z, z)],
            self.B[np.ix_(z, [*i, *(m + late)])],
            np.vstack([rows[:, z], self.C[np.ix_(p + late, z)]]),
            np.block(
                [
                    [direct, rows[:, n + late]],
                    [self.D[np.ix_(p + late, i)], self.D[np.ix_(p + late, m + late)]],
                ]
            ),
            delays=self.delays[late],
            states=[self.states[k] for k in z],
            inputs=[self.inputs[j] for j in i],
            outputs=[known[j] for j in o],
        )

    def _at_delays(self) -> DelayLTI:
        """The return ratio of a closed loop that is broken at all its delayed signals."""
        (m, p), k = self._block.ports, len(self.delays)
        if not k:
            raise InvalidInput(
                f"{self!r} has no delayed signal at which a loop could be broken; see at='ports'"
            )
        late, core = [f"delay{i}" for i in range(k)], (self.B[:, m:], self.C[p:], self.D[p:, m:])
        return -DelayLTI(
            self.A, *core, states=self.states, inputs=late, outputs=late
        ).delayed(self.delays)  # fmt: skip


def _no_quotient() -> Unsupported:
    return Unsupported(
        "a quotient of blocks would have the poles of both, those that cancel too; close the loop: "
        "C*P/(1 + C*P) is (C*P).feedback(), 1/(1 + L) is DelayLTI.transfer([1], [1]).feedback(L)"
    )


def _made(block: Blocks, **names: Sequence[str]) -> DelayLTI:
    return DelayLTI(*block[:4], delays=block.delays, **names)


def _lifted(other: DelayLTI | ArrayLike, shape: tuple[int, int]) -> DelayLTI:
    """A block as it is; a gain as a block, a number as a diagonal one of that shape."""
    if isinstance(other, DelayLTI):
        return other
    if hasattr(other, "input_labels"):  # a system of python-control
        return DelayLTI.from_control(other)
    gain = matrix(other, "the other block")
    gain = gain * np.eye(*shape) if gain.ndim == 0 else np.atleast_2d(gain)
    p, m = gain.shape
    return DelayLTI(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), gain)
