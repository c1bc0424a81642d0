"""The steady state of a network as a mixed complementarity problem, on plain arrays, compiled.

Given M u' = G(u), projected onto lower <= u <= upper, with M diagonal and some of its entries zero
(algebraic rows), it finds u with G_i = 0 inside, G_i <= 0 at the lower and G_i >= 0 at the upper
bound. Per link one unknown s >= 0 stands for delay and loss together: while s <= q_max it is the
queueing delay, beyond it the queue is full and the loss ratio is 1 - 1/(1 + s - q_max). So "empty",
"queueing" and "full" are one complementarity condition, s >= 0, admitted rate <= capacity, one of
them with equality.

References: Coffey, Kelley and Keyes, "Pseudotransient continuation and differential-algebraic
equations", SIAM J. Sci. Comput. 25 (2003); Facchinei and Pang, "Finite-Dimensional Variational
Inequalities and Complementarity Problems" (2003).
"""
