//! How constants vary, as facts: the population, and each record's own value.

use rayon::prelude::*;

use super::facts::{OwnValue, Population};
use super::learn::Data;
use crate::filter::Smoother;
use crate::filter::bands::Sum;
use crate::look::prior::starting_at;
use crate::model::Varies;
use crate::solve::batch::population::{LEAST, Told, spread};
use crate::solve::{Learned, Problem};

/// Each constant that varies, by its place, and how.
pub(super) fn of(problem: &Problem, data: Data, learned: &Learned) -> Vec<(usize, Population)> {
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
    let one = |i: usize| {
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
        let own = varying.iter().enumerate().map(|(k, &(entry, state))| {
            let unknown = &model.unknowns[entry];
            let at = match unknown.varies {
                Some(Varies::Slowly) => record.len() / 2,
                _ => 0,
            };
            let value = |x: f64| unknown.value_at(learned.theta[entry], x);
            let (told, left) = Told::of(&smoother, states, state);
            let middle = value(states.row(at)[state]);
            let along = states.column(state).map(value);
            let std = deviations.row(at)[k] * if unknown.positive { middle } else { 1.0 };
            let own = OwnValue {
                file: data.train[i].record.name.clone(),
                value: middle,
                std,
                range: along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                    (low.min(v), high.max(v))
                }),
                shrinkage: (left / noise.start[state]).clamp(0.0, 1.0),
            };
            (told, own)
        });
        own.collect::<Vec<_>>()
    };
    let records: Vec<Vec<(Option<Told>, OwnValue)>> = (0..problem.records.len())
        .into_par_iter()
        .map(one)
        .collect();
    let population = |(k, &(entry, state)): (usize, &(usize, usize))| {
        let unknown = &model.unknowns[entry];
        let varies = unknown.varies.unwrap_or(Varies::Record);
        let told: Vec<Told> = records.iter().filter_map(|r| r[k].0).collect();
        let least = (LEAST * unknown.difference_scale()).powi(2);
        let (low, high) = match varies {
            Varies::Record => spread(&told, least).1,
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
                Varies::Record => 0.0,
            },
            records: records.iter().map(|r| r[k].1.clone()).collect(),
        };
        (entry, population)
    };
    varying.iter().enumerate().map(population).collect()
}
