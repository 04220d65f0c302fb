//! Smooth weighted round robin: every usable peer earns its effective weight. The peer with the most credit serves and
//! pays the sum that all have earned.
//!
//! Weights 5:1:1 give `a a b a c a a`, not five in a row.

use super::field::Field;

pub(super) fn choose(field: &mut Field<'_>) -> Option<usize> {
    field.rotate(None, |_, _| true)
}
