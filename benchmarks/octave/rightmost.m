% The rightmost characteristic roots of x'(t) = A{1} x(t) + sum of A{k+1} x(t - tau(k)), by the
% method that DDE-BIFTOOL 3.1 takes: the generator on Chebyshev nodes of the past (D. Breda, S. Maset
% and R. Vermiglio, SIAM Journal on Scientific Computing 27 (2005) 482-495), its eigenvalues, and
% Newton's method on the characteristic matrix from each; with twice as many nodes until the roots
% that are asked for no longer change.
function s = rightmost (A, tau, count)
  s = [];
  for N = 10 * 2 .^ (0:4)
    before = s;
    [V, s] = generator (A, tau, N);
    [~, order] = sort (-real (s));
    order = order(imag (s(order)) >= 0)(1:count);
    s = arrayfun (@(k) newton (A, tau, s(k), V(1:rows (A{1}), k)), order);
    if (numel (before) && all (abs (s - before) <= 1e-10 * max (1, abs (s))))
      return
    end
  end
end

function [V, s] = generator (A, tau, N)
  n = rows (A{1});
  x = cos (pi * (0:N)' / N);
  w = [0.5; ones(N - 1, 1); 0.5] .* (-1) .^ (0:N)';
  gaps = x - x' + eye (N + 1);
  D = (w' ./ w) ./ gaps;
  D -= diag (sum (D, 2));
  M = kron (D * (2 / max (tau)), eye (n));
  M(1:n, :) = 0;
  M(1:n, 1:n) = A{1};
  for k = 1:numel (tau)
    gap = (1 - 2 * tau(k) / max (tau)) - x';
    at = find (abs (gap) < 1e-14);
    if (at)
      basis = (1:N + 1) == at(1);
    else
      basis = (w' ./ gap) / sum (w' ./ gap);
    end
    M(1:n, :) += kron (basis, A{k + 1});
  end
  [V, L] = eig (M);
  s = diag (L);
end

function s = newton (A, tau, s, v)
  n = rows (A{1});
  c = v' / (v' * v);
  for pass = 1:20
    P = s * eye (n) - A{1};
    dP = eye (n);
    for k = 1:numel (tau)
      late = A{k + 1} * exp (-s * tau(k));
      P -= late;
      dP += tau(k) * late;
    end
    step = -[P, dP * v; c, 0] \ [P * v; c * v - 1];
    v += step(1:n);
    s += step(end);
    if (abs (step(end)) <= 1e-14 * max (1, abs (s)))
      return
    end
  end
end
