//! Texts of strangers in Markdown and XML: names of branches, subjects of commits, lines of configurations.

/// Most characters of one text in a comment.
const TEXT_MAX: usize = 400;

/// A text as a code span of Markdown, where nothing is markup, no name is a mention and no HTML counts.
pub fn code(text: &str) -> String {
    let clean = one_line(text).replace('`', "'");
    if clean.trim().is_empty() { "` `".to_owned() } else { format!("`{clean}`") }
}

/// A text as a code span in a cell of a table. There, a `|` ends the cell even in a code span.
pub fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A sentence of weir with values of strangers in it, as a paragraph or a cell of Markdown.
pub fn sentence(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A mention would notify a person; the sign alone in a code span does not.
            '@' => out.push_str("`@`"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '|' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A fenced block of code. The fence is longer than every row of backticks inside.
pub fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let clean: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    format!("{fence}{language}\n{}\n{fence}\n", clean.trim_end())
}

/// A text in an attribute or between tags of XML 1.0. Characters that XML does not allow are left out.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| is_xml(*c)) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c => out.push(c),
        }
    }
    out
}

fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() || is_bidi(c) { ' ' } else { c });
    let mut cut: String = clean.clone().take(TEXT_MAX).collect();
    if clean.count() > TEXT_MAX {
        cut.push('…');
    }
    cut
}

/// Marks that change the order in which a reader sees a line.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_text_is_no_markup() {
        assert_eq!(code("a`b\nc @team <b>"), "`a'b c @team <b>`");
        assert_eq!(code_cell("a|b"), "`a\\|b`");
        assert_eq!(code(" \n"), "` `");
        assert_eq!(sentence("<img src=x> [a](b) @team *x* !"), "&lt;img src=x&gt; \\[a\\](b) `@`team \\*x\\* \\!");
        assert_eq!(code("\u{202e}evil"), "` evil`");
        assert_eq!(code(&"x".repeat(9_000)).chars().count(), TEXT_MAX + 3);
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("a ```` b\u{1b}[1m\n", "sh"), "`````sh\na ```` b[1m\n`````\n");
        assert_eq!(fenced("a", ""), "```\na\n```\n");
    }

    #[test]
    fn xml_has_no_character_that_it_does_not_allow() {
        assert_eq!(xml("a<b>&\"\u{0}\u{1b}\u{fffe}한\n"), "a&lt;b&gt;&amp;&quot;한&#10;");
    }
}
