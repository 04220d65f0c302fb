//! Examples of paths for a location that is a pattern.

use weir_doctor::regex::{parse, sample};

/// Most examples of one pattern.
const EXAMPLES_MAX: usize = 3;

/// Paths that the pattern may match. Not each of them has to: anchors and conditions are not followed.
pub(super) fn of(pattern: &str) -> Vec<String> {
    let Some(node) = parse(pattern, false) else { return Vec::new() };
    let is_plain = |text: &String| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    let path = |text: String| match text.strip_prefix('/') {
        Some(_) => text,
        None if text.starts_with('.') => format!("/x{text}"),
        None => format!("/{text}"),
    };
    let mut found: Vec<String> = Vec::new();
    for text in sample::texts(&node).into_iter().filter(|text| !text.contains("evil")).filter(is_plain).map(path) {
        if found.len() < EXAMPLES_MAX && !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_examples() {
        assert_eq!(of(r"\.php$"), ["/x.php"]);
        assert!(of(r"^/(a|b)/\d+$").contains(&"/a/1".to_owned()), "{:?}", of(r"^/(a|b)/\d+$"));
        assert_eq!(of("("), [""; 0]);
    }
}
