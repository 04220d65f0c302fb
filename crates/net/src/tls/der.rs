//! Parts of X.509 (RFC 5280) that several formats share; the crate `der` reads all bytes.
//!
//! `der` accepts DER alone: each length in its shortest form, nothing behind the last field. Signatures are checked
//! over the bytes as they came, so [`Raw`] keeps them. Object identifiers stay bytes, because the type of `der` refuses
//! numbers above 32 bits (2.25.UUID).

use der::asn1::{AnyRef, BitStringRef, GeneralizedTime};
use der::{Choice, Decode, DecodeValue, EncodeValue, FixedTag, Header, Length, Reader, Sequence, SliceReader};
use der::{DateTime, Error, ErrorKind, Tag, Tagged, Writer};
use std::fmt;

/// The reason why bytes are not the DER that weir expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// They end within a field, or a length reaches beyond their end.
    Truncated,
    /// More bytes follow the last field.
    Trailing,
    /// A length is not written in its shortest form, is larger than 32 bits, or does not fit the type of its value.
    Length,
    /// BER's indefinite length.
    Indefinite,
    /// A number or a string is not written in its shortest form.
    Form,
    /// A time that no calendar has, or of another form than RFC 5280 §4.1.2.5 allows.
    Time,
    /// A field is missing, or has another type or value than the format has there.
    Field,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::Truncated => "the data end too early",
            Flaw::Trailing => "further bytes follow the end of the data",
            Flaw::Length => "a length is too large, or not in its shortest form",
            Flaw::Indefinite => "a length is indefinite",
            Flaw::Form => "a value is not in its shortest form",
            Flaw::Time => "a time has the wrong form",
            Flaw::Field => "a field is missing or has the wrong type",
        })
    }
}

impl From<Error> for Flaw {
    fn from(error: Error) -> Flaw {
        match error.kind() {
            ErrorKind::Incomplete { .. } => Flaw::Truncated,
            ErrorKind::TrailingData { .. } => Flaw::Trailing,
            ErrorKind::Length { .. } | ErrorKind::Overlength | ErrorKind::Overflow => Flaw::Length,
            ErrorKind::IndefiniteLength => Flaw::Indefinite,
            ErrorKind::Noncanonical { .. } => Flaw::Form,
            ErrorKind::DateTime => Flaw::Time,
            _ => Flaw::Field,
        }
    }
}

/// A value and its bytes, with tag and length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a, T> {
    pub(super) bytes: &'a [u8],
    pub(super) value: T,
}

impl<'a, T: Decode<'a>> Decode<'a> for Raw<'a, T> {
    type Error = T::Error;

    fn decode<R: Reader<'a>>(reader: &mut R) -> Result<Self, T::Error> {
        let bytes = reader.tlv_bytes()?;
        Ok(Raw { bytes, value: T::from_der(bytes)? })
    }
}

/// The first element of some bytes, with its tag and length; more may follow.
pub(super) fn first(bytes: &[u8]) -> Result<&[u8], Flaw> {
    Ok(SliceReader::new(bytes)?.tlv_bytes()?)
}

/// A SEQUENCE of which the elements are not read.
pub(super) type Opaque<'a> = &'a der::asn1::SequenceRef;

/// An OBJECT IDENTIFIER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oid<'a>(pub(super) &'a [u8]);

impl FixedTag for Oid<'_> {
    const TAG: Tag = Tag::ObjectIdentifier;
}

impl<'a> DecodeValue<'a> for Oid<'a> {
    type Error = Error;

    fn decode_value<R: Reader<'a>>(reader: &mut R, header: Header) -> Result<Self, Error> {
        reader.read_slice(header.length()).map(Oid)
    }
}

impl EncodeValue for Oid<'_> {
    fn value_len(&self) -> Result<Length, Error> {
        self.0.len().try_into()
    }

    fn encode_value(&self, writer: &mut impl Writer) -> Result<(), Error> {
        writer.write(self.0)
    }
}

/// AlgorithmIdentifier (RFC 5280 §4.1.1.2).
#[derive(Clone, Copy, Debug, Sequence)]
pub(super) struct Algorithm<'a> {
    pub(super) id: Oid<'a>,
    pub(super) parameters: Option<AnyRef<'a>>,
}

/// A BOOLEAN: like OpenSSL, takes each byte but 0 as true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag(pub(super) bool);

impl FixedTag for Flag {
    const TAG: Tag = Tag::Boolean;
}

impl<'a> DecodeValue<'a> for Flag {
    type Error = Error;

    fn decode_value<R: Reader<'a>>(reader: &mut R, _: Header) -> Result<Self, Error> {
        Ok(Flag(reader.read_byte()? != 0))
    }
}

/// The bytes of a BIT STRING without unused bits.
pub(super) fn bits<'a>(string: BitStringRef<'a>) -> Result<&'a [u8], Error> {
    string.as_bytes().ok_or_else(|| Tag::BitString.value_error().into())
}

/// UTCTime or GeneralizedTime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// Seconds since 1970.
    pub(super) seconds: i64,
    pub(super) year: u16,
    /// The other parts are right; its year may be later.
    pub(super) date: DateTime,
    tag: Tag,
}

impl Tagged for Time {
    fn tag(&self) -> Tag {
        self.tag
    }
}

impl<'a> Choice<'a> for Time {
    fn can_decode(tag: Tag) -> bool {
        matches!(tag, Tag::UtcTime | Tag::GeneralizedTime)
    }
}

impl<'a> Decode<'a> for Time {
    type Error = Error;

    fn decode<R: Reader<'a>>(reader: &mut R) -> Result<Self, Error> {
        let read = AnyRef::decode(reader)?;
        Self::read(read.tag(), read.value()).ok_or_else(|| reader.error(ErrorKind::DateTime))
    }
}

impl Time {
    /// Fractions of a second are dropped: responders write them, and OpenSSL accepts them.
    fn read(tag: Tag, text: &[u8]) -> Option<Time> {
        /// 2000 years of the Gregorian calendar, which repeats itself every 400.
        const YEARS: (u16, i64) = (2000, 5 * 146_097 * 86_400);
        let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
        let (text, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
        let full = match tag {
            Tag::UtcTime => format!("{}{text}", if text < "50" { "20" } else { "19" }),
            Tag::GeneralizedTime if is_fraction => text.to_owned(),
            _ => return None,
        };
        let (digits, rest) = full.split_at_checked(4)?;
        let year = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u16>().ok())??;
        // `der` knows no time before 1970.
        let (later, less) = if year < 1970 { YEARS } else { (0, 0) };
        let shifted = format!("{:04}{rest}Z", year + later);
        let date = AnyRef::new(Tag::GeneralizedTime, shifted.as_bytes()).ok()?.decode_as::<GeneralizedTime>();
        let date = date.ok()?.to_date_time();
        let seconds = i64::try_from(date.unix_duration().as_secs()).ok()? - less;
        Some(Time { seconds, year, date, tag })
    }
}

/// One attribute of a name: its value is kept as written, because names may hold types that `der` does not know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) id: &'a [u8],
    /// The value with its tag and length.
    pub(super) raw: &'a [u8],
}

impl<'a> Sequence<'a> for Attribute<'a> {}

impl<'a> DecodeValue<'a> for Attribute<'a> {
    type Error = Error;

    fn decode_value<R: Reader<'a>>(reader: &mut R, _: Header) -> Result<Self, Error> {
        let Oid(id) = Oid::decode(reader)?;
        Ok(Attribute { id, raw: reader.read_slice(reader.remaining_len())? })
    }
}

impl Attribute<'_> {
    /// The tag of the value, and its bytes.
    pub(super) fn value(&self) -> (u8, Vec<u8>) {
        let (tag, rest) = self.raw.split_first().unwrap_or((&0, &[]));
        let retagged = [&[0x04], rest].concat();
        let value = AnyRef::from_der(&retagged).map(|read| read.value().to_vec());
        (*tag, value.unwrap_or_default())
    }
}

/// The sets of a name with its tag and length; of a name that cannot be read, none.
pub(super) fn sets(name: &[u8]) -> Vec<Vec<Attribute<'_>>> {
    let sets = Vec::<AnyRef<'_>>::from_der(name).unwrap_or_default().into_iter().filter(|set| set.tag() == Tag::Set);
    sets.filter_map(|set| AnyRef::new(Tag::Sequence, set.value()).ok()?.decode_as().ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ::der::Encode;

    #[test]
    fn times() {
        for (tag, text, wanted) in [
            (Tag::UtcTime, "700101000000Z", Some(0)),
            (Tag::UtcTime, "500101000000Z", Some(-631_152_000)),
            (Tag::UtcTime, "491231235959Z", Some(2_524_607_999)),
            (Tag::GeneralizedTime, "20400101000000Z", Some(2_208_988_800)),
            (Tag::GeneralizedTime, "20000229120000Z", Some(951_825_600)),
            (Tag::GeneralizedTime, "20000229120000.25Z", Some(951_825_600)),
            (Tag::GeneralizedTime, "00000101000000Z", Some(-62_167_219_200)),
            (Tag::GeneralizedTime, "20000229120000.Z", None),
            (Tag::GeneralizedTime, "19000229120000Z", None),
            (Tag::GeneralizedTime, "20001301000000Z", None),
            (Tag::GeneralizedTime, "+9990101000000Z", None),
            (Tag::GeneralizedTime, "2000010100000000Z", None),
            (Tag::UtcTime, "7001010000Z", None),
            (Tag::UtcTime, "70010100000xZ", None),
            (Tag::UtcTime, "7001010000\u{e9}Z", None),
            (Tag::GeneralizedTime, "20400101000000", None),
            (Tag::GeneralizedTime, "Z", None),
            (Tag::Sequence, "20400101000000Z", None),
        ] {
            assert_eq!(Time::read(tag, text.as_bytes()).map(|time| time.seconds), wanted, "{text}");
        }
    }

    #[test]
    fn names_keep_types_that_der_does_not_know() {
        let universal = [0x30, 13, 0x31, 11, 0x30, 9, 6, 3, 0x55, 4, 3, 28, 2, 0, 0x41];
        let sets = sets(&universal);
        assert_eq!((sets[0][0].id, sets[0][0].value()), (&[0x55, 4, 3][..], (28, vec![0, 0x41])));
        assert!(super::sets(b"\x30\x80").is_empty() && super::sets(b"").is_empty());
    }

    #[test]
    fn nesting_is_not_followed() {
        let sequence = |content: &[u8]| AnyRef::new(Tag::Sequence, content).unwrap().to_der().unwrap();
        let deep = (0..2_000).fold(vec![5, 0], |deep, _| sequence(&deep));
        let set = AnyRef::new(Tag::Set, &sequence(&[&[6, 1, 42][..], &deep].concat())).unwrap().to_der().unwrap();
        let name = sequence(&set);
        let sets = sets(&name);
        assert_eq!((sets[0][0].raw, sets[0][0].value().0), (&deep[..], 0x30));
    }
}
