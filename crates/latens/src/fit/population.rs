//! How constants vary, as facts: the population, and each record's own value.

use rayon::prelude::*;

use super::facts::{OwnValue, Population};
use super::learn::Data;
use crate::filter::Smoother;
use crate::filter::bands::Sum;
use crate::look::prior::starting_at;
use crate::model::Varies;
use crate::numerics::linalg::cholesky::Factor;
use crate::numerics::linalg::matrix::Matrix;
use crate::solve::batch::population::{
    LEAST_SPREAD_PART, LikelyVariance, RecordStart, Told, spread, spread_of_groups,
};
use crate::solve::{Learned, Problem};

/// Each constant that varies, by its place, and how.
pub(super) fn of(problem: &Problem, data: Data, learned: &Learned) -> Vec<(usize, Population)> {
    let mut populations = by_state(problem, data, learned);
    populations.extend(by_group(problem, data, learned));
    populations
}

/// Those whose groups' differences are entries of θ.
fn by_group(problem: &Problem, data: Data, learned: &Learned) -> Vec<(usize, Population)> {
    let model = problem.model;
    let Some(evidence) = &learned.evidence else {
        return vec![];
    };
    let packed = learned.covariance.clone().to_packed();
    let entry = |i: usize, j: usize| packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
    let population = |(place, entries): (usize, std::ops::Range<usize>)| {
        let (unknown, theta) = (&model.unknowns[place], &learned.theta);
        let (assumed, scale) = (evidence.prior[entries.start], unknown.difference_scale());
        let differences = Matrix::from_fn(entries.len(), entries.len(), |i, j| {
            entry(entries.start + i, entries.start + j)
        });
        let least = LEAST_SPREAD_PART * LEAST_SPREAD_PART;
        let LikelyVariance { low, high, .. } =
            spread_of_groups(&differences, &theta[entries.clone()], assumed, least);
        let left = left_of_each(entries.len() + 1, |i, j| {
            let place = |k: usize| if k == 0 { place } else { entries.start + k - 1 };
            entry(place(i), place(j))
        });
        let values = model.groups().iter().zip(entries.clone()).enumerate();
        let values = values.map(|(k, (label, i))| {
            let variance = entry(place, place) + 2.0 * entry(place, i) + entry(i, i);
            let (value, std) = unknown.value_and_std(theta[place] + theta[i], variance);
            let members = data.train.iter();
            let members = members.filter(|s| s.group.as_ref() == Some(label));
            OwnValue {
                file: label.clone(),
                files: members.map(|s| s.record.name.clone()).collect(),
                value,
                std,
                range: (value, value),
                shrinkage: (left[k + 1] / assumed).clamp(0.0, 1.0),
            }
        });
        let population = Population {
            varies: Varies::Group,
            relative: unknown.positive,
            spread: assumed.sqrt() * scale,
            spread_interval: high.is_finite().then(|| {
                let low = if low > 1.1 * least { low.sqrt() } else { 0.0 };
                (low * scale, high.sqrt() * scale)
            }),
            pace: 0.0,
            records: values.collect(),
        };
        (place, population)
    };
    model.group_entries().into_iter().map(population).collect()
}

/// The variance that is left of each of so many variables where the others are known.
fn left_of_each(count: usize, covariance: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let matrix = Matrix::from_fn(count, count, &covariance);
    match Factor::new(matrix) {
        Some(factor) => {
            let left = |i: usize| {
                let mut unit = vec![0.0; count];
                unit[i] = 1.0;
                1.0 / factor.solve(&unit)[i]
            };
            (0..count).map(left).collect()
        }
        None => (0..count).map(|i| covariance(i, i)).collect(),
    }
}

/// Those whose difference is a state.
fn by_state(problem: &Problem, data: Data, learned: &Learned) -> Vec<(usize, Population)> {
    let (model, stepper) = (problem.model, problem.stepper);
    let varying: Vec<(usize, usize)> = model.varying().collect();
    let sums = varying.iter().map(|&(entry, state)| Sum {
        entry,
        factor: model.unknowns[entry].difference_scale(),
        state,
    });
    let sums: Vec<Sum> = sums.collect();
    if sums.is_empty() {
        return vec![];
    }
    let values_of_record = |i: usize| {
        let (record, states) = (&problem.records[i], &learned.smoothed[i].states);
        let noise = starting_at(stepper, record, &learned.noise);
        let inflated = noise.inflated(stepper, learned.variance_inflation);
        let smoother = Smoother {
            stepper,
            record,
            theta: &learned.theta,
            noise: &inflated,
        };
        let deviations = smoother.sums(states, &learned.draws, &sums);
        let values = varying.iter().enumerate().map(|(k, &(entry, state))| {
            let unknown = &model.unknowns[entry];
            let at = match unknown.varies {
                Some(Varies::Slowly) => record.len() / 2,
                _ => 0,
            };
            let value_at = |x: f64| unknown.value_at(learned.theta[entry], x);
            let start = RecordStart::of(&smoother, states, state);
            let middle = value_at(states.row(at)[state]);
            let along = states.column(state).map(value_at);
            let std = deviations.row(at)[k] * if unknown.positive { middle } else { 1.0 };
            let value = OwnValue {
                file: data.train[i].record.name.clone(),
                files: vec![],
                value: middle,
                std,
                range: along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                    (low.min(v), high.max(v))
                }),
                shrinkage: (start.variance / noise.start[state]).clamp(0.0, 1.0),
            };
            (start.told, value)
        });
        values.collect::<Vec<_>>()
    };
    let records: Vec<Vec<(Option<Told>, OwnValue)>> = (0..problem.records.len())
        .into_par_iter()
        .map(values_of_record)
        .collect();
    let population = |(k, &(entry, state)): (usize, &(usize, usize))| {
        let unknown = &model.unknowns[entry];
        let varies = unknown.varies.unwrap_or(Varies::Record);
        let told: Vec<Told> = records.iter().filter_map(|r| r[k].0).collect();
        let least = (LEAST_SPREAD_PART * unknown.difference_scale()).powi(2);
        let (low, high) = match varies {
            Varies::Record | Varies::Group => {
                let LikelyVariance { low, high, .. } = spread(&told, least);
                (low, high)
            }
            Varies::Slowly => (0.0, f64::INFINITY),
        };
        // below the least spread that is told from none, it may be none
        let low = if low > 1.1 * least { low.sqrt() } else { 0.0 };
        let population = Population {
            varies,
            relative: unknown.positive,
            spread: learned.noise.start[state].sqrt(),
            spread_interval: high.is_finite().then(|| (low, high.sqrt())),
            pace: match varies {
                Varies::Slowly => (learned.noise.process[state] / stepper.dt()).sqrt(),
                Varies::Record | Varies::Group => 0.0,
            },
            records: records.iter().map(|r| r[k].1.clone()).collect(),
        };
        (entry, population)
    };
    varying.iter().enumerate().map(population).collect()
}
