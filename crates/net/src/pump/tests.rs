//! The laws of a pump, on pairs of sockets.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::clock;
use crate::splice::lent;
use crate::stream::Stream;
use crate::worker::{block_on, yield_now};
use proptest::prelude::*;
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// Terms that note what they were told.
struct Noted {
    read_max: usize,
    /// How many bytes from the beginning on may pass unseen.
    unseen_until: u64,
    passes_end: bool,
    is_paused: bool,
    /// The bytes that were seen, each with its place.
    seen: Vec<(u64, u8)>,
    came: u64,
    skipped: u64,
}

fn noted(read_max: usize, unseen_until: u64) -> Noted {
    Noted { read_max, unseen_until, passes_end: true, is_paused: false, seen: Vec::new(), came: 0, skipped: 0 }
}

impl Terms for Noted {
    fn room(&mut self) -> Option<usize> {
        (!self.is_paused).then_some(self.read_max)
    }

    fn unseen(&self) -> u64 {
        self.unseen_until.saturating_sub(self.came)
    }

    fn came(&mut self, count: usize, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.seen.extend((self.came..).zip(bytes.iter().copied())),
            None => self.skipped += count as u64,
        }
        self.came += count as u64;
    }

    fn passes_end(&self) -> bool {
        self.passes_end
    }
}

/// A connection of the worker, and its other end, which does not wait either.
fn near(is_tcp: bool) -> (Transport, UnixStream) {
    if !is_tcp {
        let (stream, other) = Stream::with_nobody().unwrap();
        return (stream.into(), other.into());
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    far.set_nonblocking(true).unwrap();
    let near = Stream::from_fd(listener.accept().unwrap().0.into()).unwrap();
    // `UnixStream` reads, writes and shuts down a socket of any kind.
    (near.into(), OwnedFd::from(far).into())
}

/// A pump between two connections, and the far ends.
struct Joint {
    pump: Pump,
    from: Transport,
    to: Transport,
    sender: UnixStream,
    receiver: UnixStream,
}

fn joint(is_tcp: bool) -> Joint {
    let ((from, sender), (to, receiver)) = (near(is_tcp), near(is_tcp));
    Joint { pump: Pump::default(), from, to, sender, receiver }
}

impl Joint {
    /// Turns until nothing moves; the bytes that moved.
    async fn settle(&mut self, terms: &mut Noted) -> u64 {
        let before = self.pump.written();
        loop {
            // The kernel reports bytes and room between two turns.
            yield_now().await;
            if self.pump.turn(&self.from, &self.to, terms).unwrap() == Turn::Idle {
                return self.pump.written() - before;
            }
        }
    }

    /// The bytes that have come to the receiver, at most `max`; and whether it saw the end.
    fn arrived(&mut self, max: usize) -> (Vec<u8>, bool) {
        let mut bytes = vec![0; max];
        match self.receiver.read(&mut bytes) {
            Ok(count) => {
                bytes.truncate(count);
                (bytes, count == 0 && max > 0)
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                (Vec::new(), false)
            }
        }
    }
}

fn text(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect()
}

/// Sends `all` in pieces, and reads it in pieces; the terms as they are at the end.
async fn pass(is_tcp: bool, all: &[u8], pieces: &[usize], takes: &[usize], mut terms: Noted) -> Noted {
    let mut joint = joint(is_tcp);
    let (mut sent, mut got, mut has_seen_end) = (0, Vec::new(), false);
    for turn in 0.. {
        if sent < all.len() {
            let piece = &all[sent..][..pieces[turn % pieces.len()].min(all.len() - sent)];
            sent += joint.sender.write(piece).unwrap_or(0);
            if sent == all.len() {
                joint.sender.shutdown(Shutdown::Write).unwrap();
            }
        }
        joint.settle(&mut terms).await;
        assert!(joint.pump.written() <= sent as u64);
        let (bytes, is_end) = joint.arrived(takes[turn % takes.len()]);
        got.extend_from_slice(&bytes);
        has_seen_end |= is_end;
        if has_seen_end {
            break;
        }
        assert!(turn < 100_000, "{} of {} bytes", got.len(), all.len());
    }
    assert!(got == all, "{} bytes came, {} were sent", got.len(), all.len());
    assert!(joint.pump.is_done());
    assert_eq!((joint.pump.written(), terms.came), (all.len() as u64, all.len() as u64));
    assert!(terms.seen.iter().all(|(at, byte)| all[*at as usize] == *byte), "the terms see bytes as they are");
    assert_eq!(lent(), 0);
    terms
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn all_bytes_come_in_order_and_then_the_end(
        is_tcp: bool,
        length in 1usize..600_000,
        pieces in prop::collection::vec(1usize..200_000, 1..6),
        takes in prop::collection::vec(1usize..200_000, 1..6),
        read_max in 1_000usize..70_000,
        unseen_until in prop::sample::select(vec![0, 1, 100_000, 300_000, u64::MAX]),
    ) {
        block_on(async move {
            let terms = pass(is_tcp, &text(length), &pieces, &takes, noted(read_max, unseen_until)).await;
            assert!(terms.skipped <= unseen_until);
        }).unwrap();
    }
}

#[test]
fn many_bytes_go_inside_the_kernel_and_few_or_seen_ones_do_not() {
    for (piece, unseen_until, splices) in [
        (256 << 10, u64::MAX, true),
        (256 << 10, 500_000, true),
        (256 << 10, 0, false),
        (256 << 10, SPLICE_BYTES_MIN as u64 - 1, false),
        (10_000, u64::MAX, false),
    ] {
        block_on(async move {
            let all = text(1 << 20);
            let terms = pass(false, &all, &[piece], &[1 << 20], noted(16 << 10, unseen_until)).await;
            assert_eq!(terms.skipped > 0, splices, "{piece} bytes at a time, {unseen_until} unseen");
            assert!(terms.skipped <= unseen_until);
        })
        .unwrap();
    }
}

#[test]
fn a_flow_that_splices_goes_back_to_memory_for_a_small_message() {
    block_on(async {
        let (mut joint, mut terms) = (joint(false), noted(16 << 10, u64::MAX));
        joint.sender.write_all(&text(100_000)).unwrap();
        assert_eq!(joint.settle(&mut terms).await, 100_000);
        assert!(terms.skipped > 0);
        for expect_seen in [false, true, true] {
            let before = terms.seen.len();
            joint.sender.write_all(b"small").unwrap();
            assert_eq!(joint.settle(&mut terms).await, 5);
            assert_eq!(terms.seen.len() > before, expect_seen);
        }
        assert_eq!(joint.arrived(1 << 20).0.len(), 100_015);
    })
    .unwrap();
}

#[test]
fn a_receiver_that_does_not_read_stops_the_reads() {
    for (read_max, unseen_until) in [(4 << 10, 0), (16 << 10, u64::MAX), (64 << 10, u64::MAX)] {
        block_on(async move {
            let (mut joint, mut terms) = (joint(false), noted(read_max, unseen_until));
            let (all, mut sent) = (text(4 << 20), 0);
            for _ in 0..100 {
                sent += joint.sender.write(&all[sent..]).unwrap_or(0);
                joint.settle(&mut terms).await;
            }
            assert!(sent < all.len() && joint.pump.held.is_some(), "the sender is held back");
            let under_way = terms.came - joint.pump.written();
            assert!(under_way > 0 && under_way <= read_max.max(PIPE_BYTES) as u64, "{under_way} bytes");
            let came = terms.came;
            joint.settle(&mut terms).await;
            assert_eq!(terms.came, came, "nothing is read");
            assert!(lent() <= 1);
            // The end of the sender waits for the bytes before it.
            joint.sender.shutdown(Shutdown::Write).unwrap();
            joint.settle(&mut terms).await;
            assert!(!joint.pump.has_passed_end);
            let mut got = Vec::new();
            for _ in 0..10_000 {
                let (bytes, is_end) = joint.arrived(64 << 10);
                got.extend_from_slice(&bytes);
                if is_end {
                    break;
                }
                joint.settle(&mut terms).await;
            }
            assert!(got == all[..sent] && joint.pump.is_done());
        })
        .unwrap();
    }
}

#[test]
fn a_flow_that_waits_holds_no_memory() {
    assert!(size_of::<Pump>() <= 24, "{}", size_of::<Pump>());
    block_on(async {
        let (mut joint, mut terms) = (joint(false), noted(16 << 10, u64::MAX));
        for length in [1, 1000, 100_000] {
            joint.sender.write_all(&text(length)).unwrap();
            assert_eq!(joint.settle(&mut terms).await, length as u64);
            assert!(joint.pump.held.is_none());
            assert_eq!(lent(), 0);
        }
    })
    .unwrap();
}

#[test]
fn first_bytes_go_before_all_others_and_are_not_seen() {
    block_on(async {
        let (mut joint, mut terms) = (joint(false), noted(16 << 10, 0));
        joint.pump = Pump::after(b"first ");
        joint.sender.write_all(b"then").unwrap();
        joint.settle(&mut terms).await;
        assert_eq!(joint.arrived(99).0, b"first then");
        assert_eq!((joint.pump.written(), terms.came), (10, 4));
    })
    .unwrap();
}

#[test]
fn the_end_of_one_flow_leaves_the_other_open() {
    for passes_end in [true, false] {
        block_on(async move {
            let Joint { mut pump, from, to, mut sender, mut receiver } = joint(true);
            let (mut back, mut terms, mut back_terms) = (Pump::default(), noted(1 << 10, 0), noted(1 << 10, 0));
            terms.passes_end = passes_end;
            sender.write_all(b"question").unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
            let (mut asked, mut room) = (Vec::new(), [0; 99]);
            let mut has_seen_end = false;
            for _ in 0..20 {
                pump.turn(&from, &to, &mut terms).unwrap();
                yield_now().await;
                match receiver.read(&mut room) {
                    Ok(0) => has_seen_end = true,
                    Ok(count) => asked.extend_from_slice(&room[..count]),
                    Err(_) => {}
                }
            }
            assert_eq!((&asked[..], has_seen_end), (&b"question"[..], passes_end));
            assert!(pump.has_ended());
            receiver.write_all(b"answer").unwrap();
            let mut answered = 0;
            for _ in 0..20 {
                back.turn(&to, &from, &mut back_terms).unwrap();
                yield_now().await;
                answered += sender.read(&mut room).unwrap_or(0);
            }
            assert_eq!((answered, back.has_ended()), (6, false));
        })
        .unwrap();
    }
}

#[test]
fn a_fault_names_its_side() {
    block_on(async {
        let (mut broken, mut terms) = (joint(false), noted(16 << 10, 0));
        // A Unix socket that is closed before it has read all reports that, after the bytes it has sent.
        broken.from.try_write(b"never read").unwrap();
        broken.sender.write_all(b"last").unwrap();
        let Joint { pump, from, to, sender, receiver } = &mut broken;
        drop(std::mem::replace(sender, UnixStream::pair().unwrap().0));
        let fault = loop {
            match pump.turn(from, to, &mut terms) {
                Ok(_) => yield_now().await,
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault, PumpFault::Read(error) if error.kind() == ErrorKind::ConnectionReset));
        assert_eq!((pump.written(), pump.has_ended(), pump.has_passed_end), (4, true, false));
        let mut room = [0; 9];
        assert_eq!(receiver.read(&mut room).unwrap(), 4);
        // The next turn passes the end on.
        assert_eq!(pump.turn(from, to, &mut terms).unwrap(), Turn::Moved);
        assert_eq!(receiver.read(&mut room).unwrap(), 0);
    })
    .unwrap();
    block_on(async {
        let (mut broken, mut terms) = (joint(false), noted(16 << 10, 0));
        broken.sender.write_all(b"lost").unwrap();
        let Joint { pump, from, to, receiver, .. } = &mut broken;
        drop(std::mem::replace(receiver, UnixStream::pair().unwrap().0));
        let fault = loop {
            match pump.turn(from, to, &mut terms) {
                Ok(_) => yield_now().await,
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault, PumpFault::Write(error) if error.kind() == ErrorKind::BrokenPipe));
    })
    .unwrap();
}

#[test]
fn nothing_is_read_while_the_terms_forbid_it() {
    block_on(async {
        let (mut joint, mut terms) = (joint(false), noted(16 << 10, u64::MAX));
        joint.sender.write_all(b"later").unwrap();
        terms.is_paused = true;
        assert_eq!(joint.settle(&mut terms).await, 0);
        terms.is_paused = false;
        assert_eq!(joint.settle(&mut terms).await, 5);
    })
    .unwrap();
}

#[test]
fn other_tasks_have_their_turn_before_a_flow_has_moved_all() {
    block_on(async {
        let (mut joint, mut terms) = (joint(false), noted(10, u64::MAX));
        joint.sender.write_all(&text(1000)).unwrap();
        yield_now().await;
        assert_eq!(joint.pump.turn(&joint.from, &joint.to, &mut terms).unwrap(), Turn::More);
        assert_eq!(joint.pump.written(), 10 * READS_MAX as u64);
        assert_eq!(joint.settle(&mut terms).await, 1000 - 10 * READS_MAX as u64);
    })
    .unwrap();
}

#[test]
fn silence_ends_the_wait_and_each_move_begins_it_anew() {
    const SILENCE: Duration = Duration::from_millis(40);
    block_on(async {
        let deadline = Deadline::new();
        let begun = clock::now();
        let silence = Some(SILENCE);
        assert!(poll_timeout([Turn::Idle; 2], &deadline, silence).is_pending());
        poll_fn(|_| poll_timeout([Turn::Idle; 2], &deadline, silence)).await;
        assert!(clock::now().ms_since(begun) >= 39);
        for moved in [[Turn::Moved, Turn::Idle], [Turn::Idle, Turn::Moved]] {
            assert!(poll_timeout(moved, &deadline, silence).is_pending(), "it is moved on before it is asked");
        }
        assert!(poll_timeout([Turn::Idle; 2], &deadline, None).is_pending());
        assert!(!deadline.is_set(), "a pause is no silence");
        assert!(poll_timeout([Turn::Idle; 2], &deadline, silence).is_pending());
        assert!(deadline.is_set(), "after a pause it begins anew");
    })
    .unwrap();
    // A pump that has more to do is woken at once.
    let turns = Rc::new(Cell::new(0));
    let counted = turns.clone();
    block_on(async move {
        let deadline = Deadline::new();
        poll_fn(move |_| {
            counted.set(counted.get() + 1);
            match counted.get() {
                3 => Poll::Ready(()),
                _ => poll_timeout([Turn::More, Turn::Idle], &deadline, Some(Duration::from_secs(600))),
            }
        })
        .await;
    })
    .unwrap();
    assert_eq!(turns.get(), 3);
}
