//! What a fit has come to, kept on its way: a fit that is killed goes on from there, to the same bits.
//!
//! A fit is made of parts: each start of each structure, and in it pass after pass. What comes of a
//! part depends on nothing but what it begins with, so it is kept under a digest of that. A fit that
//! goes on is made again from its beginning, and finds every part that was finished: however the
//! parts are chosen, it ends where the uninterrupted one does. Numbers are kept as their bits.

use sha2::{Digest, Sha256};

use super::batch::evidence::{Evidence, Part};
use super::bytes::{Put, Take, decode, encode, kept};
use super::checkpoint::{Checkpoint, Next, Resumed, Stage, Start};
use super::{Learned, Observer, PassReport, Problem, Solver};
use crate::filter::Smoothed;
use crate::model::settings::Settings;
use crate::numerics::Trajectory;
use crate::numerics::linalg::packed::Parts;
use crate::numerics::linalg::{PackedCovariance, Precision};
use crate::numerics::objective::{Cost, Noise};
use crate::record::Record;
use crate::{Divergence, Error};

/// Another version may come to other numbers: what it has kept is none of this one's.
const FORMAT: &str = concat!("latens ", env!("CARGO_PKG_VERSION"));

/// Keeps the parts of a fit by name.
pub trait Keep: Sync {
    /// What was kept under a name.
    fn get(&self, name: &str) -> Option<Vec<u8>>;
    /// Keeps it, in place of what was there.
    fn put(&self, name: &str, bytes: &[u8]);
    /// Names that begin so are needed no more.
    fn forget(&self, beginning: &str);
}

/// Where the parts of a fit are kept; by default nowhere.
#[derive(Clone, Copy, Default)]
pub struct Checkpoints<'a> {
    keep: Option<&'a dyn Keep>,
    /// The start that is under way.
    start: Option<[u8; 16]>,
}

impl<'a> Checkpoints<'a> {
    /// Kept there.
    pub fn new(keep: &'a dyn Keep) -> Self {
        Self {
            keep: Some(keep),
            start: None,
        }
    }

    /// Whether passes of a start are kept.
    pub(super) fn are_kept(&self) -> bool {
        self.keep.is_some() && self.start.is_some()
    }

    /// The passes of a start, from where they begin; `None` where nothing is kept.
    pub(super) fn course<T: Put>(&self, problem: &Problem, begin: &T) -> Option<Course<'a>> {
        let (keep, start) = (self.keep?, self.start?);
        let begun = digest(problem, begin);
        Some(Course {
            keep,
            name: format!("{}.{}", hexadecimal(start), hexadecimal(begun)),
        })
    }
}

/// Where the passes of a start are kept.
pub(super) struct Course<'a> {
    keep: &'a dyn Keep,
    name: String,
}

impl Course<'_> {
    pub fn put<T: Put>(&self, state: &T) {
        self.keep.put(&self.name, &encode(state));
    }

    pub fn get<T: Take>(&self) -> Option<T> {
        decode(&self.keep.get(&self.name)?)
    }
}

/// Learns from a start, or finds what was learned from it before.
///
/// # Errors
/// Those of [`Solver::learn`].
pub fn learn(
    solver: &dyn Solver,
    problem: &Problem,
    start: Start,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let Some(keep) = problem.checkpoints.keep else {
        return solver.learn(problem, start, observer);
    };
    let start_digest = digest(problem, &start);
    let key = hexadecimal(start_digest);
    // with more passes it goes on from the last of them
    let name = format!("{key}-{}", problem.settings.passes);
    let before = keep.get(&name).and_then(|bytes| decode(&bytes));
    match before {
        Some(Ended::Learned(learned)) if fits(&learned, problem) => return Ok(*learned),
        Some(Ended::Diverged(divergence)) => return Err(Error::Diverged(divergence)),
        _ => {}
    }
    let under_way = Problem {
        checkpoints: Checkpoints {
            start: Some(start_digest),
            ..problem.checkpoints
        },
        ..*problem
    };
    let learned = solver.learn(&under_way, start, observer);
    let bytes = match &learned {
        Ok(learned) if !learned.stopped => encode(&(true, learned)),
        Err(Error::Diverged(divergence)) => encode(&(false, divergence)),
        _ => return learned,
    };
    keep.put(&name, &bytes);
    keep.forget(&format!("{key}."));
    learned
}

/// How a start ended.
enum Ended {
    Learned(Box<Learned>),
    Diverged(Divergence),
}

impl Take for Ended {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(from)? {
            Self::Learned(Box::new(Learned::take(from)?))
        } else {
            Self::Diverged(Divergence::take(from)?)
        })
    }
}

/// Whether what was kept has the sizes of a problem: a file may be anybody's.
fn fits(learned: &Learned, problem: &Problem) -> bool {
    let parameters = problem.model.system.parameters();
    let (n, channels) = (problem.model.states.len(), problem.model.measurements.len());
    let of_record = |(record, s): (&Record, &Smoothed)| {
        fits_record(&s.states, record, n) && fits_record(&s.deviations, record, n)
    };
    let runs = learned.free_runs.as_ref();
    let noise = &learned.noise;
    learned.theta.len() == parameters
        && learned.covariance.dim() == parameters
        && learned.smoothed.len() == problem.records.len()
        && problem.records.iter().zip(&learned.smoothed).all(of_record)
        && learned.draws.iter().all(|draw| draw.len() == parameters)
        && [&noise.process, &noise.start_mean, &noise.start].map(Vec::len) == [n; 3]
        && noise.measurement.len() == channels
        && runs.is_none_or(|runs| fit_records(runs, problem))
        && match &learned.checkpoint {
            Checkpoint::Pass(_) => true,
            Checkpoint::Stage(stage) => stage.prior.len() == parameters,
        }
}

fn fits_record(states: &Trajectory, record: &Record, width: usize) -> bool {
    states.len() == record.len() && states.width() == width
}

/// Whether there is a trajectory for each record of a problem.
pub(super) fn fit_records(states: &[Trajectory], problem: &Problem) -> bool {
    let n = problem.model.states.len();
    let mut pairs = states.iter().zip(problem.records);
    states.len() == problem.records.len() && pairs.all(|(s, record)| fits_record(s, record, n))
}

/// A digest of a problem and of where it begins. What decides which problems there are is no part of
/// it: seeds, starts, structures; nor is how many passes there may be.
fn digest<T: Put>(problem: &Problem, begin: &T) -> [u8; 16] {
    let settings = Settings {
        seed: 0,
        starts: 1,
        ensemble: 1,
        simplify: false,
        passes: 0,
        ..problem.settings.clone()
    };
    let settings = serde_json::to_string(&settings).expect("settings are plain values");
    let networks = format!("{:?}", problem.model.system.networks());
    let mut sha = Sha256::new();
    let mut add = |bytes: Vec<u8>| sha.update(bytes);
    add(encode(&(FORMAT.to_string(), settings, networks)));
    add(problem.model.text.as_bytes().to_vec());
    for (role, records) in [(0, problem.records), (1, problem.validate)] {
        for record in records {
            add(encode(&(role as usize, record.d_u, record.d_y, record.d_x)));
            for values in [&record.time, &record.inputs, &record.outputs] {
                add(encode(values));
            }
        }
    }
    for smoothed in &problem.prior.states {
        add(encode(smoothed));
    }
    let scales = problem.scales;
    for values in [&scales.center, &scales.scale, &scales.noise, &scales.range] {
        add(encode(values));
    }
    add(encode(problem.noise));
    add(encode(&(
        problem.constants.to_vec(),
        (problem.sharp, problem.elsewhere),
        problem.in_pieces,
        problem.stepper.dt(),
    )));
    add(encode(begin));
    let mut digest = [0; 16];
    digest.copy_from_slice(&sha.finalize()[..16]);
    digest
}

fn hexadecimal(digest: [u8; 16]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

kept!(Cost {
    physics,
    data,
    drift,
    start,
    prior
});
kept!(Noise {
    process,
    measurement,
    start_mean,
    start
});
kept!(Smoothed {
    states,
    deviations,
    cost
});
kept!(Parts {
    triangle,
    pending,
    factor,
    shift
});
kept!(Part {
    name,
    determined,
    directions
});
kept!(Evidence {
    log,
    determined,
    directions,
    parts,
    prior
});
kept!(PassReport {
    pass,
    cost,
    consistency,
    evidence,
    free_run,
    validation,
    damping
});
kept!(Divergence {
    during,
    pass,
    step,
    time,
    quantity,
    value,
    advice
});
kept!(Stage {
    stages,
    next,
    tightness,
    merit,
    determined,
    variance_inflation,
    likely,
    informative,
    prior,
    damping,
});
kept!(Learned {
    theta,
    covariance,
    smoothed,
    noise,
    reports,
    consistency,
    variance_inflation,
    draws,
    intervals,
    free_run,
    free_runs,
    contradicted,
    in_pieces,
    disturbed,
    evidence,
    checkpoint,
    stopped,
});

impl Put for Trajectory {
    fn put(&self, out: &mut Vec<u8>) {
        self.width().put(out);
        self.as_slice().len().put(out);
        self.as_slice().iter().for_each(|value| value.put(out));
    }
}

impl Take for Trajectory {
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (width, values) = (usize::take(from)?, Vec::<f64>::take(from)?);
        let rest = values.len().checked_rem(width).unwrap_or(values.len());
        (rest == 0).then(|| Self::new(values, width))
    }
}

impl Put for PackedCovariance {
    fn put(&self, out: &mut Vec<u8>) {
        self.dim().put(out);
        (self.precision() == Precision::Single).put(out);
        self.parts().put(out);
    }
}

impl Take for PackedCovariance {
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (n, single) = (usize::take(from)?, bool::take(from)?);
        let precision = if single {
            Precision::Single
        } else {
            Precision::Double
        };
        let parts = Parts::take(from)?;
        // the triangle of so many has more numbers than that
        let plausible = n <= parts.triangle.len();
        plausible.then(|| Self::from_parts(n, parts, precision))?
    }
}

impl Put for Next {
    fn put(&self, out: &mut Vec<u8>) {
        let number: u8 = match self {
            Self::Stage => 0,
            Self::RestOfStage => 1,
            Self::Refinement => 2,
        };
        number.put(out);
    }
}

impl Take for Next {
    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Self::Stage),
            1 => Some(Self::RestOfStage),
            2 => Some(Self::Refinement),
            _ => None,
        }
    }
}

impl Put for Checkpoint {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Pass(number) => (false, *number).put(out),
            Self::Stage(stage) => (true, stage).put(out),
        }
    }
}

impl Take for Checkpoint {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(from)? {
            Self::Stage(Stage::take(from)?)
        } else {
            Self::Pass(usize::take(from)?)
        })
    }
}

impl Put for Start<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::At(theta) => (0_u8, theta).put(out),
            Self::Near(theta) => (1_u8, theta).put(out),
            Self::From(Resumed {
                theta,
                covariance,
                checkpoint,
                reports,
                seed,
                ..
            }) => {
                (2_u8, theta.to_vec(), *seed).put(out);
                covariance.put(out);
                checkpoint.put(out);
                reports.put(out);
            }
        }
    }
}
