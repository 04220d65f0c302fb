//! The peer that a session holds: it counts the session until this is dropped.

use std::rc::Rc;

use weir_groups::Measure;
use weir_net::clock;
use weir_peers::balance::Affinity;
use weir_peers::group::{NoLivePeers, Outcome};
use weir_peers::selection::Selection;

use crate::attempt::Try;
use crate::family::upstream::LocalGroup;

/// A session's way through a group.
pub struct Hold {
    /// The group.
    pub upstream: Rc<LocalGroup>,
    selection: Selection,
    /// The peer that was chosen last.
    peer: usize,
}

impl Hold {
    /// A way that has not begun.
    pub fn new(upstream: Rc<LocalGroup>, tries_max: u32) -> Hold {
        let selection = upstream.group.begin(tries_max);
        Hold { upstream, selection, peer: 0 }
    }

    /// Chooses the next peer; returns its index.
    pub fn pick(&mut self, key: &[u8], random: &mut dyn FnMut(u32) -> u32) -> Result<usize, NoLivePeers> {
        let affinity = Affinity { key, ..Affinity::default() };
        let picked =
            self.upstream.group.pick(&self.upstream.part, &mut self.selection, &affinity, random, clock::unix_ms())?;
        self.peer = picked.peer;
        if let Some(counts) = self.upstream.own.counts.get(picked.peer) {
            counts.chosen();
        }
        Ok(picked.peer)
    }

    /// Counts the end of a session with the peer.
    pub fn ended(&self, attempt: &Try) {
        if let Some(counts) = self.upstream.own.counts.get(self.peer) {
            counts.ended(attempt);
        }
    }

    /// Records that the connection to the peer is made, or that there is a socket for its datagrams.
    pub fn connected(&mut self, is_stream: bool) {
        if is_stream {
            self.upstream.group.note_connected(&self.selection, clock::unix_ms());
        }
        // For `last_byte` too: without a note, the group takes the end for a failure to connect.
        self.measured(&[Measure::Connect, Measure::LastByte]);
    }

    /// Records that the peer's first byte has come.
    pub fn answered(&mut self) {
        self.measured(&[Measure::FirstByte]);
    }

    fn measured(&mut self, by: &[Measure]) {
        if self.upstream.measure.is_some_and(|measure| by.contains(&measure)) {
            self.upstream.group.note_head(&mut self.selection, clock::unix_ms());
        }
    }

    /// Gives the peer back; `true` if its failures now keep it out.
    pub fn release(&mut self, outcome: Outcome) -> bool {
        let is_held = self.selection.holds();
        let is_ejected =
            self.upstream.group.release(&self.upstream.part, &mut self.selection, outcome, clock::unix_ms());
        if is_held
            && outcome == Outcome::Failed
            && let Some(counts) = self.upstream.own.counts.get(self.peer)
        {
            counts.failed(is_ejected);
        }
        is_ejected
    }

    /// Tries left.
    pub fn tries(&self) -> u32 {
        self.selection.tries()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release(Outcome::Abandoned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Edge, on_worker};
    use std::sync::atomic::Ordering;

    /// Sessions in progress, sessions begun, failures and ejections of the peers.
    fn counts(upstream: &LocalGroup) -> Vec<(u32, u64, u64, u64)> {
        let views = upstream.group.view(clock::unix_ms());
        let all = views.iter().zip(&upstream.own.counts).map(|(view, counts)| {
            let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
            (view.conns, read(&counts.sessions), read(&counts.fails), read(&counts.ejected))
        });
        all.collect()
    }

    #[test]
    fn a_peer_counts_a_session_until_it_is_given_back_or_dropped() {
        on_worker(async {
            let edge = Edge::new(
                "upstream u { server 127.0.0.1:1 max_fails=2; server 127.0.0.1:2 backup; } \
                 server { listen 127.0.0.1:3; proxy_pass u; }",
            );
            let upstream = edge.group("u");
            let pick = || {
                let mut hold = Hold::new(upstream.clone(), 0);
                let peer = hold.pick(b"", &mut |_| 0).unwrap();
                (hold, peer)
            };
            let (mut first, peer) = pick();
            assert_eq!((peer, counts(&upstream)[0]), (0, (1, 1, 0, 0)));
            assert!(!first.release(Outcome::Failed), "one failure of two ejects nobody");
            assert_eq!(counts(&upstream)[0], (0, 1, 1, 0));
            assert!(!first.release(Outcome::Failed), "the peer is given back already");
            assert_eq!(counts(&upstream)[0], (0, 1, 1, 0));
            let (second, _) = pick();
            drop(second);
            assert_eq!(counts(&upstream)[0], (0, 2, 1, 0), "a client that leaves is no failure");
            let (mut third, _) = pick();
            assert!(third.release(Outcome::Failed));
            assert_eq!(counts(&upstream)[0], (0, 3, 2, 1));
            assert_eq!(pick().1, 1, "the backup serves now");
        });
    }

    #[test]
    fn tries_are_bounded_by_the_directive_and_by_the_peers() {
        on_worker(async {
            let edge = Edge::new(
                "upstream u { server 127.0.0.1:1; server 127.0.0.1:2; server 127.0.0.1:4; } \
                 server { listen 127.0.0.1:3; proxy_pass u; }",
            );
            for (limit, expected) in [(0, vec![2, 1, 0]), (2, vec![1, 0]), (1, vec![0]), (9, vec![2, 1, 0])] {
                let mut hold = Hold::new(edge.group("u"), limit);
                let mut left = Vec::new();
                while left.last() != Some(&0) {
                    hold.pick(b"", &mut |_| 0).unwrap();
                    hold.release(Outcome::Next);
                    left.push(hold.tries());
                }
                assert_eq!(left, expected, "{limit}");
            }
        });
    }
}
