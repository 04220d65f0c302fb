//! The result of a look at one place of a text.

use std::ops::Range;

use super::table::SecretKind;

/// The result of a look at one place.
pub(super) enum Noticed {
    /// A secret.
    Secret(Range<usize>, SecretKind),
    /// Nothing begins before this place.
    Nothing(usize),
}

/// No letter and no digit is before `at`.
pub(super) fn is_begin(bytes: &[u8], at: usize) -> bool {
    !at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric)
}

/// No letter and no digit is at `at`.
pub(super) fn is_end(bytes: &[u8], at: usize) -> bool {
    !bytes.get(at).is_some_and(u8::is_ascii_alphanumeric)
}
