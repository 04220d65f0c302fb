//! Recorders: each fills the file of one `record` with exchanges, without the secrets of clients.
//!
//! ```text
//!  worker ─► block ─► queue ─► thread of a run ─► file
//! ```
//!
//! A recorder belongs to the process and to a path, and outlives reloads that leave its options as they are. While it is
//! on, it has a run: one beginning in the file, one queue, one thread, and exact totals at its end. A run ends when the
//! recorder is switched off, gets other options, or the process ends. Invariant: a worker never waits for a recorder. A
//! block that finds the queue full is dropped, and its exchanges are counted as lost.
//!
//! - `options`, `key`: what `record` says; the key of the hashes
//! - `worker`, `block`: the blocks that a worker fills and gives away
//! - `place`, `noted`: a place with `record`; the facts that weir notes about an exchange before its end
//! - `exchange`, `answer`, `messages`: an exchange as it is recorded; the body of its answer; the messages of a WebSocket
//! - `run`, `thread`, `segment`, `form`: a run, its thread; its segments in a file, composed in memory
//! - `api`: the state for the API, and its orders

pub mod answer;
pub mod api;
mod block;
mod exchange;
mod form;
pub mod key;
pub mod messages;
mod noted;
pub mod options;
pub mod place;
mod run;
mod segment;
mod thread;
pub mod worker;

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use weir_conf::Tree;
use weir_http::exchange::conf::{Conf, Location};
use weir_http::hold::board::lock;
use weir_meter::live::RecordingTotals;
use weir_net::log::file::LogFile;
use weir_net::log::{self, Level, Os};
use weir_net::process::Identity;
use weir_net::{Instant, clock};
use weir_recording::model::RecordedConfiguration;

use self::key::RecordKey;
use self::options::RecordOptions;
use self::run::RecordRun;

/// How long the end of the process waits for the ends of its runs.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Configurations that a recorder knows: exchanges may end long after a reload.
const CONFIGURATIONS_MAX: usize = 64;

/// The recorder of one file.
pub struct Recorder {
    file: Arc<LogFile>,
    /// The number of the run that exchanges go to; 0 while the recorder is off.
    number: AtomicU64,
    state: Mutex<RecorderState>,
}

/// The state that only the control thread and the API change.
#[derive(Default)]
struct RecorderState {
    /// The options in force; `None` before a configuration with this recorder is in force, and after it.
    options: Option<Arc<RecordOptions>>,
    /// The key in force.
    key: Option<RecordKey>,
    identity: Option<Identity>,
    configurations: Vec<Arc<RecordedConfiguration>>,
    /// The share that an order has set.
    share_ppm: Option<u32>,
    run: Option<Arc<RecordRun>>,
    /// The run before it, or the last one.
    last: Option<Arc<RecordRun>>,
    /// The runs before it that may not have ended.
    ended: Vec<Arc<RecordRun>>,
    /// The counts of runs that have ended.
    totals: RecordingTotals,
}

/// All recorders in use, by path.
static RECORDERS: Mutex<Vec<Weak<Recorder>>> = Mutex::new(Vec::new());

/// The number of the newest run of the process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// The file of a recording.
pub fn file(path: &str) -> Arc<LogFile> {
    LogFile::shared_record(path, check)
}

/// Refuses a file that is neither empty nor a recording.
fn check(mut file: &File) -> Result<(), String> {
    use std::io::Read;
    let mut first = [0; FIRST_BYTES];
    let mut count = 0;
    loop {
        match file.read(first.get_mut(count..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("cannot be read {}", Os(&error))),
        }
    }
    let first = first.get(..count).unwrap_or_default();
    if first.is_empty() || weir_recording::is_recording(first) {
        return Ok(());
    }
    Err("is not a recording: move it away, or name another file in \"record\"".to_owned())
}

/// Bytes that tell whether a file is a recording.
const FIRST_BYTES: usize = 64;

impl Recorder {
    /// The recorder of that path. Nothing is opened here, so that reading a configuration changes nothing.
    pub fn shared(path: &str) -> Arc<Recorder> {
        let mut all = lock(&RECORDERS);
        if let Some(known) = all.iter().filter_map(Weak::upgrade).find(|known| known.file.path() == path) {
            return known;
        }
        all.retain(|known| known.strong_count() > 0);
        let recorder = Arc::new(Recorder { file: file(path), number: AtomicU64::new(0), state: Mutex::default() });
        all.push(Arc::downgrade(&recorder));
        recorder
    }

    /// Its file.
    pub fn file(&self) -> &Arc<LogFile> {
        &self.file
    }

    /// The number of the run that exchanges go to; 0 while the recorder is off.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The run that exchanges go to.
    fn run(&self) -> Option<Arc<RecordRun>> {
        lock(&self.state).run.clone()
    }

    /// Puts options in force. The run goes on if they are those before.
    fn put_in_force(self: &Arc<Recorder>, options: &Arc<RecordOptions>, conf: Arc<RecordedConfiguration>) {
        let mut state = lock(&self.state);
        let before = state.configurations.len().saturating_sub(CONFIGURATIONS_MAX - 1);
        state.configurations.drain(..before);
        state.configurations.push(conf.clone());
        if let Some(run) = &state.run {
            run.know(conf);
        }
        if state.options.as_deref() == Some(&**options) {
            return;
        }
        // Orders were for the options before.
        state.share_ppm = None;
        state.options = Some(options.clone());
        if options.starts_on { self.begin(&mut state, None) } else { self.end(&mut state) }
    }

    /// No configuration in force has it.
    fn leave(&self) {
        let mut state = lock(&self.state);
        self.end(&mut state);
        state.options = None;
        state.key = None;
        state.configurations.clear();
    }

    /// Begins a run, in place of the present one.
    fn begin(self: &Arc<Recorder>, state: &mut RecorderState, until: Option<Instant>) {
        self.end(state);
        let Some(options) = state.options.clone() else { return };
        let Some(key) = state.key.clone().or_else(|| key::make().inspect_err(tell).ok()) else { return };
        state.key = Some(key.clone());
        let share_ppm = state.share_ppm.unwrap_or(options.share_ppm);
        let number = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
        let known = state.configurations.clone();
        let run = RecordRun::new(number, options, share_ppm, key, known, until);
        let (ended, before): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.ended).into_iter().partition(|run| run.has_ended());
        ended.iter().for_each(|run| run.add_to(&mut state.totals));
        let own = Arc::downgrade(self);
        let expire = move || own.upgrade().iter().for_each(|recorder| recorder.expire(number));
        match thread::start(&run, self.file.clone(), before.clone(), state.identity.clone(), expire) {
            Ok(()) => {
                state.ended = before;
                state.run = Some(run);
                self.number.store(number, Ordering::Release);
            }
            Err(error) => {
                state.ended = before;
                tell(&format!("thread could not be started {}", Os(&error)));
            }
        }
    }

    /// Ends the run.
    fn end(&self, state: &mut RecorderState) {
        self.number.store(0, Ordering::Release);
        if let Some(run) = state.run.take() {
            run.close();
            state.last = Some(run.clone());
            state.ended.push(run);
        }
    }

    /// The time of a run is over.
    fn expire(&self, number: u64) {
        let mut state = lock(&self.state);
        if self.number() == number {
            self.end(&mut state);
        }
    }
}

fn tell(what: &String) {
    log::global(Level::Alert, format_args!("record: {what}"));
}

/// Reads the keys that files have, before the configuration comes into force.
///
/// # Errors
/// A file cannot be read, or has no key.
pub fn read_keys(conf: &Conf) -> Result<(), String> {
    crate::declared(conf)
        .record
        .options
        .iter()
        .filter_map(|options| options.key.file())
        .try_for_each(|path| key::read(path).map(drop))
}

/// Makes the files of keys that are missing, and gives them to the user of the server.
///
/// # Errors
/// A file cannot be made.
pub fn prepare(conf: &Conf, identity: Option<&Identity>) -> Result<(), String> {
    let options = &crate::declared(conf).record.options;
    options.iter().filter_map(|options| options.key.file()).try_for_each(|path| key::prepare(path, identity))
}

/// Puts the recorders of a configuration in force, and ends those that it does not have.
pub fn put_in_force(conf: &Conf, tree: &Tree, before: Option<&Conf>, identity: Option<&Identity>) {
    let declared = &crate::declared(conf).record;
    if let Some(before) = before {
        let left = crate::declared(before).record.recorders.iter();
        left.filter(|old| !declared.recorders.iter().any(|new| Arc::ptr_eq(old, new))).for_each(|old| old.leave());
    }
    if declared.recorders.is_empty() {
        return;
    }
    let configuration = Arc::new(described(conf, tree));
    for (recorder, options) in declared.recorders.iter().zip(&declared.options) {
        {
            let mut state = lock(&recorder.state);
            state.identity = identity.cloned();
            let is_known = state.options.as_ref().is_some_and(|known| known.key == options.key);
            match options.key.file() {
                // The file may be another one now.
                Some(path) => match key::read(path) {
                    Ok(key) => {
                        if state.key.as_ref() != Some(&key) {
                            state.options = None;
                        }
                        state.key = Some(key);
                    }
                    Err(what) => {
                        tell(&what);
                        continue;
                    }
                },
                None if is_known => {}
                None => state.key = None,
            }
        }
        recorder.put_in_force(options, configuration.clone());
    }
}

/// Ends all runs of the process, and waits until their files are complete.
pub fn close() {
    let all: Vec<Arc<Recorder>> = lock(&RECORDERS).iter().filter_map(Weak::upgrade).collect();
    let until = clock::precise() + END_PATIENCE;
    for recorder in &all {
        recorder.leave();
    }
    for run in all.iter().flat_map(|recorder| std::mem::take(&mut lock(&recorder.state).ended)) {
        run.wait(until);
    }
}

/// Another process records into the files from now on; or it has ended, and this one records again.
pub fn succeed(conf: &Conf, is_succeeded: bool) {
    let declared = &crate::declared(conf).record;
    for recorder in &declared.recorders {
        let mut state = lock(&recorder.state);
        if is_succeeded {
            recorder.end(&mut state);
        } else if state.run.is_none() && state.options.as_ref().is_some_and(|options| options.starts_on) {
            recorder.begin(&mut state, None);
        }
    }
}

/// A configuration with its locations, as a recording names them.
fn described(conf: &Conf, tree: &Tree) -> RecordedConfiguration {
    let path = tree.files.iter().find(|source| !source.is_command_line).map(|source| source.name.clone());
    RecordedConfiguration {
        generation: conf.generation.into(),
        path: path.unwrap_or_default(),
        locations: conf.locations.iter().map(|location| place(location, tree)).collect(),
    }
}

/// `FILE:LINE location /x`.
fn place(location: &Location, tree: &Tree) -> String {
    let what = match &location.pattern {
        Some(pattern) => format!("location {}", pattern.label()),
        None if location.name.is_empty() => "server".to_owned(),
        None => format!("a block in location {}", location.name),
    };
    let at = crate::values(location).record.at;
    match at.and_then(|at| Some((tree.source(&at)?, at.line))) {
        Some((source, line)) => format!("{}:{line} {what}", source.name),
        None => what,
    }
}
