//! `random`: a weighted draw, or the better of two different draws.

use super::field::Field;
use super::least_conn::load_order;
use super::least_time::time_order;
use super::policy::Better;
use crate::selection::Walk;

pub(super) fn one(field: &Field<'_>, walk: &mut Walk, random: &mut dyn FnMut(u32) -> u32) -> Option<usize> {
    if walk.is_over() || field.slots.len() < 2 {
        return None;
    }
    loop {
        if let Some(peer) = draw(field, random).filter(|&peer| field.usable(peer)) {
            return Some(peer);
        }
        if walk.gives_up() {
            return None;
        }
    }
}

pub(super) fn two(
    field: &Field<'_>,
    walk: &mut Walk,
    better: Better,
    random: &mut dyn FnMut(u32) -> u32,
) -> Option<usize> {
    if walk.is_over() || field.slots.len() < 2 {
        return None;
    }
    let mut first: Option<usize> = None;
    loop {
        let drawn = draw(field, random).filter(|&peer| first != Some(peer) && field.usable(peer));
        match (first, drawn) {
            (Some(first), Some(second)) => {
                let order = match better {
                    Better::LeastConn => load_order(field, second, first),
                    Better::LeastTime(until) => time_order(field, until, second, first),
                };
                let keep_first = order.is_gt();
                return Some(if keep_first { first } else { second });
            }
            (None, Some(_)) => first = drawn,
            // If no second peer is found, round robin decides.
            (_, None) if walk.gives_up() => return None,
            (_, None) => {}
        }
    }
}

fn draw(field: &Field<'_>, random: &mut dyn FnMut(u32) -> u32) -> Option<usize> {
    let bound = field.total_weight.max(1);
    // The caller provides the source; a number above the bound would belong to no peer.
    field.owner_of(random(bound) % bound)
}
