//! A certificate in words, as OpenSSL prints it: nginx's `$ssl_client_…`.

use super::der::{Flaw, Time, sets};
use super::x509::X509;
use aws_lc_rs::digest;
use std::fmt::Write;

/// A certificate that can be described; borrows its DER.
pub struct Described<'a>(X509<'a>);

/// Attributes of names by object identifier, with OpenSSL's abbreviations.
const ATTRIBUTES: [(&[u8], &str); 20] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 13], "description"),
    (&[0x55, 4, 15], "businessCategory"),
    (&[0x55, 4, 17], "postalCode"),
    (&[0x55, 4, 41], "name"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 46], "dnQualifier"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

const UTF8_STRING: u8 = 12;
const BMP_STRING: u8 = 30;
/// Types whose bytes are characters of Latin-1: T61, IA5, Printable, Numeric, Visible. Universal is not one of them.
const BYTE_STRINGS: [u8; 5] = [18, 19, 20, 22, 26];

impl<'a> Described<'a> {
    /// Reads a certificate in DER; `Err` says why it cannot.
    pub fn read(der: &'a [u8]) -> Result<Described<'a>, Flaw> {
        X509::read(der).map(Described)
    }

    /// PEM with a line end behind each line.
    pub fn pem(&self) -> String {
        pem(self.0.der)
    }

    /// The serial number in upper-case hexadecimal digits, behind `-` if it is negative.
    pub fn serial(&self) -> String {
        let bytes = self.0.serial;
        match bytes {
            [0, rest @ ..] if !rest.is_empty() => hex(rest, true),
            [first, ..] if *first >= 0x80 => {
                // The two's complement: the bits of the number below it, inverted.
                let from = bytes.iter().rposition(|byte| *byte != 0).unwrap_or_default();
                let turned = bytes.iter().enumerate().map(|(at, byte)| match at {
                    at if at < from => !byte,
                    _ => byte.wrapping_neg(),
                });
                let turned: Vec<u8> = turned.skip_while(|byte| *byte == 0).collect();
                format!("-{}", hex(&turned, true))
            }
            _ => hex(bytes, true),
        }
    }

    /// SHA-1 of the DER, in lower-case digits: it identifies the certificate and protects nothing.
    pub fn fingerprint(&self) -> String {
        hex(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, self.0.der).as_ref(), false)
    }

    /// The subject as RFC 2253 writes it.
    pub fn subject(&self) -> String {
        rfc2253(self.0.subject)
    }

    /// The issuer as RFC 2253 writes it.
    pub fn issuer(&self) -> String {
        rfc2253(self.0.issuer)
    }

    /// The subject as `/C=DE/CN=name`.
    pub fn subject_line(&self) -> String {
        one_line(self.0.subject)
    }

    /// The issuer as `/C=DE/CN=name`.
    pub fn issuer_line(&self) -> String {
        one_line(self.0.issuer)
    }

    /// The beginning of its validity: `Jan 1 00:00:00 2026 GMT`.
    pub fn starts(&self) -> String {
        time(self.0.not_before)
    }

    /// The end of its validity.
    pub fn ends(&self) -> String {
        time(self.0.not_after)
    }

    /// Whole days from `now` (in seconds since 1970) to the end of its validity; 0 after the end.
    pub fn days_left(&self, now: i64) -> i64 {
        (self.0.not_after.seconds.saturating_sub(now) / 86_400).max(0)
    }
}

/// A certificate in DER as PEM.
pub fn pem(der: &[u8]) -> String {
    section("CERTIFICATE", der)
}

/// DER as a section of PEM with this label.
pub fn section(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    // 48 bytes are 64 characters: a line.
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for place in 0..4 {
                let digit = DIGITS.get((bits >> (18 - 6 * place)) as usize & 63).copied().unwrap_or(b'=');
                text.push(if place > group.len() { '=' } else { char::from(digit) });
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

/// The subject of a certificate in DER, as written in it; a server sends it to clients as a hint.
pub fn subject_der(der: &[u8]) -> Option<Vec<u8>> {
    X509::read(der).ok().map(|read| read.subject.to_vec())
}

fn hex(bytes: &[u8], is_upper: bool) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = if is_upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
    }
    text
}

fn attribute(id: &[u8]) -> String {
    let known = ATTRIBUTES.iter().find(|(known, _)| *known == id);
    known.map_or_else(|| dotted(id), |(_, name)| (*name).to_owned())
}

/// An object identifier as dotted digits.
fn dotted(id: &[u8]) -> String {
    let mut text = String::new();
    let mut arc = 0u64;
    for byte in id {
        arc = arc.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            let _ = match text.is_empty() {
                true => write!(text, "{}.{}", (arc / 40).min(2), arc - 40 * (arc / 40).min(2)),
                false => write!(text, ".{arc}"),
            };
            arc = 0;
        }
    }
    text
}

/// The last pair comes first, also within a set; `+` joins the pairs of a set, and escapes follow RFC 2253 §2: characters outside ASCII
/// become `\XX` of their UTF-8.
fn rfc2253(name: &[u8]) -> String {
    let mut text = String::new();
    for set in sets(name).iter().rev() {
        if !text.is_empty() {
            text.push(',');
        }
        for (index, part) in set.iter().rev().enumerate() {
            if index > 0 {
                text.push('+');
            }
            text.push_str(&attribute(part.id));
            text.push('=');
            let (tag, value) = part.value();
            match characters(tag, &value) {
                // A value of a type that holds no characters, or of an unknown attribute, is shown as DER.
                Some(characters) if ATTRIBUTES.iter().any(|(known, _)| *known == part.id) => {
                    escape(&characters, &mut text)
                }
                _ => {
                    text.push('#');
                    text.push_str(&hex(part.raw, true));
                }
            }
        }
    }
    text
}

fn escape(value: &str, text: &mut String) {
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => text.extend(['\\', char::from(byte)]),
            b'#' if at == 0 => text.push_str("\\#"),
            b' ' if at == 0 || at == last => text.push_str("\\ "),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => drop(write!(text, "\\{byte:02X}")),
        }
    }
}

/// A string of any type as characters; `None` for types that hold none.
fn characters(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        UTF8_STRING => std::str::from_utf8(value).ok().map(str::to_owned),
        BMP_STRING => {
            let units = value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            Some(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
        }
        tag if BYTE_STRINGS.contains(&tag) => Some(value.iter().map(|byte| char::from(*byte)).collect()),
        _ => None,
    }
}

/// `X509_NAME_oneline`: `+` joins the pairs of a set; bytes outside of ASCII as `\xXX`.
fn one_line(name: &[u8]) -> String {
    let mut text = String::new();
    for set in sets(name) {
        for (index, part) in set.iter().enumerate() {
            text.push(if index > 0 { '+' } else { '/' });
            text.push_str(&attribute(part.id));
            text.push('=');
            for byte in part.value().1 {
                match byte {
                    0x20..=0x7e => text.push(char::from(byte)),
                    _ => drop(write!(text, "\\x{byte:02X}")),
                }
            }
        }
    }
    text
}

/// A time in the form of `ASN1_TIME_print`.
fn time(time: Time) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let date = time.date;
    let month = MONTHS.get(usize::from(date.month()).wrapping_sub(1)).unwrap_or(&"");
    let (hour, minute, second) = (date.hour(), date.minutes(), date.seconds());
    format!("{month} {:>2} {hour:02}:{minute:02}:{second:02} {:04} GMT", date.day(), time.year)
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ::der::Decode;

    /// `openssl req -x509 -utf8 -days 9000` with `/C=DE/O=Ö, "x" /CN=#name/emailAddress=a@example.com/DC=org`, an
    /// authority of two levels for clients.
    pub const PEM: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIICKjCCAdGgAwIBAgIFAMD/7gEwCgYIKoZIzj0EAwIwYzELMAkGA1UEBhMCREUx\n\
ETAPBgNVBAoMCMOWLCAieCIgMQ4wDAYDVQQDDAUjbmFtZTEcMBoGCSqGSIb3DQEJ\n\
ARYNYUBleGFtcGxlLmNvbTETMBEGCgmSJomT8ixkARkWA29yZzAgFw0yNjExMjIx\n\
MTAxMzlaGA8yMDUxMDcxNDExMDEzOVowYzELMAkGA1UEBhMCREUxETAPBgNVBAoM\n\
CMOWLCAieCIgMQ4wDAYDVQQDDAUjbmFtZTEcMBoGCSqGSIb3DQEJARYNYUBleGFt\n\
cGxlLmNvbTETMBEGCgmSJomT8ixkARkWA29yZzBZMBMGByqGSM49AgEGCCqGSM49\n\
AwEHA0IABHVcBNVN9tVjXJyxDAR47Z3i2Klihxb55zqmBX+1Om0TJs94EiBUY2FG\n\
48a4ZRVrI9a06atbLksIZFb+SmVge8ijcDBuMBIGA1UdEwEB/wQIMAYBAf8CAQIw\n\
DgYDVR0PAQH/BAQDAgGGMBMGA1UdJQQMMAoGCCsGAQUFBwMCMB0GA1UdDgQWBBS8\n\
Tp4KxCDHqVUzm9rXfJvEzuBspTAUBgNVHREEDTALgglhLmV4YW1wbGUwCgYIKoZI\n\
zj0EAwIDRwAwRAIgBlwvtMUVw/W4sLdH9cHlgQ6AXDEbTwbQs0vnTZTdsHUCIAvi\n\
pbL4hQ5GcXW307WPNcSgQDjcEkov8yxWvc5X9x1l\n\
-----END CERTIFICATE-----\n\
";

    /// Its DER.
    pub fn der() -> Vec<u8> {
        super::super::pem::certificates(PEM.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn a_certificate_is_described_as_by_openssl() {
        let der = der();
        let described = Described::read(&der).unwrap();
        // `openssl x509 -subject -nameopt RFC2253 -serial -fingerprint -sha1 -dates`
        let subject = "DC=org,emailAddress=a@example.com,CN=\\#name,O=\\C3\\96\\, \\\"x\\\"\\ ,C=DE";
        assert_eq!((described.subject(), described.issuer()), (subject.to_owned(), subject.to_owned()));
        assert_eq!(described.subject_line(), "/C=DE/O=\\xC3\\x96, \"x\" /CN=#name/emailAddress=a@example.com/DC=org");
        assert_eq!(described.serial(), "C0FFEE01");
        assert_eq!(described.fingerprint(), "d15501e630be07ec5a45cd580439b418aae4eff1");
        assert_eq!(described.starts(), "Nov 22 11:01:39 2026 GMT");
        assert_eq!(described.ends(), "Jul 14 11:01:39 2051 GMT");
        assert_eq!((described.days_left(1_795_345_299), described.days_left(i64::MAX)), (9000, 0));
        assert_eq!(described.pem(), PEM);
        let subject = subject_der(&der).unwrap();
        assert!(subject.len() > 90 && der.windows(subject.len()).any(|window| window == subject));
    }

    #[test]
    fn the_pairs_of_a_set_are_joined_as_by_openssl() {
        // `openssl req -multivalue-rdn -subj /C=DE/OU=a+CN=J+O=x/L=here`; DER sorts a set.
        let name = b"0<1\x0b0\x09\x06\x03U\x04\x06\x13\x02DE1\x1e0\x08\x06\x03U\x04\x03\x0c\x01J0\x08\x06\x03U\x04\x0a\x0c\x01x0\x08\x06\x03U\x04\x0b\x0c\x01a1\x0d0\x0b\x06\x03U\x04\x07\x0c\x04here";
        assert_eq!(one_line(name), "/C=DE/CN=J+O=x+OU=a/L=here");
        assert_eq!(rfc2253(name), "L=here,OU=a+O=x+CN=J,C=DE");
    }

    #[test]
    fn negative_serials() {
        let der = der();
        let serial = |serial: &[u8]| Described(X509 { serial, ..X509::read(&der).unwrap() }).serial();
        // `i2a_ASN1_INTEGER`
        for (bytes, wanted) in [
            (&[0xff][..], "-01"),
            (&[0x80], "-80"),
            (&[0xff, 0x7f], "-81"),
            (&[0xff, 0], "-0100"),
            (&[0x80, 0, 1], "-7FFFFF"),
            (&[0], "00"),
            (&[0, 0x80], "80"),
        ] {
            assert_eq!(serial(bytes), wanted);
        }
    }

    #[test]
    fn dates_and_numbers_in_words() {
        assert_eq!(time(Time::from_der(b"\x17\x0d490101000000Z").unwrap()), "Jan  1 00:00:00 2049 GMT");
        assert_eq!(time(Time::from_der(b"\x17\x0d500131000000Z").unwrap()), "Jan 31 00:00:00 1950 GMT");
        assert_eq!(dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]), "1.2.840.113549");
        assert_eq!(dotted(&[0x88, 0x37, 0x03]), "2.999.3");
    }
}
