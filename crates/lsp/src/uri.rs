//! URIs of files.
//!
//! A document without a file, such as `untitled:Untitled-1`, has a path that no file has.

/// The path of a URI. The path of a document without a file begins with `/untitled:` or the like.
pub fn path_of(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return format!("/{}", uri.trim_start_matches('/')) };
    // The host of a file of this machine is empty or localhost.
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    decoded(path)
}

/// The URI of a path.
pub fn of_path(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&byte);
        if is_plain {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// A text with its percent escapes decoded. A `%` without two digits stays.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        match hex(after).filter(|_| *byte == b'%') {
            Some((value, after)) => {
                out.push(value);
                rest = after;
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The value of two hexadecimal digits, and the bytes after them.
fn hex(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = bytes.split_first_chunk::<2>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(digits[0])? * 16 + digit(digits[1])?;
    Some((u8::try_from(value).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back() {
        for path in ["/etc/nginx/nginx.conf", "/a b/%20/가.conf", "/c:/x#y?z"] {
            assert_eq!(path_of(&of_path(path)), path);
        }
        assert_eq!(of_path("/a b/가"), "file:///a%20b/%EA%B0%80");
    }

    #[test]
    fn other_forms_are_read() {
        assert_eq!(path_of("file://localhost/a%2fb%zz%"), "/a/b%zz%");
        assert_eq!(path_of("untitled:Untitled-1"), "/untitled:Untitled-1");
        assert_eq!(path_of("file:///a?b#c"), "/a");
        assert_eq!(path_of(""), "/");
    }
}
