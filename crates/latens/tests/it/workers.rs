//! A fit whose records workers have comes to the bits of one process: with one worker or several, some that
//! die, some that cannot be replaced, and some that come later.

use std::sync::{Arc, Mutex};

use crate::fixture::{defaults, sources};
use crate::resume::numbers;
use latens::fit::learn::{Data, learn};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::Equipment;
use latens::solve::workers::{Desk, Fleet, Line, Workers};
use latens::{Error, Fit, Model, Record, Settings, Silent, Source, systems};

/// What happens to workers of this process.
#[derive(Default, Clone)]
struct Fate {
    /// How many are wanted, from so many requests on.
    wanted: Vec<(usize, usize)>,
    /// Requests over which a worker dies.
    dies: Vec<usize>,
    /// How many can be started in all, where that is limited.
    room: Option<usize>,
    /// Whether they speak another language.
    foreign: bool,
}

/// What has happened to them.
#[derive(Default)]
struct Seen {
    requests: usize,
    started: usize,
    deaths: usize,
    /// At the same time.
    most: usize,
    alive: usize,
}

struct InProcess {
    fate: Fate,
    seen: Arc<Mutex<Seen>>,
}

struct Direct {
    desk: Option<Desk>,
    answer: Option<Vec<u8>>,
    fate: Fate,
    seen: Arc<Mutex<Seen>>,
}

impl Fleet for InProcess {
    fn wanted(&self) -> usize {
        let requests = self.seen.lock().unwrap().requests;
        let reached = self.fate.wanted.iter().rev();
        reached.clone().find(|w| w.0 <= requests).unwrap().1
    }

    fn start(&self, _: bool) -> Result<Option<Box<dyn Line>>, String> {
        let mut seen = self.seen.lock().unwrap();
        match self.fate.room {
            Some(0) => return Err("nobody is there".into()),
            Some(room) if seen.started >= room => return Ok(None),
            _ => {}
        }
        seen.started += 1;
        seen.alive += 1;
        seen.most = seen.most.max(seen.alive);
        Ok(Some(Box::new(Direct {
            desk: Some(Desk::default()),
            answer: None,
            fate: self.fate.clone(),
            seen: Arc::clone(&self.seen),
        })))
    }
}

impl Direct {
    fn die(&mut self) {
        if self.desk.take().is_some() {
            self.seen.lock().unwrap().alive -= 1;
        }
    }
}

impl Line for Direct {
    fn send(&mut self, request: &[u8]) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap();
        seen.requests += 1;
        if self.fate.dies.contains(&seen.requests) {
            seen.deaths += 1;
            drop(seen);
            self.die();
            return Ok(());
        }
        drop(seen);
        let desk = self.desk.as_mut().ok_or("was shot")?;
        self.answer = Some(if self.fate.foreign {
            b"\0\x07\0\0\0\0\0\0\0latens7".to_vec()
        } else {
            desk.handle(request)
        });
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        self.answer.take().ok_or_else(|| "was shot".into())
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.die();
    }
}

fn plain(workers: usize) -> Fate {
    Fate {
        wanted: vec![(0, workers)],
        ..Fate::default()
    }
}

/// A fit with workers, and what has happened to them.
fn with(
    fate: Fate,
    model: &Model,
    train: &[Source],
    settings: &Settings,
) -> (Result<Fit, Error>, Seen) {
    let seen = Arc::default();
    let workers = Workers::new(InProcess {
        fate,
        seen: Arc::clone(&seen),
    });
    let equipment = Equipment {
        workers: Some(&workers),
        ..Equipment::default()
    };
    let fit = learned(model, train, settings, equipment);
    drop(workers);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (fit, seen)
}

fn learned(
    model: &Model,
    train: &[Source],
    settings: &Settings,
    equipment: Equipment,
) -> Result<Fit, Error> {
    let data = Data {
        train,
        validate: &[],
    };
    learn(model, data, settings, equipment, &mut Silent)
}

fn simulated(model: &Model, count: u64, steps: usize, noise: Option<f64>) -> Vec<Record> {
    let record = |seed: u64| {
        let simulation = Simulation {
            steps: Some(steps),
            start: vec![(0, 1.0 + 0.1 * seed as f64)],
            noise: vec![noise.map(NoiseLevel::OfRange)],
            seed,
            ..Simulation::default()
        };
        Record {
            name: format!("record {seed}"),
            ..simulate(model, &simulation).unwrap()
        }
    };
    (1..=count).map(record).collect()
}

/// The oscillator with a small network, and short records of it.
fn oscillators(count: u64, noise: Option<f64>) -> (Model, Vec<Source>) {
    let text = systems::find("harmonic-oscillator").unwrap();
    let model = Model::from_text("oscillator", &text.replace("20 tanh", "3 tanh")).unwrap();
    let train = sources(&model, &simulated(&model, count, 40, noise));
    (model, train)
}

fn few(passes: usize) -> Settings {
    Settings {
        passes,
        ..defaults("batch")
    }
}

/// Nineteen records are three groups of a sum, and workers have whole ones or parts of them.
#[test]
fn any_number_of_workers_comes_to_the_bits_of_one_process() {
    for noise in [None, Some(0.02)] {
        let (model, train) = oscillators(19, noise);
        let expected = learned(&model, &train, &few(3), Equipment::default()).unwrap();
        for workers in [1, 2, 3] {
            let (fit, seen) = with(plain(workers), &model, &train, &few(3));
            assert_eq!(numbers(&fit.unwrap()), numbers(&expected), "{workers}");
            assert_eq!((seen.started, seen.alive), (workers, 0));
        }
        // fewer records than workers: one of them has nothing to do
        let (model, train) = oscillators(2, noise);
        let expected = learned(&model, &train, &few(2), Equipment::default()).unwrap();
        let (fit, _) = with(plain(3), &model, &train, &few(2));
        assert_eq!(numbers(&fit.unwrap()), numbers(&expected));
    }
}

/// Over whichever request a worker dies, also when it has just been given its records again.
#[test]
fn a_worker_that_dies_is_replaced_and_its_records_are_done_again() {
    let (model, train) = oscillators(19, Some(0.02));
    let expected = learned(&model, &train, &few(3), Equipment::default()).unwrap();
    let (_, seen) = with(plain(2), &model, &train, &few(3));
    for part in 1..4 {
        let dies = vec![seen.requests * part / 4, seen.requests * part / 4 + 3];
        let fate = Fate { dies, ..plain(2) };
        let (fit, seen) = with(fate, &model, &train, &few(3));
        assert_eq!(numbers(&fit.unwrap()), numbers(&expected), "{part}");
        assert_eq!((seen.deaths, seen.started, seen.alive), (2, 4, 0));
    }
    // nobody can take its place: the others take its records
    let fate = Fate {
        dies: vec![seen.requests / 2],
        room: Some(3),
        ..plain(3)
    };
    let (fit, seen) = with(fate, &model, &train, &few(3));
    assert_eq!(numbers(&fit.unwrap()), numbers(&expected));
    assert_eq!((seen.deaths, seen.started), (1, 3));
}

#[test]
fn workers_that_come_later_are_given_records() {
    let (model, train) = oscillators(19, Some(0.02));
    let expected = learned(&model, &train, &few(3), Equipment::default()).unwrap();
    let fate = Fate {
        wanted: vec![(0, 1), (20, 2), (60, 3)],
        ..Fate::default()
    };
    let (fit, seen) = with(fate, &model, &train, &few(3));
    assert_eq!(numbers(&fit.unwrap()), numbers(&expected));
    assert_eq!(seen.most, 3);
}

/// Populations, walks and groups ask records for more; starts at the same time share the workers.
#[test]
fn everything_that_a_fit_asks_comes_to_the_same_bits() {
    let line = |varies: &str| {
        let text = format!(
            "[time]\nstep = 0.1\n[states.x]\nderivative = \"k - 0.2*x\"\n\
             [unknowns]\nk = {{ guess = 0, scale = 3, varies = \"{varies}\" }}\n[measurements]\ny = \"x\"\n\
             [truth]\nk = 1.2\n[simulation]\nsteps = 40\n"
        );
        Model::from_text("line", &text).unwrap()
    };
    for varies in ["record", "slowly", "group"] {
        let model = line(varies);
        let mut train = sources(&model, &simulated(&model, 10, 40, Some(0.05)));
        for (k, source) in train.iter_mut().enumerate() {
            source.group = Some(format!("{}", k % 3));
        }
        let expected = learned(&model, &train, &few(4), Equipment::default()).unwrap();
        let (fit, _) = with(plain(2), &model, &train, &few(4));
        assert_eq!(numbers(&fit.unwrap()), numbers(&expected), "{varies}");
    }
    let (model, train) = oscillators(3, Some(0.02));
    let settings = Settings {
        ensemble: 2,
        ..few(2)
    };
    let expected = learned(&model, &train, &settings, Equipment::default()).unwrap();
    let (fit, _) = with(plain(2), &model, &train, &settings);
    assert_eq!(numbers(&fit.unwrap()), numbers(&expected));
}

#[test]
fn what_is_wrong_with_workers_is_said() {
    let (model, train) = oscillators(2, Some(0.02));
    let said = |fate: Fate| {
        let (fit, seen) = with(fate, &model, &train, &few(1));
        assert_eq!(seen.alive, 0);
        fit.unwrap_err().to_string()
    };
    let none = Fate {
        room: Some(0),
        ..plain(2)
    };
    assert_eq!(said(none), "no worker could be started: nobody is there");
    let foreign = Fate {
        foreign: true,
        ..plain(2)
    };
    let text = said(foreign);
    assert!(text.contains("a worker has latens7"), "{text}");
    assert!(text.contains("install the same version"), "{text}");
    let lost = Fate {
        dies: (8..1000).collect(),
        room: Some(3),
        ..plain(2)
    };
    let text = said(lost);
    assert!(
        text.starts_with("no worker is left: the last one was shot"),
        "{text}"
    );
    let always = Fate {
        dies: (8..1000).collect(),
        ..plain(2)
    };
    let text = said(always);
    assert!(text.contains("no worker could be started"), "{text}");
}
