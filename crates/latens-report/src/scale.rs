//! From values to places along an axis, and its ticks.

use crate::plot::Axis;

/// Where values stand on the screen.
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    /// From the values that it must hold, with a margin, unless the axis says otherwise.
    pub fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        [from, to]: [f64; 2],
        pad: f64,
    ) -> Self {
        let usable = |v: &f64| v.is_finite() && (!axis.log || *v > 0.0);
        let place = |v: f64| if axis.log { v.log10() } else { v };
        let (low, high) = match axis.range {
            Some([low, high]) => (place(low), place(high)),
            None => {
                let ends = values.filter(usable).map(place);
                let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
                    (l.min(v), h.max(v))
                });
                let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
                let size = high - low;
                let flat = size <= 1e-12 * high.abs().max(1e-300);
                let margin = if flat {
                    high.abs().max(1.0) * 0.1
                } else {
                    pad * size
                };
                (low - margin, high + margin)
            }
        };
        Self {
            low,
            high,
            log: axis.log,
            from,
            to,
        }
    }

    /// The values at both ends; of a logarithmic axis their logarithms.
    pub fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// The place of a value.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        // far outside is as good as outside, and no number that a reader of SVG stumbles over
        let part = ((value - self.low) / (self.high - self.low)).clamp(-50.0, 50.0);
        self.from + part * (self.to - self.from)
    }

    /// Places of the ticks with their texts.
    pub fn ticks(&self, most: f64, whole: bool) -> Vec<(f64, String)> {
        if self.log {
            let (low, high) = (self.low.ceil() as i32, self.high.floor() as i32);
            if high > low {
                let step = (f64::from(high - low + 1) / most).ceil().max(1.0) as usize;
                let decades = (low..=high).step_by(step);
                return decades
                    .map(|d| (self.at(10f64.powi(d)), format!("1e{d}")))
                    .collect();
            }
            // less than two decades have no round powers: ticks as on a plain axis
            let plain = Self {
                low: 10f64.powf(self.low),
                high: 10f64.powf(self.high),
                log: false,
                ..*self
            };
            let ticks = plain.values(most, false).into_iter();
            return ticks.map(|(v, text)| (self.at(v), text)).collect();
        }
        let values = self.values(most, whole).into_iter();
        values.map(|(v, text)| (self.at(v), text)).collect()
    }

    /// Round values within a plain axis.
    fn values(&self, most: f64, whole: bool) -> Vec<(f64, String)> {
        let step = nice((self.high - self.low) / most);
        let step = if whole { step.max(1.0) } else { step };
        let (first, last) = (
            (self.low / step).ceil() as i64,
            (self.high / step).floor() as i64,
        );
        (first..=last)
            .map(|k| (k as f64 * step, tick(k as f64 * step, step)))
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below a value.
fn nice(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= least);
    factor.unwrap_or(10.0) * power
}

/// A tick's value, as precise as its distance to the next asks for.
fn tick(value: f64, step: f64) -> String {
    let value = if value.abs() < 1e-9 * step {
        0.0
    } else {
        value
    };
    let size = value.abs().max(step);
    if !(1e-3..1e5).contains(&size) {
        let digits = (size.log10().floor() - step.log10().floor()).max(0.0) as usize;
        return if value == 0.0 {
            "0".into()
        } else {
            format!("{value:.digits$e}")
        };
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let scale = |low, high| Scale {
            low,
            high,
            log: false,
            from: 0.0,
            to: 100.0,
        };
        let texts = |low, high| -> Vec<String> {
            let ticks = scale(low, high).ticks(5.0, false);
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(-70.0, 40.0), ["-50", "0"]);
        assert_eq!(texts(0.0, 4.5e-5), ["0", "1e-5", "2e-5", "3e-5", "4e-5"]);
    }
}
