//! `random`: a weighted draw, or the less loaded of two different draws.

use super::{Field, MAX_MISSES, gives_up, least_conn::load_order};
use crate::selection::Walk;

pub(super) fn one(field: &Field<'_>, walk: &mut Walk, random: &mut dyn FnMut(u32) -> u32) -> Option<usize> {
    if walk.misses > MAX_MISSES || field.slots.len() < 2 {
        return None;
    }
    loop {
        if let Some(peer) = draw(field, random).filter(|&peer| field.usable(peer)) {
            return Some(peer);
        }
        if gives_up(walk) {
            return None;
        }
    }
}

pub(super) fn two(field: &Field<'_>, walk: &mut Walk, random: &mut dyn FnMut(u32) -> u32) -> Option<usize> {
    if walk.misses > MAX_MISSES || field.slots.len() < 2 {
        return None;
    }
    let mut first: Option<usize> = None;
    loop {
        let drawn = draw(field, random).filter(|&peer| first != Some(peer) && field.usable(peer));
        match (first, drawn) {
            (Some(first), Some(second)) => {
                let keep_first = load_order(field, second, first).is_gt();
                return Some(if keep_first { first } else { second });
            }
            (None, Some(_)) => first = drawn,
            // If no second peer is found, round robin decides.
            (_, None) if gives_up(walk) => return None,
            (_, None) => {}
        }
    }
}

fn draw(field: &Field<'_>, random: &mut dyn FnMut(u32) -> u32) -> Option<usize> {
    let bound = field.total_weight.max(1);
    // The caller provides the source; a number above the bound would belong to no peer.
    field.owner_of(random(bound) % bound)
}
