//! Fewer samples that look like all of them: of every stretch, those with the least and the greatest
//! value of each signal, so that no spike is lost.

/// The samples to keep of several signals of one length: at most `budget`, all where they are few.
pub fn rows(signals: &[&[f64]], budget: usize) -> Vec<usize> {
    let samples = signals.first().map_or(0, |s| s.len());
    if samples <= budget {
        return (0..samples).collect();
    }
    let mut stretches = budget / 2;
    loop {
        let kept = extremes(signals, samples, stretches.max(1));
        // signals that part company have extremes of their own
        if kept.len() <= budget || stretches <= 1 {
            return kept;
        }
        stretches = stretches * budget / kept.len() * 19 / 20;
    }
}

fn extremes(signals: &[&[f64]], samples: usize, stretches: usize) -> Vec<usize> {
    let mut kept = vec![0, samples - 1];
    for s in 0..stretches {
        let range = s * samples / stretches..(s + 1) * samples / stretches;
        for signal in signals {
            let mut ends: Option<(usize, usize)> = None;
            for k in range.clone().filter(|&k| signal[k].is_finite()) {
                let (low, high) = ends.get_or_insert((k, k));
                if signal[k] < signal[*low] {
                    *low = k;
                }
                if signal[k] > signal[*high] {
                    *high = k;
                }
            }
            kept.extend(ends.map(|(low, high)| [low, high]).into_iter().flatten());
        }
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_all_kept() {
        assert_eq!(rows(&[&[1.0, 2.0, f64::NAN]], 3), [0, 1, 2]);
        assert!(rows(&[], 10).is_empty());
    }

    /// A spike of one sample in each of two signals of a million survives a thousandfold thinning,
    /// and the budget holds.
    #[test]
    fn spikes_survive() {
        let wave = |k: usize| (k as f64 * 1e-4).sin();
        let mut wave_values: Vec<f64> = (0..1_000_000).map(wave).collect();
        let mut squares: Vec<f64> = wave_values.iter().map(|v| -v * v).collect();
        (wave_values[123_456], squares[654_321], wave_values[5]) = (9.0, -9.0, f64::NAN);
        let kept = rows(&[&wave_values, &squares], 1000);
        assert!(kept.len() <= 1000, "{}", kept.len());
        assert!(kept.windows(2).all(|w| w[0] < w[1]));
        for k in [0, 123_456, 654_321, 999_999] {
            assert!(kept.contains(&k), "{k}");
        }
    }
}
