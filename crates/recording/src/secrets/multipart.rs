//! Forms in parts: `multipart/form-data`.

use memchr::memmem;

use super::content::content;
use super::fields::named;
use super::sheet::{Findings, ValueForm};
use super::table::{SecretKind, is_secret_name};
use super::text::{document, nested};
use super::view::View;

/// The boundary of a content type.
pub(super) fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let at = memmem::find(&content_type.to_ascii_lowercase(), b"boundary=")? + b"boundary=".len();
    let rest = View::new(&content_type[at..]).split(|byte| byte == b';').next()?.trim().unquote().bytes;
    (!rest.is_empty()).then_some(rest)
}

/// Gives the secrets of a body in parts to `findings`.
pub(super) fn multipart(body: View<'_>, boundary: &[u8], findings: &mut dyn Findings) {
    let delimiter = [b"--", boundary].concat();
    let mut begin = 0;
    let mut is_first = true;
    let ends = memmem::find_iter(body.bytes, &delimiter).chain([body.bytes.len()]);
    for end in ends {
        let part = body.part(begin.min(end)..end);
        begin = end + delimiter.len();
        if is_first {
            content(part, findings);
        } else {
            self::part(part, findings);
        }
        is_first = false;
    }
}

fn part(part: View<'_>, findings: &mut dyn Findings) {
    let (end, length) = match (memmem::find(part.bytes, b"\r\n\r\n"), memmem::find(part.bytes, b"\n\n")) {
        (Some(end), _) => (end, 4),
        (None, Some(end)) => (end, 2),
        // A cut head: it has no content.
        (None, None) => (part.bytes.len(), 0),
    };
    let head = part.part(0..end);
    let mut value = part.part((end + length).min(part.bytes.len())..part.bytes.len());
    for ending in [b'\n', b'\r'] {
        if value.bytes.last() == Some(&ending) {
            value = value.part(0..value.bytes.len() - 1);
        }
    }
    let mut is_secret = false;
    let mut is_file = false;
    for line in head.split(|byte| byte == b'\n') {
        let Some((name, text)) = line.split_once(b':') else { continue };
        if name.bytes.eq_ignore_ascii_case(b"content-disposition") {
            for parameter in text.split(|byte| byte == b';') {
                let Some((name, one)) = parameter.split_once(b'=') else { continue };
                is_secret |= name.trim().bytes == b"name" && is_secret_name(one.trim().unquote().bytes);
                is_file |= name.trim().bytes == b"filename";
            }
        }
        named(name.trim().bytes, text, findings);
    }
    match (is_secret, is_file) {
        (true, _) => findings.found(value, 0..value.bytes.len(), SecretKind::Named, ValueForm::Plain),
        (false, true) => document(value, findings),
        (false, false) => nested(value, 0, findings),
    }
}
