//! The shelf: a separate thread reads the files of which the dashboard shows parts, so that no worker waits for a disk.

mod lab;

use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::UNIX_EPOCH;

use weir_dash::logs::{Logs, TAIL_BYTES_MAX, Tail};
use weir_meter::live::{ErrorClass, ErrorSample};
use weir_net::identity::assume;
use weir_net::log;
use weir_net::opening;
use weir_net::process::Identity;
use weir_net::{clock, worker};
use weir_words::Said;

use crate::live::ticket::{self, PendingQuestion};

/// Questions that wait for the thread, at most; one more is answered 503.
const QUESTIONS_MAX: usize = 8;

/// The data that a page asks for.
#[derive(Clone, Debug)]
pub enum Want {
    /// A class of errors, and lines of logs about its samples.
    Logs(ErrorClass, Vec<WantedLog>),
    /// The newest runs in a lab's folder.
    Runs(PathBuf),
    /// One of these runs.
    Run(PathBuf, String),
}

/// Where the lines of a log come from.
#[derive(Clone, Debug)]
pub enum Lines {
    /// A file, which the shelf reads.
    File(PathBuf),
    /// A program has printed them.
    Output(Result<Tail, Said>),
}

/// A log, and the samples it may contain lines about.
#[derive(Clone, Debug)]
pub struct WantedLog {
    /// Its name for the page.
    pub name: String,
    /// Where its lines come from.
    pub lines: Lines,
    /// The upstream that wrote it; empty for all upstreams.
    pub of: String,
    /// The samples, newest first.
    pub samples: Vec<ErrorSample>,
}

/// A status and a body of JSON.
pub(super) type JsonAnswer = (u16, Vec<u8>);

/// The way to the thread.
#[derive(Default)]
pub struct Shelf(OnceLock<SyncSender<PendingQuestion<Want, JsonAnswer>>>);

impl Shelf {
    /// Starts the thread, as `identity`, if it does not run; it ends with the shelf.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn open(&self, identity: Option<&Identity>) -> io::Result<()> {
        if self.0.get().is_some() {
            return Ok(());
        }
        let (send, list) = sync_channel(QUESTIONS_MAX);
        let identity = identity.cloned();
        worker::block_aside("shelf", move || {
            if assume(identity.as_ref()) {
                serve(&list);
            }
        })?;
        // Only the control thread opens it.
        drop(self.0.set(send));
        Ok(())
    }

    /// Asks; `None` if the thread does not run, too many questions wait, or it takes too long.
    pub async fn ask(&self, want: Want) -> Option<JsonAnswer> {
        ticket::ask(self.0.get()?, want).await
    }
}

fn serve(list: &Receiver<PendingQuestion<Want, JsonAnswer>>) {
    let mut lab = lab::Lab::default();
    while let Ok(errand) = list.recv() {
        // A viewer that has left needs no answer.
        if errand.is_awaited() {
            let answer = match &errand.question {
                Want::Logs(class, logs) => look(class, logs),
                Want::Runs(folder) => lab.list(folder),
                Want::Run(folder, id) => lab::show(folder, id),
            };
            errand.settle(answer);
        }
    }
}

/// The class is sent with its lines, so that no page shows lines beside samples of another moment.
fn look(class: &ErrorClass, wanted: &[WantedLog]) -> JsonAnswer {
    let seconds = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
    let local_ms = i64::from(clock::utc_offset_minutes(seconds)) * 60_000;
    let mut logs = Logs::default();
    for log in wanted {
        let samples: Vec<&ErrorSample> = log.samples.iter().collect();
        let tail = match &log.lines {
            Lines::File(file) => tail(file),
            Lines::Output(output) => output.clone(),
        };
        logs.add(&log.name, &log.of, tail, &samples, local_ms);
    }
    (200, serde_json::to_vec(&logs.beside(class)).unwrap_or_default())
}

/// The end of a log. If there is room, also the end of the rotated file before it (`FILE.1`).
fn tail(path: &Path) -> Result<Tail, Said> {
    let mut tail = end_of(path, TAIL_BYTES_MAX).map_err(|error| hindrance(&error))?;
    let room = TAIL_BYTES_MAX.saturating_sub(tail.bytes.len());
    let mut before = path.as_os_str().to_owned();
    before.push(".1");
    if tail.is_whole
        && room > 0
        && let Ok(before) = end_of(Path::new(&before), room)
    {
        let modified_ms = if tail.bytes.is_empty() { before.modified_ms } else { tail.modified_ms };
        let mut bytes = before.bytes;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.append(&mut tail.bytes);
        tail = Tail { bytes, is_whole: before.is_whole, modified_ms };
    }
    Ok(tail)
}

fn end_of(path: &Path, most: usize) -> io::Result<Tail> {
    // Opening a pipe would wait until another process writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut file = opening::open(path.as_os_str().as_bytes(), None)?;
    let facts = file.metadata()?;
    let from = facts.len().saturating_sub(most as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes)?;
    let modified = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_ms = i64::try_from(modified.as_millis()).unwrap_or(i64::MAX);
    Ok(Tail { bytes, is_whole: from == 0, modified_ms })
}

/// The reason why a file could not be read, and the remedy.
fn hindrance(error: &io::Error) -> Said {
    match error.kind() {
        ErrorKind::NotFound => Said::of_both(
            "no such file: give the path as weir sees it, not as a container sees it",
            "파일이 없습니다: 컨테이너 밖에서 weir가 보는 경로를 쓰세요",
        ),
        ErrorKind::PermissionDenied => Said::of_both(
            "weir may not read the file: allow it for the user of the workers, for example with setfacl -m \
             u:www-data:r FILE",
            "weir에 읽기 권한이 없습니다: 워커의 사용자에게 권한을 주세요. 예: setfacl -m u:www-data:r FILE",
        ),
        ErrorKind::InvalidInput => Said::of_both(
            "this is not a regular file: name the file that the application appends to",
            "일반 파일이 아닙니다: 앱이 쓰는 파일을 지정하세요",
        ),
        _ => Said::of_both(log::Os(error).to_string(), log::Os(error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_meter::live::Timestamp;

    fn asked(file: &Path) -> serde_json::Value {
        let sample = ErrorSample {
            number: 7,
            at: Timestamp(1_795_378_157_000),
            ids: vec!["0123456789abcdef".to_owned()],
            ..ErrorSample::default()
        };
        let (status, json) = look(
            &ErrorClass::default(),
            &[WantedLog {
                name: file.display().to_string(),
                lines: Lines::File(file.to_owned()),
                of: String::new(),
                samples: vec![sample],
            }],
        );
        assert_eq!(status, 200);
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn a_log_is_read_with_what_it_was_before_it_was_rotated() {
        let directory = std::env::temp_dir().join(format!("weir-shelf-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let log = directory.join("app.log");
        assert!(asked(&log)["logs"][0]["note"]["en"].as_str().unwrap().starts_with("no such file"));
        assert!(asked(&directory)["logs"][0]["note"]["en"].as_str().unwrap().starts_with("this is not a regular file"));
        fs::write(directory.join("app.log.1"), "2026-11-22T20:09:16Z old 0123456789abcdef").unwrap();
        fs::write(&log, "2026-11-22T20:09:18Z new 0123456789abcdef\n").unwrap();
        let answer = asked(&log);
        let texts = ["2026-11-22T20:09:16Z old 0123456789abcdef", "2026-11-22T20:09:18Z new 0123456789abcdef"];
        assert_eq!(answer["found"][0]["entries"], serde_json::json!(texts));
        assert_eq!(answer["found"][0]["by"], "id");
        // Only the end of a large log is read.
        let line = format!("2026-11-22T20:09:16Z {}\n", "x".repeat(200));
        fs::write(&log, line.repeat(4000) + "2026-11-22T20:09:18Z new 0123456789abcdef\n").unwrap();
        assert_eq!(tail(&log).map_err(|said| said.en().to_owned()).unwrap().bytes.len(), TAIL_BYTES_MAX);
        assert_eq!(asked(&log)["found"][0]["entries"], serde_json::json!(texts[1..]));
        fs::remove_dir_all(&directory).unwrap();
    }
}
