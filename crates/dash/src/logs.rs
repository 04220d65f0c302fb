//! Finds the log lines of a failed request: lines with its id, or lines from its time.
//!
//! The caller reads the files; this module gets the ends of files as bytes. A line without a time belongs to the line
//! before, so that a stack trace stays whole.

mod moment;
pub mod plain;

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use weir_meter::live::{ErrorClass, ErrorSample};

use moment::Moment;
use weir_words::Said;

/// Bytes at the end of a log that are searched, including its predecessor's.
pub const TAIL_BYTES_MAX: usize = 512 << 10;
/// Most entries of one log that are shown for a sample.
pub const ENTRIES_SHOWN_MAX: usize = 10;
/// Most bytes of all entries in one answer; further entries are counted.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Most entries of a log that are kept while it is searched.
const ENTRIES_MAX: usize = 20_000;
/// Most entries from one sample's time among which the important ones are chosen.
const CANDIDATES_MAX: usize = 2000;
/// Tolerance for differences between clocks and for late lines.
const SLACK_MS: i64 = 1000;
/// Time zones differ by multiples of this,
const QUARTER_MS: i64 = 15 * 60_000;
/// by at most this much,
const AHEAD_MS_MAX: i64 = 14 * 3_600_000;
/// and the last change of a file is at most this long after the time in its last line.
const WRITTEN_WITHIN_MS: i64 = 2 * 60_000;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The end of a log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tail {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// True if the bytes begin at the start of a file.
    pub is_whole: bool,
    /// Time of the file's last change, Unix milliseconds.
    pub modified_ms: i64,
}

/// How a sample's entries were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// They contain the request's id.
    Id,
    /// They are from the time of the request, and may belong to other requests.
    Time,
}

/// The entries of one sample in one log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The sample's number.
    pub sample: u64,
    /// The index of the log in the list.
    pub log: usize,
    /// How the entries were found.
    pub by: By,
    /// The entries, in the order of the log.
    pub entries: Vec<String>,
    /// Number of further entries.
    pub more: usize,
}

/// A log that was searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// The file.
    pub file: String,
    /// Its owner: an upstream's name or a server's address; empty if it is for all.
    pub of: String,
    /// A problem or a limitation, for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Said>,
}

/// The log data for the page, about the samples of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Logs {
    /// The logs.
    pub logs: Vec<Log>,
    /// The found entries, log by log.
    pub found: Vec<Found>,
    #[serde(skip)]
    bytes: usize,
}

impl Logs {
    /// Adds a log and its entries about these samples, newest first; `local_ms` is how far this machine's time is
    /// ahead of UTC.
    pub fn add(&mut self, file: &str, of: &str, tail: Result<Tail, Said>, samples: &[&ErrorSample], local_ms: i64) {
        let log = self.logs.len();
        let note = match tail {
            Ok(tail) => {
                let (found, note) = search(&tail, samples, local_ms, log);
                for mut one in found {
                    let all = one.entries.len();
                    one.entries.retain(|entry| {
                        self.bytes += entry.len();
                        self.bytes <= ANSWER_BYTES_MAX
                    });
                    one.more += all - one.entries.len();
                    self.found.push(one);
                }
                note
            }
            Err(why) => Some(why),
        };
        self.logs.push(Log { file: file.to_owned(), of: of.to_owned(), note });
    }

    /// These logs together with the class of their samples.
    pub fn beside<'l>(&'l self, class: &'l ErrorClass) -> impl Serialize + 'l {
        #[derive(Serialize)]
        struct Told<'l> {
            #[serde(flatten)]
            class: &'l ErrorClass,
            #[serde(flatten)]
            logs: &'l Logs,
        }
        Told { class, logs: self }
    }
}

/// A line with a time, and the following lines without one.
struct Entry<'t> {
    text: &'t [u8],
    moment: Option<Moment>,
    tells: OnceCell<bool>,
}

impl Entry<'_> {
    /// The part that is shown.
    fn head(&self) -> &[u8] {
        self.text.get(..self.text.len().min(plain::ENTRY_BYTES_MAX)).unwrap_or_default()
    }

    /// True if it reports a problem; computed once for all samples.
    fn tells(&self) -> bool {
        *self.tells.get_or_init(|| TROUBLE.iter().any(|word| has(self.head(), word)))
    }
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window.eq_ignore_ascii_case(part))
}

fn search(tail: &Tail, samples: &[&ErrorSample], local_ms: i64, log: usize) -> (Vec<Found>, Option<Said>) {
    let mut entries = entries(tail);
    settle(entries.make_contiguous(), tail.modified_ms, local_ms);
    let named = named(&entries, samples);
    let found = samples.iter().enumerate().filter_map(|(place, sample)| {
        let by_id = named.iter().filter(|(_, of)| *of == place).map(|(at, _)| *at).collect::<Vec<_>>();
        let (by, picked, more) = if by_id.is_empty() {
            let near: Vec<usize> = of_time(&entries, sample);
            let (picked, more) = telling(&entries, near, sample);
            (By::Time, picked, more)
        } else {
            let more = by_id.len().saturating_sub(ENTRIES_SHOWN_MAX);
            (By::Id, by_id.into_iter().skip(more).collect(), more)
        };
        let entries: Vec<String> =
            picked.into_iter().filter_map(|at| Some(plain::shown(entries.get(at)?.text))).collect();
        (!entries.is_empty()).then_some(Found { sample: sample.number, log, by, entries, more })
    });
    let found = found.collect();
    (found, note(&entries, tail, samples))
}

/// A problem that prevents finding entries.
fn note(entries: &VecDeque<Entry<'_>>, tail: &Tail, samples: &[&ErrorSample]) -> Option<Said> {
    if tail.bytes.is_empty() {
        return Some(Said::of_both("the log is empty", "로그가 비어 있습니다"));
    }
    let first = entries.iter().find_map(|entry| entry.moment);
    let oldest = samples.iter().map(|sample| window(sample).0).min()?;
    match first {
        None => Some(Said::of_both(
            "weir cannot read the time of its lines: the search finds only lines with a request's id",
            "줄의 시각을 읽을 수 없어 요청 ID가 있는 줄만 찾습니다",
        )),
        Some(first) if !tail.is_whole && first.ms > oldest => Some(Said::of_both(
            format!("weir searches only its last {} KiB, and the oldest requests are earlier", TAIL_BYTES_MAX >> 10),
            format!("끝 {} KiB만 찾습니다. 가장 오래된 요청은 그 앞에 있습니다", TAIL_BYTES_MAX >> 10),
        )),
        Some(_) => None,
    }
}

fn entries(tail: &Tail) -> VecDeque<Entry<'_>> {
    let mut out: VecDeque<Entry<'_>> = VecDeque::new();
    let mut from = match tail.is_whole {
        true => 0,
        // If the bytes begin within a line, skip that line.
        false => tail.bytes.iter().position(|byte| *byte == b'\n').map_or(tail.bytes.len(), |at| at + 1),
    };
    let mut begun = from;
    while let Some(rest) = tail.bytes.get(from..).filter(|rest| !rest.is_empty()) {
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = rest.get(..length).unwrap_or_default();
        let moment = moment::find(line, tail.modified_ms);
        let end = from + length;
        match out.back_mut() {
            Some(last) if moment.is_none() && last.moment.is_some() => {
                last.text = tail.bytes.get(begun..end).unwrap_or_default();
            }
            _ => {
                begun = from;
                if out.len() >= ENTRIES_MAX {
                    out.pop_front();
                }
                out.push_back(Entry { text: line, moment, tells: OnceCell::new() });
            }
        }
        from = end + 1;
    }
    out
}

/// Sets the zone of times without a zone: the zone in which the last line's time is near the file's last change,
/// otherwise this machine's zone. Moves times without a date back by days if they would be later than the entry after
/// them.
fn settle(entries: &mut [Entry<'_>], modified_ms: i64, local_ms: i64) {
    let unsaid = entries.iter().rev().find_map(|entry| entry.moment.filter(|moment| !moment.has_zone));
    let ahead = unsaid.map_or(0, |last| {
        let ahead = last.ms - modified_ms;
        let rounded = (ahead + QUARTER_MS / 2).div_euclid(QUARTER_MS) * QUARTER_MS;
        let is_plain = (ahead - rounded).abs() <= WRITTEN_WITHIN_MS && rounded.abs() <= AHEAD_MS_MAX;
        if is_plain { rounded } else { local_ms }
    });
    let mut later = i64::MAX;
    for moment in entries.iter_mut().rev().filter_map(|entry| entry.moment.as_mut()) {
        if !moment.has_zone {
            moment.ms -= ahead;
        }
        if !moment.has_date && later < i64::MAX && moment.ms > later + HOUR_MS {
            let days = (moment.ms - later - HOUR_MS).div_euclid(DAY_MS) + 1;
            moment.ms -= days * DAY_MS;
        }
        later = moment.ms;
    }
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Shortest id in bytes: a shorter text occurs in lines by chance.
pub const ID_BYTES_MIN: usize = 8;
/// Longest id in bytes.
pub const ID_BYTES_MAX: usize = 128;

/// True if the text may be the id of a request.
pub fn is_id(text: &[u8]) -> bool {
    (ID_BYTES_MIN..=ID_BYTES_MAX).contains(&text.len()) && text.iter().all(|byte| is_id_byte(*byte))
}

/// The entries that contain a sample's id, as pairs of entry index and sample index.
fn named(entries: &VecDeque<Entry<'_>>, samples: &[&ErrorSample]) -> Vec<(usize, usize)> {
    let mut wanted: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (place, sample) in samples.iter().enumerate() {
        for id in sample.ids.iter().filter(|id| is_id(id.as_bytes())) {
            wanted.entry(id.as_bytes()).or_default().push(place);
        }
    }
    let mut out = Vec::new();
    if wanted.is_empty() {
        return out;
    }
    for (at, entry) in entries.iter().enumerate() {
        let mut add = |token: &[u8]| {
            for place in wanted.get(token).into_iter().flatten() {
                if out.last() != Some(&(at, *place)) {
                    out.push((at, *place));
                }
            }
        };
        for token in entry.text.split(|byte| !is_id_byte(*byte)).filter(|token| token.len() >= ID_BYTES_MIN) {
            let token = trimmed(token);
            add(token);
            // `traceparent` and similar fields join ids with dashes.
            if token.contains(&b'-') {
                token.split(|byte| *byte == b'-').filter(|part| part.len() >= 16).for_each(&mut add);
            }
        }
    }
    out.dedup();
    out
}

/// Removes the punctuation after an id at the end of a sentence.
fn trimmed(mut token: &[u8]) -> &[u8] {
    while let [rest @ .., b'.' | b'-'] = token {
        token = rest;
    }
    token
}

/// The time of a sample's request.
fn window(sample: &ErrorSample) -> (i64, i64) {
    let end = i64::try_from(sample.at.0).unwrap_or(i64::MAX - SLACK_MS);
    let took = i64::try_from(sample.took_us / 1000).unwrap_or(0);
    (end.saturating_sub(took).saturating_sub(SLACK_MS), end.saturating_add(SLACK_MS))
}

fn of_time(entries: &VecDeque<Entry<'_>>, sample: &ErrorSample) -> Vec<usize> {
    let (from, to) = window(sample);
    let is_near = |entry: &Entry<'_>| entry.moment.is_some_and(|at| at.ms <= to && at.ms + at.grain_ms > from);
    entries.iter().enumerate().filter(|(_, entry)| is_near(entry)).map(|(at, _)| at).take(CANDIDATES_MAX).collect()
}

/// Words that mean a problem.
const TROUBLE: [&[u8]; 7] = [b"error", b"exception", b"fatal", b"panic", b"warn", b"fail", b"timeout"];

/// The most important entries: those with the path, then those that report a problem, then the newest.
fn telling(entries: &VecDeque<Entry<'_>>, near: Vec<usize>, sample: &ErrorSample) -> (Vec<usize>, usize) {
    let path = sample.request.split_once(' ').map_or("", |(_, path)| path);
    let mut ranked: Vec<(u8, usize)> = near
        .into_iter()
        .filter_map(|at| {
            let entry = entries.get(at)?;
            let names_path = path.len() > 1 && has(entry.head(), path.as_bytes());
            Some((2 * u8::from(names_path) + u8::from(entry.tells()), at))
        })
        .collect();
    ranked.sort_unstable_by(|one, other| other.cmp(one));
    let more = ranked.len().saturating_sub(ENTRIES_SHOWN_MAX);
    ranked.truncate(ENTRIES_SHOWN_MAX);
    let mut picked: Vec<usize> = ranked.into_iter().map(|(_, at)| at).collect();
    picked.sort_unstable();
    (picked, more)
}

#[cfg(test)]
mod tests;
