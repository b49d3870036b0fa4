//! Where a network was trained: the arguments that it met, and how far others are from them.
//!
//! A network says nothing about arguments that it never met, however sure its weights are. Some
//! of those met are kept, spread out so that every other is near one of them (farthest-point
//! sampling), all in the network's own scale.

use serde::{Deserialize, Serialize};

use crate::filter::Smoothed;
use crate::model::System;
use crate::numerics::Trajectory;
use crate::record::Record;

/// Points kept at the most.
const MOST_POINTS: usize = 500;
/// Samples looked at.
const MOST_SAMPLES: usize = 20_000;
/// A point counts as visited within this many times the distance between those kept, and at least
/// within this fraction of an argument's half range.
const REACH_DISTANCES: f64 = 2.0;
const NEAR_RANGE_PART: f64 = 0.02;

/// Arguments that one network met, scaled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Region {
    pub points: Vec<Vec<f64>>,
    /// Every argument met is within it of a point.
    pub radius: f64,
}

impl Region {
    /// How far arguments are from those met; above 1 the network extrapolates. Infinite where one
    /// is not a number.
    pub fn distance(&self, scaled: &[f64]) -> f64 {
        let nearest = self.points.iter().map(|p| square(p, scaled));
        nearest.fold(f64::INFINITY, f64::min).sqrt() / self.reach()
    }

    /// As far from a point arguments count as visited.
    pub fn reach(&self) -> f64 {
        (REACH_DISTANCES * self.radius).max(NEAR_RANGE_PART)
    }

    fn cover(met: &[Vec<f64>]) -> Self {
        let mut far: Vec<f64> = vec![f64::INFINITY; met.len()];
        let (mut points, mut next) = (Vec::new(), 0);
        let mut radius = 0.0;
        while points.len() < MOST_POINTS && !met.is_empty() {
            points.push(met[next].clone());
            for (f, m) in far.iter_mut().zip(met) {
                *f = f.min(square(m, &met[next]));
            }
            let (at, &furthest) = far
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .expect("not empty");
            (next, radius) = (at, furthest.sqrt());
            if furthest == 0.0 {
                break;
            }
        }
        Self { points, radius }
    }
}

fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The arguments of each network along trajectories, scaled.
pub fn met(
    system: &System,
    record: &Record,
    states: &Trajectory,
    visit: &mut dyn FnMut(usize, usize, &[f64]),
) {
    let mut ws = system.workspace();
    let zero = vec![0.0; system.parameters()];
    let every = (record.len() / MOST_SAMPLES).max(1);
    for k in (0..record.len()).step_by(every) {
        let at = record.point(k, states.row(k), &zero);
        system.visit_arguments(&mut ws, at, |network, values| {
            let scaling = &system.networks()[network].scaling;
            let scaled = values.iter().zip(&scaling.center).zip(&scaling.scale);
            let scaled: Vec<f64> = scaled.map(|((v, c), s)| (v - c) / s).collect();
            visit(k, network, &scaled);
        });
    }
}

/// The regions that training visited, one for each network.
pub fn visited(system: &System, records: &[Record], smoothed: &[Smoothed]) -> Vec<Region> {
    let mut all: Vec<Vec<Vec<f64>>> = vec![Vec::new(); system.networks().len()];
    for (record, smoothed) in records.iter().zip(smoothed) {
        met(
            system,
            record,
            &smoothed.states,
            &mut |_, network, scaled| {
                all[network].push(scaled.to_vec());
            },
        );
    }
    all.iter().map(|met| Region::cover(met)).collect()
}

/// The part of a trajectory on which some network meets arguments unlike any in training; a network
/// without a region was never asked.
pub fn outside(system: &System, record: &Record, states: &Trajectory, regions: &[Region]) -> f64 {
    let (mut samples, mut left) = (0usize, 0usize);
    let mut last = usize::MAX;
    let mut counted = usize::MAX;
    met(system, record, states, &mut |k, network, scaled| {
        if k != last {
            samples += 1;
            last = k;
        }
        let far = |region: &Region| region.distance(scaled) > 1.0;
        if counted != k && regions.get(network).is_some_and(far) {
            left += 1;
            counted = k;
        }
    });
    left as f64 / samples.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on a circle: itself is inside, its middle and its surroundings are not.
    #[test]
    fn a_circle_does_not_cover_its_disk() {
        let at = |angle: f64, radius: f64| vec![radius * angle.cos(), radius * angle.sin()];
        let circle: Vec<Vec<f64>> = (0..1000).map(|k| at(f64::from(k) * 0.0063, 1.0)).collect();
        let region = Region::cover(&circle);
        assert_eq!(region.points.len(), MOST_POINTS);
        assert!(circle.iter().all(|p| region.distance(p) <= 1.0));
        for (radius, inside) in [
            (0.0, false),
            (0.8, false),
            (0.99, true),
            (1.01, true),
            (1.1, false),
        ] {
            assert_eq!(region.distance(&at(2.0, radius)) <= 1.0, inside, "{radius}");
        }
        assert!(region.distance(&[f64::NAN, 0.0]) > 1.0);
    }
}
