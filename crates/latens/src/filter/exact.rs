//! The trajectory under (all but) exact physics: where a free run starts that is scored.

use super::smoother::{Smoothed, Smoother};
use crate::numerics::Trajectory;
use crate::numerics::objective::Noise;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// The trajectory under (all but) exact physics that fits the record best: its start is the
/// initial state from which a free run is scored.
///
/// The process noise is tightened from `noise`'s in decades, each stage starting from the last:
/// the loose stages find the trajectory without simulating anything, the tight ones turn it into
/// a simulation. It therefore survives an unstable plant, where single shooting does not.
pub fn exact_trajectory(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    noise: &Noise,
    from: &Smoothed,
) -> Trajectory {
    const DECADES: i32 = 7;
    // on the way down a stage only has to come near its minimum; the last one has to reach it
    const STAGE_STEPS: usize = 4;
    const END_STEPS: usize = 10;
    /// Exact enough: this part of the misfit.
    const EXACT_DEFECT_RATIO: f64 = 1e-4;
    let mut states = from.states.clone();
    for decade in 1..=DECADES {
        let factor = 10f64.powi(-2 * decade);
        let tight = noise.tightened(stepper, factor);
        let smoother = Smoother {
            stepper,
            record,
            theta,
            noise: &tight,
        };
        let (next, cost) = smoother.minimise(states.clone(), STAGE_STEPS);
        let exact = cost.physics < EXACT_DEFECT_RATIO * cost.data || decade == DECADES;
        let next = if exact {
            smoother.improve(next, cost, END_STEPS - STAGE_STEPS).0
        } else {
            next
        };
        if next.is_finite() {
            states = next;
        }
        if exact {
            break;
        }
    }
    states
}
