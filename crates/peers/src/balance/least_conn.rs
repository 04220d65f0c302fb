//! The peer with the fewest exchanges in progress, relative to its weight; equal peers take turns by smooth weighted
//! round robin.

use std::cmp::Ordering;

use super::field::Field;

pub(super) fn choose(field: &mut Field<'_>) -> Option<usize> {
    field.least(load_order)
}

/// Compares exchanges per unit of weight without dividing.
pub(super) fn load_order(field: &Field<'_>, a: usize, b: usize) -> Ordering {
    (field.conns(a) * field.weight(b)).cmp(&(field.conns(b) * field.weight(a)))
}
