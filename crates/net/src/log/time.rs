//! The date in its four log forms, in local time, made once per second and thread.

use std::cell::RefCell;

use weir_wire::date;

use crate::clock;

/// The texts of one second.
#[derive(Clone, Copy)]
struct Texts {
    second: u64,
    error_log: [u8; 19],
    common: [u8; 26],
    iso8601: [u8; 25],
    syslog: [u8; 15],
}

impl Texts {
    fn of(second: u64) -> Texts {
        let seconds = i64::try_from(second).unwrap_or(i64::MAX);
        let offset = clock::utc_offset_minutes(seconds);
        Texts {
            second,
            error_log: date::error_log(seconds, offset),
            common: date::common_log(seconds, offset),
            iso8601: date::iso8601(seconds, offset),
            syslog: date::syslog(seconds, offset),
        }
    }
}

fn texts() -> Texts {
    thread_local! {
        static LAST: RefCell<Option<Texts>> = const { RefCell::new(None) };
    }
    let second = clock::unix_seconds();
    LAST.with(|last| {
        let mut last = last.borrow_mut();
        match &*last {
            Some(texts) if texts.second == second => *texts,
            _ => *last.insert(Texts::of(second)),
        }
    })
}

/// `2026/11/21 12:00:00`.
pub fn error_log() -> [u8; 19] {
    texts().error_log
}

/// `$time_local`: `21/Nov/2026:12:00:00 +0000`.
pub fn common() -> [u8; 26] {
    texts().common
}

/// `$time_iso8601`: `2026-11-21T12:00:00+00:00`.
pub fn iso8601() -> [u8; 25] {
    texts().iso8601
}

/// RFC 3164's: `Nov 21 12:00:00`.
pub fn syslog() -> [u8; 15] {
    texts().syslog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_of_one_moment() {
        let texts = Texts::of(0);
        // In every time zone, the minute and the second of the epoch end in 0.
        assert!(texts.error_log.ends_with(b"0:00"));
        assert!(texts.syslog.ends_with(b"0:00"));
        assert_eq!(texts.common.get(2), Some(&b'/'));
        assert_eq!(texts.iso8601.get(10), Some(&b'T'));
        assert_eq!(texts.iso8601.get(14..19), texts.error_log.get(14..19));
    }
}
