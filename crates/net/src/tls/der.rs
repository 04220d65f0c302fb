//! Reads a certificate's names and times, only to explain a refusal: webpki decides about trust.
//!
//! It also reads certificates that webpki refuses to read, such as those of version 1 (RFC 5280 §4.1).

/// The fields of a certificate that are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certificate<'a> {
    /// The issuer's name as written.
    pub(super) issuer: &'a [u8],
    /// The subject's name as written.
    pub(super) subject: &'a [u8],
    /// Seconds since 1970.
    pub(super) not_before: i64,
    /// Seconds since 1970.
    pub(super) not_after: i64,
    /// The last CN of the subject.
    pub(super) common_name: Option<&'a str>,
    /// Whether its subjectAltName names hosts.
    pub(super) has_dns_names: bool,
}

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;

pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
/// `[0] EXPLICIT`, the version.
const VERSION: u8 = 0xa0;
/// `[3] EXPLICIT`, the extensions.
const EXTENSIONS: u8 = 0xa3;
/// `[2]` of GeneralName.
const DNS_NAME: u8 = 0x82;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
/// 2.5.29.17
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 29, 17];

impl<'a> Certificate<'a> {
    /// Reads a certificate; `None` if it is not one.
    pub(super) fn read(der: &'a [u8]) -> Option<Certificate<'a>> {
        let mut body = Items(Items(Items(der).want(SEQUENCE)?).want(SEQUENCE)?);
        let mut serial = body.next()?;
        if serial.tag == VERSION {
            serial = body.next()?;
        }
        debug_assert_ne!(serial.tag, VERSION);
        body.want(SEQUENCE)?;
        let issuer = body.want(SEQUENCE)?;
        let mut validity = Items(body.want(SEQUENCE)?);
        let (not_before, not_after) = (seconds(validity.next()?)?, seconds(validity.next()?)?);
        let subject = body.want(SEQUENCE)?;
        body.want(SEQUENCE)?;
        let extensions = body.find(|item| item.tag == EXTENSIONS).map_or(&[][..], |item| item.value);
        Some(Certificate {
            issuer,
            subject,
            not_before,
            not_after,
            common_name: common_name(subject),
            has_dns_names: has_dns_names(extensions),
        })
    }

    /// Whether its subject is also its issuer.
    pub(super) fn is_self_signed(&self) -> bool {
        self.issuer == self.subject
    }
}

fn common_name(name: &[u8]) -> Option<&str> {
    let sets = Items(name).filter(|item| item.tag == SET);
    let pairs = sets.flat_map(|set| Items(set.value));
    let values = pairs.filter_map(|pair| {
        let mut pair = Items(pair.value);
        (pair.want(OBJECT_ID)? == COMMON_NAME).then(|| pair.next())?
    });
    values.last().and_then(|value| std::str::from_utf8(value.value).ok())
}

fn has_dns_names(extensions: &[u8]) -> bool {
    let Some(list) = Items(extensions).want(SEQUENCE) else {
        return false;
    };
    Items(list).any(|extension| {
        let mut extension = Items(extension.value);
        if extension.want(OBJECT_ID) != Some(SUBJECT_ALT_NAME) {
            return false;
        }
        let value = extension.find(|item| item.tag == OCTET_STRING);
        let names = value.and_then(|value| Items(value.value).want(SEQUENCE)).unwrap_or_default();
        Items(names).any(|name| name.tag == DNS_NAME)
    })
}

/// One element.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) tag: u8,
    pub(super) value: &'a [u8],
    /// The element with its tag and length.
    pub(super) raw: &'a [u8],
}

/// The elements of a constructed value, as far as they can be read.
pub(super) struct Items<'a>(pub(super) &'a [u8]);

impl<'a> Items<'a> {
    /// The value of the next element, if it has this tag.
    pub(super) fn want(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|item| item.tag == tag).map(|item| item.value)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let whole = self.0;
        let (&tag, rest) = whole.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // 0x80 is BER's unknown length; no certificate is longer than 4 GiB.
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        let raw = whole.get(..whole.len() - rest.len()).unwrap_or_default();
        Some(Item { tag, value, raw })
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 §4.1.2.5) as seconds since 1970.
pub(super) fn seconds(time: Item<'_>) -> Option<i64> {
    let digits = time.value.strip_suffix(b"Z")?;
    let number = |from: usize| -> Option<i64> {
        let pair = digits.get(from..from + 2)?;
        pair.iter().all(u8::is_ascii_digit).then(|| i64::from(pair[0] - b'0') * 10 + i64::from(pair[1] - b'0'))
    };
    let (year, at) = match time.tag {
        UTC_TIME => (number(0)? + if number(0)? < 50 { 2000 } else { 1900 }, 2),
        GENERALIZED_TIME => (number(0)? * 100 + number(2)?, 4),
        _ => return None,
    };
    let (month, day) = (number(at)?, number(at + 2)?);
    let of_day = number(at + 4)? * 3600 + number(at + 6)? * 60 + number(at + 8)?;
    Some(days(year, month, day) * 86_400 + of_day)
}

/// Days from 1970-01-01 in the Gregorian calendar, years counted from March so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (tag, text, wanted) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20400101000000Z", Some(2_208_988_800)),
            (GENERALIZED_TIME, "20000229120000Z", Some(951_825_600)),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "70010100000xZ", None),
            (GENERALIZED_TIME, "20400101000000", None),
            (SEQUENCE, "20400101000000Z", None),
        ] {
            assert_eq!(seconds(Item { tag, value: text.as_bytes(), raw: &[] }), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_certificate() {
        for bytes in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x30\x02\x30\x00", b"-----BEGIN"] {
            assert!(Certificate::read(bytes).is_none());
        }
    }
}
