//! The Mackey-Glass equation of benchmarks/delay.py by two crates.
//!
//! `mackey-glass CRATE TOLERANCE STEP SAMPLES REPEATS` prints the least seconds of a call, then a
//! sample of the solution at every step from 0 on; of numra-dde, which gives its own steps whatever
//! times it is asked for, the last sample only.

use differential_equations::prelude::*;
use numra_dde::{DdeOptions, DdeSolver, DdeSystem, MethodOfSteps};
use std::time::Instant;

const LAG: f64 = 17.0;
const START: f64 = 0.5;

fn rate(y: f64, past: f64) -> f64 {
    0.2 * past / (1.0 + past.powi(10)) - 0.1 * y
}

struct MackeyGlass;

impl DDE<1, f64, f64> for MackeyGlass {
    fn diff(&self, _t: f64, y: &f64, past: &[f64; 1], dydt: &mut f64) {
        *dydt = rate(*y, past[0]);
    }

    fn lags(&self, _t: f64, _y: &f64, lags: &mut [f64; 1]) {
        lags[0] = LAG;
    }
}

impl DdeSystem<f64> for MackeyGlass {
    fn dim(&self) -> usize {
        1
    }

    fn delays(&self) -> Vec<f64> {
        vec![LAG]
    }

    fn rhs(&self, _t: f64, y: &[f64], past: &[&[f64]], dydt: &mut [f64]) {
        dydt[0] = rate(y[0], past[0][0]);
    }
}

fn differential_equations(tolerance: f64, times: &[f64]) -> Vec<f64> {
    let end = *times.last().unwrap();
    let method = ExplicitRungeKutta::dopri5()
        .rtol(tolerance)
        .atol(tolerance)
        .max_steps(10_000_000)
        .max_delay(LAG);
    let solution = IVP::dde(&MackeyGlass, 0.0, end, START, |_t: f64| START)
        .t_eval(times)
        .method(method)
        .solve()
        .unwrap_or_else(|_| panic!("differential-equations did not solve it"));
    solution.y
}

fn numra(tolerance: f64, times: &[f64]) -> Vec<f64> {
    let end = *times.last().unwrap();
    let options = DdeOptions {
        rtol: tolerance,
        atol: tolerance,
        max_steps: 10_000_000,
        track_discontinuities: true,
        discontinuity_order: 5,
        ..DdeOptions::default()
    };
    MethodOfSteps::solve(&MackeyGlass, 0.0, end, &|_t: f64| vec![START], &options)
        .expect("numra-dde did not solve it")
        .y_final()
        .expect("no solution")
}

fn main() {
    let given: Vec<String> = std::env::args().collect();
    let number = |i: usize| given[i].parse::<f64>().expect("a number");
    let (tolerance, step, samples, repeats) =
        (number(2), number(3), number(4) as usize, number(5) as usize);
    let times: Vec<f64> = (0..samples).map(|i| step * i as f64).collect();
    let solve = match given[1].as_str() {
        "differential-equations" => differential_equations,
        "numra-dde" => numra,
        other => panic!("no crate {other}"),
    };
    let (mut least, mut found) = (f64::INFINITY, Vec::new());
    for _ in 0..repeats {
        let begin = Instant::now();
        found = solve(tolerance, &times);
        least = least.min(begin.elapsed().as_secs_f64());
    }
    println!("{least}");
    for value in found {
        println!("{value:.17e}");
    }
}
