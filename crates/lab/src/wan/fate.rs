//! The fate of each packet on a link: the link delays, loses or reorders it. The packet's number and a seed decide.
//! With the same seed, the link loses the same packets. It does not look at their contents.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Packets of a group. Of each group, exactly the asked shares are lost and late.
const GROUP: u16 = 1000;
/// How much longer a late packet takes: those that are sent within this time overtake it.
pub const LATE: Duration = Duration::from_millis(5);
/// The longest delay of a direction, and its longest jitter.
pub const DELAY_MAX: Duration = Duration::from_secs(10);
/// The largest share of a direction's lost or late packets, per mille. Together both are at most a thousand.
pub const SHARE_MAX: u16 = 500;

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// The time that each packet takes, µs.
    pub delay_us: u64,
    /// It takes up to this time more, µs. Packets stay in order.
    pub jitter_us: u64,
    /// Packets of a thousand that are lost.
    pub loss: u16,
    /// Packets of a thousand that are late by [`LATE`], so that others overtake them.
    pub reorder: u16,
}

/// A link that passes packets on in user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BadLink {
    /// Towards the host.
    pub to: Direction,
    /// From the host.
    pub from: Direction,
    /// The seed of its decisions. `None`: the seed of the block.
    pub seed: Option<u64>,
}

impl BadLink {
    /// A link that only delays: towards the host, and from it, µs.
    pub fn late(to: u64, from: u64) -> BadLink {
        let path = |delay_us| Direction { delay_us, ..Direction::default() };
        BadLink { to: path(to), from: path(from), seed: None }
    }

    /// Its faults, in the words of an experiment's file.
    pub fn words(&self) -> String {
        let ms = |us: u64| format!("{}ms", us as f64 / 1000.0);
        let share = |share: u16| format!("{}%", f64::from(share) / 10.0);
        let all = [
            ("delay", ms(self.to.delay_us), ms(self.from.delay_us)),
            ("jitter", ms(self.to.jitter_us), ms(self.from.jitter_us)),
            ("loss", share(self.to.loss), share(self.from.loss)),
            ("reorder", share(self.to.reorder), share(self.from.reorder)),
        ];
        let is_said = |to: &str, from: &str| to != from || !to.starts_with("0m") && !to.starts_with("0%");
        let said = all
            .iter()
            .filter(|(_, to, from)| is_said(to, from))
            .map(|(word, to, from)| if to == from { format!("{word} {to}") } else { format!("{word} [{to}, {from}]") });
        said.collect::<Vec<_>>().join(", ")
    }

    /// The decisions for the packets towards the host, and for those from it.
    pub(super) fn fates(&self) -> [Fates; 2] {
        let seed = self.seed.unwrap_or(0).wrapping_mul(2);
        [Fates::new(self.to, seed), Fates::new(self.from, seed.wrapping_add(1))]
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never arrives.
    Lost,
    /// It takes this time, in the order of the others.
    Passed(Duration),
    /// It takes this time, and others overtake it.
    Late(Duration),
}

/// The decisions for the packets of one direction, in the order of the packets.
pub struct Fates {
    direction: Direction,
    random: fastrand::Rng,
    /// The places of the present group, shuffled, and the next packet of the group.
    group: Vec<u16>,
    next: usize,
}

impl Fates {
    fn new(direction: Direction, seed: u64) -> Fates {
        Fates {
            direction,
            random: fastrand::Rng::with_seed(seed),
            group: (0..GROUP).collect(),
            next: usize::from(GROUP),
        }
    }

    /// Whether some packets are late.
    pub fn reorders(&self) -> bool {
        self.direction.reorder > 0
    }
}

impl Iterator for Fates {
    type Item = Fate;

    /// The next packet's. There is always one.
    fn next(&mut self) -> Option<Fate> {
        if self.next == self.group.len() {
            self.random.shuffle(&mut self.group);
            self.next = 0;
        }
        let place = self.group.get(self.next).copied()?;
        self.next += 1;
        // Drawn for each packet, so that the next draws do not depend on what happens to this one.
        let jitter = self.random.u64(0..=self.direction.jitter_us);
        let time = Duration::from_micros(self.direction.delay_us + jitter);
        Some(match place {
            place if place < self.direction.loss => Fate::Lost,
            place if place < self.direction.loss + self.direction.reorder => Fate::Late(time + LATE),
            _ => Fate::Passed(time),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BAD: Direction = Direction { delay_us: 20_000, jitter_us: 3000, loss: 13, reorder: 29 };

    fn fates(path: Direction, seed: u64, count: usize) -> Vec<Fate> {
        Fates::new(path, seed).take(count).collect()
    }

    #[test]
    fn each_thousand_packets_has_exactly_its_shares() {
        for seed in 0..20 {
            for group in fates(BAD, seed, 20_000).chunks(1000) {
                let count = |wanted: fn(&Fate) -> bool| group.iter().filter(|fate| wanted(fate)).count();
                assert_eq!(count(|fate| *fate == Fate::Lost), 13);
                assert_eq!(count(|fate| matches!(fate, Fate::Late(_))), 29);
            }
        }
        let lost = |loss| fates(Direction { loss, ..BAD }, 5, 3000).iter().filter(|fate| **fate == Fate::Lost).count();
        assert_eq!([0, 1, 500].map(lost), [0, 3, 1500]);
    }

    #[test]
    fn a_seed_decides_and_each_direction_has_decisions_of_its_own() {
        assert_eq!(fates(BAD, 7, 5000), fates(BAD, 7, 5000));
        assert_ne!(fates(BAD, 7, 5000), fates(BAD, 8, 5000));
        let link = BadLink { to: BAD, from: BAD, seed: Some(3) };
        let [to, from] = link.fates().map(|fates| fates.take(5000).collect::<Vec<_>>());
        assert_ne!(to, from);
        assert_eq!(link.fates().map(|fates| fates.take(5000).collect::<Vec<_>>()), [to, from]);
    }

    #[test]
    fn a_link_is_told_in_the_words_of_its_file() {
        let link = BadLink { to: BAD, from: Direction { loss: 0, ..BAD }, seed: None };
        assert_eq!(link.words(), "delay 20ms, jitter 3ms, loss [1.3%, 0%], reorder 2.9%");
        assert_eq!(BadLink::late(0, 0).words(), "");
    }

    /// A path with more losses loses the same packets, and others.
    #[test]
    fn more_losses_are_the_same_ones_and_others() {
        let lost =
            |loss| fates(Direction { loss, ..BAD }, 3, 4000).iter().map(|fate| *fate == Fate::Lost).collect::<Vec<_>>();
        let (few, many) = (lost(10), lost(30));
        assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
        assert!(few.iter().zip(&many).any(|(few, many)| few != many));
    }

    #[test]
    fn losses_are_no_rhythm() {
        let all = fates(Direction { loss: 100, ..BAD }, 1, 100_000);
        let lost: Vec<usize> = (0..all.len()).filter(|at| all[*at] == Fate::Lost).collect();
        let gaps: Vec<usize> = lost.windows(2).map(|two| two[1] - two[0]).collect();
        // Independent losses of a tenth follow each other at once in a tenth of cases.
        let at_once = gaps.iter().filter(|gap| **gap == 1).count();
        assert!((800..1200).contains(&at_once), "{at_once} of {}", gaps.len());
        assert!(gaps.iter().max().unwrap() > &40);
    }

    #[test]
    fn a_packet_takes_its_time_and_late_ones_longer() {
        let [least, most] = [20_000, 23_000].map(Duration::from_micros);
        for fate in fates(BAD, 4, 10_000) {
            match fate {
                Fate::Lost => {}
                Fate::Passed(time) => assert!((least..=most).contains(&time)),
                Fate::Late(time) => assert!((least + LATE..=most + LATE).contains(&time)),
            }
        }
        let plain = Direction { delay_us: 5, ..Direction::default() };
        assert!(fates(plain, 1, 3000).iter().all(|fate| *fate == Fate::Passed(Duration::from_micros(5))));
    }
}
