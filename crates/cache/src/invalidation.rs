//! The URIs that a successful unsafe request invalidates (RFC 9111 §4.4): its own target, and the URIs in the answer's
//! `Location` and `Content-Location` on the same host.

use weir_wire::Known;
use weir_wire::fields::FieldRef;

use crate::request::is_safe;

/// The request's own target, `Location`, `Content-Location`.
pub const TARGETS_MAX: usize = 3;

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub struct TargetUri<'a> {
    /// `http` or `https`.
    pub scheme: &'a [u8],
    /// The host and its port as the client wrote them.
    pub host: &'a [u8],
    /// Path and arguments as sent: `/a/b?c`.
    pub uri: &'a [u8],
}

/// The paths with arguments whose stored answers are invalid, each once, at most [`TARGETS_MAX`].
///
/// None after a safe method, and none after an error (a status outside 200 to 399).
pub fn targets<'a>(
    method: &[u8],
    status: u16,
    target: TargetUri<'_>,
    fields: impl Iterator<Item = FieldRef<'a>>,
) -> Vec<Vec<u8>> {
    if is_safe(method) || !(200..400).contains(&status) {
        return Vec::new();
    }
    let mut found = vec![target.uri.to_vec()];
    for field in fields {
        if !matches!(field.known, Some(Known::Location | Known::ContentLocation)) || found.len() == TARGETS_MAX {
            continue;
        }
        if let Some(uri) = resolve(field.value, target)
            && !found.contains(&uri)
        {
            found.push(uri);
        }
    }
    found
}

/// Resolves a reference against the target (RFC 3986 §5.2); `None` if it leads to another origin.
fn resolve(reference: &[u8], target: TargetUri<'_>) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'#', reference).unwrap_or(reference.len());
    let reference = reference.get(..end)?;
    if let Some(scheme_end) = memchr::memmem::find(reference, b"://").filter(|at| is_scheme(reference, *at)) {
        let (scheme, rest) = reference.split_at_checked(scheme_end)?;
        return scheme.eq_ignore_ascii_case(target.scheme).then(|| same_host(rest.get(3..)?, target)).flatten();
    }
    if let Some(rest) = reference.strip_prefix(b"//") {
        return same_host(rest, target);
    }
    let path_end = memchr::memchr(b'?', target.uri).unwrap_or(target.uri.len());
    let path = target.uri.get(..path_end)?;
    match reference.first() {
        None => Some(target.uri.to_vec()),
        Some(b'/') => Some(without_dots(reference)),
        Some(b'?') => Some([path, reference].concat()),
        Some(_) => {
            let folder = memchr::memrchr(b'/', path).map_or(&b"/"[..], |at| path.get(..=at).unwrap_or_default());
            Some(without_dots(&[folder, reference].concat()))
        }
    }
}

fn is_scheme(reference: &[u8], end: usize) -> bool {
    reference.get(..end).is_some_and(|scheme| {
        scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// Reads `host[:port]/path?arguments`; `None` if the host is not the target's.
fn same_host(rest: &[u8], target: TargetUri<'_>) -> Option<Vec<u8>> {
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (host, uri) = rest.split_at_checked(end)?;
    let port = if target.scheme.eq_ignore_ascii_case(b"https") { &b":443"[..] } else { b":80" };
    let bare = |host: &'_ [u8]| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    if bare(host) != bare(target.host) {
        return None;
    }
    Some(if uri.first() == Some(&b'/') { without_dots(uri) } else { [b"/", uri].concat() })
}

/// Removes `.` and `..` from a path that begins with a slash (RFC 3986 §5.2.4); arguments stay as they are.
fn without_dots(uri: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(b'?', uri).unwrap_or(uri.len());
    let (path, arguments) = uri.split_at_checked(end).unwrap_or((uri, b""));
    let mut out: Vec<u8> = Vec::with_capacity(uri.len());
    let mut segments = path.split(|b| *b == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0));
                }
                if is_last {
                    out.push(b'/');
                }
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    out.extend_from_slice(arguments);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const OF: TargetUri<'_> = TargetUri { scheme: b"http", host: b"Example.com", uri: b"/a/b/c?d=/e" };

    fn of(method: &str, status: u16, lines: &[(&str, &str)]) -> Vec<String> {
        let fields = lines.iter().map(|(name, value)| FieldRef {
            name: name.as_bytes(),
            value: value.as_bytes(),
            known: Known::of(name.as_bytes()),
        });
        let found = targets(method.as_bytes(), status, OF, fields);
        found.into_iter().map(|uri| String::from_utf8(uri).unwrap()).collect()
    }

    #[test]
    fn only_success_of_an_unsafe_method_invalidates() {
        for (method, status, expected) in [
            ("POST", 200, true),
            ("PUT", 204, true),
            ("DELETE", 303, true),
            ("M-SEARCH", 200, true),
            ("POST", 500, false),
            ("POST", 404, false),
            ("POST", 100, false),
            ("GET", 200, false),
            ("HEAD", 200, false),
            ("OPTIONS", 200, false),
        ] {
            let own = if expected { vec!["/a/b/c?d=/e"] } else { vec![] };
            assert_eq!(of(method, status, &[]), own, "{method} {status}");
        }
    }

    #[test]
    fn locations_of_the_same_host_are_invalidated_too() {
        for (location, expected) in [
            ("/x?y#z", Some("/x?y")),
            ("x", Some("/a/b/x")),
            ("../x/./y", Some("/a/x/y")),
            ("../../../x", Some("/x")),
            ("..", Some("/a/")),
            (".", Some("/a/b/")),
            ("?x=//y", Some("/a/b/c?x=//y")),
            ("http://example.com/x", Some("/x")),
            ("HTTP://EXAMPLE.COM:80/x", Some("/x")),
            ("//example.com?x", Some("/?x")),
            ("http://example.com", Some("/")),
            ("x?u=http://other/", Some("/a/b/x?u=http://other/")),
            ("", None),
            ("#here", None),
            ("https://example.com/x", None),
            ("http://example.org/x", None),
            ("http://example.com:8080/x", None),
            ("//example.com.evil/x", None),
        ] {
            let found = of("POST", 201, &[("Location", location)]);
            assert_eq!(found.get(1).map(String::as_str), expected, "{location}");
        }
        let all = of("PUT", 200, &[("Location", "/1"), ("Content-Location", "/2"), ("Content-Location", "/3")]);
        assert_eq!(all, ["/a/b/c?d=/e", "/1", "/2"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_resolved(value: Vec<u8>, uri: Vec<u8>) {
            let field = FieldRef { name: b"Location", value: &value, known: Some(Known::Location) };
            let found = targets(b"POST", 200, TargetUri { uri: &uri, ..OF }, [field].into_iter());
            prop_assert!(found.len() <= TARGETS_MAX);
        }

        #[test]
        fn no_dots_are_left(path in "(/[.a]{0,3}){1,6}") {
            let out = without_dots(path.as_bytes());
            prop_assert!(out.first() == Some(&b'/'));
            prop_assert!(out.split(|b| *b == b'/').all(|segment| segment != b"." && segment != b".."), "{path}");
        }
    }
}
