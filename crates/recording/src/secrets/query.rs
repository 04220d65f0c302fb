//! URLs, queries and forms.

use super::sheet::{Findings, ValueForm};
use super::table::{SecretKind, is_secret_name};
use super::text::nested;
use super::view::View;

/// A URL or a target: its path as text, its query and its fragment as parameters.
pub(super) fn url(url: View<'_>, findings: &mut dyn Findings) {
    let end = url.bytes.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(url.bytes.len());
    let path = url.part(0..end);
    nested(path, 0, findings);
    if end < url.bytes.len() {
        url.part(end + 1..url.bytes.len())
            .split(|byte| byte == b'#' || byte == b'?')
            .for_each(|one| query(one, findings));
    }
}

/// Parameters: `name=value&name=value`, with percent escapes and `+`.
pub(super) fn query(query: View<'_>, findings: &mut dyn Findings) {
    for parameter in query.split(|byte| byte == b'&' || byte == b';') {
        let Some((name, value)) = parameter.split_once(b'=') else {
            nested(parameter, 0, findings);
            continue;
        };
        let decoded_name = name.percent(true);
        let name = decoded_name.as_ref().map_or(name, |name| name.view());
        let decoded_value = value.percent(true);
        let value = decoded_value.as_ref().map_or(value, |value| value.view());
        if is_secret_name(name.bytes) {
            findings.found(value, 0..value.bytes.len(), SecretKind::Named, ValueForm::Plain);
        } else {
            nested(name, 1, findings);
            nested(value, 1, findings);
        }
    }
}
