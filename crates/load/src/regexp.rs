//! Regular expressions in JavaScript's dialect.

use regress::Regex;

/// The longest expression.
const TEXT_MAX: usize = 64 << 10;

/// Compiles an expression with JavaScript's flags; accepts `g`, `y` and `d`, which do not change a first search.
pub(crate) fn compile(text: &str, flags: &str) -> Result<Regex, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("a regular expression is at most {TEXT_MAX} bytes"));
    }
    if let Some(flag) = flags.chars().find(|flag| !"dgimsuvy".contains(*flag)) {
        return Err(format!("/{text}/{flags}: no flag {flag}"));
    }
    Regex::with_flags(text, flags).map_err(|error| format!("/{text}/{flags}: {}", error.text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn javascripts() {
        for (text, flags, subject, found) in [
            ("a(?=b)", "", "xab", Some("a")),
            ("(?<=\\$)\\d+", "", "cost $42", Some("42")),
            ("(?<y>\\d{4})-\\k<y>", "", "2020-2020", Some("2020-2020")),
            ("^b", "m", "a\nb", Some("b")),
            ("ABC", "gi", "xabc", Some("abc")),
            ("a.c", "", "a\nc", None),
            ("a.c", "s", "a\nc", Some("a\nc")),
            ("[^]", "", "\n", Some("\n")),
        ] {
            let regex = compile(text, flags).unwrap();
            assert_eq!(regex.find(subject).map(|found| found.as_str(subject)), found, "/{text}/{flags}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, flags) in [("(", ""), ("a", "z"), ("[", ""), ("*", "")] {
            assert!(compile(text, flags).is_err_and(|error| error.contains(text)), "/{text}/{flags}");
        }
    }
}
