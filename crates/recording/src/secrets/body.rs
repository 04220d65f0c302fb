//! Bodies, by their types.

use super::multipart::{boundary, multipart};
use super::query::query;
use super::sheet::{Findings, ValueForm};
use super::table::SecretKind;
use super::text::{document, json_body};
use super::view::View;

/// Gives the secrets of a body to `findings`.
pub(super) fn body(content_type: &[u8], body: View<'_>, findings: &mut dyn Findings) {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    if is_packed(&essence, body.bytes) {
        return findings.found(body, 0..body.bytes.len(), SecretKind::Named, ValueForm::Plain);
    }
    if essence == b"application/x-www-form-urlencoded" {
        return query(body, findings);
    }
    if essence.starts_with(b"multipart/")
        && let Some(boundary) = boundary(content_type)
    {
        return multipart(body, boundary, findings);
    }
    let first = body.bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if essence.ends_with(b"json") || matches!(first, Some(b'{' | b'[')) {
        return json_body(body, findings);
    }
    document(body, findings);
}

/// A compressed body, or a text that is none: its secrets are in it unseen, so the whole body is one.
fn is_packed(essence: &[u8], body: &[u8]) -> bool {
    let is_compressed = [&b"\x1f\x8b"[..], b"\x28\xb5\x2f\xfd"].iter().any(|magic| body.starts_with(magic));
    let ends = [&b"json"[..], b"xml", b"javascript", b"graphql", b"x-www-form-urlencoded"];
    let is_text = essence.starts_with(b"text/") || ends.iter().any(|end| essence.ends_with(end));
    let is_control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    is_compressed || is_text && body.iter().any(is_control)
}
