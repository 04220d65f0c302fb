//! The media type of a response, by the extension of its URI (`types`, `default_type`).

use crate::exchange::Exchange;

/// Gives the response the type of the URI's extension, unless it has a type already.
pub fn set(exchange: &mut Exchange<'_>) {
    if !exchange.response.content_type.is_empty() {
        return;
    }
    let settings = &exchange.location.values.files;
    let kind = extension(exchange.uri).and_then(|extension| {
        let lower;
        let extension = if extension.bytes().any(|b| b.is_ascii_uppercase()) {
            lower = extension.to_ascii_lowercase();
            lower.as_str()
        } else {
            extension
        };
        settings.types.get(extension)
    });
    let kind = kind.unwrap_or(&settings.default_type);
    exchange.response.content_type.extend_from_slice(kind.as_bytes());
}

/// The text after the last dot of the last segment, unless the segment begins with it (nginx: `ngx_http_set_exten`).
fn extension(uri: &[u8]) -> Option<&str> {
    let at = memchr::memrchr2(b'.', b'/', uri)?;
    if uri.get(at) != Some(&b'.') || at < 2 || uri.get(at - 1) == Some(&b'/') {
        return None;
    }
    std::str::from_utf8(uri.get(at + 1..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_what_nginx_takes_for_one() {
        for (uri, expected) in [
            ("/a.html", Some("html")),
            ("/a.tar.gz", Some("gz")),
            ("/dir.d/file", None),
            ("/dir/.hidden", None),
            ("/.hidden", None),
            ("/a", None),
            ("/a.", Some("")),
        ] {
            assert_eq!(extension(uri.as_bytes()), expected, "{uri}");
        }
    }
}
