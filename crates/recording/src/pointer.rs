//! The name of a place in a text: a path in JSON, or the name before a value.

/// Longest name that a report shows.
const NAME_BYTES_MAX: usize = 40;
/// Deepest path that a report shows.
const DEPTH_MAX: usize = 12;

/// The name of the place `at`. `None`: it has none. A name with other signs than those of a plain word is left out, because it may be a
/// secret itself.
pub(crate) fn pointer(text: &[u8], at: usize) -> Option<String> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'{' | b'[')) {
        return path(text, at);
    }
    let before = &text[..at.min(text.len())];
    let sign = before.len().checked_sub(1)?;
    if before[sign] != b'=' {
        return None;
    }
    let length = before[..sign].iter().rev().take_while(|byte| is_plain(**byte)).count();
    let name = &before[sign - length..sign];
    shown(name).filter(|name| !name.is_empty())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte)
}

/// A name, if it is a plain word.
fn shown(name: &[u8]) -> Option<String> {
    let digits = name.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_word = name.len() <= NAME_BYTES_MAX && name.iter().all(|byte| is_plain(*byte)) && digits <= 4;
    is_word.then(|| String::from_utf8_lossy(name).into_owned())
}

/// The path to the place `at` of a text in JSON: `$.a.b[]`.
fn path(text: &[u8], at: usize) -> Option<String> {
    let mut open: Vec<Option<&[u8]>> = Vec::new();
    let mut key = None;
    let mut place = 0;
    while let Some(byte) = text.get(place).filter(|_| place < at) {
        place += 1;
        match byte {
            b'{' => open.push(key.take()),
            b'[' => open.push(key.take().or(Some(b"[]"))),
            b'}' | b']' => {
                open.pop();
                key = None;
            }
            b',' => key = None,
            b'"' => {
                let begin = place;
                while let Some(byte) = text.get(place).filter(|byte| **byte != b'"') {
                    place += 1 + usize::from(*byte == b'\\');
                }
                let string = text.get(begin..place).unwrap_or_default();
                place += 1;
                if text.get(place..).unwrap_or_default().iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
                {
                    key = Some(string);
                }
            }
            _ => {}
        }
    }
    let mut path = "$".to_owned();
    for name in open.iter().skip(1).take(DEPTH_MAX).flatten().copied().chain(key) {
        match name {
            b"[]" => path.push_str("[]"),
            name => {
                path.push('.');
                path.push_str(&shown(name).unwrap_or_else(|| "…".to_owned()));
            }
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_names() {
        let of = |text: &str, value: &str| pointer(text.as_bytes(), text.find(value).unwrap());
        assert_eq!(of("/?a=1&user[token]=V", "V").unwrap(), "user[token]");
        assert_eq!(of("sid=V", "V").unwrap(), "sid");
        assert_eq!(of(r#"{"a":{"b":[{"c":"x"},{"d":"V"}]}}"#, "V").unwrap(), "$.a.b.d");
        assert_eq!(of(r#"[["V"]]"#, "V").unwrap(), "$[]");
        assert_eq!(of(r#"{"a":"V"}"#, "V").unwrap(), "$.a");
        assert_eq!(of(r#"{"a@b.example":"V"}"#, "V").unwrap(), "$.…", "a name that may be a secret");
        assert_eq!(of("/?010-1234-5678=V", "V"), None);
        assert_eq!(of("plain V", "V"), None);
        assert_eq!(pointer(b"", 9), None);
        assert_eq!(pointer(b"{\"\\", 9).unwrap(), "$");
    }
}
