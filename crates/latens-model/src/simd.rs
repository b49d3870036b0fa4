//! The instruction set, chosen in one place, and arithmetic that does not depend on it.
//!
//! Sums are taken in [`LANES`] running sums side by side, on every machine: one vector of AVX-512,
//! two of AVX2, four of NEON, eight plain numbers. They are added up in one order, and every
//! multiply–add is fused, rounded once. So all instruction sets give the same bits.
//!
//! The widest set of the machine is used, unless the environment variable `LATENS_SIMD` names a
//! narrower one: `avx2` or `scalar` (slow: each multiply–add is a call). What the variable says
//! else, or of a set that the machine lacks, counts for nothing.

use std::sync::OnceLock;

use pulp::{Arch, Simd, WithSimd};

/// Virtual lanes: eight numbers, a multiple of every width and one cache line.
pub const LANES: usize = 8;

/// Eight consecutive components of a vector, one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Panel(pub [f64; LANES]);

/// Eight zeros.
pub const ZERO: Panel = Panel([0.0; LANES]);

/// The virtual lanes in vectors: as many of them as it takes, the others unused.
pub type Lanes<S> = [<S as Simd>::f64s; LANES];

/// The instruction set in use.
pub fn arch() -> Arch {
    static CHOSEN: OnceLock<Arch> = OnceLock::new();
    if let Some(arch) = forced::ARCH.get() {
        return arch;
    }
    *CHOSEN.get_or_init(|| named(std::env::var("LATENS_SIMD").as_deref().unwrap_or("")))
}

/// The set of this name, or the widest.
fn named(name: &str) -> Arch {
    match name {
        "scalar" => Arch::Scalar,
        "avx2" => narrow(),
        _ => Arch::new(),
    }
}

/// AVX2 where the machine has it.
#[cfg(target_arch = "x86_64")]
fn narrow() -> Arch {
    pulp::x86::V3::try_new().map_or_else(Arch::new, Arch::V3)
}

#[cfg(not(target_arch = "x86_64"))]
fn narrow() -> Arch {
    Arch::new()
}

/// A kernel as plain loops, compiled for each instruction set by [`dispatch`]. Multiplications and additions are
/// rounded apart, so that the order of the loops alone decides on the bits.
pub trait Loops {
    /// The loops; to be inlined always.
    fn run(self);
}

/// Runs loops on the instruction set in use.
pub fn dispatch(loops: impl Loops) {
    struct Kernel<L>(L);

    impl<L: Loops> WithSimd for Kernel<L> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            self.0.run();
        }
    }

    arch().dispatch(Kernel(loops));
}

/// A panel as vectors: one of eight lanes, two of four, …
#[inline(always)]
pub fn lanes<S: Simd>(panel: &[f64; LANES]) -> &[S::f64s] {
    S::as_simd_f64s(panel).0
}

/// The same, to write to.
#[inline(always)]
pub fn lanes_mut<S: Simd>(panel: &mut [f64; LANES]) -> &mut [S::f64s] {
    S::as_mut_simd_f64s(panel).0
}

/// The sum of the virtual lanes: i and i + 4, of these i and i + 2, of these both.
#[inline(always)]
pub fn sum<S: Simd>(simd: S, mut lanes: Lanes<S>) -> f64 {
    let mut count = LANES / S::F64_LANES;
    while count > 1 {
        count /= 2;
        for i in 0..count {
            lanes[i] = simd.add_f64s(lanes[i], lanes[i + count]);
        }
    }
    simd.reduce_sum_f64s(lanes[0])
}

/// Inner product over the shorter length.
#[inline(always)]
pub fn dot<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a, a_rest) = a[..n].as_chunks::<LANES>();
    let (b, b_rest) = b[..n].as_chunks::<LANES>();
    let mut sums = [simd.splat_f64s(0.0); LANES];
    let rests = a_rest.chunks(S::F64_LANES).zip(b_rest.chunks(S::F64_LANES));
    for (sum, (a, b)) in sums.iter_mut().zip(rests) {
        *sum = simd.mul_f64s(simd.partial_load_f64s(a), simd.partial_load_f64s(b));
    }
    for (a, b) in a.iter().zip(b) {
        for (sum, (&a, &b)) in sums.iter_mut().zip(lanes::<S>(a).iter().zip(lanes::<S>(b))) {
            *sum = simd.mul_add_f64s(a, b, *sum);
        }
    }
    sum(simd, sums)
}

/// y += a x.
#[inline(always)]
pub fn axpy<S: Simd>(simd: S, a: f64, x: &[f64], y: &mut [f64]) {
    let a = simd.splat_f64s(a);
    let (x, x_rest) = S::as_simd_f64s(x);
    let (y, y_rest) = S::as_mut_simd_f64s(y);
    for (&x, y) in x.iter().zip(y) {
        *y = simd.mul_add_f64s(a, x, *y);
    }
    if !y_rest.is_empty() {
        let (x, y) = (
            simd.partial_load_f64s(x_rest),
            simd.partial_load_f64s(y_rest),
        );
        simd.partial_store_f64s(y_rest, simd.mul_add_f64s(a, x, y));
    }
}

/// For tests: the instruction sets of this machine, and what runs on one of them.
#[doc(hidden)]
pub mod forced {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        pub(super) static ARCH: Cell<Option<Arch>> = const { Cell::new(None) };
    }

    /// The result of `work` on each set that this machine has; [`arch`] names it on this thread.
    pub fn on_each<T>(work: impl Fn() -> T) -> Vec<T> {
        let sets = [Arch::new(), narrow(), Arch::Scalar];
        let result_on = |arch: Arch| {
            ARCH.set(Some(arch));
            let result = work();
            ARCH.set(None);
            result
        };
        sets.into_iter().map(result_on).collect()
    }

    /// Fails unless all sets of this machine give the same bits.
    pub fn assert_equal_bits(work: impl Fn() -> Vec<f64>) {
        let bits = on_each(|| work().iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        assert!(bits.iter().all(|b| *b == bits[0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::WithSimd;

    struct Dot<'a>(&'a [f64], &'a [f64]);

    impl WithSimd for Dot<'_> {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f64 {
            dot(simd, self.0, self.1)
        }
    }

    /// Any length, remainders included: against a plain sum within rounding, which is at most ε
    /// for each term and for each of the additions that it goes through; and the same bits.
    #[test]
    fn inner_products_have_the_same_bits_everywhere() {
        let wave = |speed: f64| (0..50).map(move |i| (speed * f64::from(i)).sin());
        let (a, b): (Vec<f64>, Vec<f64>) = (wave(1.3).collect(), wave(0.9).collect());
        for n in 0..50 {
            let found = arch().dispatch(Dot(&a[..n], &b[..n]));
            let terms = || a[..n].iter().zip(&b).map(|(a, b)| a * b);
            let size: f64 = terms().map(f64::abs).sum();
            let plain: f64 = terms().sum();
            assert!((found - plain).abs() <= 2.0 * n as f64 * f64::EPSILON * size);
            forced::assert_equal_bits(|| vec![arch().dispatch(Dot(&a[..n], &b[..n]))]);
        }
    }

    /// A word that is not known, or no word: the widest set; never an error.
    #[test]
    fn words_name_instruction_sets() {
        let name = |arch: Arch| format!("{arch:?}");
        assert_eq!(name(named("scalar")), "Scalar");
        for word in ["", "fast", "AVX2 "] {
            assert_eq!(name(named(word)), name(Arch::new()));
        }
        assert_ne!(name(named("avx2")), "");
    }
}
