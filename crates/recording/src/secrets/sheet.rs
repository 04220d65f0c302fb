//! The text that is written in place of one with secrets.

use std::ops::Range;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::address;
use super::keys::HashKeys;
use super::shape::{length_of_character, replace};
use super::table::SecretKind;
use super::view::{View, hex};

/// Bytes without secrets, and the places of their replacements.
pub type Redacted<'t> = (&'t [u8], &'t [(u32, u32)]);

/// How the bytes of a secret are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// By a hash of the same shape.
    Plain,
    /// User and password in base64: each by itself.
    Basic,
    /// An address: its network, by a hash.
    Address,
}

/// Receives the secrets of a text.
pub(super) trait Findings {
    /// A secret: a range of `view`. Ranges may overlap.
    fn found(&mut self, view: View<'_>, range: Range<usize>, kind: SecretKind, form: ValueForm);

    /// Whether the byte at this place of the original text is a part of a secret that is known.
    fn is_found(&self, place: usize) -> bool;
}

/// A value that is a secret: decoded, so that it has the same replacement in each form.
pub(super) fn whole(value: View<'_>, kind: SecretKind, findings: &mut dyn Findings) {
    match value.percent(false) {
        Some(decoded) => findings.found(decoded.view(), 0..decoded.view().bytes.len(), kind, ValueForm::Plain),
        None => findings.found(value, 0..value.bytes.len(), kind, ValueForm::Plain),
    }
}

/// Base64 as clients write it: with or without padding.
const BASIC: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true)
        .with_encode_padding(false),
);

/// A copy of a text in which secrets are replaced. Its memory serves text after text.
#[derive(Default)]
pub(super) struct Sheet {
    /// The copy; empty if there is no secret.
    bytes: Vec<u8>,
    /// For each byte of the copy, 1 if it is replaced, else 0.
    taken: Vec<u8>,
    hidden: Vec<(u32, u32)>,
    new: Vec<u8>,
}

/// A sheet over one text.
pub(super) struct Writing<'s, 't> {
    pub(super) sheet: &'s mut Sheet,
    pub(super) keys: &'s HashKeys,
    pub(super) original: &'t [u8],
}

impl Sheet {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.taken.clear();
        self.hidden.clear();
    }

    /// The bytes with replaced secrets, and the places of these. `None`: there is no secret.
    pub(super) fn result(&mut self) -> Option<Redacted<'_>> {
        let place = |is_taken: bool, from: usize| {
            let rest = self.taken.get(from..).unwrap_or_default();
            memchr::memchr(u8::from(is_taken), rest).map(|at| from + at)
        };
        let mut from = 0;
        while let Some(begin) = place(true, from) {
            from = place(false, begin).unwrap_or(self.taken.len());
            self.hidden.push((begin as u32, from as u32));
        }
        (!self.hidden.is_empty()).then_some((&self.bytes, &self.hidden))
    }
}

impl Findings for Writing<'_, '_> {
    fn found(&mut self, view: View<'_>, range: Range<usize>, _: SecretKind, form: ValueForm) {
        let value = view.bytes.get(range.clone()).unwrap_or_default();
        if value.is_empty() {
            return;
        }
        if self.sheet.bytes.is_empty() {
            self.sheet.bytes.extend_from_slice(self.original);
            self.sheet.taken.resize(self.original.len(), 0);
        }
        let mut new = std::mem::take(&mut self.sheet.new);
        new.clear();
        match form {
            ValueForm::Plain => replace(self.keys.value, value, &mut new),
            ValueForm::Address => address::replace(self.keys.address, value, &mut new),
            ValueForm::Basic => self.basic(value, &mut new),
        }
        self.write(view.part(range), &new);
        self.sheet.new = new;
    }

    fn is_found(&self, place: usize) -> bool {
        self.sheet.taken.get(place) == Some(&1)
    }
}

impl Writing<'_, '_> {
    /// Appends the replacement of a user and a password in base64.
    fn basic(&self, value: &[u8], new: &mut Vec<u8>) {
        let Ok(decoded) = BASIC.decode(value) else { return replace(self.keys.value, value, new) };
        let mut both = Vec::with_capacity(decoded.len());
        match memchr::memchr(b':', &decoded) {
            Some(colon) => {
                replace(self.keys.value, &decoded[..colon], &mut both);
                both.push(b':');
                replace(self.keys.value, &decoded[colon + 1..], &mut both);
            }
            None => replace(self.keys.value, &decoded, &mut both),
        }
        new.extend(BASIC.encode(both).into_bytes());
        new.resize(value.len(), b'=');
    }

    /// Writes `new` in the places of `view`, which has as many bytes. A byte that is replaced already stays.
    fn write(&mut self, view: View<'_>, new: &[u8]) {
        let all = view.place(0)..view.place(0) + new.len();
        if view.is_plain()
            && let Some(taken) = self.sheet.taken.get_mut(all.clone())
            && let Some(space) = self.sheet.bytes.get_mut(all)
            && !taken.contains(&1)
        {
            taken.fill(1);
            return space.copy_from_slice(new);
        }
        for (at, byte) in new.iter().enumerate() {
            let place = view.place(at)..view.place(at + 1);
            let Some(taken) = self.sheet.taken.get_mut(place.clone()) else { return };
            if taken.first() != Some(&0) {
                continue;
            }
            taken.fill(1);
            let Some(space) = self.sheet.bytes.get_mut(place) else { return };
            match space {
                [one] if *one == b'+' && view.bytes.get(at) == Some(&b' ') => {}
                [one] => *one = *byte,
                _ => escape(space, &new[at..]),
            }
        }
    }
}

/// Writes the first character of `new` as the escape that `space` has: `%41`, `%2541`, `\u0041`, or a sign of JSON, which stays.
fn escape(space: &mut [u8], new: &[u8]) {
    let is_hex = |digits: &[u8]| digits.iter().all(|digit| hex(*digit).is_some());
    let length = length_of_character(new);
    if let [.., b'u', a, b, c, d] = space
        && is_hex(&[*a, *b, *c, *d])
    {
        let char = str::from_utf8(&new[..length]).ok().and_then(|text| text.chars().next());
        let mut units = [0; 2];
        let units = char.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf16(&mut units);
        let length = space.len();
        if let [high, low] = units {
            if length == 12 {
                digits(&mut space[2..6], u32::from(*high));
            }
            digits(&mut space[length - 4..], u32::from(*low));
        } else if let [unit] = units {
            digits(&mut space[length - 4..], u32::from(*unit));
        }
    } else if space.first() == Some(&b'%')
        && let [.., high, low] = space
        && is_hex(&[*high, *low])
    {
        let length = space.len();
        digits(&mut space[length - 2..], u32::from(new[0]));
    }
}

/// Writes a number in hexadecimal digits of the case that is there.
fn digits(space: &mut [u8], number: u32) {
    let is_lower = space.iter().any(u8::is_ascii_lowercase);
    let length = space.len();
    for (at, digit) in space.iter_mut().enumerate() {
        let value = number >> (4 * (length - 1 - at)) & 0xf;
        let new = char::from_digit(value, 16).unwrap_or('0');
        *digit = if is_lower { new as u8 } else { new.to_ascii_uppercase() as u8 };
    }
}
