//! JSON, whole or cut, also several texts one behind the other.

use super::content::content;
use super::sheet::{Findings, ValueForm};
use super::table::{SecretKind, is_secret_name};
use super::view::View;

/// The place in a text of JSON.
struct Reading {
    /// The arrays and objects that are open.
    level: usize,
    /// The outermost open array or object that is the value of a secret name: everything in it is a secret.
    secret_from: Option<usize>,
    /// The next value is that of a secret name.
    is_named: bool,
    /// `{"name": "password", "value": …}`: the level of the object whose `value` is a secret.
    pair: Option<usize>,
    /// The next value is that of the member `name` of such an object, or of its `value`.
    member: Member,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Name,
    Value,
    Other,
}

/// The walk over a text within a string.
type Inner<'i> = &'i dyn Fn(View<'_>, &mut dyn Findings);

/// Gives the secrets of a text of JSON to `findings`; `inner` gives those of a string that is no secret.
pub(super) fn json(view: View<'_>, inner: Inner<'_>, findings: &mut dyn Findings) {
    let mut reading = Reading { level: 0, secret_from: None, is_named: false, pair: None, member: Member::Other };
    let bytes = view.bytes;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let begin = at;
        at += 1;
        match byte {
            b'{' | b'[' => reading.open(),
            b'}' | b']' => reading.close(),
            b',' => reading.end_of_value(),
            b'"' => {
                let end = end_of_string(bytes, at);
                let string = view.part(at..end);
                at = (end + 1).min(bytes.len());
                let decoded = string.json_string();
                let string = decoded.as_ref().map_or(string, |decoded| decoded.view());
                if is_key(bytes, at) {
                    reading.key(string.bytes);
                    content(string, findings);
                } else {
                    reading.string(string, inner, findings);
                }
            }
            b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                at = begin + 1 + bytes[at..].iter().take_while(|byte| !b",:{}[]\" \t\r\n".contains(byte)).count();
                let word = view.part(begin..at);
                // JavaScript has names without quotes.
                if is_key(bytes, at) { reading.key(word.bytes) } else { reading.word(word, inner, findings) }
            }
        }
    }
}

impl Reading {
    fn is_secret(&self) -> bool {
        self.is_named || self.secret_from.is_some() || self.member == Member::Value && self.pair == Some(self.level)
    }

    fn open(&mut self) {
        self.level += 1;
        if self.is_secret() && self.secret_from.is_none() {
            self.secret_from = Some(self.level);
        }
        self.end_of_value();
    }

    fn close(&mut self) {
        self.secret_from = self.secret_from.filter(|from| *from < self.level);
        self.pair = self.pair.filter(|pair| *pair < self.level);
        self.level = self.level.saturating_sub(1);
        self.end_of_value();
    }

    fn end_of_value(&mut self) {
        self.is_named = false;
        self.member = Member::Other;
    }

    fn key(&mut self, name: &[u8]) {
        self.is_named = is_secret_name(name);
        self.member = match name {
            b"name" | b"key" | b"field" | b"id" | b"type" => Member::Name,
            b"value" | b"val" | b"content" | b"data" => Member::Value,
            _ => Member::Other,
        };
    }

    fn string(&mut self, string: View<'_>, inner: Inner<'_>, findings: &mut dyn Findings) {
        if self.member == Member::Name && is_secret_name(string.bytes) {
            self.pair = Some(self.level);
        } else if self.is_secret() {
            return findings.found(string, 0..string.bytes.len(), SecretKind::Named, ValueForm::Plain);
        }
        inner(string, findings);
    }

    /// A number, or something that is no JSON.
    fn word(&mut self, word: View<'_>, inner: Inner<'_>, findings: &mut dyn Findings) {
        if !self.is_secret() {
            return inner(word, findings);
        }
        if ![&b"true"[..], b"false", b"null"].contains(&word.bytes) {
            findings.found(word, 0..word.bytes.len(), SecretKind::Named, ValueForm::Plain);
        }
    }
}

/// The place of the quote that ends the string from `at`, or the end.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// A colon follows.
fn is_key(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..).unwrap_or_default().iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}
