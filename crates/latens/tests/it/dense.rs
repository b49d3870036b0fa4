//! Small linear systems and the dense solution of everything in them: the oracle of the closed forms.

// each test file uses its part of this
#![allow(dead_code)]

use latens::model::small::solve;
use latens::numerics::objective::Noise;
use latens::{Model, Record};
use rand::{RngExt, SeedableRng};

pub const DT: f64 = 0.1;

pub fn model(states: &str) -> Model {
    let method = if states.starts_with("method") {
        ""
    } else {
        "method = \"euler\"\n"
    };
    let text = format!("[time]\nstep = {DT}\n{method}{states}");
    Model::from_text("test.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

/// A record of random inputs and outputs: the facts below hold for any data.
pub fn random_record(model: &Model, samples: usize, seed: u64) -> Record {
    let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
    let (d_u, d_y) = (model.inputs.len(), model.measurements.len());
    Record {
        name: "random".into(),
        time: (0..samples).map(|k| k as f64 * DT).collect(),
        inputs: (0..samples * d_u)
            .map(|_| rng.random_range(-1.0..1.0))
            .collect(),
        outputs: (0..samples * d_y)
            .map(|_| rng.random_range(-1.0..1.0))
            .collect(),
        truth: None,
        d_u,
        d_y,
        d_x: model.states.len(),
        later: false,
    }
}

/// The same samples at unequal distances: whole numbers of steps, and others.
pub fn uneven(record: &Record) -> Record {
    let gaps = [1.0, 2.0, 1.0, 0.4, 1.0, 3.0, 1.0, 1.7, 1.0, 1.2];
    let mut time = 0.0;
    let times = (0..record.len()).map(|k| {
        let now = time;
        time += gaps[k % gaps.len()] * DT;
        now
    });
    Record {
        time: times.collect(),
        ..record.clone()
    }
}

/// A dense least-squares problem min Σ (rowᵀz − value)²/variance.
pub struct Dense {
    n: usize,
    normal: Vec<f64>,
    right: Vec<f64>,
}

impl Dense {
    pub fn new(n: usize) -> Self {
        Self {
            n,
            normal: vec![0.0; n * n],
            right: vec![0.0; n],
        }
    }

    pub fn add(&mut self, row: &[(usize, f64)], value: f64, variance: f64) {
        for &(i, a) in row {
            self.right[i] += a * value / variance;
            for &(j, b) in row {
                self.normal[i * self.n + j] += a * b / variance;
            }
        }
    }

    /// The minimiser, and the inverse of the normal matrix: the posterior covariance.
    pub fn solve(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut z, mut inverse) = (self.right.clone(), latens::model::small::identity(self.n));
        solve(&mut self.normal.clone(), &mut z, self.n).unwrap();
        solve(&mut self.normal.clone(), &mut inverse, self.n).unwrap();
        (z, inverse)
    }
}

pub const LINEAR: &str = "[inputs]\nu = {}\n\
    [states.x]\nderivative = \"v + g*u\"\n[states.v]\nderivative = \"-x - 0.3*v + p\"\n\
    [measurements]\ny = \"x + 0.1*v\"\n\
    [unknowns]\np = { guess = 0, scale = 1 }\ng = { guess = 0.2, scale = 1 }\n";

/// The least-squares problem of LINEAR over all states, p and g; y_0 is used only where asked for.
pub fn dense_linear(record: &Record, noise: &Noise, prior: f64, with_first: bool) -> Dense {
    let samples = record.len();
    let (p, g) = (2 * samples, 2 * samples + 1);
    let mut dense = Dense::new(g + 1);
    dense.add(&[(p, 1.0)], 0.0, prior);
    dense.add(&[(g, 1.0)], 0.0, prior);
    for i in 0..2 {
        dense.add(&[(i, 1.0)], noise.start_mean[i], noise.start[i]);
    }
    for k in 0..samples {
        if (k > 0 || with_first) && !record.output(k)[0].is_nan() {
            let row = [(2 * k, 1.0), (2 * k + 1, 0.1)];
            dense.add(&row, record.output(k)[0], noise.measurement[0]);
        }
        if k > 0 {
            let (a, b) = (2 * (k - 1), 2 * k);
            let (u, gap) = (record.input(k - 1)[0], record.time[k] - record.time[k - 1]);
            let steps = (gap / DT).round().max(1.0);
            let h = gap / steps;
            // what becomes of x and v, of u and of p in that many Euler steps
            let mut columns = [[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2]];
            for _ in 0..steps as usize {
                for (c, [x, v]) in columns.iter_mut().enumerate() {
                    let rate = [*v, -*x - 0.3 * *v];
                    *x += h * (rate[0] + if c == 2 { u } else { 0.0 });
                    *v += h * (rate[1] + if c == 3 { 1.0 } else { 0.0 });
                }
            }
            for i in 0..2 {
                let [x, v, driven, pushed] = columns.map(|column| column[i]);
                let row = [
                    (b + i, 1.0),
                    (a, -x),
                    (a + 1, -v),
                    (g, -driven),
                    (p, -pushed),
                ];
                dense.add(&row, 0.2 * driven, noise.process[i] * gap / DT);
            }
        }
    }
    dense
}
