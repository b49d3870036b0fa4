//! One fit on many processes or machines: workers have the records and their states, θ goes out, and
//! sums come back.
//!
//! A [`Fleet`] starts workers, and a [`Line`] leads to one of them: bytes go there and bytes come back. What
//! answers at the other end is a [`Desk`], in a process of this machine ([`Processes`]), in an actor of a
//! cluster, or in a test. Which worker has which records changes no bit of a result: sums are taken in an
//! order that depends on the number of records alone.
//!
//! A worker that dies is replaced. What its records had is made again from what the fit has of them, the
//! states at the beginning of a stage, by the same questions in the same order ([`There`]). Workers that
//! come later are given records at the beginning of the next stage.

mod desk;
mod message;
mod process;
mod there;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::solve::bytes::{decode, encode};
pub use desk::{Desk, serve};
use message::{Reply, Request};
pub use process::Processes;
pub(super) use there::{Slot, There};

/// Who speaks: another version may come to other numbers.
const VERSION: &str = concat!("latens ", env!("CARGO_PKG_VERSION"));
/// Times that workers may die over the same work.
const MOST_DEATHS: usize = 3;

/// Starts workers.
pub trait Fleet: Send + Sync {
    /// How many there should be by now.
    fn wanted(&self) -> usize;

    /// Starts one more; nothing where there is no room for it yet. With `waits` somebody needs it now.
    ///
    /// # Errors
    /// Why none can be started.
    fn start(&self, waits: bool) -> Result<Option<Box<dyn Line>>, String>;
}

/// The way to a worker. It ends the worker when it is dropped.
pub trait Line: Send {
    /// Sends a request; it need not have been read when this returns.
    ///
    /// # Errors
    /// What became of the worker.
    fn send(&mut self, request: &[u8]) -> Result<(), String>;

    /// The answer to the request before.
    ///
    /// # Errors
    /// What became of the worker.
    fn receive(&mut self) -> Result<Vec<u8>, String>;
}

/// The workers of a fit.
pub struct Workers {
    fleet: Box<dyn Fleet>,
    crew: Mutex<Crew>,
}

/// Those that there are.
#[derive(Default)]
struct Crew {
    posts: Vec<Post>,
    /// Grows whenever records have to be dealt out again.
    deal: u64,
    /// Workers that have been started, and problems that were opened.
    started: u64,
    opened: u64,
}

/// A worker.
struct Post {
    line: Box<dyn Line>,
    /// The how manieth that was started.
    number: u64,
}

impl Post {
    /// A request and its answer.
    fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>, String> {
        self.line.send(request)?;
        self.line.receive()
    }
}

impl Workers {
    /// Those of a fleet; they are started when they are needed.
    pub fn new(fleet: impl Fleet + 'static) -> Self {
        Self {
            fleet: Box::new(fleet),
            crew: Mutex::default(),
        }
    }

    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, which speaks the same language.
    fn start(&self, crew: &mut Crew, waits: bool) -> Result<Option<Post>, Error> {
        let failed = |why: String| Error::Workers(format!("no worker could be started: {why}"));
        let Some(line) = self.fleet.start(waits).map_err(failed)? else {
            return Ok(None);
        };
        crew.started += 1;
        let mut post = Post {
            line,
            number: crew.started,
        };
        let hello = post.ask(&encode(&Request::Hello)).map_err(failed)?;
        match decode(&hello) {
            Some(Reply::Version(version)) if version == VERSION => Ok(Some(post)),
            Some(Reply::Version(version)) => Err(Error::Workers(format!(
                "a worker has {version}, and this is {VERSION}: install the same version on all machines"
            ))),
            _ => Err(Error::Workers(format!(
                "a worker does not answer as {VERSION} would: install the same version on all machines"
            ))),
        }
    }

    /// Starts what is wanted and not there; with `needed` one at the least.
    fn fill(&self, crew: &mut Crew, needed: bool) -> Result<(), Error> {
        let before = crew.posts.len();
        while crew.posts.len() < self.fleet.wanted().max(1) {
            match self.start(crew, needed) {
                Ok(Some(post)) => crew.posts.push(post),
                Err(error) if crew.posts.is_empty() => return Err(error),
                // others do the work
                Ok(None) | Err(_) => break,
            }
        }
        if crew.posts.is_empty() {
            let why = "there is no room for one";
            return Err(Error::Workers(format!("no worker could be started: {why}")));
        }
        if crew.posts.len() != before {
            crew.deal += 1;
        }
        Ok(())
    }

    /// Puts another in the place of a worker that has died; without one its records go to the others.
    /// Whether somebody stands there.
    fn replace(&self, crew: &mut Crew, place: usize, why: &str) -> Result<bool, Error> {
        crew.posts.remove(place);
        match self.start(crew, true) {
            Ok(Some(post)) => {
                crew.posts.insert(place, post);
                Ok(true)
            }
            refused => {
                crew.deal += 1;
                if crew.posts.is_empty() {
                    let also = refused.err().map_or(String::new(), |e| format!("; {e}"));
                    let text = format!("no worker is left: the last one {why}{also}");
                    return Err(Error::Workers(text));
                }
                Ok(false)
            }
        }
    }
}
