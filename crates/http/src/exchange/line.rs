//! Lines of the error log about a configuration, a client's connection or an exchange, in nginx's form.
//!
//! ```text
//!  2026/11/21 12:00:00 [error] PID#TID: *CONN MESSAGE while STEP, client: …, server: …, request: "…", …
//! ```

use std::fmt;

use weir_meter::Step;
use weir_net::log::sink::Sinks;
use weir_net::log::{self, Level};
use weir_wire::Known;

use crate::exchange::Exchange;
use crate::exchange::conf::{Conf, Location};
use crate::hold::board::Asked;
use crate::hold::client::Client;
use crate::text::regex::MatchFailed;

/// A line about an exchange. It costs only two comparisons if no log of its location takes the level.
pub fn exchange_line(exchange: &Exchange<'_>, level: Level, message: fmt::Arguments<'_>) {
    if !exchange.logs(level) {
        return;
    }
    let sinks = &exchange.location.values.error_log.sinks;
    log::compose(level, |line| {
        log::push(line, format_args!("*{} {message}", exchange.client.number));
        context(exchange, line);
        write(sinks, is_debugged(exchange.conf, exchange.client), level, line);
        if level <= Level::Info {
            crate::hold::board::keep_line(exchange.asked(), line);
        }
    });
}

/// A line to the log of a location, about something other than a client's exchange.
pub fn place_line(location: &Location, level: Level, message: fmt::Arguments<'_>) {
    let sinks = &location.values.error_log.sinks;
    if !sinks.takes(level) {
        return;
    }
    log::compose(level, |line| {
        log::push(line, message);
        sinks.write(level, line);
    });
}

/// A line about a connection outside its exchanges, to the log of the default server of its listen.
pub fn client_line(conf: &Conf, client: &Client, level: Level, message: fmt::Arguments<'_>) {
    let Some(listen) = conf.listens.get(client.listen.get()) else { return };
    let sinks = &conf.location(conf.server(listen.hosts.default_server()).root).values.error_log.sinks;
    if !sinks.takes(level) && !is_debugged(conf, client) {
        return;
    }
    log::compose(level, |line| {
        log::push(line, format_args!("*{} {message}, client: ", client.number));
        crate::text::texts::push_address(&client.remote, line);
        log::push(line, format_args!(", server: {}", listen.address));
        write(sinks, is_debugged(conf, client), level, line);
    });
}

/// Whether lines about the client go to each log, whatever level that log takes.
fn is_debugged(conf: &Conf, client: &Client) -> bool {
    conf.main.debug_connection.has(&client.remote)
}

fn write(sinks: &Sinks, is_debugged: bool, level: Level, line: &mut Vec<u8>) {
    if is_debugged {
        sinks.write_to_all(level, line);
    } else {
        sinks.write(level, line);
    }
}

impl Exchange<'_> {
    /// Writes a line to the error log in nginx's form, with client, server, request, upstream and host.
    pub fn log(&mut self, level: Level, message: fmt::Arguments<'_>) {
        exchange_line(self, level, message);
    }

    /// A regular expression failed with an error, so weir does not know how to treat the request: it logs the error
    /// and answers 500. The result of the match is then "no".
    #[cold]
    pub fn match_failed(&mut self, failed: &MatchFailed) -> bool {
        self.log(Level::Alert, format_args!("{failed}"));
        self.response.refused = Some(500);
        false
    }

    /// The exchange, as lines of the error log belong to it.
    pub fn asked(&self) -> Asked<'_> {
        (self.client.number, self.facts.started, self.request.line())
    }

    /// Whether a line of this level would be written: check this before composing an expensive message.
    pub fn logs(&self, level: Level) -> bool {
        self.location.values.error_log.sinks.takes(level) || is_debugged(self.conf, self.client)
    }
}

/// ` while STEP, client: …` and the other facts about the exchange.
fn context(exchange: &Exchange<'_>, line: &mut Vec<u8>) {
    let request = &exchange.request;
    // A request line that did not parse is shown as it arrived (nginx: up to the line end).
    let request_line = match request.line() {
        b"" => request.bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default(),
        line => line,
    };
    if let Some(step) = shown_step(exchange) {
        log::push(line, format_args!(" while {}", step.doing()));
    }
    line.extend_from_slice(b", client: ");
    crate::text::texts::push_address(exchange.remote(), line);
    if matches!(exchange.facts.step, Step::AwaitRequest | Step::Keepalive) && request.bytes.is_empty() {
        if let Some(listen) = exchange.conf.listens.get(exchange.client.listen.get()) {
            log::push(line, format_args!(", server: {}", listen.address));
        }
        return;
    }
    log::push(line, format_args!(", server: {}", exchange.server.name));
    if !request_line.is_empty() {
        quoted(line, ", request: \"", request_line);
    }
    if exchange.flags.is_subrequest {
        quoted(line, ", subrequest: \"", exchange.uri);
    }
    for context in &exchange.conf.context {
        context(exchange, line);
    }
    if let Some(host) = request.field(Known::Host) {
        quoted(line, ", host: \"", host);
    }
    if let Some(referer) = request.field(Known::Referer) {
        quoted(line, ", referrer: \"", referer);
    }
}

/// nginx clears its action when a head is complete, and has none while it walks through the phases.
fn shown_step(exchange: &Exchange<'_>) -> Option<Step> {
    let request = &exchange.request;
    match exchange.facts.step {
        // A head was read and weir waits for nothing: nginx names no step.
        Step::AwaitRequest | Step::Keepalive if request.head.len > 0 => None,
        step => Some(step),
    }
}

fn quoted(line: &mut Vec<u8>, label: &str, text: &[u8]) {
    line.extend_from_slice(label.as_bytes());
    line.extend_from_slice(text);
    line.push(b'"');
}
