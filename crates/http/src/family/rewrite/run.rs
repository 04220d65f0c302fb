//! Runs rewrite rules over an exchange. It never waits; the only syscall is the `stat` of file conditions.

use std::io;
use std::os::unix::fs::MetadataExt;

use weir_net::buffer;
use weir_net::log::Level;
use weir_wire::Known;
use weir_wire::escape::{self, Unescape};

use crate::exchange::Exchange;
use crate::exchange::conf::{Compute, Condition, FileTest, Rewrite, Rule, Settable, Target};
use crate::exchange::request_body::RequestBody;
use crate::exchange::response_body::Body;
use crate::family::open_file_cache::{self, OpenFailed};
use crate::receive::body;
use crate::text::regex::Regex;
use crate::text::template::{Template, any_set};

/// The result of a list of rules.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on with the phases.
    Continue,
    /// `break`: go on, no further rules.
    Break,
    /// `rewrite … last`, or a rewrite ran to the end of the rules: weir looks up the URI again.
    Last,
    /// `return` with a status.
    Status(u16),
    /// `return` with a text: the response is in the exchange.
    Respond,
    /// Read the body, then begin again.
    ReadBody,
}

/// Longer values need a larger buffer.
const VALUE_BYTES: usize = 1024;

/// Runs a block's rules.
pub fn run(exchange: &mut Exchange<'_>, rules: &[Rule]) -> Flow {
    let log = exchange.location.values.rewrite.log;
    let mut run = Run { log, quotes: true };
    let end = run.all(exchange, rules);
    match end {
        End::Answer(flow) => flow,
        End::Rules | End::Stop if exchange.flags.looks_up => Flow::Last,
        End::Rules => Flow::Continue,
        End::Stop => Flow::Break,
    }
}

struct Run {
    /// `rewrite_log`.
    log: bool,
    /// nginx: captures in values are escaped until a `rewrite` matches, if the request's target was escaped.
    quotes: bool,
}

/// Why a list of rules ended.
enum End {
    Rules,
    Stop,
    Answer(Flow),
}

impl Run {
    fn all(&mut self, exchange: &mut Exchange<'_>, rules: &[Rule]) -> End {
        for rule in rules {
            let end = self.one(exchange, rule);
            if let Some(status) = exchange.response.refused.take() {
                return End::Answer(Flow::Status(status));
            }
            match end {
                End::Rules => {}
                end @ (End::Stop | End::Answer(_)) => return end,
            }
        }
        End::Rules
    }

    fn one(&mut self, exchange: &mut Exchange<'_>, rule: &Rule) -> End {
        match rule {
            Rule::Set(id, template) => {
                let mut value = buffer::lease(VALUE_BYTES);
                self.value(exchange, template, &mut value);
                exchange.slots.set(*id, &value);
                End::Rules
            }
            Rule::SetBuiltIn(set, template) => {
                let mut value = buffer::lease(VALUE_BYTES);
                self.value(exchange, template, &mut value);
                set(exchange, &value);
                End::Rules
            }
            Rule::Compute(rule) => compute(exchange, rule),
            Rule::ReadBody(when) => read_body(exchange, when),
            Rule::Answer(answers) => match answers(exchange) {
                true => End::Answer(Flow::Respond),
                false => End::Rules,
            },
            Rule::Rewrite(rewrite) => self.rewrite(exchange, rewrite),
            Rule::Return(status, text) => End::Answer(answer(exchange, *status, text)),
            Rule::Break => {
                if exchange.flags.looks_up {
                    exchange.flags.looks_up = false;
                    exchange.flags.uri_changed = true;
                }
                End::Stop
            }
            Rule::If { condition, inner, place, .. } => {
                if !self.holds(exchange, condition) || exchange.response.refused.is_some() {
                    return End::Rules;
                }
                if let Some(place) = place {
                    // nginx keeps the handler of the first block, and it fails with the settings of the second.
                    let had = exchange.location.handler.is_some() || exchange.flags.handler_lost;
                    exchange.enter(*place);
                    exchange.flags.handler_lost = had && exchange.location.handler.is_none();
                }
                self.all(exchange, inner)
            }
        }
    }

    fn value(&self, exchange: &mut Exchange<'_>, template: &Template, out: &mut Vec<u8>) {
        eval(exchange, template, self.quotes, out);
    }

    fn rewrite(&mut self, exchange: &mut Exchange<'_>, rewrite: &Rewrite) -> End {
        let matched = matches(exchange, &rewrite.regex, None);
        if self.log {
            note_match(exchange, &rewrite.regex, None, matched);
        }
        if !matched {
            return End::Rules;
        }
        exchange.flags.internal = true;
        exchange.flags.target_is_valid = false;
        self.quotes = false;
        match &rewrite.target {
            Target::Redirect { status, location, has_args } => {
                self.redirect(exchange, location, *has_args, rewrite.keeps_args);
                End::Answer(Flow::Status(*status))
            }
            Target::Uri { path, args, stays } => {
                exchange.flags.looks_up = !*stays;
                exchange.flags.uri_changed |= *stays;
                self.uri(exchange, path, args.as_ref(), rewrite.keeps_args);
                if exchange.uri.is_empty() {
                    exchange.log(Level::Error, format_args!("the rewritten URI has a zero length"));
                    return End::Answer(Flow::Status(500));
                }
                if rewrite.ends { End::Stop } else { End::Rules }
            }
        }
    }

    /// Sets a new path and new arguments; the request's own arguments may follow.
    fn uri(&self, exchange: &mut Exchange<'_>, path: &Template, args: Option<&Template>, keeps_args: bool) {
        let mut new_path = buffer::lease(VALUE_BYTES);
        eval(exchange, path, false, &mut new_path);
        match args {
            Some(args) => {
                let mut new_args = buffer::lease(VALUE_BYTES);
                eval(exchange, args, true, &mut new_args);
                if keeps_args && !exchange.args.is_empty() {
                    new_args.push(b'&');
                    new_args.extend_from_slice(exchange.args);
                }
                exchange.args.clear();
                exchange.args.extend_from_slice(&new_args);
            }
            None if keeps_args => {}
            None => exchange.args.clear(),
        }
        exchange.uri.clear();
        exchange.uri.extend_from_slice(&new_path);
        if self.log {
            let uri = String::from_utf8_lossy(exchange.uri).into_owned();
            let args = String::from_utf8_lossy(exchange.args).into_owned();
            exchange.log(Level::Notice, format_args!("rewritten data: \"{uri}\", args: \"{args}\""));
        }
    }

    fn redirect(&self, exchange: &mut Exchange<'_>, location: &Template, has_args: bool, keeps_args: bool) {
        let mut raw = buffer::lease(VALUE_BYTES);
        eval(exchange, location, true, &mut raw);
        let mut address = buffer::lease(raw.len() + exchange.args.len() + 1);
        // nginx decodes escapes up to the first `?`, except bytes that a redirect must escape.
        let used = escape::unescape_uri(&raw, Unescape::Redirect, &mut address);
        address.extend_from_slice(raw.get(used..).unwrap_or_default());
        if keeps_args && !exchange.args.is_empty() {
            address.push(if has_args { b'&' } else { b'?' });
            address.extend_from_slice(exchange.args);
        }
        if self.log {
            exchange.log(Level::Notice, format_args!("rewritten redirect: \"{}\"", String::from_utf8_lossy(&address)));
        }
        set_location(exchange, &address);
    }

    fn holds(&mut self, exchange: &mut Exchange<'_>, condition: &Condition) -> bool {
        let mut text = buffer::lease(VALUE_BYTES);
        match condition {
            Condition::True(id) => {
                exchange.variable(*id, &mut text);
                !text.is_empty() && text.as_slice() != b"0"
            }
            Condition::Equals(id, other, wanted) => {
                exchange.variable(*id, &mut text);
                let middle = text.len();
                self.value(exchange, other, &mut text);
                let (left, right) = text.split_at(middle);
                (left == right) == *wanted
            }
            Condition::Matches(id, regex, wanted) => {
                exchange.variable(*id, &mut text);
                let matched = matches(exchange, regex, Some(&text));
                if self.log {
                    note_match(exchange, regex, Some(&text), matched);
                }
                matched == *wanted
            }
            Condition::File(test, name, wanted) => {
                self.value(exchange, name, &mut text);
                file_passes(exchange, *test, &text) == *wanted
            }
        }
    }
}

/// Reads a body that was not read yet, if one of the texts asks for it.
fn read_body(exchange: &mut Exchange<'_>, when: &[Template]) -> End {
    if !matches!(exchange.body, RequestBody::Unread) || !any_set(exchange, when) {
        return End::Rules;
    }
    if body::is_too_large(exchange) {
        // nginx: for a client that waits for `100 Continue`, the 413 is the answer.
        exchange.flags.expectation_met = true;
        return End::Answer(Flow::Status(413));
    }
    End::Answer(Flow::ReadBody)
}

/// Sets a variable to the text that a family makes.
fn compute(exchange: &mut Exchange<'_>, rule: &Compute) -> End {
    let of: Vec<Vec<u8>> = rule.of.iter().map(|template| template.text(exchange)).collect();
    let mut value = Vec::new();
    if let Err(line) = (rule.make)(exchange, &of, &mut value) {
        exchange.log(Level::Error, format_args!("{line}"));
        return End::Answer(Flow::Status(500));
    }
    match rule.place {
        Settable::Slot(id) => exchange.slots.set(id, &value),
        Settable::BuiltIn(set) => set(exchange, &value),
    }
    End::Rules
}

/// Matches the subject, or the URI; a failed match clears the captures, as in nginx.
fn matches(exchange: &mut Exchange<'_>, regex: &Regex, subject: Option<&[u8]>) -> bool {
    let matched = exchange.slots.capture(regex, subject.unwrap_or(exchange.uri));
    let matched = matched.unwrap_or_else(|failed| exchange.match_failed(&failed));
    if !matched {
        exchange.slots.captures.clear();
    }
    matched
}

fn note_match(exchange: &mut Exchange<'_>, regex: &Regex, subject: Option<&[u8]>, matched: bool) {
    let subject = String::from_utf8_lossy(subject.unwrap_or(exchange.uri)).into_owned();
    let verb = if matched { "matches" } else { "does not match" };
    exchange.log(Level::Notice, format_args!("\"{}\" {verb} \"{subject}\"", regex.pattern()));
}

/// Appends a template's value; `quotes` escapes captures if the request's path had an escape or a `+`.
fn eval(exchange: &mut Exchange<'_>, template: &Template, quotes: bool, out: &mut Vec<u8>) {
    if quotes && template.has_captures() && target_was_escaped(exchange.request.target()) {
        template.eval_with(exchange, out, escape::escape_args);
    } else {
        template.eval(exchange, out);
    }
}

fn target_was_escaped(target: &[u8]) -> bool {
    target.iter().take_while(|byte| **byte != b'?').any(|byte| matches!(byte, b'%' | b'+'))
}

fn set_location(exchange: &mut Exchange<'_>, address: &[u8]) {
    let fields = &mut exchange.response.fields;
    fields.remove(Known::Location);
    fields.push_known(b"Location", address, Some(Known::Location));
    exchange.response.own_location = true;
}

/// `return`: an error status gives its error page; anything else is the answer.
fn answer(exchange: &mut Exchange<'_>, status: u16, text: &Template) -> Flow {
    if status >= 400 && text.literal().is_some_and(<[u8]>::is_empty) {
        return Flow::Status(status);
    }
    // nginx: the text may read `$status`.
    exchange.response.status.answer(status);
    let text = text.text(exchange);
    if matches!(status, 301 | 302 | 303 | 307 | 308) {
        set_location(exchange, &text);
        return Flow::Status(status);
    }
    let response = &mut exchange.response;
    response.content_length = Some(text.len() as u64);
    response.body = if text.is_empty() { Body::Empty } else { Body::Bytes(text) };
    crate::exchange::content_type::set(exchange);
    Flow::Respond
}

fn file_passes(exchange: &mut Exchange<'_>, test: FileTest, name: &[u8]) -> bool {
    match open_file_cache::metadata(exchange, name) {
        Ok(found) => match test {
            FileTest::Plain => found.is_file(),
            FileTest::Directory => found.is_dir(),
            FileTest::Exists => found.is_file() || found.is_dir(),
            FileTest::Executable => found.mode() & 0o100 != 0,
        },
        Err(OpenFailed { call, error }) => {
            let is_usual = matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::InvalidFilename
                    | io::ErrorKind::InvalidInput
            );
            if !is_usual {
                let error = weir_net::log::Os(&error);
                let shown = String::from_utf8_lossy(name);
                exchange.log(Level::Crit, format_args!("{call} \"{shown}\" failed {error}"));
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_says_whether_captures_are_escaped() {
        for (target, escaped) in [
            (&b"/a%20b"[..], true),
            (b"/a+b", true),
            (b"/a?x=%20", false),
            (b"/a", false),
            (b"/a%?", true),
            (b"", false),
        ] {
            assert_eq!(target_was_escaped(target), escaped, "{}", String::from_utf8_lossy(target));
        }
    }
}
