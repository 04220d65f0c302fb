//! Delivers an agent's counts to the controller exactly once, even if messages are lost or arrive twice.
//!
//! The agent numbers its messages and keeps each one until it is acknowledged. The controller accepts the messages in
//! the order of their numbers only. A lost message delays the following ones, and all of them are sent again.

use std::collections::VecDeque;
use std::time::Duration;

use weir_net::Instant;

use super::letter::Letter;

/// Most messages that wait for an acknowledgement; after that, an agent collects its counts for the next message.
const WAITING_MAX: usize = 120;
/// Time after which an unacknowledged message is sent again.
const RESEND: Duration = Duration::from_secs(2);
/// The largest message that is assembled from parts, in bytes.
const BYTES_MAX: usize = 64 << 20;

/// The agent's end.
#[derive(Debug, Default)]
pub struct Outbox {
    next: u64,
    waiting: VecDeque<(u64, Vec<Letter>)>,
    sent: Option<Instant>,
}

impl Outbox {
    /// True if the outbox accepts no message at present.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Numbers a message, cuts its body into parts of at most `part_bytes_max` bytes, and returns the parts to send.
    pub fn push(&mut self, letter: &Letter, part_bytes_max: usize, now: Instant) -> Vec<Letter> {
        let mut pieces: Vec<&[u8]> = letter.body.chunks(part_bytes_max.max(1)).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        let head = letter.clone().body(Vec::new()).with("seq", self.next).with("of", pieces.len());
        let part = |(part, piece): (usize, &&[u8])| head.clone().with("part", part).body(piece.to_vec());
        let parts: Vec<Letter> = pieces.iter().enumerate().map(part).collect();
        self.waiting.push_back((self.next, parts.clone()));
        self.next += 1;
        self.sent.get_or_insert(now);
        parts
    }

    /// Handles an acknowledgement: the controller has all messages before `next`.
    pub fn acknowledged(&mut self, next: u64, now: Instant) {
        let before = self.waiting.len();
        self.waiting.retain(|(seq, _)| *seq >= next);
        if self.waiting.len() < before {
            self.sent = (!self.waiting.is_empty()).then_some(now);
        }
    }

    /// The messages that are due to be sent again.
    pub fn again(&mut self, now: Instant) -> Vec<Letter> {
        if self.sent.is_none_or(|sent| now.saturating_duration_since(sent) < RESEND) {
            return Vec::new();
        }
        self.sent = Some(now);
        self.waiting.iter().flat_map(|(_, parts)| parts.clone()).collect()
    }
}

/// The controller's end, one for each agent.
#[derive(Debug, Default)]
pub struct Inbox {
    next: u64,
    parts: u64,
    body: Vec<u8>,
}

impl Inbox {
    /// The next expected number: all messages before it have arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes a part. Returns the whole message after its last part; returns nothing for a message that was here
    /// before.
    pub fn take(&mut self, letter: Letter) -> Option<Letter> {
        let part = letter.number("part")?;
        if letter.number("seq")? != self.next {
            return None;
        }
        if part == 0 {
            self.body.clear();
            self.parts = 0;
        }
        if part != self.parts || self.body.len() + letter.body.len() > BYTES_MAX {
            return None;
        }
        self.body.extend_from_slice(&letter.body);
        self.parts += 1;
        if self.parts < letter.number("of")? {
            return None;
        }
        self.parts = 0;
        self.next += 1;
        Some(letter.body(std::mem::take(&mut self.body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` messages over a line that loses, doubles and delays messages, by a seed; returns the messages
    /// that arrive, in order.
    fn over_a_bad_line(seed: u64, count: usize) -> Vec<String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
        let mut now = weir_net::clock::precise();
        let mut line: Vec<Letter> = Vec::new();
        let mut arrived = Vec::new();
        let mut pushed = 0;
        for _ in 0..10_000 {
            now = now + Duration::from_millis(500);
            if pushed < count && !outbox.is_full() {
                let letter = Letter::new("tick", "a").body(format!("message {pushed}").into_bytes());
                line.extend(outbox.push(&letter, 4, now));
                pushed += 1;
            }
            line.extend(outbox.again(now));
            for letter in std::mem::take(&mut line) {
                match random.u8(..10) {
                    0 => continue,
                    1 => line.push(letter.clone()),
                    2 => {
                        line.push(letter);
                        continue;
                    }
                    _ => {}
                }
                arrived.extend(inbox.take(letter).map(|whole| String::from_utf8(whole.body).unwrap()));
            }
            if random.u8(..3) > 0 {
                outbox.acknowledged(inbox.next(), now);
            }
            if pushed == count && outbox.waiting.is_empty() {
                return arrived;
            }
        }
        panic!("seed {seed}: {} of {count} arrived", arrived.len());
    }

    #[test]
    fn each_arrives_once_and_in_order() {
        for seed in 0..50 {
            let expected: Vec<String> = (0..20).map(|n| format!("message {n}")).collect();
            assert_eq!(over_a_bad_line(seed, 20), expected, "{seed}");
        }
    }

    #[test]
    fn an_outbox_has_a_bound_and_an_empty_body_travels() {
        let now = weir_net::clock::precise();
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
        for _ in 0..WAITING_MAX {
            for letter in outbox.push(&Letter::new("tick", "a"), 10, now) {
                assert_eq!(inbox.take(letter.clone()).map(|whole| whole.body), Some(Vec::new()));
                assert_eq!(inbox.take(letter), None, "a second time");
            }
        }
        assert!(outbox.is_full());
        outbox.acknowledged(inbox.next(), now);
        assert!(outbox.waiting.is_empty() && outbox.again(now + RESEND).is_empty());
    }
}
