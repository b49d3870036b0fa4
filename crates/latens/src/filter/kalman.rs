//! The state filter: predict through F_x, correct channel by channel.
//!
//! ```text
//! P⁻ = F_x P F_xᵀ + Q_x
//! s = H P⁻ Hᵀ + r,  K = P⁻Hᵀ/s
//! x ← x + K ν,      P ← (I − K H) P⁻ (I − K H)ᵀ + K r Kᵀ     (Joseph form)
//! ```
//!
//! With a diagonal R_y the channels of a sample can be taken one after another, each a division
//! instead of a matrix inverse; the result is the same and a missing channel is simply left out.

use crate::model::small::{SeeingOne, mirror, sandwich};

/// Mean and covariance of the states.
#[derive(Debug, Clone)]
pub struct StateFilter {
    pub mean: Vec<f64>,
    /// P, row by row; symmetric by construction.
    pub covariance: Vec<f64>,
    /// K of the last correction.
    pub gain: Vec<f64>,
    scratch: Vec<f64>,
    /// States that the last channel sees.
    seen: Vec<usize>,
}

impl StateFilter {
    /// Starts from a mean and variances.
    pub fn new(mean: &[f64], variances: &[f64]) -> Self {
        let n = mean.len();
        let mut covariance = vec![0.0; n * n];
        for (i, v) in variances.iter().enumerate() {
            covariance[i * n + i] = *v;
        }
        Self {
            mean: mean.to_vec(),
            covariance,
            gain: vec![0.0; n],
            scratch: vec![0.0; n * n.max(2)],
            seen: Vec::with_capacity(n),
        }
    }

    /// P ← F P Fᵀ + Q over a way of so many sample times; the mean is the caller's to move.
    pub fn predict(&mut self, f_x: &[f64], process: &[f64], samples: f64) {
        let n = self.mean.len();
        sandwich(f_x, &mut self.covariance, &mut self.scratch[..n * n], n);
        for (i, q) in process.iter().enumerate() {
            self.covariance[i * n + i] += q * samples;
        }
    }

    /// Corrects with one channel of row H, innovation ν = y − (predicted value) and variance r.
    /// Returns s, the innovation's variance; ν²/s is the channel's share of the NIS.
    pub fn correct(&mut self, h: &[f64], innovation: f64, r: f64) -> f64 {
        let s = self.correct_lower(h, innovation, r);
        self.mirror();
        s
    }

    /// The same on the lower triangle of P alone: after the last channel of a sample, [`StateFilter::mirror`].
    pub fn correct_lower(&mut self, h: &[f64], innovation: f64, r: f64) -> f64 {
        let n = self.mean.len();
        let (p, gain, seen) = (&mut self.covariance, &mut self.gain, &mut self.seen);
        seen.clear();
        seen.extend((0..n).filter(|&j| h[j] != 0.0));
        if let [only] = seen[..] {
            let before = &mut self.scratch[..n];
            before[..=only].copy_from_slice(&p[only * n..=only * n + only]);
            for (i, x) in before.iter_mut().enumerate().skip(only + 1) {
                *x = p[i * n + only];
            }
            for (k, x) in gain.iter_mut().zip(&*before) {
                *k = x * h[only];
            }
        } else {
            mirror(p, n);
            for (k, row) in gain.iter_mut().zip(p.chunks_exact(n)) {
                *k = seen.iter().map(|&j| row[j] * h[j]).sum();
            }
        }
        let s = seen.iter().map(|&j| gain[j] * h[j]).sum::<f64>() + r;
        for (x, k) in self.mean.iter_mut().zip(gain.iter_mut()) {
            *k /= s;
            *x += *k * innovation;
        }
        // Written out, the Joseph form collapses to P − KHP, which loses definiteness where r is
        // tiny; the product itself does not: it is a sum of squares whatever the rounding. A row
        // of I − KH has entries on the diagonal and at the states that the channel sees.
        if let [only] = seen[..] {
            self.correct_seeing(only, h[only], r);
        } else {
            self.correct_covariance(h, r);
        }
        s
    }

    /// The upper triangle of P from the lower one.
    pub fn mirror(&mut self) {
        mirror(&mut self.covariance, self.mean.len());
    }

    fn correct_covariance(&mut self, h: &[f64], r: f64) {
        let n = self.mean.len();
        let (p, gain, seen) = (&mut self.covariance, &self.gain, &self.seen);
        let scratch = &mut self.scratch[..n * n];
        let others = |i: usize| seen.iter().copied().filter(move |&j| j != i);
        for (i, row) in scratch.chunks_exact_mut(n).enumerate() {
            let kept = 1.0 - gain[i] * h[i];
            for (x, p) in row.iter_mut().zip(&p[i * n..]) {
                *x = kept * p;
            }
            for j in others(i) {
                let factor = gain[i] * h[j];
                for (x, p) in row.iter_mut().zip(&p[j * n..]) {
                    *x -= factor * p;
                }
            }
        }
        for (i, row) in scratch.chunks_exact(n).enumerate() {
            for j in 0..=i {
                let kept = 1.0 - gain[j] * h[j];
                let rest: f64 = others(j).map(|m| gain[j] * h[m] * row[m]).sum();
                let value = kept * row[j] - rest + r * (gain[i] * gain[j]);
                p[i * n + j] = value;
                p[j * n + i] = value;
            }
        }
    }

    /// The same for a channel that sees one state, as most do: each row of P changes by that
    /// state's alone, which the scratch begins with.
    fn correct_seeing(&mut self, state: usize, h: f64, r: f64) {
        let n = self.mean.len();
        let (before, scaled) = self.scratch.split_at_mut(n);
        for (x, k) in scaled.iter_mut().zip(&self.gain) {
            *x = k * h;
        }
        SeeingOne {
            covariance: &mut self.covariance,
            gain: &self.gain,
            scaled: &scaled[..n],
            before,
            state,
            variance: r,
        }
        .correct();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With θ known the recursion is the Kalman filter: channel by channel equals the textbook
    /// update with the matrix inverse, in information form (P⁻¹ + HᵀR⁻¹H).
    #[test]
    fn channel_by_channel_equals_the_information_form() {
        use crate::model::small::{apply, dot, identity, solve};
        let f = [1.0, 0.1, 0.0, -0.2, 0.9, 0.3, 0.1, 0.0, 1.1];
        let h = [1.0, 0.0, 0.5, 0.0, 2.0, -1.0];
        let (q, r) = ([0.01, 0.02, 0.3], [0.5, 0.1]);
        let mut filter = StateFilter::new(&[1.0, -1.0, 0.5], &[1.0, 2.0, 3.0]);
        for step in 0..20 {
            filter.predict(&f, &q, 1.0);
            let mut mean = vec![0.0; 3];
            apply(&f, &filter.mean, &mut mean);
            filter.mean.copy_from_slice(&mean);
            let y = [f64::from(step).sin(), 0.3];
            // oracle
            let (mut p, mut information) = (filter.covariance.clone(), identity(3));
            solve(&mut p, &mut information, 3).unwrap();
            let mut right = vec![0.0; 3];
            apply(&information, &mean, &mut right);
            for c in 0..2 {
                for i in 0..3 {
                    right[i] += h[c * 3 + i] * y[c] / r[c];
                    for j in 0..3 {
                        information[i * 3 + j] += h[c * 3 + i] * h[c * 3 + j] / r[c];
                    }
                }
            }
            let (mut a, mut covariance) = (information.clone(), identity(3));
            solve(&mut a, &mut covariance, 3).unwrap();
            solve(&mut information, &mut right, 3).unwrap();
            // ours
            for c in 0..2 {
                let row = &h[c * 3..(c + 1) * 3];
                let innovation = y[c] - dot(row, &filter.mean);
                filter.correct(row, innovation, r[c]);
            }
            for i in 0..3 {
                assert!((filter.mean[i] - right[i]).abs() < 1e-12);
                for j in 0..3 {
                    assert!((filter.covariance[i * 3 + j] - covariance[i * 3 + j]).abs() < 1e-12);
                    assert_eq!(filter.covariance[i * 3 + j], filter.covariance[j * 3 + i]);
                }
            }
        }
    }

    /// The short way for a channel that sees one state is the long one to the last bit.
    #[test]
    fn a_channel_that_sees_one_state_is_no_special_case() {
        for n in [1, 2, 5] {
            for seen in 0..n {
                let wave = |i: usize| (1.7 * i as f64).sin();
                let root: Vec<f64> = (0..n * n).map(wave).collect();
                let mut covariance = crate::model::small::identity(n);
                let mut scratch = vec![0.0; n * n];
                sandwich(&root, &mut covariance, &mut scratch, n);
                let mut h = vec![0.0; n];
                h[seen] = -1.3;
                let mut short = StateFilter::new(&vec![0.0; n], &vec![0.0; n]);
                short.covariance = covariance;
                let mut long = short.clone();
                short.correct(&h, 0.4, 1e-3);
                long.seen = vec![seen];
                long.gain = short.gain.clone();
                long.correct_covariance(&h, 1e-3);
                assert_eq!(short.covariance, long.covariance, "{n} states, {seen} seen");
            }
        }
    }
}
