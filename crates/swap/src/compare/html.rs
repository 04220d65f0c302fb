//! The texts and attributes of an HTML page, in a bounded way: enough to tell a token from the rest of the page.

use std::collections::HashMap;

use super::parts::{AnswerPart, Parts};

/// Most texts and attributes of a page.
const LEAVES_MAX: usize = 20_000;
/// Most attributes of a tag.
const ATTRIBUTES_MAX: usize = 50;
/// Elements whose content is text up to their end.
const RAW: &[&str] = &["script", "style", "textarea", "title"];
/// Attributes whose value names the element.
const NAMING: &[&str] = &["name", "property", "http-equiv"];

/// The parts of a page. `None`: it has too many.
pub(super) fn parts(page: &[u8]) -> Option<Parts> {
    let text = String::from_utf8_lossy(page);
    let mut leaves = Leaves::default();
    let mut rest: &str = &text;
    let mut element = String::from("page");
    while !rest.is_empty() {
        let at = rest.find('<').unwrap_or(rest.len());
        let (before, tag) = rest.split_at(at);
        leaves.put(&format!("<{element}> text"), before.trim());
        if leaves.parts.len() > LEAVES_MAX {
            return None;
        }
        if let Some(comment) = tag.strip_prefix("<!--") {
            let end = comment.find("-->").unwrap_or(comment.len());
            leaves.put("<!-->", comment.get(..end).unwrap_or_default().trim());
            rest = comment.get(end + 3..).unwrap_or_default();
            continue;
        }
        let (name, attributes, after) = tag_of(tag);
        rest = after;
        if name.is_empty() {
            continue;
        }
        if let Some(closed) = name.strip_prefix('/') {
            element = format!("after /{closed}");
            continue;
        }
        let naming = attributes.iter().find(|(key, _)| NAMING.contains(&key.as_str()));
        let shown = naming.map_or(name.clone(), |(key, value)| format!("{name} {key}={value}"));
        for (key, value) in attributes.iter().filter(|pair| Some(*pair) != naming) {
            leaves.put(&format!("<{shown}> {key}"), value);
        }
        if RAW.contains(&name.as_str()) {
            let end = end_of(rest, &name);
            let (content, after) = rest.split_at(end);
            leaves.put(&format!("<{shown}> text"), content.trim());
            rest = after;
        }
        element = shown;
    }
    Some(leaves.parts)
}

#[derive(Default)]
struct Leaves {
    parts: Parts,
    counts: HashMap<String, usize>,
}

impl Leaves {
    fn put(&mut self, place: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let count = self.counts.entry(place.to_owned()).or_default();
        let unique = format!("body {place} #{count}");
        *count += 1;
        self.parts.insert(unique, AnswerPart::of("body", value.as_bytes(), b" \t\r\n,;=&?\"'"));
    }
}

/// The place where the text of an element ends.
fn end_of(text: &str, name: &str) -> usize {
    let end = format!("</{name}");
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("</")) {
        let at = from + at;
        let found = text.get(at..at + end.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(&end)) {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

/// The name of the tag at the beginning of a text, its attributes, and the text after it.
fn tag_of(text: &str) -> (String, Vec<(String, String)>, &str) {
    let mut rest = text.get(1..).unwrap_or_default();
    let end = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(rest.len());
    let name = rest.get(..end).unwrap_or_default().trim_end_matches('/').to_ascii_lowercase();
    rest = rest.get(end..).unwrap_or_default();
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if rest.is_empty() {
            return (name, attributes, rest);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (name, attributes, after);
        }
        let end = rest.find(|c: char| c.is_whitespace() || "=>/".contains(c)).unwrap_or(rest.len()).max(1);
        let Some((key, after)) = rest.split_at_checked(end) else { return (name, attributes, "") };
        rest = after.trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|c| "\"'".contains(*c));
            let (own, then) = match quote {
                Some(quote) => {
                    let inner = after.get(1..).unwrap_or_default();
                    let end = inner.find(quote).unwrap_or(inner.len());
                    (inner.get(..end).unwrap_or_default(), inner.get(end + 1..).unwrap_or_default())
                }
                None => after.split_at(after.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(after.len())),
            };
            (value, rest) = (own, then);
        }
        if attributes.len() < ATTRIBUTES_MAX {
            attributes.push((key.to_ascii_lowercase(), value.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn leaves(page: &str) -> Vec<String> {
        let shown = |(place, part): (&String, &AnswerPart)| {
            format!("{place}: {}", String::from_utf8_lossy(&part.pieces.concat()))
        };
        parts(page.as_bytes()).unwrap().iter().map(shown).collect()
    }

    #[test]
    fn texts_and_attributes_are_parts() {
        assert_eq!(
            leaves(
                "<p class=x>Hi <b>you</b> there<input type=hidden name=\"csrf\" value='a b'><script>if (a<b) {}</SCRIPT >"
            ),
            [
                "body <after /b> text #0: there",
                "body <b> text #0: you",
                "body <input name=csrf> type #0: hidden",
                "body <input name=csrf> value #0: a b",
                "body <p> class #0: x",
                "body <p> text #0: Hi",
                "body <script> text #0: if (a<b) {}",
            ]
        );
    }

    #[test]
    fn broken_pages_end() {
        for page in ["<", "<a", "<a b", "<a b=", "<a b='", "<!--", "<script>", "</", "< >", "<a =>x", "<é ü=ö"] {
            leaves(page);
        }
    }
}
