//! Latency where the kernel has no netem: the frames of two interfaces, each passed on to the other when its time has come.
//!
//! ```text
//!   hub ── to NAME ══ hub │ wan.NAME │ host ══ eth0 ── host      `weir lab wan` runs in the namespace in the middle
//! ```
//!
//! Whole frames and not streams: a handshake takes a round trip, a close and a reset take their way, and any protocol does. What
//! is between has its order, since each direction is one queue and one delay. A full queue drops, as a router's does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use weir_net::frames::FRAME_MAX;
use weir_net::{Frames, Instant, clock, worker};

/// Frames under way in one direction.
const FRAMES_MAX: usize = 8192;
/// Their bytes.
const BYTES_MAX: usize = 64 << 20;
/// The longest delay of a direction.
pub const DELAY_MAX: Duration = Duration::from_secs(10);
/// The interfaces in the middle: towards the hub, and towards the host.
pub const ENDS: [&str; 2] = ["hub", "host"];
/// What is printed when frames pass.
pub const JOINED: &str = "joined";

/// A frame under way, and when it is to arrive.
struct Late {
    due: Instant,
    frame: Vec<u8>,
}

/// Where frames wait: bounded in number and in bytes.
struct Way {
    enter: SyncSender<Late>,
    held: Arc<AtomicUsize>,
}

impl Way {
    fn new() -> (Way, Receiver<Late>) {
        let (enter, leave) = sync_channel(FRAMES_MAX);
        (Way { enter, held: Arc::default() }, leave)
    }

    /// Whether there was room for it.
    fn put(&self, late: Late) -> bool {
        let bytes = late.frame.len();
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= BYTES_MAX && self.enter.try_send(late).is_ok() {
            return true;
        }
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        false
    }
}

/// Passes frames between [`ENDS`], `there` late towards the host and `back` late from it, until the process ends. Needs root.
/// Returns only why it cannot.
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

/// One direction; why it ended.
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
            // One that an interface does not take is lost, as on a network.
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
                // A full way drops, as a router does.
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
