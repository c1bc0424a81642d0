"""NADA of 2013: where it rests, as the LDCC paper says, and how it gets there."""

import numpy as np
import pytest

import fluidcc as fc
from tests.sources.networks import marking, on_one_link

R_MAX, DELAY = 1.5e6, 0.025


@pytest.mark.parametrize("capacity", [0.5e6, 1e6, 1.4e6])
def test_the_delay_at_rest_is_r_max_owd_min_over_r(capacity: float) -> None:
    ds = fc.simulate(on_one_link(capacity, fc.NADA(R_max=R_MAX)), 300)
    assert float(ds.rate[-1, 0]) == pytest.approx(capacity, rel=1e-5)
    assert float(ds.one_way_delay[-1, 0]) == pytest.approx(R_MAX * DELAY / capacity, rel=1e-4)
    assert np.ptp(ds.one_way_delay.values[-50:]) < 1e-5


def test_with_room_for_its_largest_rate_it_takes_that_and_queues_nothing() -> None:
    ds = fc.simulate(on_one_link(2e6, fc.NADA(R_max=R_MAX)), 300)
    assert float(ds.rate[-1, 0]) == pytest.approx(R_MAX, rel=1e-4)
    assert float(ds.queueing_delay.max()) == 0


def test_flows_that_start_together_share_by_weight() -> None:
    """The product of rate and delay is the same for all, but for the weight."""
    ds = fc.simulate(on_one_link(1.2e6, *(fc.NADA(weight=w) for w in (1, 2, 3))), 120)
    np.testing.assert_allclose(ds.rate.values[-1], [0.2e6, 0.4e6, 0.6e6], rtol=1e-4)
    assert float(ds.one_way_delay[-1, 0]) == pytest.approx(R_MAX * DELAY / 0.2e6, rel=1e-3)


def test_a_least_rate_shifts_the_product() -> None:
    least, capacity = 150e3, 0.6e6
    ds = fc.simulate(on_one_link(capacity, fc.NADA(R_min=least)), 60)
    wanted = (R_MAX - least) * DELAY / (capacity - least)
    assert float(ds.one_way_delay[-1, 0]) == pytest.approx(wanted, rel=1e-4)


def test_one_who_comes_late_takes_the_queue_for_the_path() -> None:
    """Its reference is the delay it met first, so that it gets more."""
    net = on_one_link(1e6, fc.NADA).flow("late", fc.NADA, route=["l"], start=40)
    ds = fc.simulate(net, 200)
    early, late = ds.rate.values[-1]
    e, delta = ds.one_way_delay.values[-1], ds.NADA_delta.values[-1]
    assert late > 1.2 * early
    np.testing.assert_allclose([early * e[0], late * e[1]], R_MAX * (e - delta), rtol=1e-3)


def test_a_loss_counts_as_delay() -> None:
    """Over a buffer too short for the delay at rest, R (e + d_L pi) = R_max e_min."""
    capacity = 0.5e6
    ds = fc.simulate(on_one_link(capacity, fc.NADA(d_L=0.5), buffer=f"{0.01 * capacity} bit"), 60)
    R, e, loss = (float(v[-1, 0]) for v in (ds.rate, ds.one_way_delay, ds.loss))
    assert e == pytest.approx(DELAY + 0.01, rel=1e-6)
    assert loss == pytest.approx(1 - capacity / R, rel=1e-4)
    assert R * (e + 0.5 * loss) == pytest.approx(R_MAX * DELAY, rel=1e-4)


# --- RFC 8698 -------------------------------------------------------------------------------------

R_MIN, X_REF = 150e3, 0.01


@pytest.mark.parametrize("capacity", [0.4e6, 0.8e6, 1.2e6])
def test_the_queueing_delay_at_rest_is_x_ref_r_max_over_r(capacity: float) -> None:
    ds = fc.simulate(on_one_link(capacity, fc.NADA8698), 120)
    assert float(ds.rate[-1, 0]) == pytest.approx(capacity, rel=1e-9)
    assert float(ds.queueing_delay[-1, 0]) == pytest.approx(X_REF * R_MAX / capacity, rel=1e-9)


def test_rates_are_shared_by_priority() -> None:
    ds = fc.simulate(on_one_link(1.2e6, fc.NADA8698, fc.NADA8698(prio=2)), 200)
    np.testing.assert_allclose(ds.rate[-1], [0.4e6, 0.8e6], rtol=1e-4)


def test_it_starts_by_half_its_rate_a_period_until_a_queue_is_seen() -> None:
    """(3) and (4): the gain is min(1/2, 50 ms/(RTT + 220 ms)) = 50/270; RTT is half a period."""
    law = fc.NADA8698(LOGWIN=1e-3)
    net = on_one_link(10e6).flow("f", law, route=["l"], start=0)
    ds = fc.simulate(net, 0.75, t_eval=0.1 * np.arange(1, 8) + 1e-6)
    gain, rate, before = 0.05 / 0.27, [R_MIN], [0.0, R_MIN]
    for k in range(1, 8):  # half of a period hears what was sent in the one before it
        heard = 0.5 * (before[k - 1] + before[k])
        rate.append(max(rate[-1], (1 + gain) * heard))
        before.append(rate[-1])
    np.testing.assert_allclose(ds.rate[:, 0], rate[1:], rtol=1e-9)


def test_with_a_queue_it_updates_gradually() -> None:
    """(5) to (7) from tick to tick, the delay being what is known at each."""
    net = on_one_link(1e6, fc.NADA8698(R_max=3e6))
    ticks = 0.1 * np.arange(1, 200)
    before, after = (
        fc.simulate(net, 20, t_eval=ticks + d, rtol=1e-10, atol=1e-12) for d in (-1e-9, 1e-9)
    )
    x = before.NADA8698_delta.values[:, 0]
    r = before.rate.values[:, 0]
    step = 0.5 * 0.1 / 0.5 * (x - X_REF * 3e6 / r) / 0.5 * r
    step += 0.5 * 2 * (x - np.concatenate([[0], after.NADA8698_x_prev.values[:-1, 0]])) / 0.5 * r
    calm = after.NADA8698_calm.values[:, 0] >= 0.5 - 1e-9
    assert 3 < calm.sum() < 50
    gradual = np.clip(r - step, R_MIN, 3e6)[~calm]
    np.testing.assert_allclose(after.rate.values[~calm, 0], gradual, rtol=1e-6)


@pytest.mark.parametrize(("gives", "scale"), [("loss", 0.01), ("mark", 0.002)])
def test_a_ratio_of_losses_or_marks_is_a_delay_by_its_square(gives: str, scale: float) -> None:
    """scale (p/0.01)^2 = x_ref R_max/r without a queue."""
    p = 0.02
    how = {"law": marking(p)} if gives == "mark" else {"law": fc.DropTail, "loss": p}
    net = fc.Network().link("l", **how, capacity=1e9, delay=DELAY)
    ds = fc.simulate(net.flow("f", fc.NADA8698, route=["l"]), 120)
    wanted = min(X_REF * R_MAX / (scale * (p / 0.01) ** 2), R_MAX)
    assert float(ds.rate[-1, 0]) == pytest.approx(wanted, rel=1e-4)


def test_after_a_loss_a_long_queue_counts_for_less() -> None:
    """Beside Reno on a long buffer it keeps more than if it took every delay at its word."""
    shares = {}
    for name, threshold in (("warped", 0.05), ("plain", 1e3)):
        net = on_one_link(
            3e6, fc.NADA8698(QTH=threshold, R_max=3e6), fc.StaticAIMD, buffer=0.2 * 3e6
        )
        ds = fc.simulate(net, 120, samples=1201)
        shares[name] = float(ds.rate[300:, 0].mean())
    assert shares["warped"] > 1.3 * shares["plain"]
