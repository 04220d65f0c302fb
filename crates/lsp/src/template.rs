//! Placeholders that another program fills before nginx reads a file.
//!
//! `envsubst`, which nginx's image runs, replaces `$NAME` and `${NAME}` of the environment, whose names have capitals by custom;
//! nginx's own variables have small letters. A placeholder may become any text, so a line with one has no value that weir could
//! judge. Generators such as Jinja and Go's templates write `{{ }}` and `{% %}`; before they run, the file is not nginx.conf
//! at all.

/// The placeholders of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placeholders {
    /// None.
    #[default]
    None,
    /// Those of `envsubst`.
    Variables,
    /// Those of a generator.
    Generator,
}

/// The placeholders of a file with this name and these bytes.
pub fn placeholders(name: &str, bytes: &[u8]) -> Placeholders {
    if bytes.split(|byte| *byte == b'\n').any(is_of_generator) {
        return Placeholders::Generator;
    }
    match name.ends_with(".template") || has(bytes, &|rest| braced(rest)) {
        true => Placeholders::Variables,
        false => Placeholders::None,
    }
}

/// Whether a text of a file with such placeholders has one.
pub fn has_placeholder(kind: Placeholders, text: &[u8]) -> bool {
    kind != Placeholders::None && has(text, &|rest| braced(rest) || bare(rest))
}

fn has(text: &[u8], is_one: &dyn Fn(&[u8]) -> bool) -> bool {
    let after = |at: usize| text.get(at + 1..).unwrap_or_default();
    text.iter().enumerate().any(|(at, byte)| *byte == b'$' && is_one(after(at)))
}

/// Whether `NAME}` follows, after `{`.
fn braced(rest: &[u8]) -> bool {
    let Some(inner) = rest.strip_prefix(b"{") else { return false };
    let length = name_length(inner);
    // envsubst itself knows no default, but other programs write ${NAME:-8080}.
    length > 0 && matches!(inner.get(length), Some(b'}' | b':'))
}

/// Whether a name of at least two capitals follows.
fn bare(rest: &[u8]) -> bool {
    let length = name_length(rest);
    length > 1 && !rest.get(length).is_some_and(u8::is_ascii_alphanumeric)
}

/// Length of the name in capitals at the beginning.
fn name_length(text: &[u8]) -> usize {
    let is_first = text.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let is_inner = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b'_';
    if is_first { text.iter().take_while(is_inner).count() } else { 0 }
}

/// Whether a line has an opening and a closing mark of a generator, outside of a comment.
fn is_of_generator(line: &[u8]) -> bool {
    if line.trim_ascii_start().starts_with(b"#") {
        return false;
    }
    let find = |text: &[u8], mark: &[u8]| text.windows(mark.len()).position(|part| part == mark);
    let marks: [(&[u8], &[u8]); 3] = [(b"{{", b"}}"), (b"{%", b"%}"), (b"<%", b"%>")];
    marks.iter().any(|(open, close)| {
        let Some(at) = find(line, open) else { return false };
        let inner = line.get(at + open.len()..).unwrap_or_default();
        // `{{1,2},{3}}` is a table of Lua.
        let begins = inner.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b" .-$#~=%_".contains(byte));
        begins && find(inner, close).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_placeholders_are_told_apart() {
        let of = |text: &str| placeholders("/a.conf", text.as_bytes());
        for text in ["", "a ${host} $HOST;", "  # {{ x }}", "local t = {{1,2},{3}}", "a{2}{{3}}"] {
            assert_eq!(of(text), Placeholders::None, "{text}");
        }
        for text in ["listen ${PORT};", "listen ${NGINX_PORT:-80};", "a 'b${A}c';"] {
            assert_eq!(of(text), Placeholders::Variables, "{text}");
        }
        for text in ["server_name {{ host }};", "{% if a %}", "{{- range .Values }}", "<% if a %>", "listen {{port}};"]
        {
            assert_eq!(of(text), Placeholders::Generator, "{text}");
        }
        assert_eq!(placeholders("/default.conf.template", b"listen 80;"), Placeholders::Variables);
    }

    #[test]
    fn a_placeholder_has_capitals() {
        let has = |text: &str| has_placeholder(Placeholders::Variables, text.as_bytes());
        assert!(has("listen ${PORT}") && has("listen $PORT") && has("a$NGINX_PORT/b") && has("${A:-b}"));
        assert!(!has("return $host$uri") && !has("${host}") && !has("$Host") && !has("$") && !has("~ ^/A$"));
        assert!(!has_placeholder(Placeholders::None, b"${PORT}"));
    }
}
