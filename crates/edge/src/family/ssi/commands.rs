//! Runs the SSI commands of one body.
//!
//! The order of the checks and the words of the log are nginx's (`ngx_http_ssi_body_filter` and the handlers).

use weir_http::exchange::Exchange;
use weir_http::exchange::composing::Compose;
use weir_http::exchange::composing::queue::{Manner, Order, Queue};
use weir_http::exchange::special;
use weir_http::exchange::subrequest::Stub;
use weir_net::log::Level;
use weir_wire::escape;

use super::condition;
use super::date::TimeFormat;
use super::scan::{PARAMETERS_MAX, Scanner, SsiEvent};
use super::shared::{Handle, TOO_MUCH, TooMuch};
use super::text::{CommandFailed, fail, value, variable};

/// The text for a command that failed, until `config errmsg` changes it.
const ERROR: &[u8] = b"[an error occurred while processing the directive]";

/// Reads a body and runs its commands.
pub struct Reader {
    scanner: Scanner,
    shared: Handle,
    encoding: Encoding,
    error: Vec<u8>,
    is_silent: bool,
    /// Text and commands count here: this branch of an `if` was chosen, and this is not a block.
    has_output: bool,
    /// A branch of the current `if` was chosen.
    has_chosen: bool,
    place: Place,
    is_in_block: bool,
}

/// The encoding of `echo`.
#[derive(Clone, Copy)]
enum Encoding {
    None,
    Url,
    Entity,
}

/// Where the current text is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Outside,
    AfterIf,
    AfterElse,
}

/// A command: its name, its parameters, the parameters that it needs, and where it may stand.
struct Kind {
    name: &'static str,
    parameters: &'static [&'static str],
    needed: &'static [&'static str],
    /// The latest place in an `if` for it; `Outside` for any place.
    latest: Place,
    run: Run,
}

type Run = fn(&mut Reader, &mut Exchange<'_>, &Parameters, &mut Queue<'_>) -> Result<(), CommandFailed>;

const KINDS: &[Kind] = &[
    kind("include", &["virtual", "file", "wait", "set", "stub"], &[], Place::Outside, include),
    kind("echo", &["var", "default", "encoding"], &["var"], Place::Outside, echo),
    kind("config", &["errmsg", "timefmt"], &[], Place::Outside, config),
    kind("set", &["var", "value"], &["var", "value"], Place::Outside, set),
    kind("if", &["expr"], &["expr"], Place::Outside, if_),
    kind("elif", &["expr"], &["expr"], Place::AfterIf, branch),
    kind("else", &[], &[], Place::AfterIf, else_),
    kind("endif", &[], &[], Place::AfterElse, endif),
    kind("block", &["name"], &["name"], Place::Outside, block),
    kind(ENDBLOCK, &[], &[], Place::Outside, endblock),
];

/// The only command that counts inside of a block.
const ENDBLOCK: &str = "endblock";

const fn kind(
    name: &'static str,
    parameters: &'static [&'static str],
    needed: &'static [&'static str],
    latest: Place,
    run: Run,
) -> Kind {
    Kind { name, parameters, needed, latest, run }
}

/// The parameters of a command, in its table's order.
struct Parameters(Vec<(&'static str, Vec<u8>)>);

impl Parameters {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_slice())
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Compose for Reader {
    fn read(&mut self, exchange: &mut Exchange<'_>, input: &[u8], is_last: bool, out: &mut Queue<'_>) -> usize {
        let mut at = 0;
        while !out.must_stop() {
            let result = match self.scanner.next(input, &mut at) {
                SsiEvent::Text(text) => self.text(exchange, text, out),
                SsiEvent::Command => self.command(exchange, out),
                SsiEvent::Broken => Err(CommandFailed),
                SsiEvent::End => {
                    if is_last {
                        let rest = self.scanner.rest();
                        if self.text(exchange, rest, out).is_err() {
                            self.say_error(out);
                        }
                    }
                    return at;
                }
            };
            if let Some(complaint) = self.scanner.complaint.take() {
                exchange.log(Level::Error, format_args!("{complaint}"));
            }
            if result == Err(CommandFailed) {
                self.say_error(out);
            }
        }
        at
    }
}

impl Reader {
    /// The reader of a response's body.
    pub fn new(exchange: &mut Exchange<'_>, value_max: u64, is_silent: bool) -> Reader {
        Reader {
            scanner: Scanner::new(usize::try_from(value_max).unwrap_or(usize::MAX)),
            shared: Handle::of(exchange),
            encoding: Encoding::Entity,
            error: ERROR.to_vec(),
            is_silent,
            has_output: true,
            has_chosen: false,
            place: Place::Outside,
            is_in_block: false,
        }
    }

    fn say_error(&self, out: &mut Queue<'_>) {
        if !self.is_silent {
            out.text(&self.error);
        }
    }

    fn text(&self, exchange: &mut Exchange<'_>, text: &[u8], out: &mut Queue<'_>) -> Result<(), CommandFailed> {
        if self.has_output {
            out.text(text);
        } else if self.is_in_block {
            self.keep(exchange, |shared| shared.push_to_block(text))?;
        }
        Ok(())
    }

    fn keep(
        &self,
        exchange: &mut Exchange<'_>,
        work: impl FnOnce(&mut super::shared::SsiShared) -> Result<(), TooMuch>,
    ) -> Result<(), CommandFailed> {
        self.shared.with(work).map_err(|TooMuch| fail(exchange, format_args!("{TOO_MUCH}")))
    }

    /// Runs the command that the scanner has read.
    fn command(&mut self, exchange: &mut Exchange<'_>, out: &mut Queue<'_>) -> Result<(), CommandFailed> {
        let name = shown(&self.scanner.command.name);
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            if self.has_output {
                return Err(fail(exchange, format_args!("invalid SSI command: \"{name}\"")));
            }
            return Ok(());
        };
        if !self.has_output && kind.name != ENDBLOCK {
            if self.is_in_block {
                let text = self.command_text();
                return self.keep(exchange, |shared| shared.push_to_block(&text));
            }
            if kind.latest == Place::Outside {
                return Ok(());
            }
        }
        if kind.latest != Place::Outside && (self.place == Place::Outside || self.place > kind.latest) {
            return Err(fail(exchange, format_args!("invalid context of SSI command: \"{name}\"")));
        }
        let parameters = self.parameters(exchange, kind)?;
        (kind.run)(self, exchange, &parameters, out)
    }

    /// The command as text, for a block.
    fn command_text(&self) -> Vec<u8> {
        let command = &self.scanner.command;
        let mut text = [b"<!--#", command.name.as_slice()].concat();
        for (name, value) in &command.parameters {
            text.extend_from_slice(&[b" ", name.as_slice(), b"=\"", value, b"\""].concat());
        }
        text.extend_from_slice(b" -->");
        text
    }

    fn parameters(&self, exchange: &mut Exchange<'_>, kind: &Kind) -> Result<Parameters, CommandFailed> {
        let (command, given) = (kind.name, &self.scanner.command.parameters);
        if given.len() > PARAMETERS_MAX {
            return Err(fail(exchange, format_args!("too many SSI command parameters: \"{command}\"")));
        }
        let mut found = Parameters(Vec::with_capacity(given.len()));
        for (name, value) in given {
            let Some(known) = kind.parameters.iter().find(|known| known.as_bytes() == name) else {
                let name = shown(name);
                let why = format_args!("invalid parameter name: \"{name}\" in \"{command}\" SSI command");
                return Err(fail(exchange, why));
            };
            if found.get(known).is_some() {
                let why = format_args!("duplicate \"{known}\" parameter in \"{command}\" SSI command");
                return Err(fail(exchange, why));
            }
            found.0.push((known, value.clone()));
        }
        match kind.needed.iter().find(|needed| found.get(needed).is_none()) {
            None => Ok(found),
            Some(absent) => {
                let why = format_args!("mandatory \"{absent}\" parameter is absent in \"{command}\" SSI command");
                Err(fail(exchange, why))
            }
        }
    }
}

fn include(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    out: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    let (path, file, set, stub) =
        (parameters.get("virtual"), parameters.get("file"), parameters.get("set"), parameters.get("stub"));
    let target = match (path, file) {
        (Some(path), Some(file)) => {
            let (path, file) = (shown(path), shown(file));
            let why = format_args!("inclusion may be either virtual=\"{path}\" or file=\"{file}\"");
            return Err(fail(exchange, why));
        }
        (None, None) => return Err(fail(exchange, format_args!("no parameter in \"include\" SSI command"))),
        (Some(target), None) | (None, Some(target)) => target,
    };
    if set.is_some() && stub.is_some() {
        let why = format_args!("\"set\" and \"stub\" cannot be used together in \"include\" SSI command");
        return Err(fail(exchange, why));
    }
    // nginx waits for each file.
    let waits = waits(exchange, parameters.get("wait"), file)? || file.is_some();
    let target = value(exchange, &reader.shared, target)?;
    let target = if target.starts_with(b"/") { target } else { beside(exchange.uri, &target) };
    let (uri, args) = special::inner_uri(exchange, &target).ok_or(CommandFailed)?;
    let stub = match stub {
        Some(name) => Some(stand_in(reader, exchange, name)?),
        None => None,
    };
    let manner = match set {
        Some(name) => keep_in(reader, exchange, name)?,
        None if waits => Manner::WaitedPart,
        None => Manner::Part,
    };
    if out.insert(exchange, Order { uri, args, manner, stub }) { Ok(()) } else { Err(CommandFailed) }
}

/// The value of `wait`.
fn waits(exchange: &mut Exchange<'_>, wait: Option<&[u8]>, file: Option<&[u8]>) -> Result<bool, CommandFailed> {
    let Some(wait) = wait else { return Ok(false) };
    if let Some(file) = file {
        let file = shown(file);
        return Err(fail(exchange, format_args!("\"wait\" cannot be used with file=\"{file}\"")));
    }
    if wait.eq_ignore_ascii_case(b"yes") {
        return Ok(true);
    }
    if wait.eq_ignore_ascii_case(b"no") {
        return Ok(false);
    }
    let wait = shown(wait);
    Err(fail(exchange, format_args!("invalid value \"{wait}\" in the \"wait\" parameter")))
}

/// A path beside the URI of the page.
fn beside(uri: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = uri.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    [uri.get(..directory).unwrap_or_default(), name].concat()
}

/// The block that stands in for an empty answer.
fn stand_in(reader: &Reader, exchange: &mut Exchange<'_>, name: &[u8]) -> Result<Stub, CommandFailed> {
    match reader.shared.with(|shared| shared.block(name).map(<[u8]>::to_vec)) {
        Some(text) => Ok(Stub { text, content_type: exchange.response.content_type.clone() }),
        None => {
            let name = shown(name);
            Err(fail(exchange, format_args!("\"stub\"=\"{name}\" for \"include\" not found")))
        }
    }
}

/// Keeps an answer in a variable, which is empty until then.
fn keep_in(reader: &Reader, exchange: &mut Exchange<'_>, name: &[u8]) -> Result<Manner, CommandFailed> {
    let name = name.to_ascii_lowercase();
    let is_known = reader.shared.with(|shared| shared.read(&name, &mut Vec::new()));
    if !is_known {
        reader.keep(exchange, |shared| shared.set(&name, b""))?;
    }
    let shared = reader.shared.clone();
    Ok(Manner::Kept(Box::new(move |exchange, status, body| {
        if status < 300 && !body.is_empty() && shared.with(|shared| shared.set(&name, &body)) == Err(TooMuch) {
            exchange.log(Level::Error, format_args!("{TOO_MUCH}"));
        }
    })))
}

fn echo(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    out: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    let name = parameters.get("var").unwrap_or_default().to_ascii_lowercase();
    let mut text = Vec::new();
    if !variable(exchange, &reader.shared, &name, &mut text) {
        text = parameters.get("default").unwrap_or(b"(none)").to_vec();
    }
    if text.is_empty() {
        return Ok(());
    }
    match parameters.get("encoding") {
        None => {}
        Some(b"none") => reader.encoding = Encoding::None,
        Some(b"url") => reader.encoding = Encoding::Url,
        Some(b"entity") => reader.encoding = Encoding::Entity,
        Some(unknown) => {
            let unknown = shown(unknown);
            exchange.log(Level::Error, format_args!("unknown encoding \"{unknown}\" in the \"echo\" command"));
        }
    }
    let mut encoded = Vec::with_capacity(text.len());
    match reader.encoding {
        Encoding::None => encoded = text,
        Encoding::Url => escape::escape(&text, &escape::HTML, &mut encoded),
        Encoding::Entity => escape::escape_html(&text, &mut encoded),
    }
    out.text(&encoded);
    Ok(())
}

fn config(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    _: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    if let Some(format) = parameters.get("timefmt") {
        exchange.own.set(TimeFormat(format.to_vec()));
    }
    if let Some(error) = parameters.get("errmsg") {
        reader.error = error.to_vec();
    }
    Ok(())
}

fn set(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    _: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    let name = parameters.get("var").unwrap_or_default().to_ascii_lowercase();
    let value = value(exchange, &reader.shared, parameters.get("value").unwrap_or_default())?;
    reader.keep(exchange, |shared| shared.set(&name, &value))
}

fn if_(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    out: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    if reader.place != Place::Outside {
        return Err(fail(exchange, format_args!("the \"if\" command inside the \"if\" command")));
    }
    branch(reader, exchange, parameters, out)
}

fn branch(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    _: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    if reader.has_chosen {
        reader.has_output = false;
        return Ok(());
    }
    let holds = condition::holds(exchange, &reader.shared, parameters.get("expr").unwrap_or_default())?;
    reader.has_output = holds;
    reader.has_chosen |= holds;
    reader.place = Place::AfterIf;
    Ok(())
}

fn else_(reader: &mut Reader, _: &mut Exchange<'_>, _: &Parameters, _: &mut Queue<'_>) -> Result<(), CommandFailed> {
    reader.has_output = !reader.has_chosen;
    reader.place = Place::AfterElse;
    Ok(())
}

fn endif(reader: &mut Reader, _: &mut Exchange<'_>, _: &Parameters, _: &mut Queue<'_>) -> Result<(), CommandFailed> {
    (reader.has_output, reader.has_chosen, reader.place) = (true, false, Place::Outside);
    Ok(())
}

fn block(
    reader: &mut Reader,
    exchange: &mut Exchange<'_>,
    parameters: &Parameters,
    _: &mut Queue<'_>,
) -> Result<(), CommandFailed> {
    let name = parameters.get("name").unwrap_or_default();
    reader.keep(exchange, |shared| shared.begin_block(name))?;
    (reader.has_output, reader.is_in_block) = (false, true);
    Ok(())
}

fn endblock(reader: &mut Reader, _: &mut Exchange<'_>, _: &Parameters, _: &mut Queue<'_>) -> Result<(), CommandFailed> {
    (reader.has_output, reader.is_in_block) = (true, false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_slash_is_beside_the_page() {
        for (uri, name, path) in [("/a/b.html", "c.html", "/a/c.html"), ("/b", "", "/"), ("", "c", "c")] {
            assert_eq!(beside(uri.as_bytes(), name.as_bytes()), path.as_bytes());
        }
    }
}
