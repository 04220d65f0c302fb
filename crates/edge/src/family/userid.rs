//! `userid`: gives clients a cookie with a number, so that logs can tell them apart.
//!
//! <https://nginx.org/en/docs/http/ngx_http_userid_module.html>. The numbers have the layout of nginx's: cookies that
//! nginx has set stay valid.

use std::cell::Cell;
use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::variable::Variable;
use weir_http::hold::own::Owned;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::base64;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Argument, Template};
use weir_http::text::texts;
use weir_http::text::value;
use weir_net::log::Level;
use weir_net::{SocketAddress, clock};
use weir_wire::{Known, date};

weir_http::settings! {
    /// `userid`.
    use_of: Use = Use::Off,
    /// `userid_service`.
    service: Option<u32> = None,
    /// `userid_name`.
    name: Arc<str> = "uid".into(),
    /// `userid_domain`; empty for none.
    domain: Arc<str> = "".into(),
    /// `userid_path`.
    path: Arc<str> = "/".into(),
    /// `userid_expires`.
    expires: Expires = Expires::Session,
    /// `userid_flags`.
    flags: UseridFlags = UseridFlags::default(),
    /// `userid_p3p`; empty for none.
    p3p: Arc<str> = "".into(),
    /// `userid_mark`.
    mark: Option<u8> = None,
    /// `$uid_reset`.
    reset: Option<Template> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// Whether cookies are set and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Neither.
    Off,
    /// Cookies are only read, for logs.
    Log,
    /// Cookies have the older layout.
    V1,
    /// Cookies have the newer layout.
    On,
}

/// `userid_expires`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    /// When the browser ends.
    Session,
    /// In many years.
    Never,
    /// After that many seconds.
    After(i64),
}

/// `userid_flags`.
#[derive(Clone, Copy, Debug, Default)]
pub struct UseridFlags {
    secure: bool,
    httponly: bool,
    strict: bool,
    lax: bool,
    none: bool,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "userid",
    &[
        Directive::new(
            "userid",
            HSL,
            ONE,
            "Gives clients a cookie with a number (on; v1 for the older layout), or only reads it (log).",
            userid,
        )
        .default("off"),
        Directive::new(
            "userid_service",
            HSL,
            ONE,
            "The number of this server in new cookies; without it, the server's address.",
            |b, s| {
                let number = value::first_number(s)?;
                crate::settings(b).userid.service = Some(Some(number as u32));
                Ok(())
            },
        ),
        Directive::new("userid_name", HSL, ONE, "The cookie's name.", |b, s| {
            crate::settings(b).userid.name = Some(s.text(0).into());
            Ok(())
        })
        .default("uid"),
        Directive::new("userid_domain", HSL, ONE, "The domain for which the cookie is set.", |b, s| {
            crate::settings(b).userid.domain = Some(without_none(s));
            Ok(())
        })
        .default("none"),
        Directive::new("userid_path", HSL, ONE, "The path for which the cookie is set.", |b, s| {
            crate::settings(b).userid.path = Some(s.text(0).into());
            Ok(())
        })
        .default("/"),
        Directive::new(
            "userid_expires",
            HSL,
            ONE,
            "How long the browser keeps the cookie: a time, max, or off for as long as the browser runs.",
            expires,
        )
        .default("off"),
        Directive::new(
            "userid_flags",
            HSL,
            Arity::Between(1, 3),
            "Attributes of the cookie: secure, httponly, samesite=strict, samesite=lax, samesite=none.",
            flags,
        )
        .many()
        .default("off"),
        Directive::new("userid_p3p", HSL, ONE, "The P3P field that is sent with the cookie.", |b, s| {
            crate::settings(b).userid.p3p = Some(without_none(s));
            Ok(())
        })
        .default("none"),
        Directive::new(
            "userid_mark",
            HSL,
            ONE,
            "A character in the cookie; weir sends the cookie again if it has another one.",
            mark,
        )
        .default("off"),
    ],
)
.variables(&[
    Variable::without_answer("uid_got", got),
    Variable::without_answer("uid_set", set),
    Variable::kept("uid_reset", |_, _, _| true),
])
.filter(|location| crate::values(location).userid.use_of >= Use::V1, filter);

fn userid(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let use_of = value::choice(statement, &[("off", Use::Off), ("log", Use::Log), ("v1", Use::V1), ("on", Use::On)])?;
    let reset = b.template("$uid_reset")?;
    let settings = &mut crate::settings(b).userid;
    settings.use_of = Some(use_of);
    settings.reset = Some(Some(reset));
    Ok(())
}

/// The argument; empty for `none`.
fn without_none(statement: &Statement) -> Arc<str> {
    match statement.text(0) {
        "none" => "".into(),
        text => text.into(),
    }
}

fn expires(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let expires = match statement.text(0) {
        "max" => Expires::Never,
        "off" => Expires::Session,
        text => match value::seconds_of(text) {
            Some(0) => Expires::Session,
            Some(seconds) => Expires::After(seconds),
            None => return Err(Refusal::directive("invalid value")),
        },
    };
    crate::settings(b).userid.expires = Some(expires);
    Ok(())
}

fn flags(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut flags = UseridFlags::default();
    let mut seen = Vec::new();
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let flag = match word.to_ascii_lowercase().as_str() {
            "off" => &mut UseridFlags::default().none,
            "secure" => &mut flags.secure,
            "httponly" => &mut flags.httponly,
            "samesite=strict" => &mut flags.strict,
            "samesite=lax" => &mut flags.lax,
            "samesite=none" => &mut flags.none,
            _ => {
                return Err(Refusal::whole(format!("invalid value \"{word}\""))
                    .todo("write off, secure, httponly, samesite=strict, samesite=lax or samesite=none"));
            }
        };
        *flag = true;
        if seen.contains(&word) {
            b.warn(format!("duplicate value \"{word}\""), None);
        }
        seen.push(word);
    }
    crate::settings(b).userid.flags = Some(flags);
    Ok(())
}

fn mark(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mark = match statement.text(0).as_bytes() {
        b"off" => None,
        [mark] if mark.is_ascii_alphanumeric() || *mark == b'=' => Some(*mark),
        _ => return Err(Refusal::directive("value must be \"off\" or a single letter, digit or \"=\"")),
    };
    crate::settings(b).userid.mark = Some(mark);
    Ok(())
}

/// The number in a cookie: four words, in the order of bytes that the cookie has.
type Number = [u8; 16];

/// An exchange's cookie.
#[derive(Clone, Default)]
struct Cookie {
    /// The value that the client sent.
    text: Vec<u8>,
    /// Its number.
    got: Option<Number>,
    /// The number to set.
    set: Option<Number>,
    /// `$uid_reset` replaces the client's number.
    is_reset: bool,
}

impl Owned for Cookie {
    fn copy(&self) -> Option<Box<dyn Owned>> {
        Some(Box::new(self.clone()))
    }
}

/// The digits of a number in base64, without padding: a mark may stand in the place of the padding, and clients send
/// other bytes there.
const DIGITS: usize = 22;

/// The part of a worker in the numbers that it gives out.
struct Numbers {
    start: u32,
    next_v1: Cell<u32>,
    next: Cell<u32>,
}

/// The first of a worker's numbers; the lowest byte is a version of the layout.
const FIRST: u32 = 0x0303_0302;

impl Numbers {
    /// Numbers of this worker: no other worker on the machine has its thread's number, and no earlier one its time.
    fn new() -> Numbers {
        let micros = clock::wall().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.subsec_micros());
        let thread = weir_host::own_thread().unwrap_or_else(std::process::id);
        Numbers { start: (micros / 20) << 16 | thread, next_v1: Cell::new(1), next: Cell::new(FIRST) }
    }

    fn take_v1(&self) -> u32 {
        self.next_v1.replace(self.next_v1.get().wrapping_add(0x100))
    }

    fn take(&self) -> u32 {
        let following = self.next.get().checked_add(0x100).unwrap_or(FIRST);
        self.next.replace(following)
    }
}

fn filter(exchange: &mut Exchange<'_>) {
    if exchange.flags.is_subrequest {
        return;
    }
    let settings = &crate::values(exchange.location).userid;
    let cookie = decided(exchange, settings);
    if let Some(number) = cookie.set {
        let value = set_cookie(settings, &cookie, number, clock::unix_seconds() as i64);
        let fields = &mut exchange.response.fields;
        fields.push(b"Set-Cookie", &value);
        if !settings.p3p.is_empty() {
            fields.push(b"P3P", settings.p3p.as_bytes());
        }
    }
    exchange.own.set(cookie);
}

/// `$uid_got`.
fn got(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let settings = &crate::values(exchange.location).userid;
    if settings.use_of == Use::Off {
        return false;
    }
    let cookie = read(exchange, settings);
    let got = cookie.got;
    exchange.own.set(cookie);
    got.is_some_and(|number| put(&settings.name, &number, out))
}

/// `$uid_set`.
fn set(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let settings = &crate::values(exchange.location).userid;
    if settings.use_of < Use::V1 {
        return false;
    }
    let cookie = decided(exchange, settings);
    let set = cookie.set;
    exchange.own.set(cookie);
    set.is_some_and(|number| put(&settings.name, &number, out))
}

/// `NAME=` and the number in hexadecimal digits, word by word as the machine reads it.
fn put(name: &str, number: &Number, out: &mut Vec<u8>) -> bool {
    use std::io::Write;
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    words(number).iter().all(|word| write!(out, "{word:08X}").is_ok())
}

fn words(number: &Number) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(number.chunks_exact(4)) {
        *word = bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    }
    words
}

fn number_of(words: [u32; 4]) -> Number {
    let mut number = [0; 16];
    for (bytes, word) in number.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    number
}

/// The exchange's cookie; read from the request if that did not happen yet.
fn read(exchange: &mut Exchange<'_>, settings: &Values) -> Cookie {
    if let Some(cookie) = exchange.own.take::<Cookie>() {
        return *cookie;
    }
    let request = &exchange.request;
    let mut lines =
        request.fields().iter().filter(|field| field.known == Some(Known::Cookie)).map(|f| request.text(f.value));
    let found = lines.find_map(|line| Some((line, texts::cookie(line, settings.name.as_bytes())?)));
    let Some((line, value)) = found else { return Cookie::default() };
    let (line, text) = (String::from_utf8_lossy(line).into_owned(), value.to_vec());
    let got = match text.get(..DIGITS).map(base64::decode) {
        None => {
            exchange.log(Level::Error, format_args!("client sent too short userid cookie \"{line}\""));
            None
        }
        Some(None) => {
            exchange.log(Level::Error, format_args!("client sent invalid userid cookie \"{line}\""));
            None
        }
        Some(Some(bytes)) => Number::try_from(bytes).ok(),
    };
    // nginx: a number whose last word is 0 is none.
    let got = got.filter(|number| words(number).last() != Some(&0));
    Cookie { text, got, ..Cookie::default() }
}

/// The exchange's cookie, once it is decided whether to set one.
fn decided(exchange: &mut Exchange<'_>, settings: &Values) -> Cookie {
    let mut cookie = read(exchange, settings);
    if cookie.set.is_some() {
        return cookie;
    }
    if let Some(got) = cookie.got {
        let reset = settings.reset.as_ref().map(|template| template.text(exchange)).unwrap_or_default();
        if matches!(reset.as_slice(), b"" | b"0") {
            let has_mark = |mark| cookie.text.get(DIGITS..DIGITS + 2) == Some(&[mark, b'=']);
            if settings.mark.is_some_and(|mark| !has_mark(mark)) {
                cookie.set = Some(got);
            }
            return cookie;
        }
        cookie.is_reset = true;
        if reset == b"log" {
            let mut shown = Vec::new();
            put(&settings.name, &got, &mut shown);
            let shown = String::from_utf8_lossy(&shown);
            exchange.log(Level::Notice, format_args!("userid cookie \"{shown}\" was reset"));
        }
    }
    cookie.set = Some(new_number(exchange, settings));
    cookie
}

fn new_number(exchange: &Exchange<'_>, settings: &Values) -> Number {
    let numbers = exchange.worker.own.of(Numbers::new);
    let now = clock::unix_seconds() as u32;
    if settings.use_of == Use::V1 {
        return number_of([settings.service.unwrap_or(0), now, numbers.start, numbers.take_v1()]);
    }
    let server = match settings.service {
        Some(service) => service.to_be(),
        None => u32::from_ne_bytes(address_of(exchange.client.local())),
    };
    number_of([server, now.to_be(), numbers.start.to_be(), numbers.take().to_be()])
}

/// Four bytes of the server's address; zeros for a UNIX socket.
fn address_of(address: &SocketAddress) -> [u8; 4] {
    match address.tcp().map(|address| address.ip()) {
        Some(std::net::IpAddr::V4(address)) => address.octets(),
        Some(std::net::IpAddr::V6(address)) => address.octets().last_chunk().copied().unwrap_or_default(),
        None => [0; 4],
    }
}

/// The value of `Set-Cookie`.
fn set_cookie(settings: &Values, cookie: &Cookie, number: Number, now: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(settings.name.as_bytes());
    out.push(b'=');
    match cookie.text.get(..DIGITS) {
        // The client's own digits stay, with the new mark behind them.
        Some(digits) if cookie.got.is_some() && !cookie.is_reset => out.extend_from_slice(digits),
        Some(_) | None => out.extend_from_slice(base64::encode(&number).trim_end_matches('=').as_bytes()),
    }
    out.push(settings.mark.unwrap_or(b'='));
    out.push(b'=');
    match settings.expires {
        Expires::Session => {}
        Expires::Never => out.extend_from_slice(b"; expires=Thu, 31-Dec-37 23:55:55 GMT"),
        Expires::After(seconds) => {
            out.extend_from_slice(b"; expires=");
            out.extend_from_slice(&date::cookie_date(now.saturating_add(seconds)));
        }
    }
    if !settings.domain.is_empty() {
        out.extend_from_slice(b"; domain=");
        out.extend_from_slice(settings.domain.as_bytes());
    }
    out.extend_from_slice(b"; path=");
    out.extend_from_slice(settings.path.as_bytes());
    let flags = settings.flags;
    for (is_on, text) in [
        (flags.secure, "; secure"),
        (flags.httponly, "; httponly"),
        (flags.strict, "; samesite=strict"),
        (flags.lax, "; samesite=lax"),
        (flags.none, "; samesite=none"),
    ] {
        if is_on {
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cookie_keeps_its_digits_when_it_gets_a_mark() {
        let mut settings = Settings::default().values();
        let number: Number = *b"0123456789abcdef";
        let text = set_cookie(&settings, &Cookie::default(), number, 0);
        assert_eq!(text, b"uid=MDEyMzQ1Njc4OWFiY2RlZg==; path=/");
        settings.mark = Some(b'm');
        settings.domain = ".example.com".into();
        settings.expires = Expires::After(60);
        settings.flags = UseridFlags { secure: true, lax: true, ..UseridFlags::default() };
        let cookie = Cookie { text: b"0123456789ABCDEF012345==".to_vec(), got: Some(number), ..Cookie::default() };
        assert_eq!(
            String::from_utf8(set_cookie(&settings, &cookie, number, 0)).unwrap(),
            "uid=0123456789ABCDEF012345m=; expires=Thu, 01-Jan-70 00:01:00 GMT; domain=.example.com; path=/; secure; \
             samesite=lax"
        );
    }

    #[test]
    fn numbers_of_a_worker_differ_and_never_fall_below_the_first() {
        let numbers = Numbers::new();
        assert_eq!((numbers.take(), numbers.take()), (FIRST, FIRST + 0x100));
        assert_eq!((numbers.take_v1(), numbers.take_v1()), (1, 0x101));
        numbers.next.set(0xffff_ff02);
        assert_eq!((numbers.take(), numbers.take()), (0xffff_ff02, FIRST));
    }

    #[test]
    fn values_are_refused_in_nginx_words() {
        for (statement, problem) in [
            ("userid on; userid_mark 7; userid_expires max;", None),
            ("userid yes;", Some("invalid value \"yes\"")),
            (
                "userid_mark ab;",
                Some("\"userid_mark\" directive value must be \"off\" or a single letter, digit or \"=\""),
            ),
            ("userid_expires soon;", Some("\"userid_expires\" directive invalid value")),
            ("userid_flags secure insecure;", Some("invalid value \"insecure\"")),
            ("userid_service x;", Some("\"userid_service\" directive invalid number")),
        ] {
            let (_, problems) = crate::of_text(&format!("events {{}} http {{ {statement} server {{ }} }}"));
            assert_eq!(problems.first().map(String::as_str), problem, "{statement}");
        }
    }
}
