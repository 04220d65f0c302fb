//! Lists of media types, for `gzip_types` and `charset_types`: `text/html` always, `*` for all.

use std::sync::Arc;

use weir_conf::Statement;

use crate::read::build::Build;

/// The type that every list begins with.
pub const HTML: &str = "text/html";

/// Appends the types of one statement to those of earlier statements in the block; an empty list means all types.
pub fn read(b: &mut Build<'_>, statement: &Statement, earlier: Option<Arc<Vec<String>>>) -> Arc<Vec<String>> {
    let mut types = match earlier {
        Some(earlier) if earlier.is_empty() => return earlier,
        Some(earlier) => earlier.to_vec(),
        None => vec![HTML.to_owned()],
    };
    for word in &statement.args {
        let kind = word.text.to_ascii_lowercase();
        if kind == "*" {
            types.clear();
            break;
        }
        if types.contains(&kind) {
            b.warn(format!("duplicate MIME type \"{kind}\""), None);
        } else {
            types.push(kind);
        }
    }
    Arc::new(types)
}

/// Whether the media type, without its parameters, is in the list. `*` takes an answer without a type too, as nginx's does.
pub fn is_listed(types: &[String], content_type: &[u8]) -> bool {
    let bare = content_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    types.is_empty() || types.iter().any(|kind| kind.as_bytes().eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_compared_without_parameters() {
        let types = vec![HTML.to_owned(), "text/css".to_owned()];
        assert!(is_listed(&types, b"text/HTML; charset=utf-8"));
        assert!(is_listed(&types, b"text/css"));
        assert!(!is_listed(&types, b"text/plain"));
        assert!(!is_listed(&types, b""));
        assert!(is_listed(&[], b""));
    }
}
