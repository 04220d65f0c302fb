//! `add_header`, `add_trailer`, `expires`: fields that the configuration adds to responses.
//!
//! <https://nginx.org/en/docs/http/ngx_http_headers_module.html>. Fields that are hidden or passed on from an upstream
//! are not here. Invariant: trailers are evaluated after the end of the body, so they may contain its length.

use weir_conf::Statement;
use weir_net::clock;
use weir_wire::{Known, date};

use crate::exchange::Exchange;
use crate::exchange::conf::Location;
use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, HSL, LOCATION_IF, ONE};
use crate::read::families::{Family, VariablesRead};
use crate::text::refusal::Refusal;
use crate::text::template::Template;
use crate::text::value;

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family's settings of one block, as written. Hand-written, because lists are inherited as `Inherit` says.
#[derive(Clone, Default)]
pub struct Settings {
    /// `expires`.
    pub expires: Option<Expires>,
    /// `add_header`.
    pub headers: Option<Vec<Addition>>,
    /// `add_header_inherit`.
    pub headers_inherit: Option<Inherit>,
    /// `add_trailer`.
    pub trailers: Option<Vec<Addition>>,
    /// `add_trailer_inherit`.
    pub trailers_inherit: Option<Inherit>,
}

/// The family's settings in force in one place.
#[derive(Clone)]
pub struct Values {
    /// `expires`.
    pub expires: Expires,
    /// `add_header`, in the order of evaluation.
    pub headers: Vec<Addition>,
    /// `add_trailer`, in the order of evaluation.
    pub trailers: Vec<Addition>,
}

impl Settings {
    /// Takes over settings that this block does not set from the enclosing block, and its lists as `Inherit` says.
    pub fn inherit(&mut self, outer: &Settings) {
        if self.expires.is_none() {
            self.expires = outer.expires.clone();
        }
        self.headers_inherit = self.headers_inherit.or(outer.headers_inherit);
        self.trailers_inherit = self.trailers_inherit.or(outer.trailers_inherit);
        inherit(&mut self.headers, outer.headers.as_deref(), self.headers_inherit);
        inherit(&mut self.trailers, outer.trailers.as_deref(), self.trailers_inherit);
    }

    /// The values in force, defaults filled in.
    pub fn values(self) -> Values {
        Values {
            expires: self.expires.unwrap_or(Expires::Off),
            headers: self.headers.unwrap_or_default(),
            trailers: self.trailers.unwrap_or_default(),
        }
    }
}

fn inherit(own: &mut Option<Vec<Addition>>, outer: Option<&[Addition]>, how: Option<Inherit>) {
    let Some(outer) = outer else { return };
    match (how.unwrap_or(Inherit::On), own) {
        (Inherit::Off, _) => {}
        (Inherit::On | Inherit::Merge, own @ None) => *own = Some(outer.to_vec()),
        (Inherit::On, Some(_)) => {}
        (Inherit::Merge, Some(own)) => own.extend_from_slice(outer),
    }
}

/// How a block inherits the list of the block around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// It inherits nothing.
    Off,
    /// It inherits the whole list, unless it has a list of its own.
    On,
    /// It inherits the whole list, after its own.
    Merge,
}

/// One `add_header` or `add_trailer`.
#[derive(Clone, Debug)]
pub struct Addition {
    name: String,
    known: Option<Known>,
    value: Template,
    always: bool,
}

/// `expires`. Times are seconds.
#[derive(Clone, Debug)]
pub enum Expires {
    /// Leaves the fields unchanged.
    Off,
    /// A time long ago.
    Epoch,
    /// The largest time in nginx.
    Max,
    /// Relative to now.
    Access(i64),
    /// Relative to `Last-Modified`.
    Modified(i64),
    /// At that time of the day, local time.
    Daily(i64),
    /// From a text with variables; relative to `modified` if the flag is set.
    Computed(Template, bool),
}

/// The family.
pub static FAMILY: Family = Family::new(
    "headers",
    &[
        Directive::new(
            "expires",
            HSL.or(LOCATION_IF),
            Arity::Between(1, 2),
            "Sets Expires and Cache-Control.",
            expires,
        )
        .default("off"),
        Directive::new(
            "add_header",
            HSL.or(LOCATION_IF),
            Arity::Between(2, 3),
            "Adds a field to successful responses and redirects; with \"always\", to all responses.",
            |b, s| {
                let one = addition(b, s)?;
                b.settings().headers.headers.get_or_insert_default().push(one);
                Ok(())
            },
        )
        .many(),
        Directive::new(
            "add_trailer",
            HSL.or(LOCATION_IF),
            Arity::Between(2, 3),
            "Adds a trailer field after the body of chunked responses.",
            |b, s| {
                let one = addition(b, s)?;
                b.settings().headers.trailers.get_or_insert_default().push(one);
                Ok(())
            },
        )
        .many(),
        Directive::new(
            "add_header_inherit",
            HSL.or(LOCATION_IF),
            ONE,
            "How a block inherits the add_header directives of the block around it.",
            |b, s| {
                b.settings().headers.headers_inherit = Some(value::choice(s, INHERIT)?);
                Ok(())
            },
        )
        .default("on"),
        Directive::new(
            "add_trailer_inherit",
            HSL.or(LOCATION_IF),
            ONE,
            "How a block inherits the add_trailer directives of the block around it.",
            |b, s| {
                b.settings().headers.trailers_inherit = Some(value::choice(s, INHERIT)?);
                Ok(())
            },
        )
        .default("on"),
    ],
)
.filter(active, filter)
.fixed(is_fixed);

const INHERIT: &[(&str, Inherit)] = &[("off", Inherit::Off), ("on", Inherit::On), ("merge", Inherit::Merge)];

fn addition(b: &mut Build<'_>, statement: &Statement) -> Result<Addition, Refusal> {
    let name = statement.text(0).to_owned();
    let value = b.template(statement.text(1))?;
    let always = match statement.args.get(2).map(|word| word.text.as_str()) {
        None => false,
        Some("always") => true,
        Some(other) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    };
    Ok(Addition { known: Known::of(name.as_bytes()), name, value, always })
}

fn expires(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (text, modified) = match (statement.text(0), statement.args.get(1)) {
        (text, None) => (text, false),
        ("modified", Some(word)) => (word.text.as_str(), true),
        (_, Some(_)) => return Err(Refusal::directive("invalid value")),
    };
    let template = b.template(text)?;
    let expires = match template.literal() {
        Some(_) => parse(text, modified).map_err(Refusal::directive)?,
        None => Expires::Computed(template, modified),
    };
    b.settings().headers.expires = Some(expires);
    Ok(())
}

fn parse(text: &str, modified: bool) -> Result<Expires, &'static str> {
    match text {
        "epoch" if !modified => return Ok(Expires::Epoch),
        "max" if !modified => return Ok(Expires::Max),
        "off" if !modified => return Ok(Expires::Off),
        _ => {}
    }
    let seconds = |text: &str| value::seconds_of(text).ok_or("invalid value");
    if let Some(daily) = text.strip_prefix('@') {
        if modified {
            return Err("daily time cannot be used with \"modified\" parameter");
        }
        let time = seconds(daily)?;
        return if time > DAY { Err("daily time value must be less than 24 hours") } else { Ok(Expires::Daily(time)) };
    }
    let time = match text.strip_prefix('-') {
        Some(text) => -seconds(text)?,
        None => seconds(text.strip_prefix('+').unwrap_or(text))?,
    };
    Ok(if modified { Expires::Modified(time) } else { Expires::Access(time) })
}

const DAY: i64 = 24 * 60 * 60;

fn active(location: &Location) -> bool {
    let values = &location.values.headers;
    !matches!(values.expires, Expires::Off) || !values.headers.is_empty() || !values.trailers.is_empty()
}

/// Times differ for each request, and so do most texts with variables.
fn is_fixed(location: &Location, reading: &VariablesRead<'_>) -> bool {
    let values = &location.values.headers;
    matches!(values.expires, Expires::Off)
        && values.trailers.is_empty()
        && values.headers.iter().all(|addition| reading.is_same_for_hits(&addition.value))
}

fn filter(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    let values = &location.values.headers;
    let is_safe = is_safe(exchange.response.status.get());
    if is_safe {
        set_expires(exchange, &values.expires);
    }
    let mut value = Vec::new();
    for addition in &values.headers {
        if !is_safe && !addition.always {
            continue;
        }
        value.clear();
        addition.value.eval(exchange, &mut value);
        add(exchange, addition, &value);
    }
    if values.trailers.iter().any(|addition| is_safe || addition.always) {
        exchange.response.expects_trailers = true;
    }
}

/// The statuses for which fields without `always` are added.
fn is_safe(status: u16) -> bool {
    matches!(status, 200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308)
}

/// nginx: `Last-Modified` and `ETag` are replaced, or removed by an empty value; all other fields are added unless
/// empty.
fn add(exchange: &mut Exchange<'_>, addition: &Addition, value: &[u8]) {
    let response = &mut exchange.response;
    let name = addition.name.as_bytes();
    if let Some(known @ (Known::LastModified | Known::Etag)) = addition.known {
        response.fields.remove(known);
        if known == Known::LastModified {
            response.last_modified = date::parse_http_date(value);
        }
    }
    if !value.is_empty() {
        response.fields.push_known(name, value, addition.known);
    }
}

fn set_expires(exchange: &mut Exchange<'_>, expires: &Expires) {
    let now = clock::unix_seconds() as i64;
    let (time, max_age) = match expires {
        Expires::Off => return,
        Expires::Computed(template, modified) => {
            let text = template.text(exchange);
            let parsed = std::str::from_utf8(&text).ok().and_then(|text| parse(text, *modified).ok());
            // An invalid value changes nothing, as in nginx. `parse` never gives `Computed`.
            return match parsed {
                None | Some(Expires::Computed(..)) => {}
                Some(parsed) => set_expires(exchange, &parsed),
            };
        }
        Expires::Epoch => return put(exchange, b"Thu, 01 Jan 1970 00:00:01 GMT", b"no-cache"),
        Expires::Max => return put(exchange, b"Thu, 31 Dec 2037 23:55:55 GMT", b"max-age=315360000"),
        Expires::Access(0) | Expires::Modified(0) => (now, 0),
        Expires::Access(after) => (now.saturating_add(*after), *after),
        Expires::Modified(after) => match exchange.response.last_modified {
            Some(modified) => (modified.saturating_add(*after), modified.saturating_add(*after).saturating_sub(now)),
            None => (now.saturating_add(*after), *after),
        },
        Expires::Daily(time) => {
            let offset = i64::from(clock::utc_offset_minutes(now)) * 60;
            let today = now - (now + offset).rem_euclid(DAY) + time;
            let next = if today > now { today } else { today + DAY };
            (next, next - now)
        }
    };
    let is_past = max_age < 0 || matches!(expires, Expires::Modified(after) if *after < 0);
    let control = if is_past { b"no-cache".to_vec() } else { format!("max-age={max_age}").into_bytes() };
    put(exchange, &date::http_date(time), &control);
}

/// nginx: the origin's fields keep their places and the spelling of their names.
fn put(exchange: &mut Exchange<'_>, expires: &[u8], control: &[u8]) {
    let fields = &mut exchange.response.fields;
    fields.set_known(b"Expires", expires, Known::Expires);
    fields.set_known(b"Cache-Control", control, Known::CacheControl);
}

/// Evaluates `add_trailer` into the response's trailers; called once, when the body has ended.
pub fn trailers(exchange: &mut Exchange<'_>) {
    if !exchange.response.expects_trailers {
        return;
    }
    let location = exchange.location;
    let is_safe = is_safe(exchange.response.status.get());
    let mut value = Vec::new();
    for addition in &location.values.headers.trailers {
        if !is_safe && !addition.always {
            continue;
        }
        value.clear();
        addition.value.eval(exchange, &mut value);
        if !value.is_empty() {
            exchange.response.trailers.push_known(addition.name.as_bytes(), &value, addition.known);
        }
    }
    exchange.response.trailers.make_safe();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn expires_is_read_as_nginx_reads_it() {
        let read = |text, modified| parse(text, modified).map(|expires| format!("{expires:?}"));
        assert_eq!(read("epoch", false).unwrap(), "Epoch");
        assert_eq!(read("max", false).unwrap(), "Max");
        assert_eq!(read("off", false).unwrap(), "Off");
        assert_eq!(read("1h", false).unwrap(), "Access(3600)");
        assert_eq!(read("+30", true).unwrap(), "Modified(30)");
        assert_eq!(read("-2048", false).unwrap(), "Access(-2048)");
        assert_eq!(read("@15h30m33s", false).unwrap(), "Daily(55833)");
        assert_eq!(read("@25h", false).unwrap_err(), "daily time value must be less than 24 hours");
        assert_eq!(read("@1h", true).unwrap_err(), "daily time cannot be used with \"modified\" parameter");
        for (text, modified) in [("", false), ("bad", false), ("epoch", true), ("-", false)] {
            assert_eq!(read(text, modified).unwrap_err(), "invalid value", "{text:?}");
        }
    }

    #[test]
    fn lists_are_inherited_as_the_inner_block_says() {
        let list = |names: &[&str]| {
            Some(
                names
                    .iter()
                    .map(|name| Addition {
                        name: (*name).to_owned(),
                        known: None,
                        value: Template::fixed("v"),
                        always: false,
                    })
                    .collect::<Vec<_>>(),
            )
        };
        for (own, how, expected) in [
            (None, None, "A"),
            (Some("B"), None, "B"),
            (Some("B"), Some(Inherit::Merge), "B A"),
            (None, Some(Inherit::Merge), "A"),
            (Some("B"), Some(Inherit::Off), "B"),
            (None, Some(Inherit::Off), ""),
        ] {
            let outer = Settings { headers: list(&["A"]), ..Settings::default() };
            let mut inner =
                Settings { headers: own.and_then(|name| list(&[name])), headers_inherit: how, ..Settings::default() };
            inner.inherit(&outer);
            let names: Vec<String> = inner.values().headers.into_iter().map(|addition| addition.name).collect();
            assert_eq!(names.join(" "), expected, "{own:?} {how:?}");
        }
    }
}
