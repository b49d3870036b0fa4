//! The plane of two states, and where the equations lead from each of its points.

use latens::fit::Fit;
use latens::text;

/// The learned and the true direction of motion over the plane of two states.
pub struct Field {
    /// Names and units.
    pub axes: [(String, String); 2],
    /// Corners: least and greatest of each state.
    pub low: [f64; 2],
    pub high: [f64; 2],
    pub arrows: Vec<Arrow>,
    /// The first record, thinned.
    pub trajectory: Vec<[f64; 2]>,
    /// The inputs that drive it, in words; nothing where there are none.
    pub inputs: String,
}

/// The motion at one place.
pub struct Arrow {
    pub at: [f64; 2],
    pub learned: [f64; 2],
    pub truth: Option<[f64; 2]>,
}

/// Of a model of two states; inputs and time are those in the middle of the first record.
pub fn field(shown: &Fit) -> Option<Field> {
    const CELLS: usize = 15;
    const MARGIN: f64 = 0.12;
    let model = &shown.model;
    let track = shown.trained().into_iter().next()?;
    let [first, second] = model.states.as_slice() else {
        return None;
    };
    let mut trajectory: Vec<[f64; 2]> = track.smoothed.rows().map(|x| [x[0], x[1]]).collect();
    trajectory.retain(|x| x.iter().all(|v| v.is_finite()));
    let ends = |i: usize| {
        let values = trajectory.iter().map(|x| x[i]);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        let margin = MARGIN * (high - low).max(1e-12);
        [low - margin, high + margin]
    };
    let [[l0, h0], [l1, h1]] = [ends(0), ends(1)];
    let k = track.record.len() / 2;
    let mut arrows = vec![];
    let mut f = [0.0; 2];
    for i in 0..CELLS * CELLS {
        let part = |i: usize| (i as f64 + 0.5) / CELLS as f64;
        let state = [
            l0 + (h0 - l0) * part(i % CELLS),
            l1 + (h1 - l1) * part(i / CELLS),
        ];
        let at = track.record.point(k, &state, &shown.theta);
        model
            .system
            .derivative(&mut model.system.workspace(), at, &mut f);
        let learned = f;
        let truth = model.truth.as_ref().map(|truth| {
            let at = track.record.point(k, &state, &[]);
            (truth.system).derivative(&mut truth.system.workspace(), at, &mut f);
            f
        });
        arrows.push(Arrow {
            at: state,
            learned,
            truth,
        });
    }
    let every = trajectory.len().div_ceil(1500).max(1);
    let inputs = model.inputs.iter().zip(track.record.input(k));
    let inputs = inputs.map(|(u, v)| format!("{} = {}", u.name, text::with_unit(*v, &u.unit)));
    Some(Field {
        inputs: inputs.collect::<Vec<_>>().join(", "),
        axes: [first, second].map(|s| (s.name.clone(), s.unit.clone())),
        low: [l0, l1],
        high: [h0, h1],
        arrows,
        trajectory: trajectory.into_iter().step_by(every).collect(),
    })
}
