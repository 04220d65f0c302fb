//! `auth_request`, `auth_request_set`: a request to another location decides about access.
//!
//! <https://nginx.org/en/docs/http/ngx_http_auth_request_module.html>. The request has the client's fields and no body.
//! Unlike nginx's, it has no `Content-Length` either.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::{Location, Settable};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::subrequest::Ask;
use weir_http::family::rewrite::settable;
use weir_http::hold::own::Owned;
use weir_http::read::build::Build;
use weir_http::read::directive::{Directive, HSL, ONE, TWO};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_net::log::Level;
use weir_wire::Known;

weir_http::settings! {
    /// `auth_request`: the path; empty for `off`.
    path: Arc<str> = Arc::default(),
    /// `auth_request_set`: variables and their values.
    sets: Arc<[(Settable, Template)]> = Arc::default(),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "auth_request",
    &[
        Directive::new(
            "auth_request",
            HSL,
            ONE,
            "Allows a request if a request to this path is answered with 2xx; 401 and 403 deny it.",
            |b, s| {
                let path = if s.text(0) == "off" { "" } else { s.text(0) };
                crate::settings(b).auth_request.path = Some(path.into());
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "auth_request_set",
            HSL,
            TWO,
            "Sets a variable when the answer to auth_request is there; the value may use variables of that answer.",
            set,
        )
        .many(),
    ],
)
.phase(Phase::Access, |location| !crate::values(location).auth_request.path.is_empty(), enter)
.judge(judge);

/// Marks the places whose variables are made of the request's body.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    reading.read_first(locations, |location, text| {
        crate::values(location).auth_request.sets.iter().for_each(|(_, value)| text(value));
    });
}

fn set(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let variable = settable(b, statement.text(0), |b, name| b.names.define_slot(name))?;
    let value = b.template(statement.text(1))?;
    let sets = &mut crate::settings(b).auth_request.sets;
    *sets = Some(sets.iter().flat_map(|sets| sets.iter().cloned()).chain([(variable, value)]).collect());
    Ok(())
}

/// The answer to the request.
struct Verdict {
    status: u16,
    /// The values of `WWW-Authenticate`.
    challenges: Vec<Vec<u8>>,
}

impl Owned for Verdict {}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    let Some(verdict) = exchange.own.take::<Verdict>() else {
        let uri = crate::values(exchange.location).auth_request.path.as_bytes().to_vec();
        exchange.own.set(Ask { uri, args: Vec::new(), take });
        return Next::Ask;
    };
    match verdict.status {
        200..=299 => Next::Allow,
        403 => Next::Status(403),
        401 => {
            for challenge in &verdict.challenges {
                let fields = &mut exchange.response.fields;
                fields.push_known(b"WWW-Authenticate", challenge, Some(Known::WwwAuthenticate));
            }
            Next::Status(401)
        }
        status => {
            exchange.log(Level::Error, format_args!("auth request unexpected status: {status}"));
            Next::Status(500)
        }
    }
}

/// Sets the variables, and keeps the verdict.
fn take(exchange: &mut Exchange<'_>, answer: &mut Exchange<'_>) {
    let location = exchange.location;
    // The check has no body: a value that is made of one means that of the client's request.
    std::mem::swap(&mut exchange.body, &mut answer.body);
    for (variable, value) in crate::values(location).auth_request.sets.iter() {
        let value = value.text(answer);
        match variable {
            Settable::Slot(id) => answer.slots.set(*id, &value),
            Settable::BuiltIn(set) => set(exchange, &value),
        }
    }
    std::mem::swap(&mut exchange.body, &mut answer.body);
    let challenges = if answer.response.status.get() == 401 { challenges(answer) } else { Vec::new() };
    exchange.own.set(Verdict { status: answer.response.status.get(), challenges });
}

/// The values of `WWW-Authenticate`: of the response, or of an origin's answer that an error page replaced.
fn challenges(answer: &Exchange<'_>) -> Vec<Vec<u8>> {
    let fields = answer.response.fields.iter().filter(|field| field.known == Some(Known::WwwAuthenticate));
    let own: Vec<_> = fields.map(|field| field.value.to_vec()).collect();
    let Some(origin) = answer.origin.as_ref().filter(|_| own.is_empty()) else { return own };
    let fields = origin.head.fields.iter().filter(|field| field.known == Some(Known::WwwAuthenticate));
    fields.map(|field| field.value.of(&origin.bytes).to_vec()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::of_text;

    #[test]
    fn off_ends_the_inheritance_and_variables_are_inherited_whole() {
        let (conf, problems) = of_text(
            "events {} http { auth_request /outer; auth_request_set $a 1; auth_request_set $b 2; server {
                location /inherits { } location /off { auth_request off; }
                location /own { auth_request /inner; auth_request_set $c $upstream_status; } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        for (name, path, sets) in [("/inherits", "/outer", 2), ("/off", "", 2), ("/own", "/inner", 1)] {
            let location = conf.locations.iter().find(|location| location.name == name).unwrap();
            let values = &crate::values(location).auth_request;
            assert_eq!((&*values.path, values.sets.len()), (path, sets), "{name}");
            assert_eq!(location.walk.is_empty(), path.is_empty(), "{name}");
        }
    }

    #[test]
    fn names_are_refused_in_nginx_s_words() {
        for (text, words) in [
            ("auth_request_set a 1;", "invalid variable name \"a\""),
            ("auth_request_set $uri 1;", "the duplicate \"uri\" variable"),
            ("auth_request /a; auth_request /b;", "\"auth_request\" directive is duplicate"),
        ] {
            let (_, problems) = of_text(&format!("events {{}} http {{ server {{ {text} }} }}"));
            assert_eq!(problems, [words]);
        }
    }
}
