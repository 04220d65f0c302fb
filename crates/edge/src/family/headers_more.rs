//! `more_set_headers` and its relatives: sets and clears fields of answers and of requests (OpenResty's headers-more).
//!
//! <https://github.com/openresty/headers-more-nginx-module>. Unlike `add_header`, these directives replace fields, hold for
//! all statuses, and a block runs the directives of the blocks around it before its own.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::{Exchange, Response};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_net::log::Level;
use weir_wire::{Known, Version, date};

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family's settings of one block. Hand-written, because a block adds its commands to those of the block around it.
#[derive(Clone, Default)]
pub struct Settings {
    output: Commands,
    input: Commands,
}

/// The family's settings in force in one place.
pub type Values = Settings;

type Commands = Vec<Arc<Command>>;

impl Settings {
    /// Puts the commands of the enclosing block before its own.
    pub fn inherit(&mut self, outer: &Settings) {
        self.output.splice(0..0, outer.output.iter().cloned());
        self.input.splice(0..0, outer.input.iter().cloned());
    }

    /// The values in force.
    pub fn values(self) -> Values {
        self
    }
}

/// One directive.
struct Command {
    /// `-s`; empty for all statuses.
    statuses: Vec<u16>,
    /// `-t`; empty for all types.
    types: Vec<Vec<u8>>,
    /// `-r`: only fields that are there.
    replaces: bool,
    /// `-a`: without removing the fields that are there.
    appends: bool,
    fields: Vec<Change>,
}

/// A field and its new value.
struct Change {
    name: Vec<u8>,
    known: Option<Known>,
    /// The name ends with `*`, which is not in `name`.
    is_prefix: bool,
    /// `None` removes the field.
    value: Option<Template>,
}

const PLACES: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "headers_more",
    &[
        Directive::new(
            "more_set_headers",
            PLACES,
            Arity::AtLeast(1),
            "Sets fields of answers: [-s STATUSES] [-t TYPES] [-a] \"NAME: VALUE\"…",
            |b, s| output(b, s, false),
        )
        .many(),
        Directive::new(
            "more_clear_headers",
            PLACES,
            Arity::AtLeast(1),
            "Removes fields of answers: [-s STATUSES] [-t TYPES] NAME…; a name may end with *.",
            |b, s| output(b, s, true),
        )
        .many(),
        Directive::new(
            "more_set_input_headers",
            PLACES,
            Arity::AtLeast(1),
            "Sets fields of requests: [-r] [-t TYPES] \"NAME: VALUE\"…",
            |b, s| input(b, s, false),
        )
        .many(),
        Directive::new(
            "more_clear_input_headers",
            PLACES,
            Arity::AtLeast(1),
            "Removes fields of requests: [-t TYPES] NAME…; a name may end with *.",
            |b, s| input(b, s, true),
        )
        .many(),
    ],
)
.phase(Phase::Preaccess, |location| !crate::values(location).headers_more.input.is_empty(), change_request)
.filter(|location| !crate::values(location).headers_more.output.is_empty(), change_answer)
.fixed(|location, reading| {
    let mut fields = crate::values(location).headers_more.output.iter().flat_map(|command| &command.fields);
    fields.all(|field| field.value.as_ref().is_none_or(|value| reading.is_same_for_hits(value)))
});

fn output(b: &mut Build<'_>, statement: &Statement, clears: bool) -> Result<(), Refusal> {
    let command = command(b, statement, clears, if clears { "ts" } else { "tsa" })?;
    for field in &command.fields {
        match field.known {
            Some(Known::ContentLength) if field.value.is_some() => return Err(framing(&field.name)),
            Some(Known::TransferEncoding) => return Err(framing(&field.name)),
            Some(_) | None => {}
        }
    }
    crate::settings(b).headers_more.output.push(Arc::new(command));
    Ok(())
}

fn input(b: &mut Build<'_>, statement: &Statement, clears: bool) -> Result<(), Refusal> {
    let command = command(b, statement, clears, if clears { "t" } else { "tr" })?;
    for field in &command.fields {
        if matches!(field.known, Some(Known::ContentLength | Known::TransferEncoding)) {
            return Err(framing(&field.name));
        }
    }
    crate::settings(b).headers_more.input.push(Arc::new(command));
    Ok(())
}

/// The length of a body is a fact: another one in the head would let a peer read a part of the body as the next message.
fn framing(name: &[u8]) -> Refusal {
    let name = String::from_utf8_lossy(name);
    Refusal::whole(format!("weir sets \"{name}\" itself, as the body needs it"))
        .weirs_own()
        .todo("remove the field from the line")
}

fn command(b: &mut Build<'_>, statement: &Statement, clears: bool, options: &str) -> Result<Command, Refusal> {
    let name = statement.name.text.as_str();
    let mut command =
        Command { statuses: Vec::new(), types: Vec::new(), replaces: false, appends: false, fields: Vec::new() };
    let mut words = statement.args.iter().map(|word| word.text.as_str()).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-') else {
            command.fields.push(change(b, name, word, clears)?);
            continue;
        };
        if option.len() != 1 || !options.contains(option) {
            return Err(Refusal::whole(format!("{name}: invalid option name: \"{word}\"")));
        }
        let mut argument =
            || words.next().ok_or_else(|| Refusal::whole(format!("{name}: option {word} takes an argument.")));
        match option {
            "t" => {
                let list = argument()?.split(|c: char| c.is_ascii_whitespace() || c == ';');
                command.types.extend(list.filter(|kind| !kind.is_empty()).map(|kind| kind.as_bytes().to_vec()));
            }
            "s" => command.statuses.extend(statuses(name, argument()?)?),
            "a" => command.appends = true,
            _ => command.replaces = true,
        }
    }
    Ok(command)
}

fn statuses(name: &str, list: &str) -> Result<Vec<u16>, Refusal> {
    if let Some(bad) = list.chars().find(|c| !c.is_ascii_digit() && !c.is_ascii_whitespace()) {
        let words = format!("{name}: invalid digit \"{bad}\" found in the status code list \"{list}\"");
        return Err(Refusal::whole(words));
    }
    // A number that is no status matches no answer.
    Ok(list.split_ascii_whitespace().filter_map(|status| status.parse().ok()).collect())
}

/// `Name: value`, `Name:` or `Name`.
fn change(b: &mut Build<'_>, directive: &str, word: &str, clears: bool) -> Result<Change, Refusal> {
    let text = word.trim_ascii_start();
    let end = text.find(|c: char| c == ':' || c.is_ascii_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return Err(Refusal::whole(format!("{directive}: no key found in the header argument: {word}")));
    }
    let value = rest.trim_start_matches(|c: char| c == ':' || c.is_ascii_whitespace());
    let value = if clears || value.is_empty() { None } else { Some(b.template(value)?) };
    let (name, is_prefix) = match name.strip_suffix('*') {
        Some("") => return Err(Refusal::whole(format!("{directive}: wildcard key too short: {word}"))),
        Some(prefix) => (prefix, true),
        None => (name, false),
    };
    let known = if is_prefix { None } else { Known::of(name.as_bytes()) };
    Ok(Change { name: name.as_bytes().to_vec(), known, is_prefix, value })
}

impl Change {
    fn is(&self, name: &[u8]) -> bool {
        let beginning = if self.is_prefix { name.get(..self.name.len()) } else { Some(name) };
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(&self.name))
    }

    fn text(&self, exchange: &mut Exchange<'_>) -> Vec<u8> {
        self.value.as_ref().map(|value| value.text(exchange)).unwrap_or_default()
    }
}

fn change_answer(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    for command in &crate::values(location).headers_more.output {
        let kind = &exchange.response.content_type;
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
        let has_type = command.types.is_empty() || command.types.iter().any(|listed| listed == kind);
        let has_status = command.statuses.is_empty() || command.statuses.contains(&exchange.response.status.get());
        if !has_type || !has_status {
            continue;
        }
        for field in &command.fields {
            let value = field.text(exchange);
            set(exchange.response, field, &value, command.appends);
        }
    }
}

/// Sets a field of an answer; an empty value removes it.
fn set(response: &mut Response, field: &Change, value: &[u8], appends: bool) {
    let is_empty = value.is_empty();
    match field.known {
        Some(Known::ContentType) => {
            response.content_type.clear();
            response.content_type.extend_from_slice(value);
            return;
        }
        Some(Known::ContentLength) => {
            response.content_length = None;
            return;
        }
        Some(Known::Server) => response.without_own.server = is_empty,
        Some(Known::Date) => response.without_own.date = is_empty,
        Some(Known::LastModified) => response.last_modified = date::parse_http_date(value),
        Some(Known::AcceptRanges) if is_empty => response.allows_ranges = false,
        Some(Known::Location) => response.own_location = value.starts_with(b"/"),
        Some(_) | None => {}
    }
    if !appends {
        // A prefix with a value changes the first such field.
        let found = response.fields.iter().find(|one| field.is(one.name)).map(|one| one.name.to_vec());
        response.fields.remove_where(|name| field.is(name));
        if !is_empty && field.is_prefix {
            if let Some(name) = found {
                response.fields.push(&name, value);
            }
            return;
        }
    }
    if !is_empty {
        response.fields.push_known(&field.name, value, field.known);
    }
}

fn change_request(exchange: &mut Exchange<'_>) -> Next {
    if exchange.request.version() < Version::Http10 {
        return Next::Continue;
    }
    let location = exchange.location;
    for command in &crate::values(location).headers_more.input {
        let has_type = command.types.is_empty()
            || exchange.request.field(Known::ContentType).is_some_and(|kind| command.types.iter().any(|t| t == kind));
        if !has_type {
            continue;
        }
        for field in &command.fields {
            let mut value = field.text(exchange);
            weir_wire::fields::make_safe(&mut value);
            if let Some(status) = set_in_request(exchange, field, &value, command.replaces) {
                return Next::Status(status);
            }
        }
    }
    Next::Continue
}

/// Sets a field of the request; an empty value removes it. Returns a status to answer with if there is no such host.
fn set_in_request(exchange: &mut Exchange<'_>, field: &Change, value: &[u8], replaces: bool) -> Option<u16> {
    let request = &mut exchange.request;
    let is_there = request.fields().iter().any(|one| field.is(request.text(one.name)));
    // nginx: a prefix only removes.
    let adds = !value.is_empty() && !field.is_prefix && (is_there || !replaces);
    if is_there && (value.is_empty() || !field.is_prefix) {
        request.remove_fields(|name| field.is(name));
    }
    if adds {
        request.add_field(&field.name, value, field.known);
    }
    if field.known != Some(Known::Host) {
        return None;
    }
    let host = match weir_wire::request_host(&request.bytes, &request.head, &mut request.last_host) {
        Ok(host) => host,
        Err(violation) => {
            exchange.log(Level::Info, format_args!("{}", violation.message()));
            return Some(violation.status());
        }
    };
    request.host.clear();
    request.port = None;
    if let Some(host) = host {
        request.host.extend_from_slice(host.name.of(&request.bytes));
        request.host.make_ascii_lowercase();
        request.port = host.port;
    }
    None
}

#[cfg(test)]
mod tests {

    #[test]
    fn arguments_are_read_in_the_modules_words() {
        for (statement, problem) in [
            ("more_set_headers -s '400 404' -s 413 -t 'text/plain;text/css' 'A: b' C 'D:' -a 'E: $uri';", None),
            ("more_clear_headers -s 200 'X-*' Server;", None),
            ("more_set_input_headers -r -t text/plain 'A: b';", None),
            ("more_clear_input_headers A;", None),
            ("more_set_headers -x A;", Some("more_set_headers: invalid option name: \"-x\"")),
            ("more_clear_headers -a A;", Some("more_clear_headers: invalid option name: \"-a\"")),
            ("more_set_input_headers -s 200 A;", Some("more_set_input_headers: invalid option name: \"-s\"")),
            ("more_set_headers A -t;", Some("more_set_headers: option -t takes an argument.")),
            (
                "more_set_headers -s 4x4 A;",
                Some("more_set_headers: invalid digit \"x\" found in the status code list \"4x4\""),
            ),
            ("more_set_headers ':a';", Some("more_set_headers: no key found in the header argument: :a")),
            ("more_clear_headers '*';", Some("more_clear_headers: wildcard key too short: *")),
            (
                "more_set_headers 'Content-Length: 7';",
                Some("weir sets \"Content-Length\" itself, as the body needs it"),
            ),
            (
                "more_set_input_headers 'Transfer-Encoding: x';",
                Some("weir sets \"Transfer-Encoding\" itself, as the body needs it"),
            ),
        ] {
            let (_, problems) = crate::of_text(&format!("events {{}} http {{ {statement} server {{ }} }}"));
            assert_eq!(problems.first().map(String::as_str), problem, "{statement}");
        }
    }

    #[test]
    fn a_block_runs_the_outer_commands_first() {
        let text = "events {} http { more_set_headers 'A: 1'; server { more_set_headers 'A: 2'; location / { } } }";
        let (conf, problems) = crate::of_text(text);
        assert!(problems.is_empty(), "{problems:?}");
        let counts = conf.iter().flat_map(|conf| &conf.locations).map(|l| crate::values(l).headers_more.output.len());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 2]);
    }
}
