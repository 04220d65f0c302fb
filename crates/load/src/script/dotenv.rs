//! `--dotenv`: a file of `NAME=value` lines for the environment of a script.

/// The variables in a file's text, in order; other lines are ignored, as in dotenv.
///
/// Quotes are removed, `\n` in double quotes becomes a line end, `#` outside quotes begins a comment, a quoted value
/// may extend over several lines, `export` before a name is allowed.
pub(crate) fn read(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let (line, after) = rest.split_at_checked(line_end).unwrap_or((rest, ""));
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let equals = line.find(['=', ':']).filter(|_| !line.starts_with('#'));
        let Some((name, value)) =
            equals.and_then(|at| Some((line.get(..at)?.trim_end(), line.get(at + 1..)?.trim_start())))
        else {
            rest = after;
            continue;
        };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if !is_name {
            rest = after;
            continue;
        }
        let (value, after) = quoted(value, rest, after);
        found.push((name.to_owned(), value));
        rest = after;
    }
    found
}

/// The value, and the text after it: a quoted value may end on a later line.
fn quoted<'t>(value: &str, rest: &'t str, after: &'t str) -> (String, &'t str) {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    if let Some(quote) = quote
        && let Some(open) = rest.find(quote)
        && let Some(body) = rest.get(open + 1..)
        && let Some(close) = closing(body, quote)
    {
        let inner = body.get(..close).unwrap_or_default();
        let inner = if quote == '"' { inner.replace("\\n", "\n").replace("\\r", "\r") } else { inner.to_owned() };
        let tail = body.get(close..).unwrap_or_default();
        let next = tail.find('\n').and_then(|end| tail.get(end + 1..)).unwrap_or_default();
        return (inner, next);
    }
    (value.split('#').next().unwrap_or_default().trim_end().to_owned(), after)
}

/// The position of the closing quote; a quote after a backslash does not close.
fn closing(body: &str, quote: char) -> Option<usize> {
    body.match_indices(quote).map(|(at, _)| at).find(|at| !body.get(..*at).unwrap_or_default().ends_with('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_variables() {
        let text = "# a comment\nURL=http://h/x  # tail\nexport A = 1\nB='x # y'\nC=\"two\\nlines\"\nD=\"over\nlines\"\n\
                    nothing\n=x\nE=\nF: yaml\nG=\"open\n";
        let found = read(text);
        let seen: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("URL", "http://h/x"),
            ("A", "1"),
            ("B", "x # y"),
            ("C", "two\nlines"),
            ("D", "over\nlines"),
            ("E", ""),
            ("F", "yaml"),
            ("G", "\"open"),
        ];
        assert_eq!(seen, expected);
    }
}
