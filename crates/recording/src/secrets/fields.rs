//! The forms of fields.

use super::query::url;
use super::sheet::{Findings, ValueForm, whole};
use super::table::{FieldForm, SecretKind, form_of_field};
use super::text::nested;
use super::view::View;

/// The forms of names that a worker has seen: it sees few.
#[derive(Default)]
pub(super) struct KnownForms {
    /// Names in any case, at the places of their hashes.
    slots: Vec<(Vec<u8>, Option<FieldForm>)>,
}

/// Names that are known at once.
const SLOTS: usize = 256;
/// Longest name that is kept.
const NAME_BYTES_MAX: usize = 64;

impl KnownForms {
    /// The form of the field with this name.
    pub(super) fn form(&mut self, name: &[u8]) -> FieldForm {
        if name.len() > NAME_BYTES_MAX {
            return form_of_field(&name.to_ascii_lowercase());
        }
        self.slots.resize_with(SLOTS, Default::default);
        let hash = name.iter().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(*byte)));
        let slot = &mut self.slots[hash as usize % SLOTS];
        if let Some(form) = slot.1.filter(|_| slot.0 == name) {
            return form;
        }
        let form = form_of_field(&name.to_ascii_lowercase());
        slot.0.clear();
        slot.0.extend_from_slice(name);
        slot.1 = Some(form);
        form
    }
}

/// Gives the secrets of the field with this name to `findings`.
pub(super) fn named(name: &[u8], value: View<'_>, findings: &mut dyn Findings) {
    field(form_of_field(&name.to_ascii_lowercase()), value, findings);
}

/// Gives the secrets of a field of this form to `findings`.
pub(super) fn field(form: FieldForm, value: View<'_>, findings: &mut dyn Findings) {
    match form {
        FieldForm::Cookies => value.split(|byte| byte == b';').for_each(|cookie| self::cookie(cookie, findings)),
        FieldForm::SetCookie => {
            let (first, rest) = value.split_once(b';').unwrap_or((value, value.part(0..0)));
            cookie(first, findings);
            nested(rest, 0, findings);
        }
        FieldForm::Credentials => credentials(value.trim(), findings),
        FieldForm::Addresses => {
            value.split(|byte| byte == b',').for_each(|one| address(one.trim().unquote(), findings))
        }
        FieldForm::Forwarded => {
            value.split(|byte| byte == b',' || byte == b';').for_each(|one| forwarded(one, findings))
        }
        FieldForm::Url => url(value, findings),
        FieldForm::Whole => whole(value.trim(), SecretKind::Named, findings),
        FieldForm::Text => nested(value, 0, findings),
    }
}

fn cookie(cookie: View<'_>, findings: &mut dyn Findings) {
    let value = cookie.split_once(b'=').map_or(cookie, |(_, value)| value);
    whole(value.trim().unquote(), SecretKind::Cookie, findings);
}

/// A scheme, which stays, and a token or parameters.
fn credentials(value: View<'_>, findings: &mut dyn Findings) {
    let Some((scheme, rest)) = value.split_once(b' ') else {
        return whole(value, SecretKind::Credentials, findings);
    };
    let rest = rest.trim();
    if scheme.bytes.eq_ignore_ascii_case(b"basic") {
        return findings.found(rest, 0..rest.bytes.len(), SecretKind::Credentials, ValueForm::Basic);
    }
    let is_token = scheme.bytes.eq_ignore_ascii_case(b"bearer")
        || rest.split_once(b'=').is_none_or(|(name, value)| {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_ ".contains(byte);
            // The `=` at the end of base64.
            !name.bytes.iter().all(is_name) || value.bytes.iter().all(|byte| *byte == b'=')
        });
    if is_token {
        return whole(rest, SecretKind::Credentials, findings);
    }
    for parameter in rest.split(|byte| byte == b',') {
        let value = parameter.split_once(b'=').map_or(parameter, |(_, value)| value);
        whole(value.trim().unquote(), SecretKind::Credentials, findings);
    }
}

fn forwarded(pair: View<'_>, findings: &mut dyn Findings) {
    let Some((name, value)) = pair.split_once(b'=') else { return };
    let name = name.trim().bytes;
    if name.eq_ignore_ascii_case(b"for") || name.eq_ignore_ascii_case(b"by") {
        address(value.trim().unquote(), findings);
    }
}

/// An address, perhaps with a port: `192.0.2.1:80`, `[2001:db8::1]:80`.
fn address(text: View<'_>, findings: &mut dyn Findings) {
    let bytes = text.bytes;
    let range = match bytes {
        [b'[', rest @ ..] => 1..1 + memchr::memchr(b']', rest).unwrap_or(rest.len()),
        _ => match memchr::memchr_iter(b':', bytes).count() {
            1 => 0..memchr::memchr(b':', bytes).unwrap_or(bytes.len()),
            _ => 0..bytes.len(),
        },
    };
    if bytes != b"unknown" {
        findings.found(text, range, SecretKind::Address, ValueForm::Address);
    }
}
