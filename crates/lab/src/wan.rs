//! Adds latency without the kernel's netem: passes the frames of two interfaces on to each other after a delay.
//!
//! ```text
//!   hub ── to NAME ══ hub │ wan.NAME │ host ══ eth0 ── host      `weir lab wan` runs in the namespace in the middle
//! ```
//!
//! It passes whole frames, not streams: so handshakes, closes and resets take their time, with any protocol. Each
//! direction is one queue with one delay, so frames stay in order. A full queue drops frames, as a router's does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use weir_net::frames::FRAME_MAX;
use weir_net::{Frames, Instant, clock, worker};

/// Most delayed frames in one direction.
const FRAMES_MAX: usize = 8192;
/// Most bytes of these frames.
const BYTES_MAX: usize = 64 << 20;
/// The longest delay of a direction.
pub const DELAY_MAX: Duration = Duration::from_secs(10);
/// The interfaces in the middle: to the hub, and to the host.
pub const ENDS: [&str; 2] = ["hub", "host"];
/// The text that is printed once frames pass.
pub const JOINED: &str = "joined";

/// A delayed frame, and the time at which it has to arrive.
struct Late {
    due: Instant,
    frame: Vec<u8>,
}

/// The queue of delayed frames. Limited in number and in bytes.
struct Way {
    enter: SyncSender<Late>,
    held: Arc<AtomicUsize>,
}

impl Way {
    fn new() -> (Way, Receiver<Late>) {
        let (enter, leave) = sync_channel(FRAMES_MAX);
        (Way { enter, held: Arc::default() }, leave)
    }

    /// Adds a frame. False if there was no room for it.
    fn put(&self, late: Late) -> bool {
        let bytes = late.frame.len();
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= BYTES_MAX && self.enter.try_send(late).is_ok() {
            return true;
        }
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        false
    }
}

/// Passes frames between [`ENDS`] until the process ends, with the delay `there` towards the host and `back` from it.
/// Needs root. Returns only on an error, with the reason.
pub fn run(there: Duration, back: Duration) -> String {
    let open = |name: &str| Frames::open(name).map(Arc::new).map_err(|error| format!("interface {name}: {error}"));
    let joined = open(ENDS[0]).and_then(|hub| Ok((hub, open(ENDS[1])?)));
    let (hub, host) = match joined {
        Ok(both) => both,
        Err(why) => return why,
    };
    let (from, to) = (host.clone(), hub.clone());
    if let Err(error) = worker::block_aside("wan back", move || {
        eprintln!("weir lab wan: {}", pass(&from, to, back));
        std::process::exit(2);
    }) {
        return error.to_string();
    }
    println!("{JOINED}");
    pass(&hub, host, there)
}

/// Passes frames in one direction. Returns why it ended.
fn pass(from: &Frames, to: Arc<Frames>, delay: Duration) -> String {
    let (way, leave) = Way::new();
    let held = way.held.clone();
    let deliver = move || {
        for late in leave {
            let wait = late.due - clock::precise();
            if !wait.is_zero() {
                std::thread::sleep(wait);
            }
            held.fetch_sub(late.frame.len(), Ordering::Relaxed);
            // A frame that the interface refuses is lost, as on a network.
            let _ = to.send(&late.frame);
        }
    };
    if let Err(error) = worker::block_aside("wan way", deliver) {
        return error.to_string();
    }
    let mut buffer = vec![0; FRAME_MAX];
    loop {
        match from.receive(&mut buffer) {
            Ok(length) => {
                let frame = buffer.get(..length).unwrap_or_default().to_vec();
                // A full queue drops the frame, as a router does.
                let _ = way.put(Late { due: clock::precise() + delay, frame });
            }
            Err(error) => return error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_way_holds_so_many_frames_and_so_many_bytes() {
        let late = |bytes: usize| Late { due: clock::precise(), frame: vec![0; bytes] };
        let (way, leave) = Way::new();
        assert_eq!((0..FRAMES_MAX + 5).filter(|_| way.put(late(1))).count(), FRAMES_MAX);
        assert_eq!(leave.try_iter().count(), FRAMES_MAX);
        let (way, leave) = Way::new();
        assert!(way.put(late(BYTES_MAX)) && !way.put(late(1)) && way.put(late(0)));
        assert_eq!(leave.try_iter().map(|late| late.frame.len()).collect::<Vec<_>>(), [BYTES_MAX, 0]);
    }
}
