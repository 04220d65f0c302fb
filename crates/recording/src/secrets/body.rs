//! Bodies, by their types.

use super::multipart::{boundary, multipart};
use super::query::query;
use super::sheet::Findings;
use super::text::{document, json_body};
use super::view::View;

/// Gives the secrets of a body to `findings`.
pub(super) fn body(content_type: &[u8], body: View<'_>, findings: &mut dyn Findings) {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
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
