//! Finds the secrets of clients and replaces them, before they are written.
//!
//! A secret is a value whose name says so (`table`), or a text with a known form (`content`, `numbers`, `noticed`). Its replacement is
//! a keyed hash of the decoded value alone, in the same shape (`shape`, `sip`): so equal secrets are equal in a cookie, in a
//! form and in JSON, and nobody without the key can try guesses. All walks are linear in the length of a text.
//!
//! - `table`: the names and prefixes; `fields`, `body`, `query`, `json`, `multipart`, `text`: the forms of texts
//! - `view`: decoded texts that know their places; `sheet`: the copy in which secrets are replaced
//! - `address`: addresses of clients; `digest`: the hash of a body; `keys`: a key for each use
//! - `leaks`: secrets that are not replaced

mod address;
mod body;
mod content;
mod digest;
mod fields;
mod json;
mod keys;
mod leaks;
mod multipart;
mod noticed;
mod numbers;
mod query;
mod shape;
mod sheet;
mod sip;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::net::IpAddr;

use crate::model::RecordedText;
use fields::KnownForms;
use keys::HashKeys;
use sheet::{Findings, Sheet, Writing};
use sip::Sip;
use view::View;

pub use digest::BodyHash;
pub(crate) use leaks::{TextForm, leaks};
pub use sheet::Redacted;
pub use table::SecretKind;

/// Most bytes of a text that is looked at. A longer one is a secret as a whole.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Replaces secrets with a key of 128 bits. The same key gives the same replacements.
#[derive(Clone)]
pub struct Secrets {
    keys: HashKeys,
    id: u64,
}

impl Secrets {
    /// The key must be random, and nobody who gets a recording may have it.
    pub fn new(key: [u8; 16]) -> Secrets {
        let (keys, id) = HashKeys::new(key);
        Secrets { keys, id }
    }

    /// [`Beginning::key_id`](crate::model::Beginning::key_id) of this key.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The value of a field, with its secrets replaced. The name may have capital letters.
    pub fn field(&self, name: &[u8], value: &[u8]) -> RecordedText {
        owned(Redactor::new(self.clone()).field(name, value))
    }

    /// A target, with its secrets replaced.
    pub fn target(&self, target: &[u8]) -> RecordedText {
        owned(Redactor::new(self.clone()).target(target))
    }

    /// A body, or the beginning of one, with its secrets replaced. `content_type`: the value of the field, or nothing.
    pub fn body(&self, content_type: &[u8], body: &[u8]) -> RecordedText {
        owned(Redactor::new(self.clone()).body(content_type, body))
    }

    /// The number of a client, from its address: [`RecordedExchange::client`](crate::model::RecordedExchange::client).
    pub fn client(&self, address: IpAddr) -> u64 {
        match address {
            IpAddr::V4(address) => self.client_of(&address.octets()),
            IpAddr::V6(address) => self.client_of(&address.octets()),
        }
    }

    /// The number of a client, from the value of a variable.
    pub fn client_of(&self, value: &[u8]) -> u64 {
        let mut sip = Sip::new(self.keys.client);
        sip.update(value);
        sip.finish() as u64
    }

    /// The hash of a body that comes in pieces: [`RecordedBody::hash`](crate::model::RecordedBody::hash).
    pub fn body_hash(&self) -> BodyHash {
        BodyHash::new(self.keys.body)
    }

    /// A seed for tables, which nobody outside knows.
    pub(crate) fn seed(&self) -> u64 {
        self.keys.seed
    }
}

/// Replaces secrets in text after text, with the same memory.
pub struct Redactor {
    secrets: Secrets,
    sheet: Sheet,
    forms: KnownForms,
}

impl Redactor {
    /// Replaces with this key.
    pub fn new(secrets: Secrets) -> Redactor {
        Redactor { secrets, sheet: Sheet::default(), forms: KnownForms::default() }
    }

    /// As [`Secrets::field`].
    pub fn field<'t>(&'t mut self, name: &[u8], value: &'t [u8]) -> Redacted<'t> {
        let form = self.forms.form(name);
        self.redact(value, |view, findings| fields::field(form, view, findings))
    }

    /// As [`Secrets::target`].
    pub fn target<'t>(&'t mut self, target: &'t [u8]) -> Redacted<'t> {
        self.redact(target, query::url)
    }

    /// As [`Secrets::body`].
    pub fn body<'t>(&'t mut self, content_type: &[u8], body: &'t [u8]) -> Redacted<'t> {
        self.redact(body, |view, findings| body::body(content_type, view, findings))
    }

    fn redact<'t>(&'t mut self, original: &'t [u8], walk: impl Fn(View<'_>, &mut dyn Findings)) -> Redacted<'t> {
        self.sheet.clear();
        let mut writing = Writing { sheet: &mut self.sheet, keys: &self.secrets.keys, original };
        let view = View::new(original);
        if original.len() > TEXT_BYTES_MAX {
            writing.found(view, 0..original.len(), SecretKind::Named, sheet::ValueForm::Plain);
        } else {
            walk(view, &mut writing);
        }
        self.sheet.result().unwrap_or((original, &[]))
    }
}

fn owned((bytes, hidden): Redacted<'_>) -> RecordedText {
    RecordedText { bytes: bytes.to_vec(), hidden: hidden.to_vec() }
}
