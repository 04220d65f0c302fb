//! The form of an answer.

use weir_conf::Span;

/// Most bytes of one text of a file that a hover shows; the rest is cut.
const SHOWN_BYTES_MAX: usize = 160;

/// An answer about a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hovered {
    /// The bytes that the answer is about.
    pub span: Span,
    /// The answer, as Markdown.
    pub markdown: String,
}

/// A text of a file as code of Markdown. It cannot end the code: a file is data.
pub fn code(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut clean = clean.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'");
    if clean.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| clean.is_char_boundary(*at)).unwrap_or(0);
        clean.truncate(end);
        clean.push('…');
    }
    if clean.is_empty() { "` `".to_owned() } else { format!("`{clean}`") }
}

/// A text as Markdown that shows it as it is. Parts in backticks are code already, and stay.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(one) = rest.chars().next() {
        let after = rest.get(one.len_utf8()..).unwrap_or_default();
        if one == '`'
            && let Some(end) = after.find('`').filter(|end| *end > 0)
        {
            let code = rest.get(..end + 2).unwrap_or(rest);
            out.push_str(code);
            rest = rest.get(code.len()..).unwrap_or_default();
            before = '`';
            continue;
        }
        let is_marked = match one {
            '\\' | '`' | '*' | '<' | '>' | '[' | ']' | '|' => true,
            // Markdown takes a `_` between letters as a letter.
            '_' => !(before.is_alphanumeric() && after.starts_with(char::is_alphanumeric)),
            '&' | '#' | '~' => !after.starts_with(' '),
            _ => false,
        };
        if is_marked {
            out.push('\\');
        }
        out.push(one);
        before = one;
        rest = after;
    }
    out
}

/// The text of an answer for a client that shows no Markdown.
pub fn plain(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let (mut is_code, mut chars) = (false, markdown.chars().peekable());
    while let Some(one) = chars.next() {
        match one {
            '`' => is_code = !is_code,
            _ if is_code => out.push(one),
            '\\' => out.push(chars.next_if(char::is_ascii_punctuation).unwrap_or(one)),
            '*' if chars.next_if_eq(&'*').is_some() => {}
            _ => out.push(one),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_of_a_table_shows_its_signs() {
        for (text, markdown) in [
            ("proxy_pass and _x_, * for all", "proxy_pass and \\_x\\_, \\* for all"),
            ("[HOST|any] <b> `a*b` \\", "\\[HOST\\|any\\] \\<b\\> `a*b` \\\\"),
            ("a ` alone, #1 & ~b, &amp; # c", "a \\` alone, \\#1 & \\~b, \\&amp; # c"),
            ("한_글 _가", "한_글 \\_가"),
        ] {
            assert_eq!(escaped(text), markdown);
            assert_eq!(plain(&escaped(text)), text.replace('`', if text.contains("alone") { "`" } else { "" }));
        }
        assert_eq!(plain("**gzip** — `a_b`, \\*x"), "gzip — a_b, *x");
    }

    proptest::proptest! {
        #[test]
        fn an_escaped_text_loses_nothing(text in "[a_*<>|\\[\\]\\\\#&~ 가]{0,20}") {
            proptest::prop_assert_eq!(plain(&escaped(&text)), text);
        }
    }

    #[test]
    fn a_text_of_a_file_cannot_end_its_code() {
        assert_eq!(code("a`b\n\n# c\u{7}"), "`a'b # c`");
        assert_eq!(code(&"가".repeat(100)).chars().count(), 160 / 3 + 3);
    }
}
