//! `latens stream`: a sample a line in, an estimate a line out.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use clap::{Args, ValueEnum};
use latens::fit::stream::{Outcome, Sample, Stream};
use latens::folder::Claim;
use latens::record::lines::{Kind, Lines};
use latens::record::{Layout, Mapping, write_number};
use latens::{Error, Fit, Model};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::{assignments, interrupt, records, text};

const AFTER_HELP: &str = "\
Example:
  latens simulate hodgkin-huxley | latens stream run --learn --snapshot adapted > states.csv
  latens stream adapted --snapshot adapted < more.csv      goes on where the first one ended

Out: t, <state>.filtered and .std for every state, <channel>.innovation (measured minus predicted),
consistency (mean of ν²/s over the channels, near 1 where the noise is what it is said to be), and
with --learn <unknown>.learned and .std for every unknown constant. docs/guide/stream.md has the details.

End of input, Ctrl-C, SIGTERM and SIGHUP end a stream with exit code 0, its snapshot written. A
snapshot that cannot be written on the way is reported, and tried again with the next. Others: 1
error, 2 wrong usage, 3 learning diverged.";

/// Longest line that is read; a longer one is broken, whatever it holds.
const LONGEST_LINE_BYTES: u64 = 1 << 20;

/// Estimate states, and learn on, from samples as they come on standard input
///
/// Samples are lines of a CSV with a header, or JSON objects; columns are found by the names of
/// inputs and measurements. An empty measurement is left out. Without a time column, samples are
/// one step apart; with one, gaps of any length are predicted over.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The run folder, or the snapshot of a stream
    run: PathBuf,
    /// Go on learning the networks and unknown constants [default: no; for a snapshot as before]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL")]
    learn: Option<bool>,
    /// Memory in samples: what the last N samples say nothing about becomes as uncertain as before
    /// any fit [default: nothing is forgotten; for a snapshot as before]
    #[arg(long, value_name = "N", value_parser = assignments::positive)]
    forget: Option<f64>,
    /// A channel more than so many standard deviations off pulls no harder than one at that
    /// distance, at least 1 [default: 10; for a snapshot as before]
    #[arg(long, value_name = "σ", value_parser = assignments::positive)]
    gate: Option<f64>,
    /// Write the model as it is at the end, with the filter, to this run folder
    #[arg(long, value_name = "FOLDER")]
    snapshot: Option<PathBuf>,
    /// Write it every N samples as well
    #[arg(long, value_name = "N", requires = "snapshot", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Replace the snapshot folder if it holds another run
    #[arg(long, requires = "snapshot")]
    force: bool,
    /// End at the first broken line; else it is reported and skipped
    #[arg(long)]
    strict: bool,
    /// Which column stands for a name of the model: --map q=y_qm_m; `t=` alone ignores times; may
    /// be repeated
    #[arg(long, value_name = "NAME=COLUMN")]
    map: Vec<String>,
    /// The group that the samples are of, where a constant varies by group
    #[arg(long, value_name = "LABEL")]
    group: Option<String>,
    /// Form of the lines out [default: that of the lines in]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// JSON lines out, the last of them an object `summary`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Csv,
    Jsonl,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    // the thread of Ctrl-C needs it until the program ends
    let fit = records::of_group(Fit::load(&arguments.run)?, arguments.group.as_deref())?;
    let fit: &'static Fit = Box::leak(Box::new(fit));
    let session = Arc::new(Mutex::new(Session::new(arguments, fit)?));
    let other = Arc::clone(&session);
    // between two lines the program waits in a read that nothing interrupts: the handler itself
    // finishes, as soon as the line at hand is done
    interrupt::finish_with(move || lock(&other).finish());
    let fed = feed(&session);
    let mut session = lock(&session);
    match fed {
        // nothing to go on from, nothing worth keeping
        Err(failure @ Failure::Library(Error::Diverged(_))) => Err(failure),
        Err(failure) => {
            session.silent = true;
            session.finish().and(Err(failure))
        }
        Ok(()) => session.finish(),
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn feed(session: &Mutex<Session>) -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    let failed = |e| Failure::Message(format!("cannot read standard input: {e}"));
    loop {
        line.clear();
        let mut limited = input.by_ref().take(LONGEST_LINE_BYTES);
        if limited.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        let whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST_LINE_BYTES;
        if !whole {
            input.skip_until(b'\n').map_err(failed)?;
        }
        let mut session = lock(session);
        if whole {
            session.take(&line)?;
        } else {
            session.pass_over()?;
        }
    }
}

/// A stream and all that belongs to it.
struct Session {
    fit: &'static Fit,
    stream: Stream<'static>,
    lines: Lines,
    format: Option<Format>,
    json: bool,
    strict: bool,
    learn: bool,
    snapshots: Option<Snapshots>,
    out: Vec<u8>,
    /// Of this session, where those of the stream may be of several.
    samples: u64,
    broken: u64,
    started: Instant,
    header_written: bool,
    /// Nobody is left to read what it says.
    silent: bool,
    finished: bool,
}

impl Session {
    fn new(arguments: &Arguments, fit: &'static Fit) -> Result<Self, Failure> {
        let mut options = fit.stream_options();
        options.learn = arguments.learn.unwrap_or(options.learn);
        options.forget = arguments.forget.or(options.forget);
        options.gate = arguments.gate.unwrap_or(options.gate);
        let mapping = Mapping::parse(&arguments.map)?;
        let snapshots = arguments.snapshot.as_ref().map(|folder| {
            // a stream that goes on replaces the snapshot that it came from
            let same = |path: &Path| path.canonicalize().ok();
            let goes_on = fit.stream.is_some() && same(folder) == same(&arguments.run);
            Snapshots::new(folder, arguments.every, arguments.force || goes_on)
        });
        Ok(Self {
            fit,
            stream: fit.stream(options)?,
            lines: Lines::new("standard input", Layout::of(&fit.model), mapping),
            format: if arguments.json {
                Some(Format::Jsonl)
            } else {
                arguments.format
            },
            json: arguments.json,
            strict: arguments.strict,
            learn: options.learn,
            snapshots: snapshots.transpose()?,
            out: vec![],
            samples: 0,
            broken: 0,
            started: Instant::now(),
            header_written: false,
            silent: false,
            finished: false,
        })
    }

    /// One line in, one line out.
    fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        match self.lines.read(line) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // without a header no line can be read
            Err(e) if self.lines.kind().is_none() => return Err(e.into()),
            Err(e) => return self.reject(e.into()),
        }
        let row = self.lines.row();
        let sample = Sample {
            time: row.time,
            input: &row.inputs,
            output: &row.outputs,
        };
        let outcome = match self.stream.step(sample) {
            Ok(outcome) => outcome,
            Err(Error::Sample(message)) => {
                let line = self.lines.line();
                let message = format!("standard input: line {line}: {message}");
                return self.reject(Error::Sample(message));
            }
            Err(e) => return Err(e.into()),
        };
        self.samples += 1;
        if outcome.restarted {
            let line = self.lines.line();
            text::note(&format!(
                "warning: line {line}: the states were lost, or the gap was too long; they start again, what was learned is kept"
            ));
        }
        self.write(&outcome)?;
        match &mut self.snapshots {
            Some(snapshots) if snapshots.due(self.samples) => {
                // the stream goes on: the next one may be written, and holds all of this one
                if let Err(error) = snapshots.write(self.fit, &self.stream) {
                    text::note(&format!(
                        "warning: {error}; the stream goes on, and the next snapshot is tried again"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A line without end.
    fn pass_over(&mut self) -> Result<(), Failure> {
        // it counts, as a comment does
        let _ = self.lines.read(b"#");
        let (line, most) = (self.lines.line(), LONGEST_LINE_BYTES);
        self.reject(Error::Sample(format!(
            "standard input: line {line} is longer than {most} bytes"
        )))
    }

    /// A line that holds no sample. Where samples have no times it was one all the same.
    fn reject(&mut self, error: Error) -> Result<(), Failure> {
        self.broken += 1;
        if self.strict {
            return Err(error.into());
        }
        text::note(&format!("warning: {error}; the line is skipped"));
        if !self.lines.timed() {
            self.stream.lose();
        }
        Ok(())
    }

    fn write(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        self.out.clear();
        let format = self.format.unwrap_or(match self.lines.kind() {
            Some(Kind::JsonLines) => Format::Jsonl,
            _ => Format::Csv,
        });
        let written = match format {
            Format::Csv => self.table_line(outcome),
            Format::Jsonl => self.object_line(outcome),
        };
        let mut out = io::stdout().lock();
        written
            .and_then(|()| out.write_all(&self.out))
            .and_then(|()| out.flush())
            .map_err(Failure::Output)
    }

    fn table_line(&mut self, outcome: &Outcome) -> io::Result<()> {
        let model = &self.fit.model;
        if !self.header_written {
            self.header_written = true;
            self.out.extend(b"t");
            for state in &model.states {
                write!(self.out, ",{0}.filtered,{0}.std", state.name)?;
            }
            for channel in &model.measurements {
                write!(self.out, ",{}.innovation", channel.name)?;
            }
            self.out.extend(b",consistency");
            for unknown in model.unknowns.iter().filter(|_| self.learn) {
                write!(self.out, ",{0}.learned,{0}.std", unknown.name)?;
            }
            self.out.push(b'\n');
        }
        let (stream, out) = (&self.stream, &mut self.out);
        write_number(out, stream.progress().time)?;
        let mut put = |value| {
            out.push(b',');
            write_number(out, value)
        };
        for (i, x) in stream.states().iter().enumerate() {
            put(*x)?;
            put(stream.deviation(i))?;
        }
        for innovation in stream.innovations() {
            put(*innovation)?;
        }
        put(outcome.consistency)?;
        for (_, value, std) in constants(model, stream, self.learn) {
            put(value)?;
            put(std)?;
        }
        out.push(b'\n');
        Ok(())
    }

    fn object_line(&mut self, outcome: &Outcome) -> io::Result<()> {
        let (model, stream) = (&self.fit.model, &self.stream);
        let names = || model.states.iter().map(|s| s.name.clone());
        let states = stream.states().iter().map(|x| json!(x));
        let deviations = (0..model.states.len()).map(|i| json!(stream.deviation(i)));
        let channels = model.measurements.iter().map(|m| m.name.clone());
        let innovations = stream.innovations().iter().map(|v| json!(v));
        let mut object = json!({
            "t": stream.progress().time,
            "states": names().zip(states).collect::<Map<_, _>>(),
            "std": names().zip(deviations).collect::<Map<_, _>>(),
            "innovation": channels.zip(innovations).collect::<Map<_, _>>(),
            "consistency": outcome.consistency,
        });
        if self.learn && !model.unknowns.is_empty() {
            let constants = constants(model, stream, self.learn);
            let fields = constants
                .map(|(name, value, std)| (name.clone(), json!({"value": value, "std": std})));
            object["unknowns"] = Value::Object(fields.collect());
        }
        serde_json::to_writer(&mut self.out, &object)?;
        self.out.push(b'\n');
        Ok(())
    }

    /// Writes the last snapshot and says how it went; once.
    fn finish(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        let mut folder = None;
        // taken: the folder is free for others, though the program may end without a return from here
        if let Some(mut snapshots) = self.snapshots.take() {
            // one before may have failed: this one is all that counts
            let _ = snapshots.write(self.fit, &self.stream);
            snapshots.wait()?;
            folder = Some(snapshots.folder.display().to_string());
        }
        if self.silent {
            return Ok(());
        }
        let (progress, seconds) = (self.stream.progress(), self.started.elapsed().as_secs_f64());
        if self.json {
            let summary = json!({ "summary": {
                "run": folder,
                "samples": self.samples,
                "broken": self.broken,
                "limited": progress.limited,
                "restarts": progress.restarts,
                "consistency": progress.consistency(),
                "seconds": seconds,
            }});
            return text::print(&format!("{summary}\n"));
        }
        let samples = text::count(self.samples as usize, "sample");
        let mut words = format!("{samples} in {}", text::seconds(seconds));
        if self.broken > 0 {
            let broken = text::count(self.broken as usize, "broken line");
            words += &format!(", {broken} skipped");
        }
        if progress.measured > 0 {
            words += &format!("; consistency {}", text::number(progress.consistency()));
        }
        if progress.limited > 0 {
            words += &format!(", {} beyond the gate", progress.limited);
        }
        text::note(&words);
        if let Some(folder) = folder {
            text::note(&format!("snapshot written to {folder}"));
        }
        Ok(())
    }
}

/// Name, value and standard deviation of the unknown constants, where they are being learned.
fn constants<'a>(
    model: &'a Model,
    stream: &'a Stream,
    learn: bool,
) -> impl Iterator<Item = (&'a String, f64, f64)> {
    let (theta, covariance) = (stream.theta(), stream.covariance());
    let unknowns = model.unknowns.iter().filter(move |_| learn);
    let pairs = unknowns.zip(theta).enumerate();
    pairs.map(|(i, (unknown, &theta))| {
        let (value, std) = unknown.value_and_std(theta, covariance.variance(i));
        (&unknown.name, value, std)
    })
}

/// Snapshots, written beside the stream: the disk may take longer than a sample.
struct Snapshots {
    folder: PathBuf,
    claim: Arc<Claim>,
    every: Option<u64>,
    replace: bool,
    writing: Option<JoinHandle<Result<(), Error>>>,
}

impl Snapshots {
    fn new(folder: &Path, every: Option<u64>, replace: bool) -> Result<Self, Error> {
        let claim = Claim::new(folder)?;
        claim.check(replace)?;
        Ok(Self {
            folder: folder.into(),
            claim: Arc::new(claim),
            every,
            replace,
            writing: None,
        })
    }

    fn due(&self, samples: u64) -> bool {
        self.every.is_some_and(|n| samples.is_multiple_of(n))
    }

    /// Begins to write one.
    ///
    /// # Errors
    /// Why the one before could not be written; this one is begun all the same.
    fn write(&mut self, fit: &'static Fit, stream: &Stream) -> Result<(), Error> {
        let before = self.wait();
        let (state, claim, replace) = (stream.state(), Arc::clone(&self.claim), self.replace);
        let write = move || claim.write(&fit.adapted(state), replace);
        self.writing = Some(std::thread::spawn(write));
        before
    }

    /// Until the one on its way is on the disk.
    fn wait(&mut self) -> Result<(), Error> {
        let Some(writing) = self.writing.take() else {
            return Ok(());
        };
        let panicked = |_| Error::Folder {
            path: self.folder.clone(),
            message: "writing the snapshot failed".into(),
        };
        writing.join().map_err(panicked)??;
        // from now on what is there is its own
        self.replace = true;
        Ok(())
    }
}
