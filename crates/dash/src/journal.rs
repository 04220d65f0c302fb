//! A month of points in a file of fixed size: the format of its bytes, and how to read them. This module touches no
//! file.
//!
//! ```text
//! header   16 bytes  "WEIRDAY3", bytes of a record, number of records (u32, little endian)
//! record   76 bytes  at (u64), sixteen numbers (f32, NaN for none), CRC-32 of the 72 before (u32)
//! ```
//!
//! The records are in three tiers, one after the other: a day of ten seconds each, a week of two minutes each, a month
//! of ten minutes each. The place of a record follows from its tier and its time, so the file needs no other
//! bookkeeping. A record torn by a crash fails its checksum and is left out, and each tier overwrites its oldest.

use crate::point::Point;

/// One resolution of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Milliseconds that one record covers.
    pub step_ms: u64,
    /// Number of records.
    pub records: usize,
    /// Number of records of the tiers before it.
    before: usize,
}

/// The tiers, the finest first.
pub const TIERS: [Tier; 3] = [
    Tier { step_ms: 10_000, records: 8640, before: 0 },
    Tier { step_ms: 120_000, records: 5040, before: 8640 },
    Tier { step_ms: 600_000, records: 4320, before: 8640 + 5040 },
];

/// Number of all records.
const RECORDS: usize = 8640 + 5040 + 4320;
/// Size of a record in bytes.
pub const RECORD_BYTES: usize = 8 + 4 * NUMBERS + 4;
/// Size of the file in bytes.
pub const FILE_BYTES: usize = HEADER_BYTES + RECORDS * RECORD_BYTES;
/// Most points of an answer.
pub const POINTS_MAX: usize = 720;

const NUMBERS: usize = 16;
const HEADER_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"WEIRDAY3";

impl Tier {
    /// The finest tier that reaches back to a moment.
    pub fn back_to(from: u64, now: u64) -> Tier {
        let [_, _, coarsest] = TIERS;
        let reaches = |tier: &Tier| now.saturating_sub(tier.step_ms * tier.records as u64) <= from;
        TIERS.into_iter().find(reaches).unwrap_or(coarsest)
    }

    /// Position of its bytes in the file, and their number.
    pub fn place(self) -> (u64, usize) {
        ((HEADER_BYTES + self.before * RECORD_BYTES) as u64, self.records * RECORD_BYTES)
    }

    fn place_of(self, at: u64) -> u64 {
        self.place().0 + (at / self.step_ms) % self.records as u64 * RECORD_BYTES as u64
    }
}

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

/// True if an older version wrote the file: with fewer reasons, in records that weir does not read.
pub fn is_older(bytes: &[u8]) -> bool {
    bytes.starts_with(b"WEIRDAY1") || bytes.starts_with(b"WEIRDAY2")
}

/// Merges points into records: those of one step of each tier.
#[derive(Default)]
pub struct Journal([Vec<Point>; TIERS.len()]);

/// The position of a record in the file, and its bytes.
pub type Record = (u64, [u8; RECORD_BYTES]);

impl Journal {
    /// Takes a point, and returns the records that it completes. The first tier merges seconds, each later tier the
    /// records of the first.
    pub fn push(&mut self, point: Point) -> Vec<Record> {
        let [seconds, later @ ..] = &mut self.0;
        let [finest, coarser @ ..] = TIERS;
        let Some(merged) = completed(seconds, finest, point, mean) else { return Vec::new() };
        let mut records = vec![(finest.place_of(merged.at), written(&merged))];
        for (waiting, tier) in later.iter_mut().zip(coarser) {
            let whole = completed(waiting, tier, merged, highest);
            records.extend(whole.map(|whole| (tier.place_of(whole.at), written(&whole))));
        }
        records
    }
}

/// Adds a point to those of its step; if it begins a new step, returns the points of the step before as one.
fn completed(
    waiting: &mut Vec<Point>,
    tier: Tier,
    point: Point,
    merge: fn(&[Point]) -> Option<Point>,
) -> Option<Point> {
    let step = |at: u64| at / tier.step_ms;
    let begins = waiting.first().is_some_and(|first| step(first.at) != step(point.at));
    let whole = begins.then(|| merge(waiting)).flatten();
    if begins || waiting.len() >= tier.step_ms as usize {
        waiting.clear();
    }
    waiting.push(point);
    whole.map(|whole| Point { at: step(whole.at) * tier.step_ms, ..whole })
}

/// The points of a tier in order of time, from `from` to `to` and not older than the tier reaches; if there are more
/// than [`POINTS_MAX`], several become one that has the highest of each figure.
pub fn read(bytes: &[u8], tier: Tier, from: u64, to: u64) -> Vec<Point> {
    let mut points: Vec<Point> = bytes.chunks_exact(RECORD_BYTES).take(tier.records).filter_map(parsed).collect();
    points.sort_by_key(|point| point.at);
    let newest = points.last().map_or(0, |point| point.at);
    points.retain(|point| {
        point.at + tier.step_ms * tier.records as u64 > newest && point.at + tier.step_ms > from && point.at <= to
    });
    // A stretch may begin and end within a step.
    let by = points.len().div_ceil(POINTS_MAX - 1).max(1) as u64 * tier.step_ms;
    if by == tier.step_ms {
        return points;
    }
    points.chunk_by(|one, other| one.at / by == other.at / by).filter_map(highest).collect()
}

/// The mean of the points; for request times, the longest.
fn mean(points: &[Point]) -> Option<Point> {
    let count = points.len() as f32;
    let of = |pick: fn(&Point) -> f32| points.iter().map(pick).sum::<f32>() / count;
    let known = |pick: fn(&Point) -> Option<f32>| {
        let all: Vec<f32> = points.iter().filter_map(pick).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f32>() / all.len() as f32)
    };
    let (first, highest) = (points.first()?, highest(points)?);
    Some(Point {
        at: first.at,
        rps: of(|point| point.rps),
        failed: of(|point| point.failed),
        refused: known(|point| point.refused),
        upstream: known(|point| point.upstream),
        timeout: known(|point| point.timeout),
        client: known(|point| point.client),
        weir: known(|point| point.weir),
        active: of(|point| point.active),
        idle: of(|point| point.idle),
        received: of(|point| point.received),
        sent: of(|point| point.sent),
        cpu: of(|point| point.cpu),
        steal: of(|point| point.steal),
        ..highest
    })
}

/// The highest of each figure, so that no peak is lost.
fn highest(points: &[Point]) -> Option<Point> {
    let of = |pick: fn(&Point) -> f32| points.iter().map(pick).fold(0.0, f32::max);
    let known = |pick: fn(&Point) -> Option<f32>| points.iter().filter_map(pick).reduce(f32::max);
    Some(Point {
        at: points.first()?.at,
        rps: of(|point| point.rps),
        failed: of(|point| point.failed),
        refused: known(|point| point.refused),
        upstream: known(|point| point.upstream),
        timeout: known(|point| point.timeout),
        client: known(|point| point.client),
        weir: known(|point| point.weir),
        p50: known(|point| point.p50),
        p95: known(|point| point.p95),
        p99: known(|point| point.p99),
        active: of(|point| point.active),
        idle: of(|point| point.idle),
        received: of(|point| point.received),
        sent: of(|point| point.sent),
        cpu: of(|point| point.cpu),
        steal: of(|point| point.steal),
    })
}

fn numbers(point: &Point) -> [f32; NUMBERS] {
    let known = |number: Option<f32>| number.unwrap_or(f32::NAN);
    [
        point.rps,
        point.failed,
        known(point.refused),
        known(point.upstream),
        known(point.timeout),
        known(point.client),
        known(point.weir),
        known(point.p50),
        known(point.p95),
        known(point.p99),
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
    let known = |number: f32| number.is_finite().then_some(number);
    Some(Point {
        at,
        rps: next()?,
        failed: next()?,
        refused: known(next()?),
        upstream: known(next()?),
        timeout: known(next()?),
        client: known(next()?),
        weir: known(next()?),
        p50: known(next()?),
        p95: known(next()?),
        p99: known(next()?),
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

    const BEGAN: u64 = 1_795_363_200_000;
    const DAY_MS: u64 = 86_400_000;

    fn point(at: u64, rps: f32, p99: Option<f32>) -> Point {
        Point { at, rps, p99, cpu: 0.5, refused: Some(rps / 2.0), ..Point::default() }
    }

    /// A file with a point every `apart` seconds.
    fn file(from: u64, seconds: u64, apart: usize) -> Vec<u8> {
        let mut bytes = vec![0; FILE_BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&header());
        let mut journal = Journal::default();
        for second in (0..seconds).step_by(apart) {
            let p99 = (second % 10 == 3).then_some(second as f32);
            for (at, record) in journal.push(point(from + second * 1000, second as f32, p99)) {
                bytes[at as usize..at as usize + RECORD_BYTES].copy_from_slice(&record);
            }
        }
        bytes
    }

    fn tier_of(bytes: &[u8], tier: Tier) -> &[u8] {
        let (at, length) = tier.place();
        &bytes[at as usize..at as usize + length]
    }

    fn all(bytes: &[u8], tier: Tier) -> Vec<Point> {
        read(tier_of(bytes, tier), tier, 0, u64::MAX)
    }

    #[test]
    fn ten_seconds_become_one_record() {
        let points = all(&file(BEGAN, 35, 1), TIERS[0]);
        assert_eq!(points.iter().map(|point| point.rps).collect::<Vec<_>>(), [4.5, 14.5, 24.5]);
        assert_eq!(points[1].p99, Some(13.0));
        assert_eq!((points[1].p50, points[1].refused, points[1].upstream), (None, Some(7.25), None));
        assert_eq!(points[0].at, BEGAN);
    }

    #[test]
    fn a_later_tier_has_the_highest_of_the_first() {
        let points = all(&file(BEGAN, 1300, 1), TIERS[1]);
        // The last ten seconds before 120, 240, …: their mean.
        assert_eq!(points.iter().take(2).map(|point| point.rps).collect::<Vec<_>>(), [114.5, 234.5]);
        assert_eq!(points[0].p99, Some(113.0));
        let points = all(&file(BEGAN, 1300, 1), TIERS[2]);
        assert_eq!(
            points.iter().map(|point| (point.at - BEGAN, point.rps)).collect::<Vec<_>>(),
            [(0, 594.5), (600_000, 1194.5)]
        );
    }

    #[test]
    fn a_torn_record_is_left_out() {
        let mut bytes = file(BEGAN, 35, 1);
        let at = TIERS[0].place_of(BEGAN + 10_000) as usize;
        bytes[at + 9] ^= 1;
        assert_eq!(all(&bytes, TIERS[0]).len(), 2);
        assert!(read(&bytes[HEADER_BYTES..at + 20], TIERS[0], 0, u64::MAX).len() <= 1);
        assert!(is_ours(&bytes) && !is_ours(b"WEIRDAY4 and more than that") && !is_ours(b""));
        assert!(is_older(b"WEIRDAY2 and more") && !is_older(&bytes));
    }

    #[test]
    fn each_tier_holds_its_time_and_no_more() {
        let bytes = file(BEGAN, 31 * 86_400, 10);
        assert_eq!(bytes.len(), FILE_BYTES);
        for (tier, days) in TIERS.into_iter().zip([1, 7, 30]) {
            let (at, length) = tier.place();
            assert_eq!(tier.records as u64 * tier.step_ms, days * DAY_MS);
            assert!(at as usize + length <= FILE_BYTES);
            let points = all(&bytes, tier);
            let (first, last) = (points.first().unwrap().at, points.last().unwrap().at);
            assert!(last - first < days * DAY_MS && last - first > days * DAY_MS * 9 / 10, "{first} {last}");
            assert!(points.len() <= POINTS_MAX && points.len() > POINTS_MAX / 2, "{}", points.len());
            assert!(points.windows(2).all(|pair| pair[0].at < pair[1].at));
        }
    }

    #[test]
    fn a_stretch_comes_from_the_finest_tier_that_has_it() {
        let now = BEGAN + 31 * DAY_MS;
        for (days, tier) in [(0, 0), (1, 0), (2, 1), (7, 1), (8, 2), (30, 2), (300, 2)] {
            assert_eq!(Tier::back_to(now - days.min(31) * DAY_MS, now), TIERS[tier], "{days}");
        }
        let bytes = file(BEGAN, 3600, 1);
        let points = read(tier_of(&bytes, TIERS[0]), TIERS[0], BEGAN + 600_000, BEGAN + 660_000);
        assert_eq!(points.len(), 7);
        assert!(points.iter().all(|point| point.at >= BEGAN + 600_000 && point.at <= BEGAN + 660_000));
    }
}
