//! Unknown constants: how an entry of θ becomes a value, and what is known of it before the data.

/// How wide the prior of a constant is, in units of its scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prior {
    /// A guess and its scale: as wide as the prior of everything that is learned.
    Rough,
    /// A standard deviation that somebody states.
    Stated,
    /// The same everywhere between two bounds, `scale` away from the guess.
    Uniform,
}

/// Over what a constant has values of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Varies {
    /// Each record has a value of its own, drawn from a population.
    Record,
    /// Records of one group share a value; those of groups are drawn from a population.
    Group,
    /// It walks at random within a record.
    Slowly,
}

impl Varies {
    /// As written in `varies`.
    pub const NAMES: [(&'static str, Varies); 3] = [
        ("record", Varies::Record),
        ("group", Varies::Group),
        ("slowly", Varies::Slowly),
    ];
}

/// θ's variance under a uniform prior. The bounds are at ±1: between them a normal density of this
/// variance falls by 5·10⁻⁵ of itself.
const UNIFORM_VARIANCE: f64 = 1e4;

/// An unknown constant p of the model: p = guess + scale·θ, or guess·exp(scale/guess·θ).
#[derive(Debug, Clone)]
pub struct Unknown {
    pub name: String,
    pub unit: String,
    /// Its value at θ = 0.
    pub guess: f64,
    /// How far off the guess may roughly be.
    pub scale: f64,
    /// Whether it must stay above zero: the second form.
    pub positive: bool,
    /// It is never below this; −∞ where nothing is said.
    pub min: f64,
    /// It is never above this; ∞ where nothing is said.
    pub max: f64,
    /// How wide its prior is.
    pub prior: Prior,
    /// Whether it is one number for all records. Where it varies, θ has its mean, and a state its
    /// difference from that: p = guess + scale·θ + Δ, or guess·exp(scale/guess·θ + Δ). Where the groups
    /// are known, θ has the difference of each, see [`Model::for_groups`](crate::Model::for_groups).
    pub varies: Option<Varies>,
}

/// A constant of `[unknowns]` whose value is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed {
    pub name: String,
    pub unit: String,
    pub value: f64,
}

impl Unknown {
    /// The constant's value at its entry of θ.
    ///
    /// ```
    /// use latens_model::{Prior, Unknown};
    ///
    /// let gain = Unknown {
    ///     name: "gain".into(),
    ///     unit: String::new(),
    ///     guess: 2.0,
    ///     scale: 0.5,
    ///     positive: true,
    ///     min: f64::NEG_INFINITY,
    ///     max: 3.0,
    ///     prior: Prior::Rough,
    ///     varies: None,
    /// };
    /// assert_eq!(gain.value(0.0), 2.0);
    /// assert!(gain.value(-100.0) > 0.0);
    /// assert_eq!(gain.value(100.0), 3.0);
    /// ```
    pub fn value(&self, theta: f64) -> f64 {
        self.formula(theta).clamp(self.min, self.max)
    }

    fn formula(&self, theta: f64) -> f64 {
        if self.positive {
            self.guess * (self.scale / self.guess * theta).exp()
        } else {
            self.guess + self.scale * theta
        }
    }

    /// Its value where it differs from its mean, as the state says that has the difference.
    pub fn value_at(&self, theta: f64, difference: f64) -> f64 {
        if self.positive {
            self.value(theta) * difference.exp()
        } else {
            self.value(theta) + difference
        }
    }

    /// What a unit of θ is in the unit of that state.
    pub fn difference_scale(&self) -> f64 {
        if self.positive {
            self.scale / self.guess
        } else {
            self.scale
        }
    }

    /// Its derivative by that entry.
    pub fn slope(&self, theta: f64) -> f64 {
        if self.positive {
            self.value(theta) * self.scale / self.guess
        } else {
            self.scale
        }
    }

    /// Its value and standard deviation, of its entry of θ and the variance of that.
    pub fn value_and_std(&self, theta: f64, variance: f64) -> (f64, f64) {
        let std = self.slope(theta).abs() * variance.max(0.0).sqrt();
        (self.value(theta), std)
    }

    /// The entry of θ at which it has a value; −∞ where no positive constant has it.
    pub fn entry(&self, value: f64) -> f64 {
        if !self.positive {
            (value - self.guess) / self.scale
        } else if value > 0.0 {
            (value / self.guess).ln() * self.guess / self.scale
        } else {
            f64::NEG_INFINITY
        }
    }

    /// Whether there is a value that it cannot have.
    pub fn is_bounded(&self) -> bool {
        self.min > f64::NEG_INFINITY || self.max < f64::INFINITY
    }

    /// The least and the greatest entry of θ. No rounding takes the constant over a bound there, so
    /// that an equation as √(p − min) stays a number.
    pub fn bounds(&self) -> (f64, f64) {
        let (mut least, mut most) = (self.entry(self.min), self.entry(self.max));
        while least.is_finite() && self.formula(least) < self.min {
            least = least.next_up();
        }
        while most.is_finite() && self.formula(most) > self.max {
            most = most.next_down();
        }
        (least, most)
    }

    /// The variance of its entry of θ before the data, where that of a rough guess is given.
    pub fn prior_variance(&self, rough: f64) -> f64 {
        match self.prior {
            Prior::Rough => rough,
            Prior::Stated => 1.0,
            Prior::Uniform => UNIFORM_VARIANCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the least and the greatest entry of θ the equations' own formula is within the bounds, to the
    /// last bit, and not far from them.
    #[test]
    fn rounding_leaves_no_constant_outside() {
        for k in 1..2000 {
            let wave = |i: u32| f64::from(k * i).sin();
            let positive = k % 2 == 0;
            let guess = if positive {
                1.3 + wave(1)
            } else {
                5.0 * wave(1)
            };
            let unknown = Unknown {
                name: String::new(),
                unit: String::new(),
                guess,
                scale: 1.1 + wave(2),
                positive,
                min: guess - 0.2 * (1.01 + wave(3)) * guess.abs(),
                max: guess + (1.01 + wave(5)) * guess.abs(),
                prior: Prior::Rough,
                varies: None,
            };
            let (least, most) = unknown.bounds();
            let (low, high) = (unknown.formula(least), unknown.formula(most));
            assert!(low >= unknown.min && high <= unknown.max, "{unknown:?}");
            let near = 1e-14 * (1.0 + guess.abs() + unknown.scale) * (1.0 + high.abs());
            assert!(low - unknown.min < near && unknown.max - high < near);
        }
    }
}
