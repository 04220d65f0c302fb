//! The hall: it holds the data of the dashboard, and viewers wait here for the next second.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use weir_dash::Dashboard;
use weir_dash::configuration::{Configuration, Configurations};
use weir_dash::journal::{self, Journal, Tier};
use weir_dash::point::Point;
use weir_dash::vmstat::Rows;
use weir_http::hold::board::lock;
use weir_meter::live::Snapshot;

use super::alert::Alerts;
use super::host::HostThread;
use super::shelf::Shelf;

/// Viewers of one edge, at most; one more is answered 503.
pub const VIEWERS_MAX: usize = 64;

/// Seconds kept for slow viewers.
const DELTAS_MAX: usize = 8;

/// Opens the file of the history, which weir makes if it is missing.
///
/// # Errors
/// The system's.
pub fn make_history(path: &Path) -> io::Result<File> {
    weir_net::path::create(path, 0o640)
}

/// The data that an edge shows. It outlives reloads.
#[derive(Default)]
pub struct Hall {
    /// Only the observer uses it, except for the moment in which the day's history is read.
    studio: Mutex<Studio>,
    /// A viewer locks it for a moment to take an event.
    board: Mutex<Board>,
    viewers: AtomicUsize,
    /// Ten minutes of the machine.
    machine: Mutex<Rows>,
    configurations: Mutex<Configurations>,
    /// The thread that reads files for viewers.
    pub shelf: Shelf,
    /// The thread that looks at the machine for viewers.
    pub host: HostThread,
    /// Who gets the changes of the verdict.
    pub alerts: Alerts,
}

#[derive(Default)]
struct Studio {
    dashboard: Dashboard,
    day: Option<Day>,
}

/// The history on disk.
struct Day {
    path: PathBuf,
    file: File,
    journal: Journal,
}

/// The events that viewers can get.
#[derive(Default)]
struct Board {
    /// The number of the newest second.
    newest: u64,
    /// The newest whole document, and its number.
    whole: Option<(u64, Arc<[u8]>)>,
    /// The changes after it, and some before it.
    deltas: VecDeque<(u64, Arc<[u8]>)>,
    wants_whole: bool,
    /// The snapshot behind the newest second.
    snapshot: Option<Arc<Snapshot>>,
    wakers: Vec<Waker>,
}

impl Hall {
    /// From now on, records the history in this file, or in no file: 30 days in a file of fixed size. The history of
    /// an older version begins anew.
    ///
    /// # Errors
    /// The file cannot be opened, or it contains something else.
    pub fn keep_day(&self, path: Option<&Path>) -> io::Result<()> {
        let mut studio = self.studio();
        if studio.day.as_ref().map(|day| day.path.as_path()) == path {
            return Ok(());
        }
        studio.day = None;
        let Some(path) = path else { return Ok(()) };
        let file = make_history(path)?;
        let length = file.metadata()?.len();
        let mut head = journal::header();
        if length > 0 {
            let count = file.read_at(&mut head, 0)?;
            let found = head.get(..count).unwrap_or_default();
            if journal::is_older(found) {
                // Its records fail the checksums of this version, so no moment shows them as points.
                file.write_all_at(&journal::header(), 0)?;
            } else if !journal::is_ours(found) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is not a history that weir wrote"));
            }
        } else {
            file.write_all_at(&head, 0)?;
        }
        file.set_len(journal::FILE_BYTES as u64)?;
        studio.day = Some(Day { path: path.to_owned(), file, journal: Journal::default() });
        Ok(())
    }

    /// Whether the history is kept on disk.
    pub fn keeps_day(&self) -> bool {
        self.studio().day.is_some()
    }

    /// The history on disk from one moment to another, in milliseconds since 1970: at most
    /// [`POINTS_MAX`](journal::POINTS_MAX) points. Reads the finest tier that reaches back so far; empty if no history is kept.
    pub fn day(&self, from: u64, to: u64, now: u64) -> Vec<Point> {
        let Some(file) = self.studio().day.as_ref().and_then(|day| day.file.try_clone().ok()) else {
            return Vec::new();
        };
        let read = |tier: Tier, from: u64| {
            let (at, length) = tier.place();
            let mut bytes = vec![0; length];
            match file.read_exact_at(&mut bytes, at) {
                Ok(()) => journal::read(&bytes, tier, from, to),
                Err(_) => Vec::new(),
            }
        };
        let tier = Tier::back_to(from, now);
        let mut points = read(tier, from);
        let [finest, ..] = journal::TIERS;
        if tier != finest {
            // The newest step of a coarse tier is not whole yet.
            points.extend(read(finest, points.last().map_or(from, |last| last.at + tier.step_ms)));
        }
        points
    }

    /// Shows the next second. Runs on the observer's thread: it makes the bytes once, for all viewers.
    pub fn observe(&self, snapshot: Arc<Snapshot>) {
        lock(&self.machine).push(&snapshot);
        let mut studio = self.studio();
        let second = studio.dashboard.observe(snapshot.clone());
        self.alerts.observe(&second.verdict, snapshot.nginx.timestamp.0);
        self.board().snapshot = Some(snapshot);
        if let Some(day) = &mut studio.day {
            for (at, record) in day.journal.push(second.point) {
                // If the disk is full, the history loses one record.
                let _ = day.file.write_all_at(&record, at);
            }
        }
        if self.viewers.load(Ordering::Relaxed) == 0 {
            let mut board = self.board();
            board.whole = None;
            board.deltas.clear();
            return;
        }
        let wants_whole = std::mem::take(&mut self.board().wants_whole);
        let Some(frame) = studio.dashboard.frame(wants_whole) else { return };
        drop(studio);
        let mut board = self.board();
        board.newest = frame.seq;
        if board.deltas.len() >= DELTAS_MAX {
            board.deltas.pop_front();
        }
        board.deltas.push_back((frame.seq, frame.delta));
        if let Some(whole) = frame.whole {
            board.whole = Some((frame.seq, whole));
        }
        let wakers = std::mem::take(&mut board.wakers);
        drop(board);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The newest snapshot; `None` before the first second.
    pub fn newest(&self) -> Option<Arc<Snapshot>> {
        self.board().snapshot.clone()
    }

    /// A place for a viewer; `None` when [`VIEWERS_MAX`] watch.
    pub fn enter(self: &Arc<Hall>) -> Option<Viewer> {
        let viewer = Viewer { hall: self.clone(), seen: 0 };
        (self.viewers.fetch_add(1, Ordering::Relaxed) < VIEWERS_MAX).then_some(viewer)
    }

    /// Ten minutes of the machine, as [`Rows::json`] gives them.
    pub fn machine(&self) -> Value {
        lock(&self.machine).json()
    }

    /// A configuration came into force.
    pub fn load(&self, configuration: Configuration) {
        lock(&self.configurations).load(configuration);
    }

    /// weir refused a reload, for these reasons.
    pub fn refuse(&self, at_ms: u64, why: Vec<String>) {
        lock(&self.configurations).refuse(at_ms, why);
    }

    /// The configuration in force, as [`Configurations::json`] gives it.
    pub fn configuration(&self, shows_private: bool) -> Value {
        lock(&self.configurations).json(shows_private)
    }

    fn studio(&self) -> MutexGuard<'_, Studio> {
        lock(&self.studio)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }
}

impl Board {
    /// The whole document of the newest second. A feed may begin with an older one, because the changes follow.
    fn document(&mut self) -> Option<Arc<[u8]>> {
        let whole = self.whole.as_ref().filter(|(seq, _)| *seq == self.newest).map(|(_, bytes)| bytes.clone());
        self.wants_whole |= whole.is_none();
        whole
    }

    /// The event after the second with this number; the whole document if there is no number.
    fn after(&mut self, seen: &mut u64) -> Option<Arc<[u8]>> {
        if *seen > 0 {
            if *seen >= self.newest {
                return None;
            }
            if let Some((seq, bytes)) = self.deltas.iter().find(|(seq, _)| *seq == *seen + 1) {
                *seen = *seq;
                return Some(bytes.clone());
            }
        }
        // A whole document is usable as long as all changes after it are still there.
        let oldest = self.deltas.front().map_or(u64::MAX, |(seq, _)| *seq);
        match &self.whole {
            Some((seq, bytes)) if *seq == self.newest || oldest <= *seq + 1 => {
                *seen = *seq;
                Some(bytes.clone())
            }
            _ => {
                self.wants_whole = true;
                None
            }
        }
    }

    /// Wakes this viewer in the next second.
    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        if !self.wakers.iter().any(|known| known.will_wake(context.waker())) {
            // At most one for each viewer.
            self.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// A viewer of the dashboard.
pub struct Viewer {
    hall: Arc<Hall>,
    /// The number of the last second it got; 0 for none.
    seen: u64,
}

impl Viewer {
    /// The next event's bytes: first the whole document, then the changes.
    pub fn poll_next(&mut self, context: &Context<'_>) -> Poll<Arc<[u8]>> {
        let mut board = self.hall.board();
        match board.after(&mut self.seen) {
            Some(bytes) => Poll::Ready(bytes),
            None => board.wait(context),
        }
    }

    /// The whole document of the newest second: not older than a second.
    pub fn poll_document(&mut self, context: &Context<'_>) -> Poll<Arc<[u8]>> {
        let mut board = self.hall.board();
        match board.document() {
            Some(bytes) => Poll::Ready(bytes),
            None => board.wait(context),
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.hall.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn next(viewer: &mut Viewer) -> Option<String> {
        match viewer.poll_next(&Context::from_waker(Waker::noop())) {
            Poll::Ready(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            Poll::Pending => None,
        }
    }

    fn is(event: Option<String>, seq: u64, kind: &str) -> bool {
        event.is_some_and(|text| text.starts_with(&format!("id: {seq}\nevent: {kind}\ndata: {{")))
    }

    struct Clock(Snapshot);

    impl Clock {
        fn tick(&mut self, hall: &Hall) {
            self.0.nginx.timestamp.0 += 1000;
            hall.observe(Arc::new(self.0.clone()));
        }
    }

    #[test]
    fn a_viewer_gets_the_whole_and_then_changes() {
        let (hall, mut clock) = (Arc::new(Hall::default()), Clock(Snapshot::example()));
        clock.tick(&hall);
        let mut first = hall.enter().unwrap();
        assert_eq!(next(&mut first), None);
        clock.tick(&hall);
        assert!(is(next(&mut first), 1, "whole"));
        assert_eq!(next(&mut first), None);
        clock.tick(&hall);
        assert!(is(next(&mut first), 2, "delta"));
        // A viewer that asks for the document alone gets no old one: the document comes with the next second.
        let mut asks = hall.enter().unwrap();
        let mut document = || asks.poll_document(&Context::from_waker(Waker::noop()));
        assert!(document().is_pending());
        clock.tick(&hall);
        assert!(matches!(document(), Poll::Ready(bytes) if bytes.starts_with(b"id: 3\nevent: whole")));
        assert!(is(next(&mut first), 3, "delta"));
        // A later viewer gets the same whole document and the changes after it.
        let mut second = hall.enter().unwrap();
        assert!(is(next(&mut second), 3, "whole"));
        assert_eq!(next(&mut second), None);
        clock.tick(&hall);
        clock.tick(&hall);
        let mut third = hall.enter().unwrap();
        assert!(is(next(&mut third), 3, "whole"));
        assert!(is(next(&mut third), 4, "delta"));
        assert!(is(next(&mut third), 5, "delta"));
        assert_eq!(next(&mut third), None);
    }

    #[test]
    fn one_who_is_too_slow_gets_the_whole_again() {
        let (hall, mut clock) = (Arc::new(Hall::default()), Clock(Snapshot::example()));
        let mut slow = hall.enter().unwrap();
        assert_eq!(next(&mut slow), None);
        clock.tick(&hall);
        assert!(is(next(&mut slow), 1, "whole"));
        for _ in 0..DELTAS_MAX + 2 {
            clock.tick(&hall);
        }
        assert_eq!(next(&mut slow), None);
        clock.tick(&hall);
        assert!(is(next(&mut slow), DELTAS_MAX as u64 + 4, "whole"));
        assert!(hall.board().deltas.len() <= DELTAS_MAX);
    }

    #[test]
    fn nothing_is_made_for_nobody() {
        let (hall, mut clock) = (Arc::new(Hall::default()), Clock(Snapshot::example()));
        drop(hall.enter().unwrap());
        clock.tick(&hall);
        assert_eq!(hall.board().newest, 0);
        let all: Vec<_> = (0..VIEWERS_MAX).map(|_| hall.enter().unwrap()).collect();
        assert!(hall.enter().is_none());
        drop(all);
        assert!(hall.enter().is_some());
    }

    #[test]
    fn a_day_is_kept_in_a_file_and_found_again() {
        let directory = std::env::temp_dir().join(format!("weir-hall-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("day");
        let mut clock = Clock(Snapshot::example());
        {
            let hall = Hall::default();
            assert!(hall.day(0, u64::MAX, 0).is_empty());
            hall.keep_day(Some(&path)).unwrap();
            for _ in 0..25 {
                clock.tick(&hall);
            }
            assert_eq!(hall.day(0, u64::MAX, 0).len(), 2);
            // A month of which ten minutes are not whole yet ends with the newest seconds.
            assert_eq!(hall.day(0, u64::MAX, 40 * 86_400_000).len(), 2);
        }
        let hall = Hall::default();
        hall.keep_day(Some(&path)).unwrap();
        assert_eq!(hall.day(0, u64::MAX, 0).len(), 2);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), journal::FILE_BYTES as u64);
        // The file of an older version begins anew.
        std::fs::write(&path, [b"WEIRDAY1".as_slice(), &[1; 500_000]].concat()).unwrap();
        let hall = Hall::default();
        hall.keep_day(Some(&path)).unwrap();
        assert!(hall.day(0, u64::MAX, 0).is_empty());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), journal::FILE_BYTES as u64);
        drop(hall);
        std::fs::write(&path, "somebody's thesis").unwrap();
        assert_eq!(Hall::default().keep_day(Some(&path)).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
