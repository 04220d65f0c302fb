//! The only clock of weir.
//!
//! [`now`] and [`wall`] are coarse: read once per loop turn, after `epoll_wait`,
//! so a thousand deadlines cost one clock read. Threads without a worker (the
//! control thread, tests) read the real clock on each call. Invariant: on a
//! worker, time does not move within a turn.

use crate::core;
use crate::instant::{NS_PER_MS, NS_PER_SECOND, precise_unix_ns};
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use crate::instant::{Instant, precise, precise_wall};

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

/// Nanoseconds since 1970, as coarse as [`wall`]; 0 before it.
#[inline]
fn unix_ns() -> u64 {
    core::with(|core| core.clock.unix_ns()).flatten().unwrap_or_else(precise_unix_ns)
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

/// A time in the form of C's `strftime`, in local time or in GMT. `None` if the result is empty or has more than `max`
/// bytes, or if the format contains a NUL.
pub fn strftime(format: &[u8], unix_seconds: i64, is_local: bool, max: usize) -> Option<Vec<u8>> {
    let format = std::ffi::CString::new(format).ok()?;
    crate::sys::strftime(&format, unix_seconds, is_local, max)
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
