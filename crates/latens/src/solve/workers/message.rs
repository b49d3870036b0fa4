//! What is said between a fit and its workers.

use std::ops::Range;

use crate::model::Blueprint;
use crate::model::network::{Activation, Network, Scaling};
use crate::numerics::Trajectory;
use crate::numerics::linalg::normal::NormalEquations;
use crate::record::Record;
use crate::solve::Problem;
use crate::solve::batch::asked::{Asked, Question};
use crate::solve::batch::sums::Part;
use crate::solve::bytes::{Put, Take, kept};

/// To a worker.
pub(super) enum Request {
    /// Who are you?
    Hello,
    /// Records of a problem, in place of those that it had.
    Open(u64, Box<Opening>),
    /// Nobody asks any more about a problem.
    Close(u64),
    /// States for its records, under a number.
    Put {
        session: u64,
        slot: u64,
        states: Vec<Trajectory>,
    },
    Ask(u64, Box<Ask>),
}

/// A question to the records of a problem.
pub(super) struct Ask {
    pub asked: Asked,
    /// Numbers of what it is about.
    pub slots: Vec<u64>,
    /// The number of what it makes.
    pub to: Option<u64>,
    /// Numbers of what nobody needs any more; forgotten first.
    pub dropped: Vec<u64>,
}

/// Some of the records of a problem.
pub(super) struct Opening {
    pub model: Blueprint,
    pub dt: f64,
    /// Whether each gap is one step of a method that is local; as in [`Stepper`](crate::numerics::step::Stepper).
    pub single: bool,
    /// The first of the records, and how many there are in all.
    pub first: usize,
    pub total: usize,
    pub records: Vec<Record>,
    /// What the known equations say of their states.
    pub known: Vec<Trajectory>,
}

impl Opening {
    pub fn of(problem: &Problem, range: Range<usize>) -> Self {
        let known = problem.prior.states[range.clone()].iter();
        // nothing that learns looks at the truth
        let records = problem.records[range.clone()].iter().map(|record| Record {
            truth: None,
            ..record.clone()
        });
        Self {
            model: problem.model.blueprint(),
            dt: problem.stepper.dt(),
            single: problem.stepper.is_single(),
            first: range.start,
            total: problem.records.len(),
            records: records.collect(),
            known: known.map(|s| s.states.clone()).collect(),
        }
    }
}

/// From a worker.
pub(super) enum Reply {
    Version(String),
    Done,
    Answer(Answer),
    Failed(String),
}

/// What a range of records answers.
pub(super) struct Answer {
    pub numbers: Vec<Vec<f64>>,
    pub parts: Vec<Part>,
}

kept!(Ask {
    asked,
    slots,
    to,
    dropped
});
kept!(Opening {
    model,
    dt,
    single,
    first,
    total,
    records,
    known
});
kept!(Answer { numbers, parts });
kept!(Asked {
    theta,
    noise,
    question
});
kept!(Record {
    name,
    time,
    inputs,
    outputs,
    truth,
    d_u,
    d_y,
    d_x,
    later
});
kept!(Scaling {
    center,
    scale,
    output
});
kept!(Network {
    name,
    outputs,
    arguments,
    layers,
    skip,
    absent,
    scaling
});

impl Put for Activation {
    fn put(&self, out: &mut Vec<u8>) {
        let place = Self::NAMES
            .iter()
            .position(|(_, activation)| activation == self);
        place.expect("every activation has a name").put(out);
    }
}

impl Take for Activation {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self::NAMES.get(usize::take(from)?)?.1)
    }
}

impl Put for Blueprint {
    fn put(&self, out: &mut Vec<u8>) {
        let fix: Vec<(String, f64)> = self.fix.clone().into_iter().collect();
        (self.file.clone(), self.text.clone(), fix).put(out);
        (self.free.clone(), self.first_order.clone()).put(out);
        (self.one_record, self.groups.clone()).put(out);
        self.networks.put(out);
    }
}

impl Take for Blueprint {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            file: Take::take(from)?,
            text: Take::take(from)?,
            fix: Vec::<(String, f64)>::take(from)?.into_iter().collect(),
            free: Take::take(from)?,
            first_order: Take::take(from)?,
            one_record: Take::take(from)?,
            groups: Take::take(from)?,
            networks: Take::take(from)?,
        })
    }
}

impl Put for Part {
    fn put(&self, out: &mut Vec<u8>) {
        let (level, index) = self.place();
        let unknowns = self.equations.b.len();
        (level, index, unknowns, self.equations.to_numbers()).put(out);
    }
}

impl Take for Part {
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (level, index) = <(usize, usize)>::take(from)?;
        let (unknowns, numbers) = <(usize, Vec<f64>)>::take(from)?;
        // as many numbers, or there would be no room for what is said to be there
        let plausible = unknowns <= numbers.len();
        let equations = plausible.then(|| NormalEquations::from_numbers(unknowns, &numbers))??;
        Some(Self::new(level, index, equations))
    }
}

/// Variants by number, each with its fields in order.
macro_rules! numbered {
    ($name:ident { $($number:literal => $variant:ident $( ( $($place:ident),+ ) )? $( { $($field:ident),+ } )?),+ $(,)? }) => {
        impl Put for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $( Self::$variant $( ( $($place),+ ) )? $( { $($field),+ } )? => {
                        ($number as u8).put(out);
                        $( $( $place.put(out); )+ )?
                        $( $( $field.put(out); )+ )?
                    } )+
                }
            }
        }

        impl Take for $name {
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(match u8::take(from)? {
                    $( $number => {
                        $( $( let $place = Take::take(from)?; )+ )?
                        $( $( let $field = Take::take(from)?; )+ )?
                        Self::$variant $( ( $($place),+ ) )? $( { $($field),+ } )?
                    } )+
                    _ => return None,
                })
            }
        }
    };
}

numbered!(Request {
    0 => Hello,
    1 => Open(session, opening),
    2 => Close(session),
    3 => Put { session, slot, states },
    4 => Ask(session, ask),
});
numbered!(Reply {
    0 => Version(version),
    1 => Done,
    2 => Answer(answer),
    3 => Failed(message),
});
numbered!(Question {
    0 => Cost,
    1 => Start { noisy, elsewhere },
    2 => Exact,
    3 => Smooth,
    4 => Simulate { simulates },
    5 => Eliminate { thinning, keep },
    6 => Move { before, increment, simulates },
    7 => Misfits,
    8 => Squares,
    9 => FreeRun,
    10 => Told { state },
    11 => Along { state },
    12 => Likelihood,
    13 => Bands { draws },
    14 => States,
    15 => Bend { increment },
});
