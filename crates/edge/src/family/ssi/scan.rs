//! Finds SSI commands in a body that arrives in pieces: `<!--# command name="value" -->`.
//!
//! It accepts what nginx accepts, byte by byte (`ngx_http_ssi_parse`).

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The longest name of a command (nginx: `NGX_HTTP_SSI_COMMAND_LEN`).
const COMMAND_BYTES_MAX: usize = 32;

/// The longest name of a parameter (nginx: `NGX_HTTP_SSI_PARAM_LEN`).
const PARAMETER_BYTES_MAX: usize = 32;

/// The most parameters of a command (nginx: `NGX_HTTP_SSI_MAX_PARAMS`). One more is kept, so that the command is refused.
pub const PARAMETERS_MAX: usize = 16;

/// The text that begins a command, without the `#`.
const OPENING: &[u8] = b"<!--";

/// Finds the same text with the `#`: most of a page is not looked at byte by byte.
static OPENINGS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<!--#"));

/// One step in the text.
#[derive(Debug, PartialEq, Eq)]
pub enum SsiEvent<'i> {
    /// Plain text, perhaps of an earlier input.
    Text(&'i [u8]),
    /// A command is complete.
    Command,
    /// A command that cannot be read is complete.
    Broken,
    /// The input is used up.
    End,
}

/// A command as it was read.
#[derive(Default)]
pub struct SsiCommand {
    /// Its name.
    pub name: Vec<u8>,
    /// The names and values of its parameters.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// This many bytes of `<!--` were read.
    Opening(usize),
    BeforeCommand,
    Command,
    BeforeParameter,
    Parameter,
    BeforeEqual,
    BeforeValue,
    Value(u8),
    Escaped(u8),
    AfterValue,
    /// This many bytes of `-->` were read.
    Closing(usize),
    /// The same in a command that cannot be read.
    Error(usize),
}

/// The scanner.
pub struct Scanner {
    state: State,
    value_max: usize,
    /// The command that is being read, or was read last.
    pub command: SsiCommand,
    /// The reason why the command cannot be read, in nginx's words, until the log has it.
    pub complaint: Option<String>,
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\r' | b'\n' | b'\t')
}

/// How many bytes at the end of a text may begin an opening.
fn begun(text: &[u8]) -> usize {
    (1..=OPENING.len()).rev().find(|count| text.ends_with(OPENING.get(..*count).unwrap_or_default())).unwrap_or(0)
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Scanner {
    /// A scanner at the start of a body; `value_max` bytes is the longest value.
    pub fn new(value_max: usize) -> Scanner {
        Scanner { state: State::Text, value_max, command: SsiCommand::default(), complaint: None }
    }

    /// Goes on at `at`, which it moves, to the next event.
    pub fn next<'i>(&mut self, input: &'i [u8], at: &mut usize) -> SsiEvent<'i> {
        while let Some(rest @ [byte, ..]) = input.get(*at..) {
            match self.state {
                State::Text => {
                    let length = OPENINGS.find(rest).unwrap_or(rest.len() - begun(rest));
                    if length > 0 {
                        *at += length;
                        return SsiEvent::Text(rest.get(..length).unwrap_or_default());
                    }
                    *at += 1;
                    self.state = State::Opening(1);
                }
                State::Opening(count) => match OPENING.get(count) {
                    Some(expected) if expected == byte => {
                        self.state = State::Opening(count + 1);
                        *at += 1;
                    }
                    None if *byte == b'#' => {
                        self.state = State::BeforeCommand;
                        *at += 1;
                    }
                    // The bytes so far are text, and this byte may begin an opening.
                    Some(_) | None => {
                        self.state = State::Text;
                        return SsiEvent::Text(OPENING.get(..count).unwrap_or_default());
                    }
                },
                _ => {
                    *at += 1;
                    if let Some(event) = self.inside(*byte) {
                        self.state = State::Text;
                        return event;
                    }
                }
            }
        }
        SsiEvent::End
    }

    /// The bytes of an opening that the end of the body leaves incomplete.
    pub fn rest(&mut self) -> &'static [u8] {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Opening(count) => OPENING.get(..count).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Reads a byte of a command.
    fn inside(&mut self, byte: u8) -> Option<SsiEvent<'static>> {
        self.state = match self.state {
            State::Text | State::Opening(_) => return None,
            State::BeforeCommand if is_space(byte) => State::BeforeCommand,
            State::BeforeCommand => {
                self.command.name = vec![byte];
                self.command.parameters.clear();
                State::Command
            }
            State::Command if is_space(byte) => State::BeforeParameter,
            State::Command | State::BeforeParameter if byte == b'-' => State::Closing(1),
            State::Command if self.command.name.len() == COMMAND_BYTES_MAX => {
                let (name, byte) = (shown(&self.command.name), byte as char);
                self.complain(format!("the \"{name}{byte}...\" SSI command is too long"), 0)
            }
            State::Command => {
                self.command.name.push(byte);
                State::Command
            }
            State::BeforeParameter if is_space(byte) => State::BeforeParameter,
            State::BeforeParameter => {
                if self.command.parameters.len() > PARAMETERS_MAX {
                    self.command.parameters.pop();
                }
                self.command.parameters.push((vec![byte], Vec::new()));
                State::Parameter
            }
            State::Parameter | State::BeforeEqual | State::BeforeValue => self.before_value(byte),
            State::Value(quote) | State::Escaped(quote) => self.value(byte, quote),
            State::AfterValue if is_space(byte) => State::BeforeParameter,
            State::AfterValue if byte == b'-' => State::Closing(1),
            State::AfterValue => {
                let (name, value) = self.last();
                let told =
                    format!("unexpected \"{}\" symbol after \"{value}\" value of \"{name}\" parameter", byte as char);
                self.complain_in_command(&told, 0)
            }
            State::Closing(1) if byte == b'-' => State::Closing(2),
            State::Closing(2) if byte == b'>' => return Some(SsiEvent::Command),
            State::Closing(_) => self.complain_in_command(&format!("unexpected \"{}\" symbol", byte as char), 0),
            State::Error(2) if byte == b'>' => return Some(SsiEvent::Broken),
            State::Error(count @ (0 | 1)) if byte == b'-' => State::Error(count + 1),
            State::Error(_) => State::Error(0),
        };
        None
    }

    fn before_value(&mut self, byte: u8) -> State {
        let closing = usize::from(byte == b'-');
        match self.state {
            State::Parameter if is_space(byte) => State::BeforeEqual,
            State::Parameter | State::BeforeEqual if byte == b'=' => State::BeforeValue,
            State::Parameter if closing == 1 => {
                let told = format!("unexpected \"-\" symbol after \"{}\" parameter", self.last().0);
                self.complain_in_command(&told, closing)
            }
            State::Parameter => {
                let name = self.command.parameters.last_mut().map(|(name, _)| name);
                match name.filter(|name| name.len() < PARAMETER_BYTES_MAX) {
                    Some(name) => {
                        name.push(byte);
                        State::Parameter
                    }
                    None => {
                        let told = format!("too long \"{}{}...\" parameter", self.last().0, byte as char);
                        self.complain_in_command(&told, 0)
                    }
                }
            }
            State::BeforeEqual if !is_space(byte) => {
                let told = format!("unexpected \"{}\" symbol after \"{}\" parameter", byte as char, self.last().0);
                self.complain_in_command(&told, closing)
            }
            State::BeforeValue if matches!(byte, b'"' | b'\'') => State::Value(byte),
            State::BeforeValue if !is_space(byte) => {
                let name = self.last().0;
                let told = format!("unexpected \"{}\" symbol before value of \"{name}\" parameter", byte as char);
                self.complain_in_command(&told, closing)
            }
            state => state,
        }
    }

    fn value(&mut self, byte: u8, quote: u8) -> State {
        let next = match self.state {
            State::Value(_) if byte == quote => return State::AfterValue,
            State::Value(_) if byte == b'\\' => State::Escaped(quote),
            _ => State::Value(quote),
        };
        let value = self.command.parameters.last_mut().map(|(_, value)| value);
        match value.filter(|value| value.len() < self.value_max) {
            Some(value) => {
                value.push(byte);
                next
            }
            None => {
                let (name, value) = self.last();
                let told = format!("too long \"{value}{}...\" value of \"{name}\" parameter", byte as char);
                self.complain_in_command(&told, 0)
            }
        }
    }

    fn last(&self) -> (String, String) {
        self.command.parameters.last().map(|(name, value)| (shown(name), shown(value))).unwrap_or_default()
    }

    fn complain_in_command(&mut self, told: &str, closing: usize) -> State {
        let name = shown(&self.command.name);
        self.complain(format!("{told} in \"{name}\" SSI command"), closing)
    }

    fn complain(&mut self, complaint: String, closing: usize) -> State {
        self.complaint = Some(complaint);
        State::Error(closing)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The texts and the commands of an input that arrives in pieces of this size.
    fn scan(input: &[u8], piece: usize) -> (String, Vec<String>) {
        let mut scanner = Scanner::new(10);
        let (mut text, mut commands) = (Vec::new(), Vec::new());
        for piece in input.chunks(piece) {
            let mut at = 0;
            loop {
                match scanner.next(piece, &mut at) {
                    SsiEvent::Text(plain) => text.extend_from_slice(plain),
                    SsiEvent::Command => {
                        let parameters = scanner.command.parameters.iter();
                        let parameters: Vec<_> =
                            parameters.map(|(name, value)| format!("{}={}", shown(name), shown(value))).collect();
                        commands.push(format!("{} {}", shown(&scanner.command.name), parameters.join(",")));
                        text.push(b'@');
                    }
                    SsiEvent::Broken => commands.push(scanner.complaint.take().unwrap()),
                    SsiEvent::End => break,
                }
            }
        }
        text.extend_from_slice(scanner.rest());
        (String::from_utf8_lossy(&text).into_owned(), commands)
    }

    #[test]
    fn commands_are_found_however_the_body_is_cut() {
        let input = b"a<!--#echo var=\"x\" default='y z' -->b<!-- c --><<!--#else--><!-- d --<!";
        for piece in [1, 2, 3, 7, 1000] {
            let (text, commands) = scan(input, piece);
            assert_eq!(text, "a@b<!-- c --><@<!-- d --<!", "{piece}");
            assert_eq!(commands, ["echo var=x,default=y z", "else "], "{piece}");
        }
    }

    #[test]
    fn commands_that_cannot_be_read_are_named_in_nginx_s_words() {
        let long = "x".repeat(33);
        for (command, words) in [
            ("echo var -->", "unexpected \"-\" symbol after \"var\" parameter in \"echo\" SSI command"),
            ("echo var x-->", "unexpected \"x\" symbol after \"var\" parameter in \"echo\" SSI command"),
            ("echo var=x-->", "unexpected \"x\" symbol before value of \"var\" parameter in \"echo\" SSI command"),
            (
                "echo var=\"x\"y-->",
                "unexpected \"y\" symbol after \"x\" value of \"var\" parameter in \"echo\" SSI command",
            ),
            ("echo -x-->", "unexpected \"x\" symbol in \"echo\" SSI command"),
            (
                "echo var=\"01234567890\"-->",
                "too long \"01234567890...\" value of \"var\" parameter in \"echo\" SSI command",
            ),
            (&format!("{long}-->"), &format!("the \"{}x...\" SSI command is too long", "x".repeat(32))),
        ] {
            let (text, commands) = scan(format!("<!--#{command}.").as_bytes(), 1000);
            assert_eq!((text.as_str(), commands.as_slice()), (".", &[words.to_owned()][..]), "{command}");
        }
    }

    #[test]
    fn quotes_may_be_escaped_in_values() {
        let (_, commands) = scan(b"<!--#a b=\"c\\\"d\" -->", 1);
        assert_eq!(commands, ["a b=c\\\"d"]);
    }

    mod mutate {
        use super::*;
        use weir_mutate::mutate;

        /// A page's commands do not depend on how the page is cut, and each text is a part of the page.
        #[test]
        fn pages() {
            let seeds = [
                "a<!--#echo var=\"x\" default='y z' -->b<!-- c --><<!--#else--><!-- d --<!",
                "<!--#include virtual=\"/a\\\"b\" --><!--#set var=a value='b'-->",
                "<!--#if expr=\"$a = /b/\" -->c<!--#endif -->",
            ];
            let words = ["<!--#", "<!--", "-->", "--", "\"", "'", "\\", "=", " ", "\n", "#", "echo", "\0", "é"];
            mutate(&seeds, &words, |page| {
                let whole = scan(page, usize::MAX);
                for piece in [1, 2, 3, 7] {
                    assert_eq!(scan(page, piece), whole, "pieces of {piece}");
                }
                // A byte that is no character takes three bytes, and each command has a mark.
                assert!(whole.0.len() <= 3 * page.len() + whole.1.len());
                assert!(whole.1.len() <= page.len() / 5 + 1);
            });
        }
    }
}
