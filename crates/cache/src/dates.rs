//! Dates in fields that determine lifetimes: only the three forms of RFC 9110 §5.6.7.
//!
//! nginx's parser (`weir_wire::date`) accepts imprecise dates of clients; here an invalid date must not make an answer
//! fresh until 2050. Any case is accepted, because the date is still clear.

use weir_wire::date;

/// The longest date: names of days such as `Sunday` and `Wednesday` differ in length.
const DATE_BYTES_MAX: usize = 33;

/// Reads a date in one of the three forms as seconds since 1970; `None` for any other text.
pub fn read(text: &[u8]) -> Option<i64> {
    let mut space = [0; DATE_BYTES_MAX];
    let usual = space.get_mut(..text.len())?;
    usual.copy_from_slice(text);
    usual.make_ascii_lowercase();
    if !is_well_formed(usual) {
        return None;
    }
    let month = if memchr::memchr(b',', usual).is_some() { month_after_day(usual)? } else { 4 };
    usual.get_mut(month)?.make_ascii_uppercase();
    date::parse_http_date(usual)
}

/// The position of the month's name: after `, dd` and one byte.
fn month_after_day(text: &[u8]) -> Option<usize> {
    Some(memchr::memchr(b',', text)? + 5)
}

const DAYS: [&[u8]; 7] = [b"sun", b"mon", b"tue", b"wed", b"thu", b"fri", b"sat"];
const LONG_DAYS: [&[u8]; 7] = [b"sunday", b"monday", b"tuesday", b"wednesday", b"thursday", b"friday", b"saturday"];

/// `0` stands for a digit, `s` for a digit or a space, `a` for a letter; other characters stand for themselves.
fn is_well_formed(text: &[u8]) -> bool {
    let forms: [(&[&[u8]], &[u8]); 3] = [
        (&DAYS, b", 00 aaa 0000 00:00:00 gmt"),
        (&LONG_DAYS, b", 00-aaa-00 00:00:00 gmt"),
        (&DAYS, b" aaa s0 00:00:00 0000"),
    ];
    forms
        .iter()
        .any(|(days, form)| days.iter().any(|day| text.strip_prefix(*day).is_some_and(|rest| follows(rest, form))))
}

fn follows(text: &[u8], form: &[u8]) -> bool {
    text.len() == form.len()
        && text.iter().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b's' => byte.is_ascii_digit() || *byte == b' ',
            b'a' => byte.is_ascii_lowercase(),
            other => byte == other,
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_forms_and_no_other() {
        let time = 784_111_777;
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(time)),
            ("SUN, 06 NOV 1994 08:49:37 gmt", Some(time)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(time)),
            ("Sun Nov  6 08:49:37 1994", Some(time)),
            ("Wednesday, 06-Nov-94 08:49:37 GMT", Some(time)),
            ("Thursday, 18-Aug-50 02:01:18 GMT", Some(2_544_400_878)),
            ("Sun, 06 Nov 1994 08:49:37 UTC", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT+1", None),
            ("Sun, 06 Nov 94 08:49:37 GMT", None),
            ("Sun 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06  Nov  1994 08:49:37 GMT", None),
            ("Sun, 06-Nov-1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08.49.37 GMT", None),
            ("Sun, 06 Nov 1994 8:49:37 GMT", None),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
            ("Son, 06 Nov 1994 08:49:37 GMT", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(text: Vec<u8>) {
            read(&text);
        }

        #[test]
        fn what_is_written_is_read(seconds in 0..date::SECONDS_MAX) {
            prop_assert_eq!(read(&date::http_date(seconds)), Some(seconds));
        }
    }
}
