//! `http3_alt_svc`: tells clients of TCP that the server speaks HTTP/3 (RFC 7838, RFC 9114 §3.1.1).
//!
//! weir's own: with nginx, `add_header Alt-Svc` has to be repeated for each port, in each location with `add_header` lines, and it
//! also goes to clients of HTTP/3.
//!
//! `off` adds nothing. An empty list would be `Alt-Svc: clear`, and that is about the whole origin (RFC 7838 §3): one location
//! without the field would take back what the other ones have said. So `clear` is a word of its own, for a server that gives
//! up HTTP/3; its clients forget it at once, and not after `ma`.

use std::collections::HashMap;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::route::ServerId;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL};
use weir_http::read::families::Family;
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_wire::Version;

weir_http::settings! {
    /// `http3_alt_svc`.
    says: Says = Says::Nothing,
}

/// The text of `Alt-Svc` in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// Nothing.
    Nothing,
    /// The port of the server's `listen … quic`, and how long clients remember it.
    OwnPort(Duration),
    /// This port.
    Port(u16, Duration),
    /// Clients must forget what they have heard.
    Clear,
}

/// The ports of QUIC of each server, in the order of its `listen` statements.
pub type Declared = HashMap<u32, Vec<u16>>;

/// The family.
pub static FAMILY: Family = Family::new(
    "alt_svc",
    &[Directive::new(
        "http3_alt_svc",
        HSL,
        Arity::Between(1, 2),
        "weir's own: adds Alt-Svc to answers over TLS and TCP, so that clients use HTTP/3: at the port of the server's \
         \"listen … quic\" (on), or at this port. ma=TIME is how long clients remember it. clear makes them forget it. \
         off|on|clear|PORT [ma=TIME].",
        read,
    )
    .default("off")],
)
.check(note_ports)
.filter(|location| crate::values(location).alt_svc.says != Says::Nothing, filter);

/// The time that RFC 7838 §3.1 has for a field without `ma`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let time = match statement.args.get(1).map(|word| word.text.as_str()) {
        None => None,
        Some(text) => {
            let time = text.strip_prefix("ma=").and_then(value::whole_seconds_of);
            Some(time.ok_or_else(|| Refusal::whole(format!("invalid parameter \"{text}\"")).todo("write ma=TIME"))?)
        }
    };
    let age = time.unwrap_or(DAY);
    let says = match (statement.text(0), time) {
        ("on", _) => Says::OwnPort(age),
        ("off", None) => Says::Nothing,
        ("clear", None) => Says::Clear,
        ("off" | "clear", Some(_)) => return Err(Refusal::directive("ma= needs \"on\" or a port")),
        (port, _) => match port.parse::<u16>() {
            Ok(port) if port > 0 => Says::Port(port, age),
            _ => return Err(Refusal::directive("invalid value").todo("write on, off, clear, or a port")),
        },
    };
    crate::settings(b).alt_svc.says = Some(says);
    Ok(())
}

fn note_ports(b: &mut Build<'_>, found: &Found<'_>) {
    let mut ports = Declared::new();
    for (ServerId(server), drafts, _) in found.drafts {
        let quic = drafts.iter().filter(|draft| draft.quic).filter_map(|draft| draft.address.tcp());
        ports.insert(*server, quic.map(|address| address.port()).collect());
    }
    crate::declaring(b).alt_svc = ports;
}

fn filter(exchange: &mut Exchange<'_>) {
    // A client of HTTP/3 knows it. HTTP/3 is for https, and a 421 says nothing of alternatives (RFC 7838 §6).
    let is_told = matches!(exchange.request.version(), Version::Http3 | Version::Http09);
    if is_told || exchange.client.facts().is_none() || exchange.response.status.get() == 421 {
        return;
    }
    let Some(value) = value_of(exchange, exchange.location) else { return };
    let fields = &mut exchange.response.fields;
    if !fields.iter().any(|field| field.name.eq_ignore_ascii_case(b"alt-svc")) {
        fields.push(b"Alt-Svc", value.as_bytes());
    }
}

fn value_of(exchange: &Exchange<'_>, location: &Location) -> Option<String> {
    let (port, age) = match crate::values(location).alt_svc.says {
        Says::Nothing => return None,
        Says::Clear => return Some("clear".to_owned()),
        Says::Port(port, age) => (port, age),
        Says::OwnPort(age) => {
            let ports = crate::declared(exchange.conf).alt_svc.get(&exchange.server.id.0)?;
            let own = exchange.client.local().tcp().map(|local| local.port());
            let port = ports.iter().find(|port| Some(**port) == own).or(ports.first())?;
            (*port, age)
        }
    };
    location.values.http3.is_on.then(|| format!("h3=\":{port}\"; ma={}", age.as_secs()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    fn says(statement: &str) -> Result<Says, String> {
        let (conf, said) = of_text(&format!("events {{}} http {{ server {{ listen 1; {statement} }} }}"));
        let conf = conf.filter(|_| said.is_empty()).ok_or_else(|| said.join("\n"))?;
        Ok(crate::values(conf.location(conf.servers[0].root)).alt_svc.says)
    }

    #[test]
    fn each_word_is_read_and_others_are_refused() {
        for (statement, expected) in [
            ("", Says::Nothing),
            ("http3_alt_svc off;", Says::Nothing),
            ("http3_alt_svc on;", Says::OwnPort(DAY)),
            ("http3_alt_svc on ma=1h;", Says::OwnPort(Duration::from_secs(3600))),
            ("http3_alt_svc 8443 ma=60;", Says::Port(8443, Duration::from_secs(60))),
            ("http3_alt_svc clear;", Says::Clear),
        ] {
            assert_eq!(says(statement), Ok(expected), "{statement}");
        }
        for (statement, refusal) in [
            ("http3_alt_svc 0;", "invalid value"),
            ("http3_alt_svc 65536;", "invalid value"),
            ("http3_alt_svc yes;", "invalid value"),
            ("http3_alt_svc on 60;", "invalid parameter \"60\""),
            ("http3_alt_svc on ma=x;", "invalid parameter \"ma=x\""),
            ("http3_alt_svc clear ma=1;", "ma= needs"),
            ("http3_alt_svc on; http3_alt_svc off;", "duplicate"),
        ] {
            assert!(says(statement).is_err_and(|said| said.contains(refusal)), "{statement}");
        }
    }
}
