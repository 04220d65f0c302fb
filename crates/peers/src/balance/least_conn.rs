//! The peer with the fewest exchanges in progress, relative to its weight; equal peers take turns by smooth weighted
//! round robin.

use super::Field;

pub(super) fn choose(field: &mut Field<'_>) -> Option<usize> {
    let mut best: Option<usize> = None;
    let mut several = false;
    for index in 0..field.slots.len() {
        if !field.usable(index) {
            continue;
        }
        match best.map(|leader| load_order(field, index, leader)) {
            None | Some(std::cmp::Ordering::Less) => {
                best = Some(index);
                several = false;
            }
            Some(std::cmp::Ordering::Equal) => several = true,
            Some(std::cmp::Ordering::Greater) => {}
        }
    }
    let leader = best?;
    if !several {
        return Some(leader);
    }
    field.rotate(Some(leader), |field, index| load_order(field, index, leader).is_eq())
}

/// Compares exchanges per unit of weight without dividing.
pub(super) fn load_order(field: &Field<'_>, a: usize, b: usize) -> std::cmp::Ordering {
    (field.conns(a) * field.weight(b)).cmp(&(field.conns(b) * field.weight(a)))
}
