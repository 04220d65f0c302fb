//! A day of points in a file of fixed size: the format of its bytes, and how to read them. This module touches no
//! file.
//!
//! ```text
//! header   16 bytes  "WEIRDAY1", bytes of a record, number of records (u32, little endian)
//! record   56 bytes  at (u64), eleven numbers (f32, NaN for none), CRC-32 of the 52 before (u32)
//! ```
//!
//! The place of a record follows from its time, so the file needs no other bookkeeping. A record torn by a crash
//! fails its checksum and is left out, and a new day overwrites the day before.

use crate::point::Point;

/// Milliseconds that one record covers.
pub const STEP_MS: u64 = 10_000;
/// Number of records: a day.
pub const RECORDS: usize = 8640;
/// Size of a record in bytes.
pub const RECORD_BYTES: usize = 8 + 4 * NUMBERS + 4;
/// Size of the file in bytes.
pub const FILE_BYTES: usize = HEADER_BYTES + RECORDS * RECORD_BYTES;

const NUMBERS: usize = 11;
const HEADER_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"WEIRDAY1";

/// The header of the file.
pub fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
    header[12..].copy_from_slice(&(RECORDS as u32).to_le_bytes());
    header
}

/// True if the bytes begin with this header.
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(&header())
}

/// Merges points into records.
#[derive(Default)]
pub struct Journal(Vec<Point>);

impl Journal {
    /// Takes a point. If it begins a new record, returns the record before: its position in the file, and its bytes.
    pub fn push(&mut self, point: Point) -> Option<(u64, [u8; RECORD_BYTES])> {
        let begins = self.0.first().is_some_and(|first| first.at / STEP_MS != point.at / STEP_MS);
        let record = begins.then(|| merged(&self.0)).flatten();
        if begins || self.0.len() >= STEP_MS as usize {
            self.0.clear();
        }
        self.0.push(point);
        record.map(|point| (place(point.at), written(&point)))
    }
}

/// The points in a file in order of time, those of the last day before the newest. `None`: the file has another
/// format.
pub fn read(bytes: &[u8]) -> Option<Vec<Point>> {
    let records = bytes.strip_prefix(&header())?;
    let mut points: Vec<Point> = records.chunks_exact(RECORD_BYTES).take(RECORDS).filter_map(parsed).collect();
    points.sort_by_key(|point| point.at);
    let newest = points.last().map_or(0, |point| point.at);
    points.retain(|point| point.at + STEP_MS * RECORDS as u64 > newest);
    Some(points)
}

fn place(at: u64) -> u64 {
    let slot = (at / STEP_MS) % RECORDS as u64;
    HEADER_BYTES as u64 + slot * RECORD_BYTES as u64
}

/// The mean of the points; for request times, the longest.
fn merged(points: &[Point]) -> Option<Point> {
    let first = points.first()?;
    let count = points.len() as f32;
    let mean = |pick: fn(&Point) -> f32| points.iter().map(pick).sum::<f32>() / count;
    let longest = |pick: fn(&Point) -> Option<f32>| points.iter().filter_map(pick).reduce(f32::max);
    Some(Point {
        at: first.at / STEP_MS * STEP_MS,
        rps: mean(|point| point.rps),
        failed: mean(|point| point.failed),
        refused: None,
        p50: longest(|point| point.p50),
        p95: longest(|point| point.p95),
        p99: longest(|point| point.p99),
        active: mean(|point| point.active),
        idle: mean(|point| point.idle),
        received: mean(|point| point.received),
        sent: mean(|point| point.sent),
        cpu: mean(|point| point.cpu),
        steal: mean(|point| point.steal),
    })
}

fn numbers(point: &Point) -> [f32; NUMBERS] {
    let time = |ms: Option<f32>| ms.unwrap_or(f32::NAN);
    [
        point.rps,
        point.failed,
        time(point.p50),
        time(point.p95),
        time(point.p99),
        point.active,
        point.idle,
        point.received,
        point.sent,
        point.cpu,
        point.steal,
    ]
}

fn written(point: &Point) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&point.at.to_le_bytes());
    for (place, number) in record[8..].chunks_exact_mut(4).zip(numbers(point)) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let sum = crc32fast::hash(&record[..RECORD_BYTES - 4]);
    record[RECORD_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    record
}

fn parsed(record: &[u8]) -> Option<Point> {
    let (body, sum) = record.split_last_chunk::<4>()?;
    let (at, rest) = body.split_first_chunk::<8>()?;
    let at = u64::from_le_bytes(*at);
    if crc32fast::hash(body) != u32::from_le_bytes(*sum) || at == 0 {
        return None;
    }
    let mut numbers = rest.chunks_exact(4).filter_map(|bytes| bytes.try_into().ok().map(f32::from_le_bytes));
    let mut next = || numbers.next();
    let time = |ms: f32| ms.is_finite().then_some(ms);
    Some(Point {
        at,
        rps: next()?,
        failed: next()?,
        refused: None,
        p50: time(next()?),
        p95: time(next()?),
        p99: time(next()?),
        active: next()?,
        idle: next()?,
        received: next()?,
        sent: next()?,
        cpu: next()?,
        steal: next()?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn point(at: u64, rps: f32, p99: Option<f32>) -> Point {
        Point { at, rps, p99, cpu: 0.5, ..Point::default() }
    }

    /// A file with points of this many seconds.
    fn file(from: u64, seconds: u64) -> Vec<u8> {
        let mut bytes = vec![0; FILE_BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&header());
        let mut journal = Journal::default();
        for second in 0..seconds {
            let p99 = (second % 10 == 3).then_some(second as f32);
            if let Some((at, record)) = journal.push(point(from + second * 1000, second as f32, p99)) {
                bytes[at as usize..at as usize + RECORD_BYTES].copy_from_slice(&record);
            }
        }
        bytes
    }

    #[test]
    fn ten_seconds_become_one_record() {
        let points = read(&file(1_795_363_200_000, 35)).unwrap();
        assert_eq!(points.iter().map(|point| point.rps).collect::<Vec<_>>(), [4.5, 14.5, 24.5]);
        assert_eq!(points[1].p99, Some(13.0));
        assert_eq!(points[1].p50, None);
        assert_eq!(points[0].at, 1_795_363_200_000);
    }

    #[test]
    fn a_torn_record_is_left_out() {
        let mut bytes = file(1_795_363_200_000, 35);
        let at = place(1_795_363_210_000) as usize;
        bytes[at + 9] ^= 1;
        assert_eq!(read(&bytes).unwrap().len(), 2);
        bytes.truncate(at + 20);
        assert!(read(&bytes).unwrap().len() <= 1);
        assert_eq!(read(b"WEIRDAY2 and more than that"), None);
        assert_eq!(read(b""), None);
    }

    #[test]
    fn a_file_holds_a_day_and_no_more() {
        let bytes = file(1_795_363_200_000, 86_400 + 5_000);
        let points = read(&bytes).unwrap();
        assert!(points.len() <= RECORDS);
        let (first, last) = (points.first().unwrap().at, points.last().unwrap().at);
        assert!(last - first < 86_400_000, "{first} {last}");
        assert!(points.windows(2).all(|pair| pair[0].at < pair[1].at));
    }
}
