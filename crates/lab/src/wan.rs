//! A bad path without the kernel's netem: passes the frames of two interfaces on to each other, late, or not at all.
//!
//! ```text
//!   hub ── to NAME ══ hub │ wan.NAME │ host ══ eth0 ── host      `weir lab wan` runs in the namespace in the middle
//! ```
//!
//! It passes whole frames, not streams: so handshakes, closes and resets take their time, with any protocol. `fate`
//! decides what happens to a frame. Each direction is one queue, so frames stay in order; those that are to arrive late
//! have a queue of their own. A full queue drops frames, as a router's does. `network` makes the kernel cut what it sends
//! into packets, because a virtual interface would pass 64 KiB of TCP or of UDP in one frame.

mod fate;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use weir_net::frames::{FRAME_MAX, NOTE};
use weir_net::{Frames, Instant, clock, worker};

pub use fate::{BadLink, DELAY_MAX, Direction, LATE, SHARE_MAX};
use fate::{Fate, Fates};

/// Most delayed frames in a queue.
const FRAMES_MAX: usize = 8192;
/// Most bytes of these frames.
const BYTES_MAX: usize = 64 << 20;
/// The longest packet of a link: the MTU of its interfaces.
const PACKET_MAX: usize = 1500;
/// The header of Ethernet.
const HEADER: usize = 14;
/// The interfaces in the middle: to the hub, and to the host.
pub const ENDS: [&str; 2] = ["hub", "host"];
/// The text that is printed once frames pass.
pub const JOINED: &str = "joined";
/// How often the counts are printed, if they have changed.
pub const TELL: Duration = Duration::from_millis(100);

/// A delayed frame, and the time at which it has to arrive.
struct Late {
    due: Instant,
    frame: Vec<u8>,
}

/// A queue of delayed frames. Limited in number and in bytes.
struct Way {
    enter: SyncSender<Late>,
    held: Arc<AtomicUsize>,
    /// When the last frame that entered has to arrive.
    last: Option<Instant>,
}

impl Way {
    fn new() -> (Way, Receiver<Late>) {
        let (enter, leave) = sync_channel(FRAMES_MAX);
        (Way { enter, held: Arc::default(), last: None }, leave)
    }

    /// Adds a frame, which arrives no earlier than those before it. False if there was no room for it.
    fn put(&mut self, late: Late) -> bool {
        let (bytes, due) = (late.frame.len(), self.last.map_or(late.due, |last| last.max(late.due)));
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= BYTES_MAX
            && self.enter.try_send(Late { due, ..late }).is_ok()
        {
            self.last = Some(due);
            return true;
        }
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        false
    }
}

/// The counts of the frames of one direction.
#[derive(Default)]
struct Counts {
    packets: AtomicU64,
    lost: AtomicU64,
    late: AtomicU64,
    full: AtomicU64,
    refused: AtomicU64,
    long: AtomicU64,
}

impl Counts {
    fn to_json(&self) -> Value {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "packets": read(&self.packets), "lost": read(&self.lost), "late": read(&self.late), "full": read(&self.full),
            "refused": read(&self.refused), "long": read(&self.long),
        })
    }
}

/// Adds one.
fn count(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Passes frames between [`ENDS`] until the process ends. `link` is a [`BadLink`] as JSON. Prints the counts of both
/// directions, a line of JSON each [`TELL`] in which they have changed. Needs root. Returns only on an error, with the
/// reason.
pub fn run(link: &str) -> String {
    let link: BadLink = match serde_json::from_str(link) {
        Ok(link) => link,
        Err(why) => return why.to_string(),
    };
    let open = |name: &str| Frames::open(name).map(Arc::new).map_err(|error| format!("interface {name}: {error}"));
    let joined = open(ENDS[0]).and_then(|hub| Ok((hub, open(ENDS[1])?)));
    let (hub, host) = match joined {
        Ok(both) => both,
        Err(why) => return why,
    };
    let [fates_to, fates_from] = link.fates();
    let counts: [Arc<Counts>; 2] = Default::default();
    let [to, from] = counts.clone();
    let (far, near, ends) = (host.clone(), hub.clone(), [hub.clone(), host.clone()]);
    let told = worker::block_aside("wan told", move || tell(&counts, &ends)).and_then(|()| {
        worker::block_aside("wan back", move || {
            eprintln!("weir lab wan: {}", pass(&far, near, fates_from, from));
            std::process::exit(2);
        })
    });
    if let Err(error) = told {
        return error.to_string();
    }
    pass(&hub, host, fates_to, to)
}

/// Prints that frames pass, and then the counts of both directions again and again.
fn tell(counts: &[Arc<Counts>; 2], ends: &[Arc<Frames>; 2]) {
    let mut said = JOINED.to_owned();
    loop {
        // The kernel drops frames if this process takes them too late. They count as dropped by the link.
        for (counts, end) in counts.iter().zip(ends) {
            counts.full.fetch_add(end.dropped(), Ordering::Relaxed);
        }
        let now = json!({"to": counts[0].to_json(), "from": counts[1].to_json()}).to_string();
        if now != said {
            let line = if said == JOINED { format!("{JOINED}\n{now}\n") } else { format!("{now}\n") };
            // Nobody reads any more: the block has ended.
            if std::io::stdout().write_all(line.as_bytes()).is_err() {
                return;
            }
            said = now;
        }
        std::thread::sleep(TELL);
    }
}

/// Passes frames in one direction. Returns why it ended.
fn pass(from: &Frames, to: Arc<Frames>, fates: Fates, counts: Arc<Counts>) -> String {
    let is_reordered = fates.reorders();
    let mut ways = Vec::new();
    for name in ["wan way", "wan late"].into_iter().take(1 + usize::from(is_reordered)) {
        let (way, leave) = Way::new();
        let (held, to, counts) = (way.held.clone(), to.clone(), counts.clone());
        if let Err(error) = worker::block_aside(name, move || deliver(leave, &held, &to, &counts)) {
            return error.to_string();
        }
        ways.push(way);
    }
    let mut buffer = vec![0; FRAME_MAX];
    for fate in fates {
        let length = match from.receive(&mut buffer) {
            Ok(length) => length,
            Err(error) => return error.to_string(),
        };
        let now = clock::precise();
        count(&counts.packets);
        if length > NOTE + HEADER + PACKET_MAX {
            count(&counts.long);
        }
        let (way, time) = match fate {
            Fate::Lost => {
                count(&counts.lost);
                continue;
            }
            Fate::Passed(time) => (ways.first_mut(), time),
            Fate::Late(time) => {
                count(&counts.late);
                (ways.last_mut(), time)
            }
        };
        let frame = buffer.get(..length).unwrap_or_default().to_vec();
        // A full queue drops the frame, as a router does.
        if !way.is_some_and(|way| way.put(Late { due: now + time, frame })) {
            count(&counts.full);
        }
    }
    String::new()
}

/// Sends the frames of a queue, each at its time.
fn deliver(leave: Receiver<Late>, held: &AtomicUsize, to: &Frames, counts: &Counts) {
    for late in leave {
        let wait = late.due - clock::precise();
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        held.fetch_sub(late.frame.len(), Ordering::Relaxed);
        // A frame that the interface refuses is lost, as on a network.
        if to.send(&late.frame).is_err() {
            count(&counts.refused);
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
        let (mut way, leave) = Way::new();
        assert_eq!((0..FRAMES_MAX + 5).filter(|_| way.put(late(1))).count(), FRAMES_MAX);
        assert_eq!(leave.try_iter().count(), FRAMES_MAX);
        let (mut way, leave) = Way::new();
        assert!(way.put(late(BYTES_MAX)) && !way.put(late(1)) && way.put(late(0)));
        assert_eq!(leave.try_iter().map(|late| late.frame.len()).collect::<Vec<_>>(), [BYTES_MAX, 0]);
    }

    /// A frame whose jitter is small waits for those before it.
    #[test]
    fn a_way_keeps_the_order_of_its_frames() {
        let (mut way, leave) = Way::new();
        let now = clock::precise();
        let path = Direction { delay_us: 1000, jitter_us: 50_000, loss: 100, ..Direction::default() };
        let [fates, _] = BadLink { to: path, ..BadLink::default() }.fates();
        let passed = fates.take(2000).enumerate().filter_map(|(number, fate)| match fate {
            Fate::Passed(time) => Some(Late { due: now + time, frame: (number as u16).to_be_bytes().to_vec() }),
            Fate::Lost | Fate::Late(_) => None,
        });
        assert_eq!(passed.map(|late| way.put(late)).filter(|put| *put).count(), 1800);
        let left: Vec<Late> = leave.try_iter().collect();
        assert!(left.windows(2).all(|two| two[0].due <= two[1].due && two[0].frame < two[1].frame));
    }
}
