//! Text of files, logs and answers, made harmless for a reader that may take text for an order: no character that acts on a
//! terminal, changes the order of letters or is invisible, and no text without an end.

use serde_json::{Map, Value};

/// Most characters of one text.
pub const TEXT_CHARS_MAX: usize = 400;
/// Most characters of a text of many lines, such as a script.
pub const BLOCK_CHARS_MAX: usize = 24_000;
/// Most members of a list or an object.
pub const MEMBERS_MAX: usize = 200;
/// Deepest nesting of lists and objects.
const DEPTH_MAX: usize = 6;
/// The sign of a cut.
const CUT: char = '…';

/// Whether a character shows nothing, or changes how other characters are shown: controls, format characters (also those that
/// change the direction of text), tags, fillers and variation selectors, which can carry hidden text.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text as one line: each run of white space and hidden characters becomes a space. It is cut after this number of characters.
pub fn line(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let (mut count, mut is_gap) = (0, false);
    for letter in text.chars() {
        if letter.is_whitespace() || is_hidden(letter) {
            is_gap |= !out.is_empty();
            continue;
        }
        if count + usize::from(is_gap) >= chars_max {
            out.push(CUT);
            return out;
        }
        if std::mem::take(&mut is_gap) {
            out.push(' ');
            count += 1;
        }
        out.push(letter);
        count += 1;
    }
    out
}

/// A text of many lines: hidden characters are removed, ends of lines stay. The second value says whether it was cut.
pub fn block(text: &str) -> (String, bool) {
    let mut letters = text.chars().filter(|letter| *letter == '\n' || !is_hidden(*letter));
    let kept: String = letters.by_ref().take(BLOCK_CHARS_MAX).collect();
    let is_cut = letters.next().is_some();
    (if is_cut { format!("{kept}{CUT}") } else { kept }, is_cut)
}

/// A value with every text and every name in it as one line, and with bounds on its size.
pub fn value(value: &Value) -> Value {
    within(value, DEPTH_MAX)
}

fn within(value: &Value, depth: usize) -> Value {
    let Some(inner) = depth.checked_sub(1) else { return Value::Null };
    match value {
        Value::String(text) => line(text, TEXT_CHARS_MAX).into(),
        Value::Array(list) => list.iter().take(MEMBERS_MAX).map(|one| within(one, inner)).collect(),
        Value::Object(map) => {
            let members = map.iter().take(MEMBERS_MAX);
            members.map(|(name, one)| (line(name, TEXT_CHARS_MAX), within(one, inner))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_acts_or_hides_is_removed() {
        for (text, expect) in [
            ("plain", "plain"),
            ("  two\r\n\twords ", "two words"),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred [0m"),
            ("a\u{202e}b\u{2066}c", "a b c"),
            ("a\u{200b}\u{feff}\u{e0041}\u{fe0f}b", "a b"),
            ("\u{0}\u{7f}\u{9b}", ""),
            ("한국어 ⌘ é", "한국어 ⌘ é"),
        ] {
            assert_eq!(line(text, 100), expect, "{text:?}");
        }
        assert_eq!(block("a: 1\n\u{1b}b: 2\r\n"), ("a: 1\nb: 2\n".to_owned(), false));
    }

    #[test]
    fn every_text_ends() {
        assert_eq!((line("abcdef", 6), line("abcdefg", 6)), ("abcdef".to_owned(), "abcdef…".to_owned()));
        assert_eq!(line("ab cd", 2), "ab…");
        let (text, is_cut) = block(&"x".repeat(BLOCK_CHARS_MAX + 1));
        assert_eq!((text.chars().count(), is_cut), (BLOCK_CHARS_MAX + 1, true));
        let many: Vec<u32> = (0..1000).collect();
        assert_eq!(value(&json!(many)).as_array().map(Vec::len), Some(MEMBERS_MAX));
        let mut deep = json!("end");
        for _ in 0..50 {
            deep = json!([deep]);
        }
        assert!(!value(&deep).to_string().contains("end"));
        assert_eq!(value(&json!({"a\u{1b}b": "x\ny", "n": 1.5})), json!({"a b": "x y", "n": 1.5}));
    }
}
