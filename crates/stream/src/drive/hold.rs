//! The peer that a session holds: it counts the session until this is dropped.

use std::rc::Rc;

use weir_net::clock;
use weir_peers::balance::Affinity;
use weir_peers::group::{NoLivePeers, Outcome};
use weir_peers::selection::Selection;

use crate::attempt::Try;
use crate::family::group::{Local, Measure};

/// A session's way through a group.
pub struct Hold {
    /// The group.
    pub upstream: Rc<Local>,
    selection: Selection,
    /// The peer that was chosen last.
    peer: usize,
}

impl Hold {
    /// A way that has not begun.
    pub fn new(upstream: Rc<Local>, tries_max: u32) -> Hold {
        let selection = upstream.group.begin(tries_max);
        Hold { upstream, selection, peer: 0 }
    }

    /// Chooses the next peer; returns its index.
    pub fn pick(&mut self, key: &[u8], random: &mut dyn FnMut(u32) -> u32) -> Result<usize, NoLivePeers> {
        let affinity = Affinity { key, ..Affinity::default() };
        let picked =
            self.upstream.group.pick(&self.upstream.part, &mut self.selection, &affinity, random, clock::unix_ms())?;
        self.peer = picked.peer;
        if let Some(counts) = self.upstream.counts.get(picked.peer) {
            counts.chosen();
        }
        Ok(picked.peer)
    }

    /// Counts the end of a session with the peer.
    pub fn ended(&self, attempt: &Try) {
        if let Some(counts) = self.upstream.counts.get(self.peer) {
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
            && let Some(counts) = self.upstream.counts.get(self.peer)
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
