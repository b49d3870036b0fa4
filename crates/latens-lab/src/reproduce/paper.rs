//! What the paper's table says (Ghanem et al. 2025, nRMSE), by our names.

/// (method, Hodgkin–Huxley, yeast, cart-pole, harmonic oscillator, EMPS); the retina is not in it.
const TABLE: [(&str, [f64; 5]); 6] = [
    ("rm", [2.39e-1, 6.30e-1, 1.06, 2.36e-2, 6.20e-1]),
    ("pr-ssm", [4.05e-1, 1.59, 1.52, 1.21, 4.05e1]),
    ("spinode", [7.68e-1, 4.98e-2, 3.01, 4.34e-1, 4.30e5]),
    ("node", [7.03e1, 3.74e-1, 2.84e-1, 4.65e-1, 1.65]),
    ("node-lstm", [3.87e1, 3.09e-1, 2.90e-1, 4.60e-1, 3.45]),
    ("as-printed", [1.54e-1, 3.39e-2, 9.41e-3, 5.08e-3, 9.50e-2]),
];

const SYSTEMS: [&str; 5] = [
    "hodgkin-huxley",
    "yeast-glycolysis",
    "cart-pole",
    "harmonic-oscillator",
    "emps",
];

/// The paper's figure, where it has one. Its own method stands beside `as-printed`.
pub fn figure(system: &str, method: &str) -> Option<f64> {
    let column = SYSTEMS.iter().position(|s| *s == system)?;
    let (_, row) = TABLE.iter().find(|(m, _)| *m == method)?;
    Some(row[column])
}
