//! Eigenvalues of a diagonal matrix plus one of rank one, diag(d) + ρ z zᵀ with ρ > 0: the roots of
//!
//! ```text
//! f(λ) = 1/ρ + Σ z_i²/(d_i − λ) ,
//! ```
//!
//! which rises from −∞ to ∞ between neighbouring poles, so that there is one root right of each.
//! A root is found as its distance τ from the nearer pole, which is small where the pole is near
//! and does not cancel; the distances d_i − λ to all poles come out to full relative accuracy, and
//! the vectors are orthogonal because of that (Gu and Eisenstat 1994).

/// diag(d) + ρ z zᵀ, with d rising strictly and no z of zero.
pub struct Secular<'a> {
    pub poles: &'a [f64],
    pub z: &'a [f64],
    pub rho: f64,
}

/// Steps of one root at the most: those of bisection from the whole interval to rounding.
const MOST_STEPS: usize = 1200;

/// f at a point, in two parts.
struct Value {
    f: f64,
    /// f' of the poles up to the one that counts.
    slope_before: f64,
    /// f' of those after it.
    slope_after: f64,
    /// What f is off by, in units of ε.
    error: f64,
}

/// How the root is looked for.
struct Search {
    /// The pole from which it is measured.
    origin: usize,
    /// The first of the two poles whose terms an approximation keeps.
    pole: usize,
    /// Bounds of τ.
    low: f64,
    high: f64,
    tau: f64,
}

impl Secular<'_> {
    /// The root right of pole k; `distances` are filled with d_i − λ.
    pub fn root(&self, k: usize, distances: &mut [f64]) -> f64 {
        let n = self.poles.len();
        if n == 1 {
            let tau = self.rho * self.z[0] * self.z[0];
            distances[0] = -tau;
            return self.poles[0] + tau;
        }
        let mut search = if k + 1 < n {
            self.between(k, distances)
        } else {
            self.beyond(distances)
        };
        let origin = self.poles[search.origin];
        let from = |tau: f64, distances: &mut [f64]| {
            for (distance, pole) in distances.iter_mut().zip(self.poles) {
                *distance = (pole - origin) - tau;
            }
        };
        let (mut before, mut fixed) = (f64::INFINITY, true);
        for _ in 0..MOST_STEPS {
            from(search.tau, distances);
            let value = self.value(search.pole, distances, search.tau);
            if value.f.abs() <= f64::EPSILON * value.error {
                break;
            }
            if value.f < 0.0 {
                search.low = search.tau;
            } else {
                search.high = search.tau;
            }
            // where one approximation is slow, the other is not
            if value.f.abs() > 0.1 * before {
                fixed = !fixed;
            }
            before = value.f.abs();
            let next = search.tau + self.increment(&search, &value, distances, k + 1 == n, fixed);
            let next = if next > search.low && next < search.high {
                next
            } else {
                0.5 * (search.low + search.high)
            };
            if next == search.tau || next <= search.low || next >= search.high {
                break;
            }
            search.tau = next;
        }
        from(search.tau, distances);
        origin + search.tau
    }

    /// f and its slopes; `pole` is the last of the first part.
    fn value(&self, pole: usize, distances: &[f64], tau: f64) -> Value {
        let sums = |terms: &mut dyn Iterator<Item = (&f64, &f64)>| {
            let (mut sum, mut slope, mut error) = (0.0, 0.0, 0.0);
            for (z, distance) in terms {
                let ratio = z / distance;
                sum += z * ratio;
                slope += ratio * ratio;
                error += f64::abs(sum);
            }
            (sum, slope, error)
        };
        let (z, at) = (self.z.split_at(pole + 1), distances.split_at(pole + 1));
        // each part from its far end, where the terms are small
        let (psi, low, psi_error) = sums(&mut z.0.iter().zip(at.0));
        let (phi, high, phi_error) = sums(&mut z.1.iter().zip(at.1).rev());
        let f = 1.0 / self.rho + psi + phi;
        let sizes = 8.0 * (psi.abs() + phi.abs()) + 1.0 / self.rho;
        Value {
            f,
            slope_before: low,
            slope_after: high,
            error: sizes + psi_error + phi_error + tau.abs() * (low + high),
        }
    }

    /// The zero of an approximation of f that keeps two poles.
    fn increment(
        &self,
        search: &Search,
        value: &Value,
        distances: &[f64],
        last: bool,
        fixed: bool,
    ) -> f64 {
        let (near, far) = (distances[search.pole], distances[search.pole + 1]);
        let (f, low, high) = (value.f, value.slope_before, value.slope_after);
        let slope = low + high;
        let mut c = f - near * low - far * high;
        if fixed && !last {
            // the weight of the origin's pole is its own
            let gap = self.poles[search.pole + 1] - self.poles[search.pole];
            let weight = |i: usize| (self.z[i] / distances[i]).powi(2);
            c = if search.origin == search.pole {
                f - far * slope + gap * weight(search.pole)
            } else {
                f - near * slope - gap * weight(search.pole + 1)
            };
        }
        let a = (near + far) * f - near * far * slope;
        let b = near * far * f;
        let increment = if last {
            let c = c.abs();
            let root = (a * a - 4.0 * b * c).abs().sqrt();
            if a >= 0.0 {
                (a + root) / (2.0 * c)
            } else {
                2.0 * b / (a - root)
            }
        } else {
            let root = (a * a - 4.0 * b * c).abs().sqrt();
            if a <= 0.0 {
                (a - root) / (2.0 * c)
            } else {
                2.0 * b / (a + root)
            }
        };
        // f rises: a step that does not go against its sign is none
        if increment * f < 0.0 {
            increment
        } else {
            -f / slope
        }
    }

    /// A root between two poles: from the nearer one, starting at the zero of the two terms with
    /// all others as they are in the middle.
    fn between(&self, k: usize, distances: &mut [f64]) -> Search {
        let gap = self.poles[k + 1] - self.poles[k];
        let middle = 0.5 * gap;
        for (distance, pole) in distances.iter_mut().zip(self.poles) {
            *distance = (pole - self.poles[k]) - middle;
        }
        let f = self.value(k, distances, middle).f;
        let (near, far) = (self.z[k].powi(2), self.z[k + 1].powi(2));
        let c = f - near / distances[k] - far / distances[k + 1];
        let left = f >= 0.0;
        let (a, b) = if left {
            (c * gap + near + far, near * gap)
        } else {
            (c * gap - near - far, far * gap)
        };
        let tau = if left {
            let root = (a * a - 4.0 * b * c).abs().sqrt();
            if a > 0.0 {
                2.0 * b / (a + root)
            } else {
                (a - root) / (2.0 * c)
            }
        } else {
            let root = (a * a + 4.0 * b * c).abs().sqrt();
            if a < 0.0 {
                2.0 * b / (a - root)
            } else {
                -(a + root) / (2.0 * c)
            }
        };
        let (low, high) = if left { (0.0, middle) } else { (-middle, 0.0) };
        Search {
            origin: if left { k } else { k + 1 },
            pole: k,
            low,
            high,
            tau: inside(tau, low, high),
        }
    }

    /// The root beyond the last pole, by no more than ρ zᵀz.
    fn beyond(&self, distances: &mut [f64]) -> Search {
        let last = self.poles.len() - 1;
        let square: f64 = self.z.iter().map(|z| z * z).sum();
        // rounding must not put the bound before the root
        let high = self.rho * square * (1.0 + 8.0 * f64::EPSILON * (last + 2) as f64);
        let middle = 0.5 * high;
        for (distance, pole) in distances.iter_mut().zip(self.poles) {
            *distance = (pole - self.poles[last]) - middle;
        }
        let f = self.value(last - 1, distances, middle).f;
        let (near, far) = (self.z[last - 1].powi(2), self.z[last].powi(2));
        let c = f - near / distances[last - 1] - far / distances[last];
        let gap = self.poles[last] - self.poles[last - 1];
        let (a, b) = (near + far - c * gap, far * gap);
        let root = (a * a + 4.0 * b * c).abs().sqrt();
        let tau = if a < 0.0 {
            2.0 * b / (root - a)
        } else {
            (a + root) / (2.0 * c)
        };
        Search {
            origin: last,
            pole: last - 1,
            low: 0.0,
            high,
            tau: inside(tau, 0.0, high),
        }
    }
}

/// A start between two bounds.
fn inside(tau: f64, low: f64, high: f64) -> f64 {
    if tau > low && tau < high {
        tau
    } else {
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Poles and weights of any size: the roots interlace, and by Vieta's rule their sum is
        /// Σ d + ρ zᵀz.
        #[test]
        fn roots_interlace(
            steps in prop::collection::vec(-12.0..0.0, 1..40),
            sizes in prop::collection::vec(-7.0..0.0, 40),
            rho in -6.0..1.0,
        ) {
            let mut poles = vec![];
            let mut at = 0.0;
            for step in &steps {
                at += 10f64.powf(*step) + 1e-14;
                poles.push(at);
            }
            let z: Vec<f64> = sizes[..poles.len()].iter().map(|s| 10f64.powf(*s)).collect();
            let secular = Secular { poles: &poles, z: &z, rho: 10f64.powf(rho) };
            let n = poles.len();
            let (mut sum, mut distances) = (0.0, vec![0.0; n]);
            for k in 0..n {
                let root = secular.root(k, &mut distances);
                sum += root;
                prop_assert!(distances[k] < 0.0, "right of pole {k}");
                prop_assert!(k + 1 == n || distances[k + 1] > 0.0, "left of pole {}", k + 1);
            }
            let weight = secular.rho * z.iter().map(|z| z * z).sum::<f64>();
            let expected = poles.iter().sum::<f64>() + weight;
            let size = n as f64 * (poles[n - 1] + weight);
            prop_assert!((sum - expected).abs() <= 1e-13 * size, "{sum} {expected}");
        }
    }
}
