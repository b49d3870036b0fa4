//! Which fits a comparison is fair to: those that learned from the same readings, in the same units.

use std::collections::BTreeMap;

use super::{Fit, Track};
use crate::Error;

/// Refuses fits that no comparison is fair to.
pub(super) fn comparable(first: &Fit, other: &Fit) -> Result<(), Error> {
    let (a, b) = (&first.name, &other.name);
    let refuse = |why: String| {
        Err(Error::Setting(format!(
            "{a} and {b} cannot be compared: {why}"
        )))
    };
    for fit in [first, other] {
        if fit.facts.stopped {
            return refuse(format!(
                "{} was stopped before its time; go on with it first (latens fit --resume)",
                fit.name
            ));
        }
        if fit.stream.is_some() {
            return refuse(format!(
                "{} is the snapshot of a stream, which has learned from other samples; compare the fits",
                fit.name
            ));
        }
    }
    let units = |fit: &Fit| -> BTreeMap<String, String> {
        let channels = fit.model.measurements.iter();
        channels.map(|m| (m.name.clone(), m.unit.clone())).collect()
    };
    let (units_of_first, units_of_other) = (units(first), units(other));
    let listed =
        |names: &BTreeMap<String, String>| names.keys().cloned().collect::<Vec<_>>().join(", ");
    if units_of_first.keys().ne(units_of_other.keys()) {
        return refuse(format!(
            "one measures {}, the other {}; give both the same [measurements]",
            listed(&units_of_first),
            listed(&units_of_other)
        ));
    }
    if let Some((name, (x, y))) = units_of_first
        .iter()
        .map(|(n, x)| (n, (x, &units_of_other[n])))
        .find(|(_, (x, y))| x != y)
    {
        let shown = |unit: &str| {
            if unit.is_empty() {
                "no unit".into()
            } else {
                format!("[{unit}]")
            }
        };
        return refuse(format!(
            "{name} is in {} and in {}; give both the same unit",
            shown(x),
            shown(y)
        ));
    }
    let (first_unit, other_unit) = (&first.model.time_unit, &other.model.time_unit);
    if first_unit != other_unit {
        return refuse(format!(
            "time is in {first_unit} and in {other_unit}; give both the same unit"
        ));
    }
    let (first_tracks, other_tracks) = (first.trained(), other.trained());
    let files = |fit: &Fit, tracks: &[&Track]| {
        let files = tracks.iter().map(|t| fit.facts_of(t).file.clone());
        files.collect::<Vec<_>>().join(", ")
    };
    let (first_files, other_files) = (files(first, &first_tracks), files(other, &other_tracks));
    let sums = |fit: &Fit, tracks: &[&Track]| -> Vec<String> {
        let mut sums: Vec<String> = tracks
            .iter()
            .map(|t| fit.facts_of(t).sha256.clone())
            .collect();
        sums.sort();
        sums
    };
    if first_tracks.len() != other_tracks.len()
        || !same_readings(first, &first_tracks, other, &other_tracks)
    {
        let aside = |fit: &Fit| fit.facts.suspects.len();
        if sums(first, &first_tracks) == sums(other, &other_tracks)
            && aside(first) + aside(other) > 0
        {
            return refuse(format!(
                "they set aside other readings of the same records ({} and {}); fit both with ⟦keep_suspects⟧, or with a record from which the wrong readings are taken out",
                aside(first),
                aside(other)
            ));
        }
        return refuse(format!(
            "they learned from other readings ({first_files}; {other_files}); fit both on the same records, with the same tail kept to validate with"
        ));
    }
    Ok(())
}

/// Whether two fits learned from the same readings at the same times, in the same order.
fn same_readings(a: &Fit, a_tracks: &[&Track], b: &Fit, b_tracks: &[&Track]) -> bool {
    let place = |fit: &Fit, name: &str| fit.model.measurements.iter().position(|m| m.name == name);
    a_tracks.iter().zip(b_tracks).all(|(x, y)| {
        let same = |p: f64, q: f64| p == q || (p.is_nan() && q.is_nan());
        let times = x.record.time == y.record.time;
        let channels = a.model.measurements.iter().all(|m| {
            let (Some(i), Some(j)) = (place(a, &m.name), place(b, &m.name)) else {
                return false;
            };
            let pairs = x.record.output_column(i).zip(y.record.output_column(j));
            pairs.into_iter().all(|(p, q)| same(p, q))
        });
        times && channels
    })
}
