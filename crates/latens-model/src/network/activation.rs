//! Nonlinearities over whole layers, without branches, so that they vectorise.
//!
//! Everything rests on e^y − 1 for y ≤ 0 with y = k ln 2 + r, |r| ≤ ½ ln 2:
//!
//! ```text
//! e^y − 1 = 2^k (e^r − 1) + (2^k − 1)        e^r − 1 by its series to r¹³
//! tanh x = −sign(x) E/(E + 2), E = e^(−2|x|) − 1        relative error small also near 0
//! ln(1 + e) = 2 artanh(e/(2 + e)) for 0 ≤ e ≤ 1
//! ```
//!
//! Within 3 units in the last place of the exact value; NaN in, NaN out.

use pulp::Simd;

/// The nonlinearity of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Tanh,
    Sigmoid,
    Elu,
    Softplus,
    Silu,
    Relu,
    Identity,
}

impl Activation {
    /// As written in `layers`.
    pub const NAMES: [(&'static str, Activation); 7] = [
        ("tanh", Activation::Tanh),
        ("sigmoid", Activation::Sigmoid),
        ("elu", Activation::Elu),
        ("softplus", Activation::Softplus),
        ("silu", Activation::Silu),
        ("relu", Activation::Relu),
        ("identity", Activation::Identity),
    ];

    /// Replaces each x by its value, and fills in the slopes.
    #[inline(always)]
    pub fn apply<S: Simd>(self, simd: S, values: &mut [f64], slopes: &mut [f64]) {
        let (vectors, rest) = S::as_mut_simd_f64s(values);
        let (slope_vectors, slope_rest) = S::as_mut_simd_f64s(slopes);
        for (x, slope) in vectors.iter_mut().zip(slope_vectors) {
            (*x, *slope) = self.evaluate(simd, *x);
        }
        if !rest.is_empty() {
            let (x, slope) = self.evaluate(simd, simd.partial_load_f64s(rest));
            simd.partial_store_f64s(rest, x);
            simd.partial_store_f64s(slope_rest, slope);
        }
    }

    /// Values and slopes.
    #[inline(always)]
    fn evaluate<S: Simd>(self, simd: S, x: S::f64s) -> (S::f64s, S::f64s) {
        let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
        let positive = simd.less_than_f64s(zero, x);
        match self {
            Activation::Tanh => {
                let t = tanh(simd, x);
                (t, simd.sub_f64s(one, simd.mul_f64s(t, t)))
            }
            Activation::Sigmoid => {
                let s = sigmoid(simd, x);
                (s, simd.mul_f64s(s, simd.sub_f64s(one, s)))
            }
            Activation::Elu => {
                let e = exponential_minus_one(simd, simd.select_f64s(positive, zero, x));
                (simd.select_f64s(positive, x, e), simd.add_f64s(e, one))
            }
            Activation::Softplus => (softplus(simd, x), sigmoid(simd, x)),
            Activation::Silu => {
                let s = sigmoid(simd, x);
                let change = simd.mul_f64s(x, simd.sub_f64s(one, s));
                let slope = simd.mul_f64s(s, simd.add_f64s(one, change));
                (simd.mul_f64s(x, s), slope)
            }
            Activation::Relu => {
                let slope = simd.select_f64s(positive, one, zero);
                (at_least(simd, x, 0.0), slope)
            }
            Activation::Identity => (x, one),
        }
    }
}

/// 1.5·2⁵²: a small number added to it is rounded to an integer, which stands in the low bits.
const ROUNDING_SHIFT: f64 = 6755399441055744.0;
/// ln 2 in two parts; k times the first is exact for |k| < 2¹¹.
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// Σ c_k s^k.
#[inline(always)]
fn polynomial<S: Simd>(simd: S, s: S::f64s, coefficients: &[f64]) -> S::f64s {
    let mut sum = simd.splat_f64s(0.0);
    for &c in coefficients.iter().rev() {
        sum = simd.mul_add_f64s(sum, s, simd.splat_f64s(c));
    }
    sum
}

/// k + 1.5·2⁵² and e^r − 1, with y = k ln 2 + r.
#[inline(always)]
fn reduce<S: Simd>(simd: S, y: S::f64s) -> (S::f64s, S::f64s) {
    let round = simd.splat_f64s(ROUNDING_SHIFT);
    let shifted = simd.mul_add_f64s(y, simd.splat_f64s(std::f64::consts::LOG2_E), round);
    let k = simd.sub_f64s(shifted, round);
    let r = simd.mul_add_f64s(k, simd.splat_f64s(-LN2_HIGH), y);
    let r = simd.mul_add_f64s(k, simd.splat_f64s(-LN2_LOW), r);
    // 1/2! to 1/13!, even and odd powers apart: two short chains of dependent operations
    const EVEN_COEFFICIENTS: [f64; 6] = [
        1.0 / 2.0,
        1.0 / 24.0,
        1.0 / 720.0,
        1.0 / 40320.0,
        1.0 / 3628800.0,
        1.0 / 479001600.0,
    ];
    const ODD_COEFFICIENTS: [f64; 6] = [
        1.0 / 6.0,
        1.0 / 120.0,
        1.0 / 5040.0,
        1.0 / 362880.0,
        1.0 / 39916800.0,
        1.0 / 6227020800.0,
    ];
    let s = simd.mul_f64s(r, r);
    let (even, odd) = (
        polynomial(simd, s, &EVEN_COEFFICIENTS),
        polynomial(simd, s, &ODD_COEFFICIENTS),
    );
    let series = simd.mul_add_f64s(r, odd, even);
    (shifted, simd.mul_add_f64s(s, series, r))
}

/// 2^k from k + 1.5·2⁵², for −1023 < k < 1024.
#[inline(always)]
fn power_of_two<S: Simd>(simd: S, shifted: S::f64s) -> S::f64s {
    // pulp has no shift of 64-bit lanes; the compiler makes one of this loop
    let mut bits = [0; 8];
    S::as_mut_simd_u64s(&mut bits).0[0] = simd.transmute_u64s_f64s(shifted);
    for b in &mut bits {
        *b = (*b + 1023) << 52;
    }
    simd.transmute_f64s_u64s(S::as_simd_u64s(&bits).0[0])
}

/// y, but not less than `least`; NaN stays.
#[inline(always)]
fn at_least<S: Simd>(simd: S, y: S::f64s, least: f64) -> S::f64s {
    let least = simd.splat_f64s(least);
    simd.select_f64s(simd.less_than_f64s(y, least), least, y)
}

/// e^y − 1 for y ≤ 0.
#[inline(always)]
fn exponential_minus_one<S: Simd>(simd: S, y: S::f64s) -> S::f64s {
    let (k, p) = reduce(simd, at_least(simd, y, -50.0));
    let scale = power_of_two(simd, k);
    let one = simd.splat_f64s(1.0);
    simd.mul_add_f64s(scale, p, simd.sub_f64s(scale, one))
}

/// e^y for y ≤ 0.
#[inline(always)]
fn exponential<S: Simd>(simd: S, y: S::f64s) -> S::f64s {
    let (shifted, p) = reduce(simd, at_least(simd, y, -750.0));
    // in two factors, which reaches the subnormal numbers and zero
    let (round, half) = (simd.splat_f64s(ROUNDING_SHIFT), simd.splat_f64s(0.5));
    let k = simd.sub_f64s(shifted, round);
    let first = simd.add_f64s(simd.mul_f64s(k, half), round);
    let second = simd.add_f64s(simd.sub_f64s(k, simd.sub_f64s(first, round)), round);
    let e = simd.add_f64s(simd.splat_f64s(1.0), p);
    let e = simd.mul_f64s(e, power_of_two(simd, first));
    simd.mul_f64s(e, power_of_two(simd, second))
}

#[inline(always)]
fn tanh<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
    let (zero, two) = (simd.splat_f64s(0.0), simd.splat_f64s(2.0));
    let y = simd.mul_f64s(simd.abs_f64s(x), simd.splat_f64s(-2.0));
    let e = exponential_minus_one(simd, y);
    let t = simd.div_f64s(e, simd.add_f64s(e, two));
    let positive = simd.less_than_f64s(zero, x);
    simd.select_f64s(positive, simd.neg_f64s(t), t)
}

#[inline(always)]
fn sigmoid<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
    let one = simd.splat_f64s(1.0);
    let e = exponential(simd, simd.neg_f64s(simd.abs_f64s(x)));
    let negative = simd.less_than_f64s(x, simd.splat_f64s(0.0));
    let numerator = simd.select_f64s(negative, e, one);
    simd.div_f64s(numerator, simd.add_f64s(one, e))
}

#[inline(always)]
fn softplus<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
    // 2/(2k + 1): the series of 2 artanh
    const SERIES_COEFFICIENTS: [f64; 17] = {
        let (mut series, mut k) = ([0.0; 17], 0);
        while k < 17 {
            series[k] = 2.0 / (2 * k + 1) as f64;
            k += 1;
        }
        series
    };
    let e = exponential(simd, simd.neg_f64s(simd.abs_f64s(x)));
    let z = simd.div_f64s(e, simd.add_f64s(e, simd.splat_f64s(2.0)));
    let series = polynomial(simd, simd.mul_f64s(z, z), &SERIES_COEFFICIENTS);
    simd.mul_add_f64s(z, series, at_least(simd, x, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph;
    use proptest::prelude::*;

    struct Apply<'a>(Activation, &'a mut [f64], &'a mut [f64]);

    impl pulp::WithSimd for Apply<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            self.0.apply(simd, self.1, self.2);
        }
    }

    fn value_and_slope(activation: Activation, x: f64) -> (f64, f64) {
        // a slice of several vectors and a remainder, in which every place must agree
        let (mut values, mut slopes) = ([x; 21], [0.0; 21]);
        crate::simd::arch().dispatch(Apply(activation, &mut values, &mut slopes));
        // which NaN it is nobody determines
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(values.iter().all(|v| same(*v, values[0])));
        assert!(slopes.iter().all(|v| same(*v, slopes[0])));
        (values[0], slopes[0])
    }

    /// Distance in units of the last place of the expected value, itself off by up to one.
    fn units(value: f64, expected: f64) -> f64 {
        if value == expected || (value.is_nan() && expected.is_nan()) {
            return 0.0;
        }
        let unit = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
        // silu multiplies subnormal numbers
        (value - expected).abs() / unit.max(1e-320)
    }

    fn agrees(x: f64) -> Result<(), TestCaseError> {
        let expected = |activation| match activation {
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => graph::sigmoid(x),
            Activation::Elu if x > 0.0 => x,
            Activation::Elu => x.exp_m1(),
            Activation::Softplus => graph::softplus(x),
            Activation::Silu => x * graph::sigmoid(x),
            Activation::Relu => x.max(0.0),
            Activation::Identity => x,
        };
        for (name, activation) in Activation::NAMES {
            let (value, slope) = value_and_slope(activation, x);
            let expected = expected(activation);
            prop_assert!(
                units(value, expected) <= 4.0,
                "{name}({x:e}) = {value:e}, not {expected:e}"
            );
            prop_assert!((-0.1..=1.1).contains(&slope), "{name}'({x:e}) = {slope}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn of_order_one(x in -40.0..40.0) {
            agrees(x)?;
        }

        #[test]
        fn of_any_size(exponent in -320.0..308.0, negative: bool) {
            agrees(10f64.powf(exponent) * if negative { -1.0 } else { 1.0 })?;
        }

        #[test]
        fn where_exponentials_vanish(x in -760.0..-690.0) {
            agrees(x)?;
        }
    }

    #[test]
    fn limits() {
        use Activation::{Elu, Relu, Sigmoid, Silu, Softplus, Tanh};
        let inf = f64::INFINITY;
        for (activation, low, high) in [(Tanh, -1.0, 1.0), (Sigmoid, 0.0, 1.0), (Elu, -1.0, inf)] {
            assert_eq!(value_and_slope(activation, -inf).0, low);
            assert_eq!(value_and_slope(activation, inf).0, high);
        }
        for activation in [Tanh, Sigmoid, Elu, Softplus, Silu, Relu] {
            assert!(value_and_slope(activation, f64::NAN).0.is_nan());
        }
    }
}
