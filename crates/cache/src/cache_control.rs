//! `Cache-Control` of answers and of requests (RFC 9111 §5.2), with the directives of RFC 5861.
//!
//! The field is a list of directives with quoted strings, over any number of lines; names may have any case. If a
//! directive occurs twice, the first one counts (§4.2.1). An invalid lifetime makes the answer stale, as the same
//! section advises.

/// The longest lifetime in seconds: a larger value counts as this one (RFC 9111 §1.2.2).
pub const SECONDS_MAX: u32 = 1 << 31;

/// The directives of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache` for the whole answer.
    pub no_cache: bool,
    /// `private` for the whole answer.
    pub private: bool,
    /// `no-cache="…"` or `private="…"`: some fields must not be stored.
    pub withholds_fields: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate` or `proxy-revalidate`, which mean the same to a shared cache.
    pub must_revalidate: bool,
    /// `must-revalidate` itself: it also allows storing an answer to an authorized request (§3.5).
    pub opens_authorized: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `max-age`, in seconds; 0 if it is invalid.
    pub max_age: Option<u32>,
    /// `s-maxage`, in seconds; 0 if it is invalid.
    pub shared_max_age: Option<u32>,
    /// `stale-while-revalidate`, in seconds.
    pub while_revalidate: Option<u32>,
    /// `stale-if-error`, in seconds.
    pub if_error: Option<u32>,
    /// A lifetime is invalid.
    pub is_invalid: bool,
}

impl Control {
    /// Reads the values of all `Cache-Control` lines of an answer.
    pub fn read<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Control {
        let mut control = Control::default();
        for line in lines {
            control.add_line(line);
        }
        control
    }

    /// Reads one more line.
    pub fn add_line(&mut self, line: &[u8]) {
        for (name, argument) in directives(line) {
            self.add(name, argument);
        }
    }

    /// Whether an answer to an authorized request may be shared (RFC 9111 §3.5).
    pub fn is_for_authorized(&self) -> bool {
        self.public || self.opens_authorized || self.shared_max_age.is_some()
    }

    /// Whether a shared cache may give the answer to anybody.
    pub fn is_for_everybody(&self) -> bool {
        self.public || self.shared_max_age.is_some()
    }

    fn add(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |directive: &[u8]| name.eq_ignore_ascii_case(directive);
        if is(b"no-store") {
            self.no_store = true;
        } else if is(b"no-cache") {
            self.whole_or_fields(argument, |control| &mut control.no_cache);
        } else if is(b"private") {
            self.whole_or_fields(argument, |control| &mut control.private);
        } else if is(b"public") {
            self.public = true;
        } else if is(b"must-revalidate") {
            (self.must_revalidate, self.opens_authorized) = (true, true);
        } else if is(b"proxy-revalidate") {
            self.must_revalidate = true;
        } else if is(b"must-understand") {
            self.must_understand = true;
        } else if is(b"max-age") {
            self.lifetime(argument, |control| &mut control.max_age);
        } else if is(b"s-maxage") {
            self.lifetime(argument, |control| &mut control.shared_max_age);
        } else if is(b"stale-while-revalidate") {
            self.while_revalidate = self.while_revalidate.or(argument.and_then(seconds));
        } else if is(b"stale-if-error") {
            self.if_error = self.if_error.or(argument.and_then(seconds));
        }
    }

    /// With names, the directive applies to these fields only; without, to the whole answer.
    fn whole_or_fields(&mut self, argument: Option<&[u8]>, whole: fn(&mut Control) -> &mut bool) {
        match argument {
            Some(names) if members(names).next().is_some() => self.withholds_fields = true,
            _ => *whole(self) = true,
        }
    }

    fn lifetime(&mut self, argument: Option<&[u8]>, of: fn(&mut Control) -> &mut Option<u32>) {
        if of(self).is_some() {
            return;
        }
        let read = argument.and_then(seconds);
        self.is_invalid |= read.is_none();
        *of(self) = Some(read.unwrap_or(0));
    }
}

/// Whether `no-cache="…"` or `private="…"` in a `Cache-Control` line names this field (RFC 9111 §5.2.2.4, §5.2.2.7).
pub fn withholds(line: &[u8], field: &[u8]) -> bool {
    directives(line).any(|(name, argument)| {
        (name.eq_ignore_ascii_case(b"no-cache") || name.eq_ignore_ascii_case(b"private"))
            && argument.is_some_and(|names| members(names).any(|name| name.eq_ignore_ascii_case(field)))
    })
}

/// The directives of a request (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// `no-cache`, or `Pragma: no-cache` without any `Cache-Control` (§5.4).
    pub no_cache: bool,
    /// `no-store`.
    pub no_store: bool,
    /// `only-if-cached`.
    pub only_if_cached: bool,
    /// `max-age`, in seconds; 0 if it is invalid.
    pub max_age: Option<u32>,
    /// `min-fresh`, in seconds.
    pub min_fresh: Option<u32>,
    /// `max-stale`, in seconds; [`SECONDS_MAX`] without an argument.
    pub max_stale: Option<u32>,
}

impl RequestControl {
    /// Reads one `Cache-Control` line of a request.
    pub fn add_line(&mut self, line: &[u8]) {
        for (name, argument) in directives(line) {
            let is = |directive: &[u8]| name.eq_ignore_ascii_case(directive);
            let number = argument.and_then(seconds);
            if is(b"no-cache") {
                self.no_cache = true;
            } else if is(b"no-store") {
                self.no_store = true;
            } else if is(b"only-if-cached") {
                self.only_if_cached = true;
            } else if is(b"max-age") {
                self.max_age = self.max_age.or(Some(number.unwrap_or(0)));
            } else if is(b"min-fresh") {
                self.min_fresh = self.min_fresh.or(number);
            } else if is(b"max-stale") {
                let allowed = if argument.is_none() { Some(SECONDS_MAX) } else { number };
                self.max_stale = self.max_stale.or(allowed);
            }
        }
    }
}

/// Reads digits only; at most [`SECONDS_MAX`] (RFC 9111 §1.2.2).
pub fn seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let sum = text.iter().fold(0_u64, |sum, digit| (sum * 10 + u64::from(digit - b'0')).min(u64::from(SECONDS_MAX)));
    u32::try_from(sum).ok()
}

/// The members of a comma-separated list (RFC 9110 §5.6.1) without empty ones; a comma in quotes does not separate.
pub fn members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    Members { rest: Some(list) }.filter(|member| !member.is_empty())
}

struct Members<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let list = self.rest.take()?;
        let end = member_end(list);
        let (member, rest) = list.split_at_checked(end)?;
        self.rest = rest.split_first().map(|(_, rest)| rest);
        Some(member.trim_ascii())
    }
}

/// The position of the first comma outside quotes, or the end.
fn member_end(list: &[u8]) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in list.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return at,
            _ => {}
        }
    }
    list.len()
}

/// The directives of one line with their arguments, without quotes.
fn directives(line: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    members(line).map(|member| {
        let Some((name, argument)) = memchr::memchr(b'=', member).and_then(|equals| member.split_at_checked(equals))
        else {
            return (member, None);
        };
        let argument = argument.get(1..).unwrap_or_default();
        let unquoted = argument.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        (name, Some(unquoted.unwrap_or(argument)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(lines: &[&str]) -> Control {
        Control::read(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn lifetimes_are_digits_and_the_first_counts() {
        for (lines, max_age, is_invalid) in [
            (&["max-age=3600"][..], Some(3600), false),
            (&["foobar, MaX-aGe=3600"], Some(3600), false),
            (&["max-age=003600"], Some(3600), false),
            (&["max-age=\"3600\""], Some(3600), false),
            (&["max-age=2147483649"], Some(SECONDS_MAX), false),
            (&["max-age=99999999999999999999999"], Some(SECONDS_MAX), false),
            (&["max-age=1800, max-age=1"], Some(1800), false),
            (&["max-age=1", "max-age=1800"], Some(1), false),
            (&["x=\"max-age=3600\", max-age=1"], Some(1), false),
            (&["max-age=1, x=\"\\\", max-age=3600\""], Some(1), false),
            (&["x=\"max-age=3600"], None, false),
            (&["max-age =3600"], None, false),
            (&[",,  ,max-age=5,"], Some(5), false),
            (&["max-age= 3600"], Some(0), true),
            (&["max-age='3600'"], Some(0), true),
            (&["max-age=3600.0"], Some(0), true),
            (&["max-age=-3600"], Some(0), true),
            (&["max-age=a36"], Some(0), true),
            (&["max-age=36a"], Some(0), true),
            (&["max-age"], Some(0), true),
            (&["max-age="], Some(0), true),
        ] {
            let control = read(lines);
            assert_eq!((control.max_age, control.is_invalid), (max_age, is_invalid), "{lines:?}");
        }
    }

    #[test]
    fn words_are_read_in_any_case_over_any_number_of_lines() {
        let control = read(&["No-StOrE, PRIVATE", "public;x, no-cache", "must-understand,must-revalidate"]);
        assert!(control.no_store && control.private && control.no_cache && control.must_understand);
        assert!(control.must_revalidate && control.opens_authorized && !control.public);
        let control = read(&["proxy-revalidate, stale-while-revalidate=4, stale-if-error=\"5\", s-maxage=6"]);
        assert!(control.must_revalidate && !control.opens_authorized);
        assert_eq!((control.while_revalidate, control.if_error, control.shared_max_age), (Some(4), Some(5), Some(6)));
    }

    #[test]
    fn field_names_confine_no_cache_and_private_to_these_fields() {
        let line = b"no-cache=\"a, b\", private=c, max-age=1";
        let control = Control::read([&line[..]].into_iter());
        assert!(control.withholds_fields && !control.no_cache && !control.private);
        for (field, expected) in [("A", true), ("b", true), ("c", true), ("max-age", false), ("d", false)] {
            assert_eq!(withholds(line, field.as_bytes()), expected, "{field}");
        }
        assert!(read(&["no-cache=\"\""]).no_cache, "no names: all of it");
    }

    #[test]
    fn requests_have_their_own_directives() {
        let mut control = RequestControl::default();
        control.add_line(b"max-stale, min-fresh=3, max-age=x");
        control.add_line(b"only-if-cached, no-store, max-stale=4");
        let expected = RequestControl {
            only_if_cached: true,
            no_store: true,
            no_cache: false,
            max_age: Some(0),
            min_fresh: Some(3),
            max_stale: Some(SECONDS_MAX),
        };
        assert_eq!(control, expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(line: Vec<u8>, field: Vec<u8>) {
            Control::read([line.as_slice()].into_iter());
            RequestControl::default().add_line(&line);
            withholds(&line, &field);
            prop_assert!(members(&line).count() <= line.len());
        }

        #[test]
        fn what_is_written_is_read(age in 0..SECONDS_MAX, swr in 0..SECONDS_MAX, flag: bool) {
            let line = format!("max-age={age},{} stale-while-revalidate=\"{swr}\"", if flag { "no-store," } else { "" });
            let control = read(&[&line]);
            prop_assert_eq!((control.max_age, control.while_revalidate, control.no_store), (Some(age), Some(swr), flag));
        }
    }
}
