//! Makes log lines safe to show: no control bytes, limited length, and no secrets.
//!
//! Queries, cookies, credentials and values with names of secrets are replaced by `…`. weir cannot recognise secrets
//! in an application's own words; the guide says so.

use weir_meter::live::without_queries;

/// Most bytes of an entry that are shown.
pub const ENTRY_BYTES_MAX: usize = 2048;

/// An entry of one or more lines, in the form to show.
pub fn shown(entry: &[u8]) -> String {
    // The cut-off rest cannot turn the shown part into a secret.
    let head = entry.get(..entry.len().min(2 * ENTRY_BYTES_MAX)).unwrap_or_default();
    let text = printable(&String::from_utf8_lossy(head));
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&without_secrets(&without_queries(line)));
    }
    if out.len() > ENTRY_BYTES_MAX || head.len() < entry.len() {
        let end = (0..=ENTRY_BYTES_MAX.min(out.len())).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
        out.truncate(end);
        out.push('…');
    }
    out
}

/// The text without terminal colours; other control characters, and bytes that are not text, become dots.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                // ECMA-48: parameters, then one byte from @ to ~.
                let _ = chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\n' | '\t' => out.push(c),
            '\r' => {}
            c if c.is_control() || c == '\u{fffd}' => out.push('·'),
            c => out.push(c),
        }
    }
    out
}

/// Names of fields whose value extends to the end of the line, written without `-` and `_`.
const FIELDS: [&str; 4] = ["authorization", "proxyauthorization", "cookie", "setcookie"];
/// Endings of names of secrets, written without `-` and `_`.
const ENDS: [&str; 9] =
    ["password", "passwd", "pwd", "secret", "token", "apikey", "session", "sessionid", "privatekey"];
/// Most bytes of a name that are checked.
const NAME_BYTES_MAX: usize = 64;

/// Removes credentials from a line.
pub fn without_secrets(line: &str) -> String {
    let bytes = line.as_bytes();
    let mut out = String::with_capacity(line.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let secret = match byte {
            b'=' | b':' => after_name(line, at).or_else(|| userinfo(line, at)),
            b'B' | b'b' => after_scheme(line, at),
            b'e' => web_token(line, at),
            _ => None,
        };
        at += 1;
        if let Some((from, to)) = secret.filter(|(from, to)| *from >= copied && from < to) {
            out.push_str(line.get(copied..from).unwrap_or_default());
            out.push('…');
            (at, copied) = (to, to);
        }
    }
    out.push_str(line.get(copied..).unwrap_or_default());
    out
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Secret,
    /// The value extends to the end of the line.
    Field,
}

fn kind(name: &str) -> Kind {
    let name: String = name.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
    match FIELDS.contains(&name.as_str()) {
        true => Kind::Field,
        false if ENDS.iter().any(|end| name.ends_with(end)) => Kind::Secret,
        false => Kind::Plain,
    }
}

/// Whether a value with this name is a secret.
pub fn is_secret(name: &str) -> bool {
    kind(name) != Kind::Plain
}

/// The value after `name=` or `name:`, if it is the name of a secret.
fn after_name(line: &str, at: usize) -> Option<(usize, usize)> {
    let before = line.get(..at)?.trim_end().trim_end_matches(['"', '\'', '\\']);
    let length = before.bytes().rev().take(NAME_BYTES_MAX).take_while(is_word).count();
    let is_field = match kind(before.get(before.len() - length..)?) {
        Kind::Plain => return None,
        kind => kind == Kind::Field,
    };
    let value = line.get(at + 1..)?.trim_start();
    let from = line.len() - value.len();
    let opening: &str = ["\\\"", "\"", "'"].into_iter().find(|mark| value.starts_with(mark)).unwrap_or("");
    let from = from + opening.len();
    let value = line.get(from..)?;
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | ')' | '}' | ']' | '"');
    let length = match opening {
        "" if is_field => value.len(),
        "" => value.find(ends).unwrap_or(value.len()),
        mark => value.find(mark).unwrap_or(value.len()),
    };
    Some((from, from + length))
}

/// The user and the password in `scheme://user:password@host`.
fn userinfo(line: &str, at: usize) -> Option<(usize, usize)> {
    let authority = line.get(at..)?.strip_prefix("://")?;
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '<' | '>');
    let authority = authority.split(ends).next()?;
    Some((at + 3, at + 3 + authority.rfind('@')?))
}

/// The text after `Bearer` or `Basic`.
fn after_scheme(line: &str, at: usize) -> Option<(usize, usize)> {
    let scheme = ["bearer ", "basic "]
        .into_iter()
        .find(|scheme| line.get(at..at + scheme.len()).is_some_and(|text| text.eq_ignore_ascii_case(scheme)))?;
    let is_inside = at > 0 && line.as_bytes().get(at - 1).is_some_and(is_word);
    let from = at + scheme.len();
    let length = credential_length(line.get(from..)?);
    (!is_inside && length >= 6).then_some((from, from + length))
}

/// A JSON Web Token, at any place.
fn web_token(line: &str, at: usize) -> Option<(usize, usize)> {
    let text = line.get(at..)?;
    let length = credential_length(text);
    let is_one = text.starts_with("eyJ") && length > 20 && text.get(..length)?.contains('.');
    is_one.then_some((at, at + length))
}

fn credential_length(text: &str) -> usize {
    text.bytes().take_while(|byte| is_word(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        for (line, wanted) in [
            ("Cookie: sid=1; theme=dark", "Cookie: …"),
            (
                "{\"headers\":{\"cookie\":\"sid=1; a=b\",\"host\":\"x\"}}",
                "{\"headers\":{\"cookie\":\"…\",\"host\":\"x\"}}",
            ),
            ("body {\\\"password\\\":\\\"hunter2\\\",\\\"n\\\":1}", "body {\\\"password\\\":\\\"…\\\",\\\"n\\\":1}"),
            ("db_password=hunter2 host=db", "db_password=… host=db"),
            ("api-key: 'abc' x", "api-key: '…' x"),
            ("accessToken=abc, user=ann", "accessToken=…, user=ann"),
            ("sent Bearer abcdef.ghi-jkl to x", "sent Bearer … to x"),
            ("postgres://app:hunter2@db:5432/shop down", "postgres://…@db:5432/shop down"),
            ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln from", "got … from"),
            ("Authorization=Basic YW5uOng=", "Authorization=…"),
            ("tokens: 3, no secret here", "tokens: 3, no secret here"),
            ("비밀번호 password=값 끝", "비밀번호 password=… 끝"),
            ("token=", "token="),
        ] {
            assert_eq!(without_secrets(line), wanted, "{line}");
        }
    }

    #[test]
    fn what_is_shown_is_text_and_short() {
        assert_eq!(shown(b"\x1b[31mERROR\x1b[0m a\x00b\xff\r\n\tat x"), "ERROR a·b·\n\tat x");
        let long = "가".repeat(3000);
        let cut = shown(long.as_bytes());
        assert!(cut.len() <= ENTRY_BYTES_MAX + "…".len() && cut.ends_with('…'));
        let mut state = 7u32;
        for _ in 0..3000 {
            let bytes: Vec<u8> = (0..60)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"token=:\"\\'?&Bearer eyJ.@/ \xea\xb0\x80\x1b[m"[(state >> 16) as usize % 32]
                })
                .collect();
            let _ = shown(&bytes);
        }
    }
}
