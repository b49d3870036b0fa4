//! A fit on a disk: a folder that can be looked into, loaded and repeated.
//!
//! ```text
//! run/model.toml            the model file, letter for letter
//!     weights.safetensors   θ by network and layer, the scaling of the networks, P_θ, draws of δθ
//!     fit.json              every setting, seed, version, checksum and score: see [`Facts`]
//!     states.csv            the states over time (states_1.csv, … for several records)
//!     foreseen.csv          what was foreseen of a test (foreseen_1.csv, … for several)
//!     ensemble/1, …         the members of an ensemble, each a fit
//!     checksums.sha256      of each of these files
//!     stream.safetensors    only in the snapshot of a stream: the filter, see [`Fit::stream`]
//! ```
//!
//! [`Fit::save`] writes the folder whole or not at all; [`Fit::load`] gives back θ, scaling,
//! covariance, draws and states bit for bit, so that what is loaded predicts what was fitted.
//! Fitting the same records again with the settings in `fit.json` gives the same bits.

mod check;
mod checksums;
mod disk;
mod foreseen;
mod states;
mod stream;
mod unfinished;
mod weights;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

pub use disk::{Claim, check};
pub use unfinished::{Unfinished, begun};

use checksums::Checksums;
use weights::REPEAT_ADVICE;

use crate::Error;
use crate::fit::facts::member_folder;
use crate::fit::{Facts, Fit, Role, distinct};
use crate::model::Model;
use crate::model::network::Structure;
use crate::record::{Table, sha256, write_csv_to};

const MODEL: &str = "model.toml";
const WEIGHTS: &str = "weights.safetensors";
const FACTS: &str = "fit.json";
const STATES: &str = "states";
const FORESEEN: &str = "foreseen";
const STREAM: &str = "stream.safetensors";
const ENSEMBLE: &str = "ensemble";
const CHECKSUMS: &str = "checksums.sha256";

/// Bytes of `fit.json`, and of any other file of a fit.
const FACTS_BYTES: u64 = 16 << 20;
const FILE_BYTES: u64 = 1 << 30;

/// Times that a folder is read at the most while others replace it.
const MOST_READINGS: usize = 100;

/// The files of a fit by their path inside the folder: a folder that is on no disk.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Takes the files of a fit one by one.
type Sink<'s> = dyn FnMut(String, Vec<u8>) -> Result<(), Error> + 's;

/// Gives the bytes of a file of a fit.
type ReadFile<'f> = dyn Fn(&str) -> Result<Cow<'f, [u8]>, Error> + 'f;

impl Fit {
    /// Writes the folder, whole or not at all. One that exists is left alone; see [`Fit::replace`].
    ///
    /// # Errors
    /// [`Error::Folder`] where the folder must not be written, [`Error::Io`] where it cannot.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        Claim::new(folder)?.write(self, false)
    }

    /// The same, in place of a fit that is there already.
    ///
    /// # Errors
    /// Those of [`Fit::save`].
    pub fn replace(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        Claim::new(folder)?.write(self, true)
    }

    /// The files that [`Fit::save`] writes.
    ///
    /// # Errors
    /// [`Error::Record`] where a name of the model serves twice.
    pub fn to_files(&self) -> Result<Files, Error> {
        let mut files = Files::new();
        self.each_file(&mut |name, bytes| {
            files.insert(name, bytes);
            Ok(())
        })?;
        Ok(files)
    }

    /// Reads a folder.
    ///
    /// # Errors
    /// [`Error::Folder`] where it holds no fit, a file is damaged, or its files do not belong
    /// together; [`Error::Io`] where a file cannot be read.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let fail = |message: String| {
            Err(Error::Folder {
                path: folder.into(),
                message,
            })
        };
        if !folder.is_dir() {
            return fail("there is no such folder of a fit".into());
        }
        if !folder.join(FACTS).is_file() {
            return fail(format!(
                "this folder holds no fit: it has no {FACTS}; `latens fit … -o run` writes one"
            ));
        }
        // while its files are read, a folder may change places with a newer one: then that is read
        let mut left = MOST_READINGS;
        loop {
            left -= 1;
            let before = identity(folder);
            let failed = |e| Error::io("read", folder, e);
            let root = fs::canonicalize(folder).map_err(failed)?;
            let fit = decode(folder, &|name| {
                read_inside(&root, &folder.join(name)).map(Cow::Owned)
            });
            if left == 0 || before == identity(folder) {
                return fit;
            }
        }
    }

    /// A fit from its files; `name` is what it and its errors are called.
    ///
    /// ```
    /// use latens::Fit;
    ///
    /// let fit = latens::example_fit();
    /// let again = Fit::from_files(&fit.to_files()?, "memory")?;
    /// assert_eq!(again.theta, fit.theta);
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Fit::load`].
    pub fn from_files(files: &Files, name: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = name.as_ref();
        decode(folder, &|name| match files.get(name) {
            Some(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
            None => {
                let missing = io::Error::from(io::ErrorKind::NotFound);
                Err(Error::io("read", &folder.join(name), missing))
            }
        })
    }

    fn each_file(&self, put: &mut Sink) -> Result<(), Error> {
        self.own_files(put)?;
        for (k, member) in self.members.iter().enumerate() {
            let folder = member_folder(k);
            member.own_files(&mut |name, bytes| put(format!("{folder}/{name}"), bytes))?;
        }
        Ok(())
    }

    /// The files of this fit alone, their checksums last.
    fn own_files(&self, put: &mut Sink) -> Result<(), Error> {
        let mut checksums = Checksums::default();
        self.plain_files(&mut |name, bytes| {
            checksums.add(&name, &bytes);
            put(name, bytes)
        })?;
        put(CHECKSUMS.into(), checksums.encode())
    }

    fn plain_files(&self, put: &mut Sink) -> Result<(), Error> {
        put(MODEL.into(), self.model.text.as_bytes().to_vec())?;
        put(WEIGHTS.into(), weights::encode(self)?)?;
        let json = self.facts.to_json();
        let json = json.map_err(|e| Error::io("write", Path::new(FACTS), e.into()))?;
        put(FACTS.into(), json)?;
        let mut put_table = |name: String, table: Table| {
            let mut text = Vec::new();
            let written = write_csv_to(&mut text, &table);
            written.map_err(|e| Error::io("write", Path::new(&name), e))?;
            put(name, text)
        };
        let records = own_records(&self.facts);
        for track in &self.tracks {
            let name = numbered(STATES, track.place, records);
            put_table(name, states::table(&self.model, track)?)?;
        }
        let all = self.facts.records.len();
        for test in &self.tests {
            let name = numbered(FORESEEN, test.place - records, all - records);
            put_table(name, foreseen::table(&self.model, test)?)?;
        }
        match &self.stream {
            Some(state) => put(STREAM.into(), stream::encode(state)?),
            None => Ok(()),
        }
    }
}

/// What tells a folder from another under the same name.
#[cfg(unix)]
#[derive(PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    changed_seconds: i64,
    changed_nanoseconds: i64,
}

#[cfg(unix)]
fn identity(folder: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(folder).ok()?;
    Some(Identity {
        device: meta.dev(),
        inode: meta.ino(),
        changed_seconds: meta.ctime(),
        changed_nanoseconds: meta.ctime_nsec(),
    })
}

#[cfg(not(unix))]
fn identity(folder: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(folder).and_then(|meta| meta.modified()).ok()
}

/// A file of a folder, which may be a stranger's: no link leads out of it, nothing is waited for, and
/// there is an end.
fn read_inside(root: &Path, path: &Path) -> Result<Vec<u8>, Error> {
    let fail = |message: String| {
        Err(Error::Folder {
            path: path.into(),
            message,
        })
    };
    let failed = |e| Error::io("read", path, e);
    let real = fs::canonicalize(path).map_err(failed)?;
    if !real.starts_with(root) {
        return fail(
            "this is a link that leads out of the folder; put the file itself here".into(),
        );
    }
    if !fs::metadata(&real).map_err(failed)?.is_file() {
        return fail("this is not a file; restore it or repeat the fit".into());
    }
    let most = if path.ends_with(FACTS) {
        FACTS_BYTES
    } else {
        FILE_BYTES
    };
    let mut bytes = Vec::new();
    let mut start = fs::File::open(&real).map_err(failed)?.take(most + 1);
    start.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return fail(format!("this file has more than {} MB", most >> 20));
    }
    Ok(bytes)
}

/// Records whose states a folder has.
fn own_records(facts: &Facts) -> usize {
    let learned = facts.records.iter().filter(|r| r.role != Role::Test);
    learned.count()
}

/// The file of a record at a place among so many of its kind.
fn numbered(kind: &str, place: usize, records: usize) -> String {
    match records {
        1 => format!("{kind}.csv"),
        _ => format!("{kind}_{}.csv", place + 1),
    }
}

fn decode(folder: &Path, read: &ReadFile) -> Result<Fit, Error> {
    let failure = |name: &str, message: String| Error::Folder {
        path: folder.join(name),
        message,
    };
    let fail = |name: &str, message: String| Err(failure(name, message));
    let bytes = read(FACTS)?;
    let mut facts = match Facts::from_json(&bytes) {
        Ok(facts) => facts,
        Err(message) => return fail(FACTS, message),
    };
    // the first version wrote none
    let checksums = if facts.has_checksums() {
        Some(Checksums::decode(&read(CHECKSUMS)?))
    } else {
        None
    };
    let verified = |name: &str, bytes: &[u8]| match &checksums {
        Some(checksums) => checksums.verify(name, bytes),
        None => Ok(()),
    };
    let read_own = |name: &str| {
        let bytes = read(name)?;
        let checked = verified(name, &bytes);
        checked.map_err(|message| failure(name, message))?;
        Ok::<_, Error>(bytes)
    };
    if let Err(message) = verified(FACTS, &bytes) {
        return fail(FACTS, message);
    }
    let text = read(MODEL)?;
    if sha256(&text) != facts.model_sha256 {
        return fail(
            MODEL,
            "this file was changed after the fit, its weights belong to another model; restore it, or fit the changed model into a new folder".into(),
        );
    }
    let (name, text) = (folder.join(MODEL), String::from_utf8_lossy(&text));
    let model = if facts.means_euler() {
        let model = Model::from_earlier_text(&name.display().to_string(), &text)?;
        facts.model_sha256 = sha256(model.text.as_bytes());
        model
    } else {
        Model::from_text(&name.display().to_string(), &text)?
    };
    let model = model.for_settings(&facts.settings)?;
    let trained = facts.records.iter().filter(|r| r.role == Role::Train);
    let model = model.for_records(trained.clone().count())?;
    let model = model.for_groups(&match &facts.group {
        Some(label) => vec![label.clone()],
        None => distinct(trained.filter_map(|r| r.group.as_ref())),
    })?;
    let mut model = match facts.structure {
        Structure::Whole => model,
        simpler => model.simplified(simpler),
    };
    if let Err(message) = check::facts(&facts, &model) {
        return fail(FACTS, format!("{message}; {REPEAT_ADVICE}"));
    }
    let bytes = read_own(WEIGHTS)?;
    let precision = crate::solve::precision(&facts.settings);
    let members = members(folder, &facts, read)?;
    let weights = match weights::decode(&bytes, &mut model, precision) {
        Ok(weights) => weights,
        Err(message) => return fail(WEIGHTS, message),
    };
    let stream = match &facts.stream {
        None => None,
        Some(facts) => {
            match stream::decode(&read_own(STREAM)?, &model, &weights.theta, facts, precision) {
                Ok(state) => Some(state),
                Err(message) => return fail(STREAM, message),
            }
        }
    };
    let mut fit = Fit {
        name: folder.display().to_string(),
        model,
        theta: weights.theta,
        covariance: weights.covariance,
        draws: weights.draws,
        facts,
        tracks: vec![],
        missing: vec![],
        tests: vec![],
        members,
        stream,
    };
    let count = own_records(&fit.facts);
    let read_table = |name: &str| {
        let path = folder.join(name);
        let bytes = read_own(name)?;
        let table = Table::from_csv(&path.display().to_string(), &bytes)?;
        Ok::<_, Error>((path, table))
    };
    // states that cannot be read are no reason not to use the rest
    for place in 0..count {
        let table = read_table(&numbered(STATES, place, count));
        match table.and_then(|(path, table)| states::track(&fit, place, &path, &table)) {
            Ok(track) => fit.tracks.push(track),
            Err(e) => fit.missing.push(e.to_string()),
        }
    }
    let all = fit.facts.records.len();
    for place in count..all {
        let name = numbered(FORESEEN, place - count, all - count);
        // earlier versions kept none
        let kept = checksums.as_ref().is_some_and(|c| c.has(&name));
        let table = kept.then(|| read_table(&name));
        match table.map(|t| t.and_then(|(path, t)| foreseen::decode(&fit, place, &path, &t))) {
            Some(Ok(test)) => fit.tests.push(test),
            Some(Err(e)) => fit.missing.push(e.to_string()),
            None => {}
        }
    }
    Ok(fit)
}

/// The members of an ensemble: fits of the same model, in folders of this one.
fn members(folder: &Path, facts: &Facts, read: &ReadFile) -> Result<Vec<Fit>, Error> {
    let members = facts.ensemble.iter().enumerate().map(|(place, member)| {
        let inside = |name: &str| read(&format!("{}/{name}", member.run));
        // a folder of another model may be large: it is not read
        let bytes = inside(FACTS)?;
        let path = folder.join(&member.run);
        let failure = |message: String| Error::Folder {
            path: path.join(FACTS),
            message: format!("{message}; {REPEAT_ADVICE}"),
        };
        let member_facts = Facts::from_json(&bytes).map_err(failure)?;
        check::member(&member_facts, facts, place).map_err(failure)?;
        decode(&path, &inside)
    });
    members.collect()
}
