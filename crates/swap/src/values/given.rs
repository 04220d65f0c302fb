//! The values that an answer gives, by their places.

use std::collections::HashMap;

use serde_json::Value;

use crate::request::{SwapField, field};

/// Shortest text of JSON that counts as a value of the application.
const TEXT_BYTES_MIN: usize = 8;
/// Most values of an answer.
const GIVEN_MAX: usize = 2_000;
/// Deepest nesting of JSON.
const DEPTH_MAX: usize = 32;

/// The values of an answer: cookies, texts of JSON, segments of `Location`, hidden fields and tokens of HTML. The last
/// step of a place is the name of the value.
pub(super) fn given(fields: &[SwapField], body: &[u8]) -> HashMap<String, Vec<u8>> {
    let mut all = HashMap::new();
    for (_, value) in fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
        let first = value.split(|byte| *byte == b';').next().unwrap_or_default();
        if let Some(at) = first.iter().position(|byte| *byte == b'=') {
            let (name, value) = first.split_at(at);
            let place = format!("cookie.{}", String::from_utf8_lossy(name.trim_ascii()));
            all.insert(place, value.get(1..).unwrap_or_default().trim_ascii().to_vec());
        }
    }
    if let Some(location) = field(fields, "location") {
        let words = location.split(|byte| b"/?&=#".contains(byte)).enumerate();
        for (number, word) in words.filter(|(_, word)| word.iter().any(u8::is_ascii_digit)).take(GIVEN_MAX) {
            all.insert(format!("location.{number}"), word.to_vec());
        }
    }
    let is_html = memchr::memmem::find(body, b"<").is_some() && !body.trim_ascii_start().starts_with(b"{");
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => json(&value, "json", 0, &mut all),
        Err(_) if is_html => html(&String::from_utf8_lossy(body), &mut all),
        Err(_) => {}
    }
    all
}

fn json(value: &Value, place: &str, depth: usize, all: &mut HashMap<String, Vec<u8>>) {
    if all.len() >= GIVEN_MAX || depth > DEPTH_MAX {
        return;
    }
    let is_id = place
        .rsplit('.')
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case("id") || name.ends_with("_id") || name.ends_with("Id"));
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| json(value, &format!("{place}.{name}"), depth + 1, all));
        }
        Value::Array(elements) => {
            for (number, value) in elements.iter().enumerate() {
                json(value, &format!("{place}[{number}]"), depth + 1, all);
            }
        }
        Value::String(text) if text.len() >= TEXT_BYTES_MIN || is_id => {
            all.insert(place.to_owned(), text.as_bytes().to_vec());
        }
        Value::Number(number) if is_id => {
            all.insert(place.to_owned(), number.to_string().into_bytes());
        }
        _ => {}
    }
}

/// `<input type=hidden name=… value=…>` and `<meta name=csrf-token content=…>`.
fn html(page: &str, all: &mut HashMap<String, Vec<u8>>) {
    for (at, _) in page.match_indices('<') {
        let tag = page.get(at..).unwrap_or_default();
        let lower: String = tag.chars().take(6).collect::<String>().to_ascii_lowercase();
        if all.len() >= GIVEN_MAX || !(lower.starts_with("<input") || lower.starts_with("<meta")) {
            continue;
        }
        let tag = tag.get(..tag.find('>').unwrap_or(tag.len())).unwrap_or_default();
        let is_meta = lower.starts_with("<meta");
        let value = if is_meta { attribute(tag, "content") } else { attribute(tag, "value") };
        let is_hidden = is_meta || attribute(tag, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
        if let (Some(name), Some(value)) = (attribute(tag, "name").filter(|_| is_hidden), value) {
            all.insert(format!("html.{name}"), value.as_bytes().to_vec());
        }
    }
}

/// The value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let lower = tag.to_ascii_lowercase();
    let wanted = format!("{name}=");
    let starts = |at: &usize| lower.as_bytes().get(at.wrapping_sub(1)).is_some_and(u8::is_ascii_whitespace);
    let at = lower.match_indices(&wanted).map(|(at, _)| at).find(starts)?;
    let rest = tag.get(at + name.len() + 1..)?;
    match rest.chars().next().filter(|c| "\"'".contains(*c)) {
        Some(quote) => rest.get(1..)?.split(quote).next(),
        None => rest.split(char::is_whitespace).next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_places() {
        let fields = [(b"Location".to_vec(), b"/a/17?x=ab".to_vec())];
        let found = given(&fields, br#"{"id":5,"user":{"token":"abcdefgh"},"short":"x"}"#);
        let mut all: Vec<(String, String)> =
            found.into_iter().map(|(place, value)| (place, String::from_utf8_lossy(&value).into_owned())).collect();
        all.sort();
        let own = |place: &str, value: &str| (place.to_owned(), value.to_owned());
        assert_eq!(all, [own("json.id", "5"), own("json.user.token", "abcdefgh"), own("location.2", "17")]);
        let page = "<meta name='csrf-token' content=\"m1\"><INPUT value='v1' type=hidden name=t><input name=q value=z>";
        let mut all: Vec<String> = given(&[], page.as_bytes()).into_keys().collect();
        all.sort();
        assert_eq!(all, ["html.csrf-token", "html.t"]);
    }
}
