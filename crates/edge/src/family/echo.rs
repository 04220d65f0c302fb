//! `echo` and its relatives: answers with texts of the configuration, for tests and small answers (OpenResty's echo).
//!
//! <https://github.com/openresty/echo-nginx-module>. The commands of a location run in the order of the file. weir has the
//! commands that answer by themselves, and none of those that start other requests (`echo_location`, `echo_exec`).

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::content_type;
use weir_http::exchange::phase::Next;
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::response_body::{Body, BodyStream, Framing, Sending};
use weir_http::exchange::variable::Variable;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, LOCATION, LOCATION_IF, NONE, ONE, TWO};
use weir_http::read::families::Family;
use weir_http::send::filtering;
use weir_http::send::filtering::PiecePlace;
use weir_http::send::pace::Pace;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Argument, Template};
use weir_http::text::value;
use weir_net::clock;
use weir_net::log::Level;

weir_http::settings! {
    /// The commands; a block with some of its own takes none of the block around it.
    commands: Vec<Arc<EchoCommand>> = Vec::new(),
    /// `echo_status`.
    status: u16 = 200,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// One directive.
#[derive(Debug)]
pub enum EchoCommand {
    /// `echo`: texts with spaces between them, and whether a newline follows.
    Echo(Vec<Template>, bool),
    /// `echo_duplicate`: how often, and the text.
    Duplicate(Template, Template),
    /// `echo_request_body`.
    RequestBody,
    /// `echo_read_request_body`.
    ReadBody,
    /// `echo_flush`.
    Flush,
    /// `echo_sleep`.
    Sleep(Template),
}

const PLACES: Contexts = LOCATION.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "echo",
    &[
        Directive::new(
            "echo",
            PLACES,
            Arity::AtLeast(0),
            "Answers with texts and a newline; -n for no newline, -- before a text that begins with a dash.",
            echo,
        )
        .many(),
        Directive::new("echo_duplicate", PLACES, TWO, "Answers with a text several times: NUMBER TEXT.", |b, s| {
            let count = b.template(s.text(0))?;
            if count.literal().is_some_and(|count| number_of(count).is_none()) {
                return Err(Refusal::directive("invalid number"));
            }
            let text = b.template(s.text(1))?;
            add(b, EchoCommand::Duplicate(count, text))
        })
        .many(),
        Directive::new(
            "echo_request_body",
            PLACES,
            NONE,
            "Answers with the request's body, once it was read.",
            |b, _| add(b, EchoCommand::RequestBody),
        )
        .many(),
        Directive::new(
            "echo_read_request_body",
            PLACES,
            NONE,
            "Reads the request's body, for $request_body and echo_request_body.",
            |b, _| add(b, EchoCommand::ReadBody),
        )
        .many(),
        Directive::new("echo_flush", PLACES, NONE, "Sends the answer made so far.", |b, _| add(b, EchoCommand::Flush))
            .many(),
        Directive::new("echo_sleep", PLACES, ONE, "Waits that many seconds, such as 0.25.", |b, s| {
            let seconds = b.template(s.text(0))?;
            if seconds.literal().is_some_and(|seconds| pause_of(seconds).is_none()) {
                return Err(Refusal::directive("invalid value"));
            }
            add(b, EchoCommand::Sleep(seconds))
        })
        .many(),
        Directive::new("echo_status", PLACES, ONE, "The status of the answer.", |b, s| {
            crate::settings(b).echo.status = Some(value::bounded(s, 200, 599)? as u16);
            Ok(())
        })
        .default("200"),
    ],
)
.variables(&[
    Variable::without_answer("echo_request_body", request_body),
    Variable::without_answer("echo_request_method", method),
    Variable::without_answer("echo_client_request_method", method),
    Variable::without_answer("echo_client_request_headers", request_head),
    Variable::without_answer("echo_request_uri", |exchange, _, out| {
        out.extend_from_slice(exchange.uri);
        true
    }),
    Variable::without_answer("echo_timer_elapsed", elapsed),
]);

/// The largest answer that the commands of a request may make.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The longest pause of one `echo_sleep`.
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

fn add(b: &mut Build<'_>, command: EchoCommand) -> Result<(), Refusal> {
    crate::settings(b).echo.commands.get_or_insert_default().push(Arc::new(command));
    b.scope().handler = Some(answer);
    Ok(())
}

fn echo(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut words = statement.args.iter().map(|word| word.text.as_str()).peekable();
    let mut has_newline = true;
    while let Some(option) = words.next_if(|word| matches!(*word, "-n" | "--")) {
        if option == "--" {
            break;
        }
        has_newline = false;
    }
    let texts = words.map(|word| b.template(word)).collect::<Result<_, _>>()?;
    add(b, EchoCommand::Echo(texts, has_newline))
}

/// A number; `_` may stand between its digits.
fn number_of(text: &[u8]) -> Option<u64> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'_').collect();
    value::number(std::str::from_utf8(&digits).ok()?)
}

/// Seconds, with three digits after the point at most.
fn pause_of(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = if whole.is_empty() && !part.is_empty() { 0 } else { value::number(whole)? };
    let thousandths = match part {
        "" => 0,
        part if part.len() <= 3 => value::number(part)? * 10_u64.pow(3 - part.len() as u32),
        _ => return None,
    };
    let pause = Duration::from_secs(whole).saturating_add(Duration::from_millis(thousandths));
    (pause <= PAUSE_MAX).then_some(pause)
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let values = &crate::values(exchange.location).echo;
    let reads = values.commands.iter().any(|command| matches!(**command, EchoCommand::ReadBody));
    if reads && matches!(exchange.body, RequestBody::Unread) {
        return Next::ReadBody;
    }
    let waits = values.commands.iter().any(|command| matches!(**command, EchoCommand::Flush | EchoCommand::Sleep(_)));
    let body = if waits {
        Body::Stream(Box::new(Script(values.commands.clone())))
    } else {
        let mut text = Vec::new();
        for command in &values.commands {
            if let Err(line) = say(exchange, command, &mut text) {
                exchange.log(Level::Error, format_args!("{line}"));
                return Next::Status(500);
            }
        }
        Body::Bytes(text)
    };
    content_type::set(exchange);
    let response = &mut exchange.response;
    response.status.answer(values.status);
    response.status_line.clear();
    response.content_length = None;
    response.body = body;
    Next::Respond
}

/// Appends the text of a command.
fn say(exchange: &mut Exchange<'_>, command: &EchoCommand, out: &mut Vec<u8>) -> Result<(), String> {
    match command {
        EchoCommand::Echo(texts, has_newline) => {
            for (place, text) in texts.iter().enumerate() {
                if place > 0 {
                    out.push(b' ');
                }
                text.eval(exchange, out);
            }
            if *has_newline {
                out.push(b'\n');
            }
        }
        EchoCommand::Duplicate(count, text) => {
            let count = count.text(exchange);
            let shown = || String::from_utf8_lossy(&count);
            let times = number_of(&count).and_then(|count| usize::try_from(count).ok());
            let times =
                times.ok_or_else(|| format!("invalid \"count\" argument \"{}\" in \"echo_duplicate\"", shown()))?;
            let text = text.text(exchange);
            if times.saturating_mul(text.len()) > ANSWER_BYTES_MAX {
                return Err(format!("\"echo_duplicate\" would answer with more than {ANSWER_BYTES_MAX} bytes"));
            }
            out.extend_from_slice(&text.repeat(times));
        }
        EchoCommand::RequestBody => push_body(exchange, out)?,
        EchoCommand::ReadBody | EchoCommand::Flush | EchoCommand::Sleep(_) => {}
    }
    if out.len() > ANSWER_BYTES_MAX {
        return Err(format!("the \"echo\" directives answer with more than {ANSWER_BYTES_MAX} bytes"));
    }
    Ok(())
}

fn push_body(exchange: &Exchange<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    match &exchange.body {
        RequestBody::Memory(bytes) => out.extend_from_slice(bytes),
        RequestBody::File(body) => {
            let (start, path) = (out.len(), body.path());
            let length =
                usize::try_from(body.length()).ok().filter(|length| start.saturating_add(*length) <= ANSWER_BYTES_MAX);
            let length =
                length.ok_or_else(|| format!("the body in \"{path}\" is too large for \"echo_request_body\""))?;
            out.resize(start + length, 0);
            let place = out.get_mut(start..).unwrap_or_default();
            body.file().read_exact_at(place, 0).map_err(|error| format!("pread() \"{path}\" failed: {error}"))?;
        }
        RequestBody::Unread | RequestBody::Gone => {}
    }
    Ok(())
}

/// The commands of an answer that pauses or sends a part early.
struct Script(Vec<Arc<EchoCommand>>);

impl BodyStream for Script {
    fn send<'a, 'e: 'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        framing: Framing,
        head: &'a mut Vec<u8>,
    ) -> Sending<'a> {
        Box::pin(async move { run(exchange, conn, framing, head, &self.0).await })
    }
}

async fn run(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    commands: &[Arc<EchoCommand>],
) -> Result<(), Gone> {
    let (mut text, mut pace) = (Vec::new(), Pace::of(exchange, out.len()));
    for command in commands {
        match &**command {
            EchoCommand::Flush => {
                let place = PiecePlace { last: false, ends: false, flush: true };
                filtering::send(exchange, conn, framing, out, &text, place, &mut pace).await?;
                text.clear();
            }
            EchoCommand::Sleep(seconds) => {
                let seconds = seconds.text(exchange);
                let Some(pause) = pause_of(&seconds) else {
                    let shown = String::from_utf8_lossy(&seconds).into_owned();
                    exchange.log(Level::Error, format_args!("invalid sleep duration \"{shown}\""));
                    return Err(Gone::Cut);
                };
                if let Some(gone) = conn.pause(pause).await {
                    return Err(gone);
                }
            }
            command => {
                if let Err(line) = say(exchange, command, &mut text) {
                    exchange.log(Level::Error, format_args!("{line}"));
                    return Err(Gone::Cut);
                }
            }
        }
    }
    let place = PiecePlace { last: true, ends: true, flush: true };
    filtering::send(exchange, conn, framing, out, &text, place, &mut pace).await
}

fn request_body(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match &exchange.body {
        RequestBody::Memory(bytes) => {
            out.extend_from_slice(bytes);
            true
        }
        RequestBody::Unread | RequestBody::Gone | RequestBody::File(_) => false,
    }
}

fn method(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(exchange.request.method());
    true
}

/// The request line and the fields, each with its line end.
fn request_head(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let request = &exchange.request;
    out.extend_from_slice(request.line());
    out.extend_from_slice(b"\r\n");
    for field in request.fields() {
        weir_wire::encode::push_field(out, request.text(field.name), request.text(field.value));
    }
    true
}

/// `$echo_timer_elapsed`: seconds since the request began, with three digits after the point.
fn elapsed(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let ms = clock::now().ms_since(exchange.facts.started);
    out.extend_from_slice(format!("{}.{:03}", ms / 1000, ms % 1000).as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_seconds_with_three_digits() {
        for (text, ms) in [
            ("1", Some(1000)),
            ("1.234", Some(1234)),
            ("0.05", Some(50)),
            (".5", Some(500)),
            ("3600", Some(3_600_000)),
            ("3601", None),
            ("1.2345", None),
            ("-1", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(pause_of(text.as_bytes()).map(|pause| pause.as_millis()), ms, "{text}");
        }
        assert_eq!((number_of(b"1_000"), number_of(b"-1")), (Some(1000), None));
    }

    #[test]
    fn bad_values_are_refused() {
        for (statement, problem) in [
            ("echo -n a; echo -- -n; echo; echo_status 404;", None),
            ("echo_sleep soon;", Some("\"echo_sleep\" directive invalid value")),
            ("echo_duplicate x y;", Some("\"echo_duplicate\" directive invalid number")),
            ("echo_status 99;", Some("value must be between 200 and 599")),
        ] {
            let text = format!("events {{}} http {{ server {{ location / {{ {statement} }} }} }}");
            let (_, problems) = crate::of_text(&text);
            assert_eq!(problems.first().map(String::as_str), problem, "{statement}");
        }
    }
}
