//! The only clock of weir.
//!
//! [`now`] and [`wall`] are coarse: read once per loop turn, after `epoll_wait`,
//! so a thousand deadlines cost one clock read. Threads without a worker (the
//! control thread, tests) read the real clock on each call. Invariant: on a
//! worker, time does not move within a turn.

use crate::core;
use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment of the monotonic clock, in nanoseconds: a subtraction takes ten times as long with `std`'s type, and a
/// request makes ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The earliest moment.
    const FIRST: Instant = Instant(NonZeroU64::MIN);

    fn of_ns(ns: u64) -> Instant {
        NonZeroU64::new(ns).map_or(Instant::FIRST, Instant)
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[inline]
    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.ns_since(earlier))
    }

    /// As [`Instant::saturating_duration_since`], in whole milliseconds.
    #[inline]
    pub fn ms_since(self, earlier: Instant) -> u64 {
        self.ns_since(earlier) / NS_PER_MS
    }

    /// As [`Instant::saturating_duration_since`], in whole microseconds.
    #[inline]
    pub fn us_since(self, earlier: Instant) -> u64 {
        self.ns_since(earlier) / NS_PER_US
    }

    /// Nanoseconds of the monotonic clock, `CLOCK_MONOTONIC`: the clock that the kernel's own programs read.
    #[inline]
    pub fn ns(self) -> u64 {
        self.0.get()
    }

    #[inline]
    fn ns_since(self, earlier: Instant) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates 584 years after the start of the clock.
    #[inline]
    fn add(self, after: Duration) -> Instant {
        let ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(ns))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`Instant::saturating_duration_since`].
    #[inline]
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

pub(crate) const NS_PER_US: u64 = 1_000;
pub(crate) const NS_PER_MS: u64 = 1_000_000;
pub(crate) const NS_PER_SECOND: u64 = 1_000_000_000;

/// The worker's time: monotonic, as of the start of this loop turn.
#[inline]
pub fn now() -> Instant {
    core::with(|core| core.clock.now()).flatten().unwrap_or_else(precise)
}

/// The wall clock as of the start of this loop turn.
///
/// Derived from [`now`]; a step of the system clock is seen within a second.
pub fn wall() -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(unix_ns())
}

/// The clock read now, for the rare measurement within a turn.
pub fn precise() -> Instant {
    Instant::of_ns(crate::sys::monotonic_ns())
}

/// The wall clock read now.
pub fn precise_wall() -> SystemTime {
    SystemTime::now()
}

/// Nanoseconds since 1970, as coarse as [`wall`]; 0 before it.
fn unix_ns() -> u64 {
    core::with(|core| core.clock.unix_ns()).flatten().unwrap_or_else(|| since_epoch(precise_wall()))
}

/// Milliseconds since 1970, as coarse as [`wall`].
#[inline]
pub fn unix_ms() -> u64 {
    unix_ns() / NS_PER_MS
}

/// [`wall`] as whole seconds since 1970; 0 before it.
#[inline]
pub fn unix_seconds() -> u64 {
    unix_ns() / NS_PER_SECOND
}

/// The offset of local time from UTC at that moment, in minutes; for logs.
///
/// It takes some hundred nanoseconds: call it once a second, not for each line.
pub fn utc_offset_minutes(unix_seconds: i64) -> i32 {
    crate::sys::utc_offset_minutes(unix_seconds)
}

/// The value of a Date field, RFC 9110 §5.6.7, made once per second and thread.
pub fn http_date() -> [u8; 29] {
    thread_local! {
        static LAST: RefCell<(u64, [u8; 29])> = const { RefCell::new((u64::MAX, [0; 29])) };
    }
    let second = unix_seconds();
    LAST.with(|last| {
        let mut last = last.borrow_mut();
        if last.0 != second {
            *last = (second, format_http_date(second));
        }
        last.1
    })
}

/// Nanoseconds since 1970; 0 before it.
fn since_epoch(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// How long [`wall`] trusts the monotonic clock before it looks again.
const WALL_TRUST_NS: u64 = NS_PER_SECOND;

/// A worker's clock.
pub(crate) struct Clock {
    start: Cell<Option<Instant>>,
    now: Cell<Option<Instant>>,
    now_ms: Cell<u64>,
    now_ms_up: Cell<u64>,
    /// The wall clock at `now`, in nanoseconds since 1970.
    unix_ns: Cell<u64>,
    /// When the wall clock was last read: since then weir extrapolates it.
    wall_read: Cell<Option<Instant>>,
}

impl Clock {
    pub(crate) const fn new() -> Clock {
        Clock {
            start: Cell::new(None),
            now: Cell::new(None),
            now_ms: Cell::new(0),
            now_ms_up: Cell::new(0),
            unix_ns: Cell::new(0),
            wall_read: Cell::new(None),
        }
    }

    /// Reads the clock; the first call starts it.
    pub(crate) fn tick(&self) {
        let now = precise();
        let before = self.now.replace(Some(now)).unwrap_or(now);
        let start = self.start.get().unwrap_or(now);
        self.start.set(Some(start));
        let since = now.ns_since(start);
        self.now_ms.set(since / NS_PER_MS);
        self.now_ms_up.set(since.div_ceil(NS_PER_MS));
        match self.wall_read.get() {
            Some(read) if now.ns_since(read) < WALL_TRUST_NS => {
                self.unix_ns.set(self.unix_ns.get().saturating_add(now.ns_since(before)));
            }
            Some(_) | None => {
                self.unix_ns.set(since_epoch(precise_wall()));
                self.wall_read.set(Some(now));
            }
        }
    }

    /// Stops it: [`now`] reads the real clock again.
    pub(crate) fn stop(&self) {
        self.now.set(None);
        self.start.set(None);
        self.wall_read.set(None);
    }

    #[inline]
    pub(crate) fn now(&self) -> Option<Instant> {
        self.now.get()
    }

    #[inline]
    fn unix_ns(&self) -> Option<u64> {
        self.now.get().map(|_| self.unix_ns.get())
    }

    /// Milliseconds since the clock started, rounded down.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// The moment `after` from now on this clock, rounded up so that it is never early.
    #[inline]
    pub(crate) fn after_ms(&self, after: Duration) -> u64 {
        self.now_ms_up.get().saturating_add(whole_ms_up(after))
    }

    /// A moment on this clock, rounded up; moments before its start are 0.
    pub(crate) fn at_ms(&self, at: Instant) -> u64 {
        at.ns_since(self.start.get().unwrap_or(at)).div_ceil(NS_PER_MS)
    }
}

fn whole_ms_up(time: Duration) -> u64 {
    let ms = u64::from(time.subsec_nanos().div_ceil(1_000_000));
    time.as_secs().saturating_mul(1000).saturating_add(ms)
}

/// Seconds since 1970 as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn format_http_date(second: u64) -> [u8; 29] {
    const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let (days, rest) = (second / 86_400, second % 86_400);
    let (year, month, day) = civil(days);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    if let Some(name) = DAYS.get((days % 7) as usize) {
        out[0..3].copy_from_slice(*name);
    }
    let at = (month as usize - 1) * 3;
    if let Some(name) = MONTHS.get(at..at + 3) {
        out[8..11].copy_from_slice(name);
    }
    let mut two = |at: usize, value: u64| {
        out[at] = b'0' + (value / 10 % 10) as u8;
        out[at + 1] = b'0' + (value % 10) as u8;
    };
    two(5, day);
    two(12, year / 100);
    two(14, year % 100);
    two(17, rest / 3600);
    two(20, rest / 60 % 60);
    two(23, rest % 60);
    out
}

/// Days since 1970 as year, month (1-12), day (1-31), proleptic Gregorian.
fn civil(days: u64) -> (u64, u64, u64) {
    // Count in 400-year eras from 1 March of year 0, so the leap day comes last.
    let z = days + 719_468;
    let (era, in_era) = (z / 146_097, z % 146_097);
    let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(second: u64, expect: &str) {
        assert_eq!(String::from_utf8_lossy(&format_http_date(second)), expect);
    }

    #[test]
    fn dates() {
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT");
        check(951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
        check(4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT");
    }

    #[test]
    fn deadlines_round_up_and_now_rounds_down() {
        let clock = Clock::new();
        clock.tick();
        let start = clock.now().unwrap_or_else(precise);
        assert_eq!(clock.now_ms(), 0);
        assert_eq!(clock.at_ms(start), 0);
        assert_eq!(clock.at_ms(start + Duration::from_nanos(1)), 1);
        assert_eq!(clock.at_ms(start + Duration::from_millis(5)), 5);
        assert_eq!(clock.after_ms(Duration::from_micros(1500)), 2);
        assert_eq!(clock.after_ms(Duration::MAX), u64::MAX);
    }

    #[test]
    fn local_time_is_within_a_day_of_utc() {
        // The widest zones are -12:00 and +14:00; historic ones have odd minutes, never more hours.
        for second in [0, 784_111_777, 4_107_542_400] {
            assert!((-16 * 60..=16 * 60).contains(&utc_offset_minutes(second)));
        }
    }

    #[test]
    fn off_a_worker_time_is_real() {
        let (a, b) = (now(), now());
        assert!(b >= a);
        assert_eq!(http_date().get(26..), Some(&b"GMT"[..]));
    }
}
