//! Where the records of a problem live: here, or with workers.
//!
//! Newton's method asks all records at once ([`Place::ask`]) and gets numbers and sums; states and passes
//! stay where the records are, and whoever asked has a [`Held`] of them. That is all that it knows of a
//! place, and the same code learns in one process and on many machines.

use std::ops::{Deref, Range};
use std::sync::Arc;

use rayon::prelude::*;

use super::asked::{Asked, Left, Question, Seat};
use super::sums::{GROUP_RECORDS, Part, Sum};
use crate::Error;
use crate::numerics::Trajectory;
use crate::numerics::linalg::normal::NormalEquations;
use crate::numerics::objective::Noise;
use crate::solve::Problem;
use crate::solve::workers::{Slot, There};

/// Records with their states.
pub(in crate::solve) trait Place: Send + Sync {
    /// Asks every record; `holdings` is what they have that the question is about.
    ///
    /// # Errors
    /// Those of workers.
    fn ask(&self, asked: Asked, holdings: &[&Held]) -> Result<Answers, Error>;

    /// Gives every record a trajectory.
    ///
    /// # Errors
    /// Those of workers.
    fn put(&self, states: Vec<Trajectory>) -> Result<Held, Error>;

    /// A good moment to make sure of what the records have: learning comes to a new stage.
    ///
    /// # Errors
    /// Those of workers.
    fn secure(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// What all records have left where they live; gone when nobody holds it any more.
#[derive(Clone)]
pub(in crate::solve) enum Held {
    Here(Arc<Vec<Left>>),
    There(Arc<Slot>),
}

/// What all records answer.
pub(in crate::solve) struct Answers {
    /// Of each record.
    pub numbers: Vec<Vec<f64>>,
    /// What was made.
    pub held: Option<Held>,
    /// The sum over all records.
    pub equations: Option<NormalEquations>,
}

impl Answers {
    /// What was made.
    pub fn held(self) -> Held {
        self.held.expect("the question makes something")
    }

    /// All numbers, record after record.
    pub fn all(&self) -> impl Iterator<Item = f64> + '_ {
        self.numbers.iter().flatten().copied()
    }
}

/// What a range of records answers.
pub(in crate::solve) struct OfRange {
    pub numbers: Vec<Vec<f64>>,
    pub left: Vec<Left>,
    pub parts: Vec<Part>,
}

/// Asks a range of the records; `holdings` is what each of them has, `total` how many records there are in all.
pub(in crate::solve) fn ask_range(
    seats: &[Seat],
    asked: &Asked,
    holdings: &[&[Left]],
    total: usize,
) -> OfRange {
    let answer = |i: usize| {
        let holdings: Vec<&Left> = holdings.iter().map(|held| &held[i]).collect();
        seats[i].answer(asked, &holdings)
    };
    let mut answers = OfRange {
        numbers: Vec::with_capacity(seats.len()),
        left: vec![],
        parts: vec![],
    };
    let mut sum = Sum::new(total);
    // each has an A of its own until they are summed
    let at_once = match asked.question {
        Question::Eliminate { .. } => GROUP_RECORDS,
        _ => seats.len().max(1),
    };
    for first in (0..seats.len()).step_by(at_once) {
        let range: Range<usize> = first..seats.len().min(first + at_once);
        let answered: Vec<_> = range.clone().into_par_iter().map(answer).collect();
        for (i, answer) in range.zip(answered) {
            answers.numbers.push(answer.numbers);
            answers.left.extend(answer.left);
            if let Some(equations) = answer.equations {
                sum.add(Part::of_record(seats[i].number, equations));
            }
        }
    }
    answers.parts = sum.parts();
    answers
}

/// The records of this process.
struct Here<'a> {
    seats: Vec<Seat<'a>>,
}

impl Place for Here<'_> {
    fn ask(&self, asked: Asked, holdings: &[&Held]) -> Result<Answers, Error> {
        let holdings: Vec<&[Left]> = holdings
            .iter()
            .map(|held| match held {
                Held::Here(left) => left.as_slice(),
                Held::There(_) => unreachable!("what workers have is asked of them"),
            })
            .collect();
        let answers = ask_range(&self.seats, &asked, &holdings, self.seats.len());
        let mut sum = Sum::new(self.seats.len());
        answers.parts.into_iter().for_each(|part| sum.add(part));
        Ok(Answers {
            numbers: answers.numbers,
            held: (answers.left.len() == self.seats.len())
                .then(|| Held::Here(Arc::new(answers.left))),
            equations: sum.total(),
        })
    }

    fn put(&self, states: Vec<Trajectory>) -> Result<Held, Error> {
        let left = states.into_iter().map(Left::States).collect();
        Ok(Held::Here(Arc::new(left)))
    }
}

/// A problem whose records have their place.
#[derive(Clone)]
pub(super) struct Placed<'a> {
    problem: &'a Problem<'a>,
    place: Arc<dyn Place + 'a>,
}

impl<'a> Deref for Placed<'a> {
    type Target = Problem<'a>;

    fn deref(&self) -> &Problem<'a> {
        self.problem
    }
}

impl<'a> Placed<'a> {
    /// With workers, where the problem has any.
    ///
    /// # Errors
    /// Those of workers.
    pub fn new(problem: &'a Problem<'a>) -> Result<Self, Error> {
        let Some(workers) = problem.workers else {
            return Ok(Self::here(problem));
        };
        Ok(Self {
            problem,
            place: Arc::new(There::new(problem, workers)),
        })
    }

    /// In this process.
    pub fn here(problem: &'a Problem<'a>) -> Self {
        let records = problem.records.iter().zip(&problem.prior.states);
        let seats = records.enumerate().map(|(number, (record, known))| Seat {
            stepper: problem.stepper,
            record,
            known: &known.states,
            number,
        });
        Self {
            problem,
            place: Arc::new(Here {
                seats: seats.collect(),
            }),
        }
    }

    /// Asks every record under θ and a noise.
    ///
    /// # Errors
    /// Those of workers.
    pub fn ask(
        &self,
        theta: &[f64],
        noise: &Noise,
        question: Question,
        holdings: &[&Held],
    ) -> Result<Answers, Error> {
        let asked = Asked {
            theta: theta.to_vec(),
            noise: noise.clone(),
            question,
        };
        self.place.ask(asked, holdings)
    }

    /// Gives every record a trajectory.
    ///
    /// # Errors
    /// Those of workers.
    pub fn put(&self, states: Vec<Trajectory>) -> Result<Held, Error> {
        self.place.put(states)
    }

    /// See [`Place::secure`].
    ///
    /// # Errors
    /// Those of workers.
    pub fn secure(&self) -> Result<(), Error> {
        self.place.secure()
    }

    /// The states of every record.
    ///
    /// # Errors
    /// Those of workers.
    pub fn states(&self, held: &Held) -> Result<Vec<Trajectory>, Error> {
        let n = self.model.states.len();
        let answers = self.ask(&[], self.noise, Question::States, &[held])?;
        let records = answers.numbers.into_iter();
        Ok(records.map(|states| Trajectory::new(states, n)).collect())
    }

    /// States under (all but) exact physics that fit the records best, from what the known physics says
    /// alone.
    ///
    /// # Errors
    /// Those of workers.
    pub fn exact_states(&self, theta: &[f64]) -> Result<Held, Error> {
        let open = self.open_start(self.noise);
        Ok(self.ask(theta, &open, Question::Exact, &[])?.held())
    }

    /// Mean nRMSE of the measured channels in free runs from where states start; NaN where no channel can
    /// be scored.
    ///
    /// # Errors
    /// Those of workers.
    pub fn free_run_error(&self, theta: &[f64], states: &Held) -> Result<f64, Error> {
        let answers = self.ask(theta, self.noise, Question::FreeRun, &[states])?;
        let (mut sum, mut count) = (0.0, 0.0);
        for error in answers.all() {
            sum += error;
            count += 1.0;
        }
        Ok(sum / count)
    }

    /// The same from the best starts under exact physics, looked for from states.
    ///
    /// # Errors
    /// Those of workers.
    pub fn measured_error(
        &self,
        theta: &[f64],
        noise: &Noise,
        states: &Held,
    ) -> Result<f64, Error> {
        let open = self.open_start(noise);
        let exact = self.ask(theta, &open, Question::Exact, &[states])?.held();
        self.free_run_error(theta, &exact)
    }
}
