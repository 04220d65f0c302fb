//! The facts about an origin's answer that the rules need, read from its head once.

use weir_wire::Known;
use weir_wire::fields::FieldRef;

use crate::cache_control::{Control, SECONDS_MAX, members, seconds};
use crate::partial::ContentRange;
use crate::structured::{self, Item};
use crate::{dates, personal, vary};

/// The field that only the caches on the origin's side obey (RFC 9213 §3).
const TARGETED: &[u8] = b"CDN-Cache-Control";

/// The facts about an answer that concern caching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFacts {
    /// The status.
    pub status: u16,
    /// `Cache-Control`.
    pub control: Control,
    /// `CDN-Cache-Control`, if it is present and valid; it then replaces the other two (RFC 9213 §2.2).
    pub targeted: Option<Control>,
    /// `Expires`.
    pub expires: Expires,
    /// `X-Accel-Expires`.
    pub accel: Accel,
    /// `Date`, in seconds since 1970.
    pub date: Option<i64>,
    /// `Age`, in seconds: the answer comes from another cache.
    pub age_s: Option<u32>,
    /// `Last-Modified`, in seconds since 1970.
    pub last_modified: Option<i64>,
    /// It has an `ETag`.
    pub has_etag: bool,
    /// It has a `Set-Cookie`.
    pub sets_cookie: bool,
    /// It sets a session cookie.
    pub sets_session: bool,
    /// A `Vary` field contains `*`.
    pub varies_by_all: bool,
    /// Bytes of all `Vary` fields.
    pub vary_bytes: usize,
    /// `Content-Range`, if it is valid.
    pub part: Option<ContentRange>,
}

/// The value of `Expires`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expires {
    /// The field is absent.
    #[default]
    Absent,
    /// Not a valid date, which means the past (RFC 9111 §5.3).
    Invalid,
    /// Seconds since 1970.
    At(i64),
}

/// The value of `X-Accel-Expires`: <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache_valid>.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accel {
    /// The field is absent or invalid.
    #[default]
    Absent,
    /// `0`: do not keep the answer.
    Never,
    /// Seconds from its arrival.
    For(u32),
    /// `@`: seconds since 1970.
    At(i64),
}

impl ResponseFacts {
    /// Reads the fields of a head with this status, without allocating.
    pub fn read<'a>(status: u16, fields: impl Iterator<Item = FieldRef<'a>> + Clone) -> ResponseFacts {
        let mut facts = ResponseFacts { status, ..ResponseFacts::default() };
        let mut is_targeted = false;
        for field in fields.clone() {
            match field.known {
                Some(known) => facts.add(known, field.value),
                None => is_targeted |= field.name.eq_ignore_ascii_case(TARGETED),
            }
        }
        if is_targeted {
            facts.targeted = targeted(fields);
        }
        facts
    }

    /// Whether it can be revalidated. A 304 means that the answer would have been a 200, so weir fetches a stored 404
    /// anew (RFC 9110 §15.4.5; nginx keeps validators of 200 and 206).
    pub fn has_validator(&self) -> bool {
        matches!(self.status, 200 | 203 | 206) && (self.has_etag || self.last_modified.is_some())
    }

    fn add(&mut self, known: Known, value: &[u8]) {
        match known {
            Known::CacheControl => self.control.add_line(value),
            Known::Expires if self.expires == Expires::Absent => {
                self.expires = dates::read(value).map_or(Expires::Invalid, Expires::At);
            }
            Known::XAccelExpires if self.accel == Accel::Absent => self.accel = accel(value),
            Known::Date => self.date = self.date.or_else(|| dates::read(value)),
            // RFC 9111 §5.1: the first of several counts; an invalid one is ignored.
            Known::Age => self.age_s = self.age_s.or_else(|| members(value).next().and_then(seconds)),
            Known::LastModified => self.last_modified = self.last_modified.or_else(|| dates::read(value)),
            Known::Etag => self.has_etag |= !value.is_empty(),
            Known::SetCookie => {
                self.sets_cookie = true;
                self.sets_session |= personal::sets_session(value);
            }
            Known::Vary => {
                self.varies_by_all |= vary::is_all(value);
                self.vary_bytes += value.len() + 1;
            }
            Known::ContentRange => self.part = ContentRange::read(value),
            _ => {}
        }
    }
}

/// The field's directives by RFC 9213 §2.1; `None` if it is empty or invalid, or if a directive's value has the wrong
/// type.
fn targeted<'a>(fields: impl Iterator<Item = FieldRef<'a>>) -> Option<Control> {
    let lines = fields.filter(|field| field.name.eq_ignore_ascii_case(TARGETED)).map(|field| field.value);
    let (mut control, mut is_sound) = (Control::default(), true);
    let count = structured::dictionary(lines, |key, item| is_sound &= set(&mut control, key, item)).ok()?;
    (is_sound && count > 0).then_some(control)
}

/// Sets a member; returns whether its value has the directive's type.
fn set(control: &mut Control, key: &[u8], item: Item<'_>) -> bool {
    let (number, truth) = match item {
        Item::Integer(number) => (Some(number), None),
        Item::Boolean(truth) => (None, Some(truth)),
        // Names of fields: only these two directives have them.
        Item::String(_) if matches!(key, b"no-cache" | b"private") => {
            control.withholds_fields = true;
            return true;
        }
        Item::String(_) | Item::Other => (None, None),
    };
    let clipped = number.map(|number| u32::try_from(number.clamp(0, i64::from(SECONDS_MAX))).unwrap_or(SECONDS_MAX));
    match key {
        b"max-age" => control.max_age = clipped,
        b"s-maxage" => control.shared_max_age = clipped,
        b"stale-while-revalidate" => control.while_revalidate = clipped,
        b"stale-if-error" => control.if_error = clipped,
        b"no-store" => control.no_store = truth == Some(true),
        b"no-cache" => control.no_cache = truth == Some(true),
        b"private" => control.private = truth == Some(true),
        b"public" => control.public = truth == Some(true),
        b"must-understand" => control.must_understand = truth == Some(true),
        b"must-revalidate" => {
            control.opens_authorized = truth == Some(true);
            control.must_revalidate |= truth == Some(true);
        }
        b"proxy-revalidate" => control.must_revalidate |= truth == Some(true),
        _ => return true,
    }
    let wants_number = matches!(key, b"max-age" | b"s-maxage" | b"stale-while-revalidate" | b"stale-if-error");
    control.is_invalid |= wants_number && number.is_some_and(i64::is_negative);
    if wants_number { number.is_some() } else { truth.is_some() }
}

fn accel(value: &[u8]) -> Accel {
    match value.split_first() {
        Some((b'@', at)) => seconds_long(at).map_or(Accel::Absent, Accel::At),
        _ => match seconds(value) {
            Some(0) => Accel::Never,
            Some(seconds) => Accel::For(seconds),
            None => Accel::Absent,
        },
    }
}

/// Reads digits whose value fits, like nginx's `ngx_atoi`.
fn seconds_long(text: &[u8]) -> Option<i64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(lines: &[(&'static str, &'static str)]) -> ResponseFacts {
        ResponseFacts::read(
            200,
            lines.iter().map(|(name, value)| FieldRef {
                name: name.as_bytes(),
                value: value.as_bytes(),
                known: Known::of(name.as_bytes()),
            }),
        )
    }

    #[test]
    fn age_is_the_first_number_of_the_first_line_that_has_one() {
        for (lines, expected) in [
            (&[("Age", "7200")][..], Some(7200)),
            (&[("Age", "7200, 0")], Some(7200)),
            (&[("Age", "0, 7200")], Some(0)),
            (&[("Age", "7200"), ("Age", "0")], Some(7200)),
            (&[("Age", "99999999999")], Some(SECONDS_MAX)),
            (&[("Age", "abc")], None),
            (&[("Age", "-7200")], None),
            (&[("Age", "7200.0")], None),
            (&[("Age", "7200;foo=bar")], None),
            (&[("Age", "")], None),
            (&[], None),
        ] {
            assert_eq!(read(lines).age_s, expected, "{lines:?}");
        }
    }

    #[test]
    fn x_accel_expires_is_read_as_by_nginx() {
        for (lines, expected) in [
            (&[("X-Accel-Expires", "60")][..], Accel::For(60)),
            (&[("X-Accel-Expires", "60"), ("X-Accel-Expires", "0")], Accel::For(60)),
            (&[("X-Accel-Expires", "0")], Accel::Never),
            (&[("X-Accel-Expires", "@60")], Accel::At(60)),
            (&[("X-Accel-Expires", "@x")], Accel::Absent),
            (&[("X-Accel-Expires", "@")], Accel::Absent),
            (&[("X-Accel-Expires", "-1")], Accel::Absent),
            (&[("X-Accel-Expires", "@99999999999999999999")], Accel::Absent),
        ] {
            assert_eq!(read(lines).accel, expected, "{lines:?}");
        }
    }

    #[test]
    fn the_targeted_field_is_read_strictly_or_not_at_all() {
        let cdn = |value| read(&[("CDN-Cache-Control", value), ("Cache-Control", "no-store")]).targeted;
        assert!(cdn("max-age=3600").is_some_and(|control| control.max_age == Some(3600) && !control.no_store));
        assert!(cdn("foobar, max-age=99999999999").is_some_and(|control| control.max_age == Some(SECONDS_MAX)));
        assert!(cdn("private").is_some_and(|control| control.private));
        assert!(cdn("no-cache=\"a\"").is_some_and(|control| control.withholds_fields && !control.no_cache));
        assert!(cdn("max-age=1, max-age=5").is_some_and(|control| control.max_age == Some(5)));
        assert!(cdn("max-age=-1").is_some_and(|control| control.max_age == Some(0) && control.is_invalid));
        assert!(
            cdn("no-store=?0, must-revalidate").is_some_and(|control| !control.no_store && control.must_revalidate)
        );
        for broken in
            ["", "max-age=\"10000\"", "max-age=10, &&&", "MaX-aGe=3600", "max-age =1", "no-store=1", "max-age"]
        {
            assert_eq!(cdn(broken), None, "{broken}");
        }
    }

    #[test]
    fn one_pass_finds_what_bears_on_caching() {
        let facts = read(&[
            ("ETag", "\"a\""),
            ("Set-Cookie", "lang=de"),
            ("Set-Cookie", "sid=1"),
            ("Vary", "Foo"),
            ("Vary", "a, *"),
            ("Expires", "0"),
            ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Date", "foo"),
        ]);
        assert!(facts.has_etag && facts.sets_cookie && facts.sets_session && facts.varies_by_all);
        assert_eq!((facts.expires, facts.last_modified, facts.date), (Expires::Invalid, Some(784_111_777), None));
    }

    proptest! {
        #[test]
        fn any_head_is_read(lines: Vec<(u8, Vec<u8>)>) {
            let names = ["Cache-Control", "CDN-Cache-Control", "Age", "Expires", "Vary", "X-Accel-Expires", "Content-Range"];
            let fields = lines.iter().map(|(name, value)| {
                let name = names[*name as usize % names.len()].as_bytes();
                FieldRef { name, value, known: Known::of(name) }
            });
            ResponseFacts::read(200, fields);
        }
    }
}
