//! The worker's side: records of some problems, and what they have.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::VERSION;
use super::message::{Answer, Ask, Opening, Reply, Request};
use super::process::{read_frame, write_frame};
use crate::model::Model;
use crate::numerics::step::Stepper;
use crate::solve::batch::asked::{Left, Seat};
use crate::solve::batch::place::ask_range;
use crate::solve::bytes::{decode, encode};

/// Answers what a fit asks, on the threads of whoever calls it.
///
/// ```
/// let mut desk = latens::solve::workers::Desk::default();
/// // what it does not understand it says so
/// assert!(!desk.handle(b"hello?").is_empty());
/// ```
#[derive(Default)]
pub struct Desk {
    rooms: HashMap<u64, Room>,
}

/// Records of a problem.
struct Room {
    model: Model,
    opening: Opening,
    slots: HashMap<u64, Vec<Left>>,
}

impl Desk {
    /// The answer to a request.
    pub fn handle(&mut self, request: &[u8]) -> Vec<u8> {
        let reply = match decode(request) {
            Some(request) => catch_unwind(AssertUnwindSafe(|| self.reply(request))),
            None => Ok(Err("it does not understand the request".into())),
        };
        let reply =
            reply.unwrap_or_else(|_| Err("it failed unexpectedly; please report it".into()));
        encode(&reply.unwrap_or_else(Reply::Failed))
    }

    fn reply(&mut self, request: Request) -> Result<Reply, String> {
        match request {
            Request::Hello => return Ok(Reply::Version(VERSION.into())),
            Request::Open(session, opening) => {
                let model = Model::from_blueprint(&opening.model).map_err(|e| e.to_string())?;
                let room = Room {
                    model,
                    opening: *opening,
                    slots: HashMap::new(),
                };
                self.rooms.insert(session, room);
            }
            Request::Close(session) => {
                self.rooms.remove(&session);
            }
            Request::Put {
                session,
                slot,
                states,
            } => {
                let left = states.into_iter().map(Left::States).collect();
                self.room(session)?.slots.insert(slot, left);
            }
            Request::Ask(session, ask) => return self.room(session)?.answer(&ask),
        }
        Ok(Reply::Done)
    }

    fn room(&mut self, session: u64) -> Result<&mut Room, String> {
        let room = self.rooms.get_mut(&session);
        room.ok_or_else(|| "it does not have the records".into())
    }
}

impl Room {
    fn answer(&mut self, ask: &Ask) -> Result<Reply, String> {
        for slot in &ask.dropped {
            self.slots.remove(slot);
        }
        let Opening {
            dt, single, first, ..
        } = self.opening;
        let stepper = Stepper::alike(&self.model, &self.model.system, dt, single);
        let records = self.opening.records.iter().zip(&self.opening.known);
        let seats = records.enumerate().map(|(i, (record, known))| Seat {
            stepper: &stepper,
            record,
            known,
            number: first + i,
        });
        let seats: Vec<Seat> = seats.collect();
        let holdings = ask.slots.iter().map(|slot| {
            let left = self.slots.get(slot).map(Vec::as_slice);
            let left = left.filter(|left| left.len() == seats.len());
            left.ok_or_else(|| "it does not have the states".to_string())
        });
        let holdings: Vec<&[Left]> = holdings.collect::<Result<_, _>>()?;
        let answers = ask_range(&seats, &ask.asked, &holdings, self.opening.total);
        if let Some(slot) = ask.to {
            self.slots.insert(slot, answers.left);
        }
        Ok(Reply::Answer(Answer {
            numbers: answers.numbers,
            parts: answers.parts,
        }))
    }
}

/// Answers requests from one end to the other until there are no more.
///
/// # Errors
/// Those of the ends.
pub fn serve(mut from: impl Read, mut to: impl Write) -> std::io::Result<()> {
    let mut desk = Desk::default();
    while let Some(request) = read_frame(&mut from)? {
        write_frame(&mut to, &desk.handle(&request))?;
    }
    Ok(())
}
