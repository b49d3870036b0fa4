//! Records with workers: what the fit knows of them, and how what a worker had is made again.
//!
//! Whatever records have been asked to make has a number. Of what somebody still holds, the fit has the
//! states themselves as they were at the beginning of a stage, and after it the questions that have made
//! something. A worker that is new is given the records, the states, and these questions again: nothing
//! in an answer is by chance, so it has then what the one before had, to the last bit. Memory is that of
//! the states, and of θ for each step of a stage.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::message::{Ask, Opening, Reply, Request};
use super::{Crew, MOST_DEATHS, Workers};
use crate::Error;
use crate::numerics::Trajectory;
use crate::solve::Problem;
use crate::solve::batch::asked::{Asked, Question};
use crate::solve::batch::place::{Answers, Held, Place};
use crate::solve::batch::sums::{GROUP_RECORDS, Sum};
use crate::solve::bytes::{decode, encode};

/// The records of a problem, with workers.
pub(in crate::solve) struct There<'a> {
    problem: &'a Problem<'a>,
    workers: &'a Workers,
    /// Of this problem, among all that the workers have.
    session: u64,
    slots: Arc<Mutex<Slots>>,
    memory: Mutex<Memory>,
}

/// What all records have under a number; whoever drops the last of these needs it no more.
pub(in crate::solve) struct Slot {
    number: u64,
    slots: Arc<Mutex<Slots>>,
}

/// The numbers that are in use.
#[derive(Default)]
struct Slots {
    last: u64,
    /// Those that somebody holds, and whether they are states.
    live: BTreeMap<u64, bool>,
    /// Those that workers have yet to forget.
    dropped: Vec<u64>,
}

/// What a new worker is told.
#[derive(Default)]
struct Memory {
    /// States of all records by number.
    states: HashMap<u64, Vec<Trajectory>>,
    /// The questions since then that have made something.
    questions: Vec<Vec<u8>>,
    /// How records were dealt out, and to whom.
    deal: u64,
    opened: Vec<u64>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut slots = locked(&self.slots);
        slots.live.remove(&self.number);
        slots.dropped.push(self.number);
    }
}

/// Records of each of so many workers: whole groups, where there are enough, of about as many samples.
fn shares(problem: &Problem, workers: usize) -> Vec<Range<usize>> {
    let records = problem.records.len();
    let unit = if records >= GROUP_RECORDS * workers {
        GROUP_RECORDS
    } else {
        1
    };
    let mut before = vec![0];
    for record in problem.records {
        before.push(before.last().unwrap_or(&0) + record.len());
    }
    let end = |k: usize| {
        let target = before[records] * k / workers;
        let at = before.partition_point(|samples| *samples < target);
        (at.next_multiple_of(unit)).min(records)
    };
    (0..workers).map(|k| end(k)..end(k + 1)).collect()
}

impl<'a> There<'a> {
    pub fn new(problem: &'a Problem<'a>, workers: &'a Workers) -> Self {
        let mut crew = workers.crew();
        crew.opened += 1;
        Self {
            problem,
            workers,
            session: crew.opened,
            slots: Arc::default(),
            memory: Mutex::default(),
        }
    }

    /// A new number.
    fn slot(&self, states: bool) -> Arc<Slot> {
        let mut slots = locked(&self.slots);
        slots.last += 1;
        let number = slots.last;
        slots.live.insert(number, states);
        Arc::new(Slot {
            number,
            slots: Arc::clone(&self.slots),
        })
    }

    /// Gives a worker its records, and what they have.
    fn open(&self, crew: &mut Crew, memory: &mut Memory, place: usize) -> Result<(), String> {
        let range = shares(self.problem, crew.posts.len()).swap_remove(place);
        let post = &mut crew.posts[place];
        let mut tell = |request: &[u8]| match decode(&post.ask(request)?) {
            Some(Reply::Failed(why)) => Err(format!("says that {why}")),
            _ => Ok(()),
        };
        let opening = Opening::of(self.problem, range.clone());
        tell(&encode(&Request::Open(self.session, Box::new(opening))))?;
        for (number, states) in &memory.states {
            tell(&encode(&Request::Put {
                session: self.session,
                slot: *number,
                states: states[range.clone()].to_vec(),
            }))?;
        }
        memory
            .questions
            .iter()
            .try_for_each(|question| tell(question))?;
        memory.opened[place] = post.number;
        Ok(())
    }

    /// The answers of all workers to a request. Those that are new are given their records first, and those that die
    /// are replaced.
    fn round(
        &self,
        memory: &mut Memory,
        request: impl Fn(Range<usize>) -> Vec<u8>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut crew = self.workers.crew();
        if crew.posts.is_empty() {
            self.workers.fill(&mut crew, true)?;
        }
        let mut deaths = 0;
        'dealt: loop {
            let count = crew.posts.len();
            if memory.deal != crew.deal {
                memory.deal = crew.deal;
                memory.opened = vec![0; count];
            }
            let shares = shares(self.problem, count);
            let mut last = String::new();
            // all work at the same time; whoever has died is seen to below
            let mut waiting = vec![];
            for (k, share) in shares.iter().enumerate() {
                let new = memory.opened[k] != crew.posts[k].number;
                let opened = if new {
                    self.open(&mut crew, memory, k)
                } else {
                    Ok(())
                };
                let line = &mut crew.posts[k].line;
                match opened.and_then(|()| line.send(&request(share.clone()))) {
                    Ok(()) => waiting.push(k),
                    Err(why) => last = why,
                }
            }
            let mut answers: Vec<Option<Vec<u8>>> = vec![None; count];
            for k in waiting {
                match crew.posts[k].line.receive() {
                    Ok(answer) => answers[k] = Some(answer),
                    Err(why) => last = why,
                }
            }
            for (k, share) in shares.iter().enumerate() {
                while answers[k].is_none() {
                    deaths += 1;
                    if deaths > MOST_DEATHS + count {
                        return Err(Error::Workers(format!(
                            "workers have died {deaths} times over the same work: the last one {last}"
                        )));
                    }
                    if !self.workers.replace(&mut crew, k, &last)? {
                        continue 'dealt;
                    }
                    let asked = self.open(&mut crew, memory, k);
                    let asked = asked.and_then(|()| crew.posts[k].ask(&request(share.clone())));
                    match asked {
                        Ok(answer) => answers[k] = Some(answer),
                        Err(why) => last = why,
                    }
                }
            }
            return Ok(answers.into_iter().flatten().collect());
        }
    }
}

/// What a worker replies, unless it failed.
fn reply(bytes: &[u8]) -> Result<Reply, Error> {
    match decode(bytes) {
        Some(Reply::Failed(why)) => Err(Error::Workers(format!("a worker says: {why}"))),
        Some(reply) => Ok(reply),
        None => Err(Error::Workers("a worker's answer is none".into())),
    }
}

impl There<'_> {
    /// The answers to a question about what has such numbers.
    fn answers(
        &self,
        memory: &mut Memory,
        asked: Asked,
        slots: Vec<u64>,
    ) -> Result<Answers, Error> {
        let made = asked.question.makes().map(|states| self.slot(states));
        // forgotten with what is made, so that all of it is done again in the same order
        let dropped = match &made {
            Some(_) => std::mem::take(&mut locked(&self.slots).dropped),
            None => vec![],
        };
        let ask = Ask {
            asked,
            slots,
            to: made.as_ref().map(|slot| slot.number),
            dropped,
        };
        let request = encode(&Request::Ask(self.session, Box::new(ask)));
        let bytes = self.round(memory, |_| request.clone())?;
        let mut sum = Sum::new(self.problem.records.len());
        let mut numbers = vec![];
        for bytes in bytes {
            let Reply::Answer(answer) = reply(&bytes)? else {
                return Err(Error::Workers("a worker's answer is none".into()));
            };
            numbers.extend(answer.numbers);
            answer.parts.into_iter().for_each(|part| sum.add(part));
        }
        if numbers.len() != self.problem.records.len() {
            return Err(Error::Workers("workers have other records".into()));
        }
        if made.is_some() {
            memory.questions.push(request);
        }
        Ok(Answers {
            numbers,
            held: made.map(Held::There),
            equations: sum.total(),
        })
    }

    /// States by their number.
    fn fetch<'m>(&self, memory: &'m mut Memory, number: u64) -> Result<&'m [Trajectory], Error> {
        if !memory.states.contains_key(&number) {
            let asked = Asked {
                theta: vec![],
                noise: self.problem.noise.clone(),
                question: Question::States,
            };
            let numbers = self.answers(memory, asked, vec![number])?.numbers;
            let n = self.problem.model.states.len();
            let states = numbers.into_iter().map(|states| Trajectory::new(states, n));
            memory.states.insert(number, states.collect());
        }
        Ok(&memory.states[&number])
    }
}

impl Place for There<'_> {
    fn ask(&self, asked: Asked, holdings: &[&Held]) -> Result<Answers, Error> {
        let mut memory = locked(&self.memory);
        let numbers: Vec<u64> = holdings
            .iter()
            .map(|held| match held {
                Held::There(slot) => slot.number,
                Held::Here(_) => unreachable!("what workers have is asked of them"),
            })
            .collect();
        if let (Question::States, [number]) = (&asked.question, numbers.as_slice()) {
            let states = self.fetch(&mut memory, *number)?.iter();
            return Ok(Answers {
                numbers: states.map(|s| s.as_slice().to_vec()).collect(),
                held: None,
                equations: None,
            });
        }
        self.answers(&mut memory, asked, numbers)
    }

    fn put(&self, states: Vec<Trajectory>) -> Result<Held, Error> {
        let slot = self.slot(true);
        let mut memory = locked(&self.memory);
        let bytes = self.round(&mut memory, |range| {
            encode(&Request::Put {
                session: self.session,
                slot: slot.number,
                states: states[range].to_vec(),
            })
        })?;
        bytes.iter().try_for_each(|bytes| reply(bytes).map(drop))?;
        memory.states.insert(slot.number, states);
        Ok(Held::There(slot))
    }

    /// Fetches the states that somebody holds, so that no question before needs to be asked again, and
    /// gives records to workers that have come since.
    fn secure(&self) -> Result<(), Error> {
        let live = locked(&self.slots).live.clone();
        if live.values().any(|states| !states) {
            return Ok(());
        }
        let mut memory = locked(&self.memory);
        for number in live.keys() {
            self.fetch(&mut memory, *number)?;
        }
        memory.states.retain(|number, _| live.contains_key(number));
        memory.questions.clear();
        self.workers.fill(&mut self.workers.crew(), false)
    }
}

impl Drop for There<'_> {
    fn drop(&mut self) {
        let memory = locked(&self.memory);
        let mut crew = self.workers.crew();
        if memory.deal == crew.deal {
            let request = encode(&Request::Close(self.session));
            for (post, opened) in crew.posts.iter_mut().zip(&memory.opened) {
                if post.number == *opened {
                    // whoever has died is seen to with the next question
                    let _ = post.ask(&request);
                }
            }
        }
    }
}
