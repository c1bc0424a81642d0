"""Every row of every paper: its verdict, what it must hold, and that no part lacks one."""

import math

import pytest

from fluidcc.papers.model import claims_of, items_of
from tests.papers.rows import outcome

# By paper and verdict; a star marks what was suspected to be a misprint, a plus what is not in the
# paper.
VERDICTS = """
ldcc: proved
    loss_ratio path_loss+ loss_sum split_of_rtt num_unique penalty_concave+ gradient_of_penalty
    loss_as_price dual_conditions price_is_delay self_inflicted rate_equation derivative_term
    utility penalty penalty_shape saturation equilibrium_delay equilibrium_delay_solved larger_rate
    other_utilities rate_floor penalty_cannot_starve+ receiving_rate derivative_from_rates
    signal_of_losses loss_signal_approximation discrete_rule gain_of_a_round_trip
    supply_rates_cancel equilibrium_conditions user_storage_positive users_derivative
    users_projection routing_adjoint users_dissipation links_derivative repaired+ locally_stable+
    linearised solved return_ratio diagonal_part same_spectrum convex_hull radius_at_most_hops
    user_loop poles_of_user_loop curvature penalty_slope zero_of_user_loop user_loop_of_ldcc
    places_of_pole_and_zero identical_flows+ parking_lot_eigenvalues+ jain_bounds
    comparison_owd_eq normalisation_stability
ldcc: reproduced
    queue_growth fifo_delay one_way_delay round_trip primal_dual_converges latecomers starvation
    below_floor similar_penalties only_losses nyquist_criterion places_in_section_v
    hops_neglected settings buffer_130 buffer_25 fig5_no_loss fig5_fair fig5_values fig6_fair
    fig10_no_loss fig10_delays fig11_long_flow fig11_mixed fig7_discrepancy
    fig8_extremes fig8_reached coexistence_buffers coexistence_crossing
    coexistence_delay_part coexistence_floor coexistence_weight derivative_helps
    comparison_gcc_lowest comparison_constant related_ledbat_starves related_ledbat_late
    related_ledbat_unfair related_nada_late related_no_estimate
    related_gcc_starves related_gcc_unfair conservation+
ldcc: rebuilt
    related_cxtcp_law related_cxtcp_late
ldcc: differs
    link_rates capacity_constraint* coexistence_starvation penalty_converges normalisation
    more_capacity_less_delay tcp_as_gradient receiving_rate_index* discrete_rule_below_threshold*
    gain_before_the_sum* link_storage_offset* links_inequality* delayed_rate_equation delayed_queue
    stable_without_condition* loss_driven constant_delay* mixed_regime* sampled_law fig7_capacity*
    lowest_capacity* coexistence_aggressive comparison_gcc_no_rest comparison_gcc_rule*
    comparison_small_capacities related_nada_new no_upper_projection*
    threshold* delayed_rates* no_queue_at_optimum gain_divided* fig8_worst fig10_long_flow
    several_bottlenecks* projection_freezes* path_loss_as_printed*
ldcc: refuted
    delay_cannot_starve users_inequality* slope_inequality*
    sum_of_storages* each_user_alone*
ldcc: not given
    penalty_curves conservatism+ frozen_against_fifo+ initial_rates fig5_settling
    propagation_vectors* coexistence_values coexistence_static* comparison_r_max
    comparison_gcc_parameters comparison_gcc_cycle related_cxtcp_coexists kilobyte*
    related_nada_consistent comparison_gcc_varies
ldcc: needs a packet-level model
    packets coexistence_packets retransmissions
ldcc: not a fluid's question
    sketches
binomial: proved
    windows_and_rates decrease_lowers_the_sum fairness_of_a_decrease
    slope_of_a_decrease rates_stay_positive slope_of_an_increase binomial_fairness
    binomial_crossing only_aimd sawtooth exact_efficiency flow_limit taylor leading_term two_terms
    independent_of_n loss_ratio aimd_loss loss_of_n loss_growth exponents aimd_scales_best
    nonmonotonic_powers why_quadratic ideal_scalability limited_rates iscc_decrease iscc_increase
    iscc_single
    tcp_friendly_iscc aimd_converges tcp_friendly_powers continuous_feedback aipd max_min_fairness
    bandwidth_per_user monotone_steps
binomial: reproduced
    cycles_to_fair efficient_below_half errors_of_150_flows* tcp_friendly_is_slow slow_near_one
    experiment_parameters growth_aimd2 loss_of_100 aggressive_loses_more several_decreases estimates
    generic_controls proportional_fairness potential_delay actual_overshoot
    growth_column
binomial: differs
    no_crossing_down* no_crossing_up* crossing_increase* increase_in_time* part_below_one*
    efficiency_of_n* errors_at_aimd* two_terms_better* efficiency_crossing* loss_of_many
    loss_example growth_aimd1 growth_iiad* exponents_aimd exponent_iiad* dips* iscc_in_simulation
    becomes_linear nonzero_loss stable_under_delays yields_to_aimd tcp_friendly_aimd
binomial: refuted
    decrease_at_least_linear* strict_decrease* logarithmic_example* converges_iff* growth_bound*
    iscc_of_n* too_aggressive
binomial: needs a packet-level model
    bandwidth_estimates testbed testbed_in_a_network powers_column efficiency_column
    rates_against_windows early_drops_and_fairness atm packet_pairs video
binomial: not given
    slow_start early_drops
binomial: not a fluid's question
    sketches diffserv
fast: proved
    dynamics rest met_queue newcomer_rate old_rate backlog unfairness_order drains_in_time threshold
    threshold_order pause_length probe flows capacity_estimate corrected rest_of_the_queue+
fast: reproduced
    static_windows+ positive_theta small_buffer longer_pause plateaus_of_fast plateaus_of_estimator
    throughput fast_over_rtt reduction_over_rtt estimator_over_rtt fast_over_n
    estimator_over_n bursts_help stability_needs_the_clock+
fast: differs
    exact_iff* simultaneous* unfair_until_the_probe* queues reduction_over_n* estimator_in_bursts*
fast: not given
    decoded* settings* parking_lot stabilizes*
fast: needs a packet-level model
    packets
delay_aimd: proved
    busy_link ratchet_form threshold_between knee_independent+ bounded_by_largest
delay_aimd: reproduced
    delay_backoff vegas_queue adaptive_backoff flat_part proportional_idle
    coexists busy_one_by_one knee_utilisation knee_of_loss_based
    shorter_epochs knee_losses knee_of_any_number knee_of_any_buffer synchronised+ closed_form+
    second_flow losses_below_w0 scales_and_compatible knee_delay
delay_aimd: differs
    slow_start_threshold* slow_start_length algorithm_increase* algorithm_threshold* algorithm_cap*
    algorithm_loss_branch* table_one* coefficient* just_empties ratchet_of_one ratchet_buffer*
    ratchet_of_ten drains rtt_unfairness slow_start_exit rise_epochs* converges* flat_part_alters
    busy_with_two_round_trips busy_over_two_links increase_minimum* slow_start_runs
delay_aimd: not given
    smoothed_delay impact_of_the_factor
delay_aimd: needs a packet-level model
    testbed
ecf: proved
    inner_eigenvalues+ overhead_limit
ecf: reproduced
    drops_and_marks marks_by_length+ byte_mode hold_form+ continuum rtt_fairness max_min
    ecf_margins+ without_adaptation
    shares started excited sawtooth slow_tfrc set_points dccp_drops tfrc_drops inner_drops overheads
ecf: rebuilt
    far_sources control truncated filtered measured_rate wanted_rate wanted_rate_late
    scheduler decrease_and_increase source period_of_v1 window
ecf: differs
    converges red_margins frames ecf_delay ecf_jitter utilisation red_delay late_ones
    poisson_fairness tfrc tfrc_jitter tfrc_over_red
ecf: not given
    report_period increase_limit stall* tfrc_shares gains tcp_queue period_of_v2
ecf: needs a packet-level model
    granularity drop_ratios dccp_fairness messages tfrc_jitter_over_red
ecf: not a fluid's question
    sketches
internet: proved
    aimd_mean friendly_increase cubic_mean marked_share largest_queue independent_of_round_trips
    power goodput_rises static_link ledbat_growth timely_rests_anywhere patched_rest
    friendly_when_synchronised
internet: reproduced
    cubic_constant cubic_table_1 cubic_table_2 cubic_loss_ratios cubic_at_short_round_trips
    highspeed_response highspeed_table amplitude gain cycles classic_rate decay_time
    fixed_point few_and_many startup_gain_of_the_draft losses_between_probes packets_of_reno
    seconds_of_reno cost_of_least_round_trips copa_cycle copa_empties copa_shares copa_competes
    copa_among_itself scream_beside_prague square_root cubic_settles compound_buffers rcp_loop
    timely_rests_nowhere share_beside_many queue_of_version_1 shallow_buffers
    copa_on_short_paths
internet: differs
    reno_column highspeed_column reno_loss_ratio round_trips highspeed_increase threshold
    scalable_rate coupling coupling_factors gains stable_at_100_ms half_interval tuning goodput
    fixed_point_formula scream_two_marks scream_round_trips scream_slowest_growth
    prague_round_trips interval least_gain_of_down share_beside_losses queue_of_version_2
    buffers_of_version_2 losses_of_version_1
internet: refuted
    close_to_full startup_gain scream_once_a_round_trip patched_converges
"""


def _wanted() -> dict[str, tuple[str, str]]:
    """Return the verdict of each row, and its marks."""
    found: dict[str, tuple[str, str]] = {}
    for line in VERDICTS.strip().splitlines():
        if not line.startswith(" "):
            paper, verdict = line.split(": ")
        else:
            for name in line.split():
                own = name.rstrip("*+")
                found[f"{paper}.{own}"] = (verdict, name.removeprefix(own))
    return found


WANTED = _wanted()


def test_every_row_is_in_the_table_once() -> None:
    assert sorted(WANTED) == sorted(claim.id for claim in claims_of())
    marks = {c.id: "*" * c.erratum + "+" * c.own for c in claims_of()}
    assert marks == {name: mark for name, (_, mark) in WANTED.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", WANTED)
def test_a_row_has_its_verdict_finite_numbers_and_a_reason_where_one_is_due(name: str) -> None:
    found = outcome(name)
    assert found.verdict == WANTED[name][0], found.computed
    assert found.computed
    assert found.reason or found.verdict in ("proved", "reproduced")
    assert "+" not in WANTED[name][1] or found.verdict in ("proved", "reproduced", "not given")
    assert "would make this row" not in found.reason
    assert all(math.isfinite(v) for v in found.values.values())


# How many equations, figures and tables a paper has.
PARTS = {
    "ldcc": (48, 14, 0),
    "binomial": (42, 8, 1),
    "fast": (9, 3, 0),
    "delay_aimd": (7, 8, 2),
    "ecf": (12, 8, 0),
}


@pytest.mark.parametrize("paper", PARTS)
def test_every_equation_figure_and_table_has_a_row(paper: str) -> None:
    equations, figures, tables = (range(1, n + 1) for n in PARTS[paper])
    parts = {f"({k})" for k in equations} | {f"Fig. {k}" for k in figures}
    parts |= {"Table " + "I" * k for k in tables}
    found = {item for claim in claims_of(paper) for item in claim.items}
    assert not parts - found
    others = {item for item in found if item.split()[0] in ("Fig.", "Table") or item[0] == "("}
    assert not others - parts  # nor has it a row about none


def test_a_place_names_its_items_one_by_one() -> None:
    place = "(18), footnote 1, Figs. 7, 8, Fig. 4(a), Table I, Algorithm 1, line 5, Appendix A"
    wanted = ["(18)", "Fig. 7", "Fig. 8", "Fig. 4", "Table I", "Algorithm 1", "Appendix A"]
    assert list(items_of(place)) == wanted
    assert items_of("(13)-(15), (45a), after (38)") == ("(13)", "(14)", "(15)", "(45)", "(38)")
    assert items_of("II-A, Section 2.3, V") == ("Section II-A", "Section 2.3", "Section V")
