//! Dates in HTTP and in logs, pure over seconds since 1970 (RFC 9110 §5.6.7).
//!
//! Not a clock and not a time zone database: the caller passes the time and the offset of its zone from UTC in
//! minutes. Times before 1970 are written as 1970, times after the year 9999 as its last second.

const WEEK: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

const DAY: i64 = 86400;

/// 9999-12-31T23:59:59Z: the formats have only four digits for the year.
pub const SECONDS_MAX: i64 = 253_402_300_799;

/// A point in time, split into its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Four digits.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 is Thursday, the first day of 1970.
    pub weekday: u8,
}

impl Civil {
    /// Splits seconds since 1970 into parts; clipped to 1970..=9999.
    pub fn of(seconds: i64) -> Civil {
        let seconds = seconds.clamp(0, SECONDS_MAX);
        let days = seconds / DAY;
        let rest = seconds % DAY;
        // Years begin in March, so that the leap day is a year's last; eras are
        // 400 years of 146097 days (719468 days are from 0000-03-01 to 1970).
        let shifted = days + 719_468;
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Civil {
            year: year as u16,
            month: month as u8,
            day: day as u8,
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
            weekday: (days % 7) as u8,
        }
    }

    fn month_name(self) -> &'static [u8; 3] {
        MONTHS.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or(b"Jan")
    }

    fn week_name(self) -> &'static [u8; 3] {
        WEEK.get(usize::from(self.weekday)).copied().unwrap_or(b"Thu")
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`: Date, Last-Modified, Expires.
pub fn http_date(seconds: i64) -> [u8; 29] {
    let civil = Civil::of(seconds);
    let mut line = Fixed::new();
    line.text(civil.week_name()).text(b", ").two(civil.day).text(b" ");
    line.text(civil.month_name()).text(b" ").four(civil.year).text(b" ");
    line.time(civil).text(b" GMT");
    line.bytes
}

/// `Sun, 06-Nov-94 08:49:37 GMT`: for cookies, as nginx writes it. From 2038 on the year has four digits: RFC 6265
/// §5.1.1 reads two digits as a year from 1970 to 2069.
pub fn cookie_date(seconds: i64) -> Vec<u8> {
    let civil = Civil::of(seconds);
    let mut line = Fixed::<29>::new();
    line.text(civil.week_name()).text(b", ").two(civil.day).text(b"-");
    line.text(civil.month_name()).text(b"-");
    if civil.year > 2037 {
        line.four(civil.year);
    } else {
        line.two((civil.year % 100) as u8);
    }
    line.text(b" ").time(civil).text(b" GMT");
    line.written().to_vec()
}

/// `06/Nov/1994:09:49:37 +0100`: nginx's `$time_local`.
pub fn common_log(seconds: i64, offset_minutes: i32) -> [u8; 26] {
    let civil = local(seconds, offset_minutes);
    let mut line = Fixed::new();
    line.two(civil.day).text(b"/").text(civil.month_name()).text(b"/");
    line.four(civil.year).text(b":").time(civil).text(b" ").zone(offset_minutes, b"");
    line.bytes
}

/// `1994-11-06T09:49:37+01:00`: nginx's `$time_iso8601`.
pub fn iso8601(seconds: i64, offset_minutes: i32) -> [u8; 25] {
    let civil = local(seconds, offset_minutes);
    let mut line = Fixed::new();
    line.four(civil.year).text(b"-").two(civil.month).text(b"-").two(civil.day).text(b"T");
    line.time(civil).zone(offset_minutes, b":");
    line.bytes
}

/// `1994/11/06 09:49:37`: the error log.
pub fn error_log(seconds: i64, offset_minutes: i32) -> [u8; 19] {
    let civil = local(seconds, offset_minutes);
    let mut line = Fixed::new();
    line.four(civil.year).text(b"/").two(civil.month).text(b"/").two(civil.day).text(b" ");
    line.time(civil);
    line.bytes
}

/// `Nov  6 09:49:37`: syslog.
pub fn syslog(seconds: i64, offset_minutes: i32) -> [u8; 15] {
    let civil = local(seconds, offset_minutes);
    let mut line = Fixed::new();
    line.text(civil.month_name()).text(b" ");
    if civil.day < 10 {
        line.text(&[b' ', b'0' + civil.day]);
    } else {
        line.two(civil.day);
    }
    line.text(b" ").time(civil);
    line.bytes
}

/// Reads an HTTP date in any of its three forms: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`,
/// `Sun Nov  6 08:49:37 1994`.
///
/// As lenient as nginx's ngx_parse_http_time: the day's name and the text after the date are ignored. Two-digit years
/// below 70 are in this century. Seconds since 1970, negative before.
pub fn parse_http_date(text: &[u8]) -> Option<i64> {
    let gap = text.iter().position(|&b| b == b',' || b == b' ')?;
    let is_asctime = text.get(gap) == Some(&b' ');
    let mut read = Reader { text, at: gap + 1 };
    read.spaces();
    // nginx: the shortest form has 18 bytes from here on.
    if text.len().saturating_sub(read.at) < 18 {
        return None;
    }
    let (year, month, day, seconds);
    if is_asctime {
        month = read.month()?;
        read.expect(b' ')?;
        read.skip(b' ');
        day = read.day()?;
        read.expect(b' ')?;
        seconds = read.time()?;
        read.expect(b' ')?;
        year = read.digits(4)?;
    } else {
        day = read.digits(2)?;
        let separator = read.byte().filter(|b| matches!(b, b' ' | b'-'))?;
        month = read.month()?;
        read.expect(separator)?;
        year = if separator == b' ' {
            read.digits(4)?
        } else {
            let year = read.digits(2)?;
            year + if year < 70 { 2000 } else { 1900 }
        };
        read.expect(b' ')?;
        seconds = read.time()?;
    }
    Some(days(year, month, day)? * DAY + seconds)
}

fn local(seconds: i64, offset_minutes: i32) -> Civil {
    Civil::of(seconds.saturating_add(i64::from(offset_minutes) * 60))
}

/// Days from 1970-01-01 to a date that exists.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > last {
        return None;
    }
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.byte()? == wanted).then_some(())
    }

    fn skip(&mut self, byte: u8) {
        if self.text.get(self.at) == Some(&byte) {
            self.at += 1;
        }
    }

    fn spaces(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|&&b| b == b' ').count();
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.byte().filter(u8::is_ascii_digit)?;
            value = value * 10 + i64::from(byte - b'0');
        }
        Some(value)
    }

    /// One or two digits.
    fn day(&mut self) -> Option<i64> {
        let first = self.digits(1)?;
        match self.text.get(self.at) {
            Some(b' ') => Some(first),
            _ => Some(first * 10 + self.digits(1)?),
        }
    }

    fn month(&mut self) -> Option<i64> {
        let name = self.text.get(self.at..self.at + 3)?;
        let index = MONTHS.iter().position(|month| *month == name)?;
        self.at += 3;
        i64::try_from(index + 1).ok()
    }

    fn time(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.expect(b':')?;
        let minute = self.digits(2)?;
        self.expect(b':')?;
        let second = self.digits(2)?;
        (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
    }
}

/// A line with a known maximum length; text that does not fit is left out.
struct Fixed<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Fixed<N> {
    fn new() -> Self {
        Fixed { bytes: [b' '; N], at: 0 }
    }

    fn text(&mut self, text: &[u8]) -> &mut Self {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + text.len()) {
            place.copy_from_slice(text);
            self.at += text.len();
        }
        self
    }

    /// The text so far; a line may be shorter than its room.
    fn written(&self) -> &[u8] {
        self.bytes.get(..self.at).unwrap_or_default()
    }

    fn two(&mut self, value: u8) -> &mut Self {
        self.text(&[b'0' + value / 10 % 10, b'0' + value % 10])
    }

    fn four(&mut self, value: u16) -> &mut Self {
        self.two((value / 100) as u8).two((value % 100) as u8)
    }

    fn time(&mut self, civil: Civil) -> &mut Self {
        self.two(civil.hour).text(b":").two(civil.minute).text(b":").two(civil.second)
    }

    fn zone(&mut self, offset_minutes: i32, separator: &[u8]) -> &mut Self {
        let ahead = offset_minutes.unsigned_abs();
        self.text(if offset_minutes < 0 { b"-" } else { b"+" });
        self.two((ahead / 60 % 100) as u8).text(separator).two((ahead % 60) as u8)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// 1994-11-06T08:49:37Z, the date of the RFC.
    const NOVEMBER: i64 = 784_111_777;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn formats() {
        assert_eq!(text(&http_date(NOVEMBER)), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(&http_date(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(&http_date(951_782_400)), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(text(&http_date(-5)), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(&http_date(i64::MAX)), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(text(&cookie_date(NOVEMBER)), "Sun, 06-Nov-94 08:49:37 GMT");
        assert_eq!(text(&cookie_date(1_136_214_245)), "Mon, 02-Jan-06 15:04:05 GMT");
        assert_eq!(text(&cookie_date(2_145_916_799)), "Thu, 31-Dec-37 23:59:59 GMT");
        assert_eq!(text(&cookie_date(2_145_916_800)), "Fri, 01-Jan-2038 00:00:00 GMT");
        assert_eq!(text(&cookie_date(i64::MAX)), "Fri, 31-Dec-9999 23:59:59 GMT");
        assert_eq!(text(&common_log(NOVEMBER, 60)), "06/Nov/1994:09:49:37 +0100");
        assert_eq!(text(&common_log(NOVEMBER, -570)), "05/Nov/1994:23:19:37 -0930");
        assert_eq!(text(&iso8601(NOVEMBER, 0)), "1994-11-06T08:49:37+00:00");
        assert_eq!(text(&error_log(NOVEMBER, 0)), "1994/11/06 08:49:37");
        assert_eq!(text(&syslog(NOVEMBER, 0)), "Nov  6 08:49:37");
        assert_eq!(text(&syslog(NOVEMBER + 10 * DAY, 0)), "Nov 16 08:49:37");
    }

    #[test]
    fn parses_the_three_forms() {
        for form in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "Sun,   06 Nov 1994 08:49:37 GMT",
            "x, 06 Nov 1994 08:49:37",
        ] {
            assert_eq!(parse_http_date(form.as_bytes()), Some(NOVEMBER), "{form}");
        }
        assert_eq!(parse_http_date(b"Thursday, 01-Jan-70 00:00:00 GMT"), Some(0));
        assert_eq!(parse_http_date(b"Fri, 31-Dec-69 00:00:00 GMT"), Some(3_155_673_600));
        assert_eq!(parse_http_date(b"Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
    }

    #[test]
    fn refuses_what_is_no_date() {
        for text in [
            "",
            " ",
            ",",
            "Sun",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 00:60:00 GMT",
            "Sun, 06 Nov 1994 00:00:60 GMT",
            "Sun, 31 Nov 1994 00:00:00 GMT",
            "Sun, 29 Feb 1900 00:00:00 GMT",
            "Sun, 06 Nox 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov 1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 94  ",
        ] {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for day in 0..150_000 {
            let seconds = day * DAY + day % DAY;
            assert_eq!(parse_http_date(&http_date(seconds)), Some(seconds));
        }
    }
}
