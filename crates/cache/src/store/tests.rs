//! Zones from the outside, with a virtual clock and directories of their own; flights on real workers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disk;
mod flights;
mod forms;
mod long;
mod memory;
mod purging;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::clock;

use super::keeper::Keeper;
use super::*;

/// A zone whose thread the test runs by hand.
struct Bench {
    zone: Arc<Zone>,
    keeper: Keeper,
    now: Instant,
}

/// A directory that is removed with the test.
struct Room(PathBuf);

impl Room {
    fn new() -> Room {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("weir-cache-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Room(path)
    }

    fn directory(&self) -> Directory {
        Directory { path: self.0.clone(), levels: vec![1, 2], temp_path: None }
    }

    /// Every file below, except the record of purges.
    fn files(&self) -> Vec<PathBuf> {
        let (mut found, mut open) = (Vec::new(), vec![self.0.clone()]);
        while let Some(path) = open.pop() {
            for entry in std::fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false if path.ends_with(purges::PURGES_FILE) => {}
                    false => found.push(path),
                }
            }
        }
        found
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const MIB: u64 = 1 << 20;

impl Bench {
    fn new(memory_bytes: u64, directory: Option<Directory>) -> Bench {
        let zone = Zone::new(Settings { name: "z".to_owned(), keys_bytes: MIB, memory_bytes, directory });
        zone.open();
        Bench { zone, keeper: Keeper::default(), now: clock::now() }
    }

    fn in_memory(memory_bytes: u64) -> Bench {
        Bench::new(memory_bytes, None)
    }

    fn on_disk(room: &Room) -> Bench {
        Bench::new(4 * MIB, Some(room.directory()))
    }

    /// Advances the clock.
    fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    /// Runs the thread until it has nothing to do at this time, and through the loader's pauses.
    fn work(&mut self) {
        for _ in 0..100_000 {
            let idle = self.keeper.turn(&self.zone, self.now);
            if idle > Duration::ZERO && !self.zone.is_cold() {
                return;
            }
            self.now = self.now + if self.zone.is_cold() { Duration::from_millis(50) } else { Duration::ZERO };
        }
        panic!("the thread never rests");
    }

    fn lead(&self, key: &str) -> Leader {
        let key = self.zone.key(key.as_bytes());
        let (place, found) = self.zone.find(&key, self.now, |_| None);
        let seen = match found {
            Found::Object(object) => Some(object.serial),
            _ => None,
        };
        match self.zone.join(&key, place, seen, self.now) {
            Joined::Lead(leader) => leader,
            _ => panic!("another leads"),
        }
    }

    fn join_anew(&self, key: &str) -> Joined {
        let key = self.zone.key(key.as_bytes());
        self.zone.join(&key, key.place, None, self.now)
    }

    fn store_draft(&self, key: &str, draft: Draft, body: &[u8]) -> Result<Arc<Object>, StoreRefusal> {
        let mut fill = self.lead(key).fill(draft, self.now)?;
        fill.push(body, self.now)?;
        fill.finish(self.now)
    }

    fn store(&self, key: &str, body: &[u8]) -> Result<Arc<Object>, StoreRefusal> {
        self.store_draft(key, draft(), body)
    }

    fn store_variant(&self, key: &str, value: &str, body: &[u8]) -> Arc<Object> {
        let vary = Some((b"accept-encoding".as_slice().into(), Variant::of(value.as_bytes())));
        self.store_draft(key, Draft { vary, ..draft() }, body).unwrap()
    }

    /// The object that is found, read from disk if needed.
    fn find_as(&mut self, key: &str, value: Option<&str>) -> Option<Arc<Object>> {
        let key = self.zone.key(key.as_bytes());
        let (_, found) = self.zone.find(&key, self.now, |_| value.map(|value| Variant::of(value.as_bytes())));
        match found {
            Found::Object(object) => Some(object),
            Found::Nothing => None,
            Found::Cold(cold) => {
                let mut load = std::pin::pin!(cold.load());
                let mut context = Context::from_waker(Waker::noop());
                for _ in 0..100 {
                    if let Poll::Ready(object) = load.as_mut().poll(&mut context) {
                        return object;
                    }
                    self.keeper.turn(&self.zone, self.now);
                }
                panic!("never loaded");
            }
        }
    }

    fn find(&mut self, key: &str) -> Option<Arc<Object>> {
        self.find_as(key, None)
    }

    fn body_of(&mut self, key: &str) -> Option<Vec<u8>> {
        self.find(key).map(|object| body_of(&object))
    }
}

/// The body of an object, from memory or its file.
fn body_of(object: &Arc<Object>) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let (mut body, mut reader) = (Vec::new(), Reader::new(object.clone(), 0));
    loop {
        let Poll::Ready(piece) = reader.poll_piece(&Context::from_waker(Waker::noop())) else { return body };
        let Some(piece) = piece else { return body };
        match piece.unwrap() {
            Piece::Memory(chunk, skip) => body.extend_from_slice(&chunk[skip..]),
            Piece::File(part) => {
                let mut bytes = vec![0; part.len as usize];
                part.file.read_exact_at(&mut bytes, part.offset).unwrap();
                body.extend(bytes);
            }
        }
        reader.advance(body.len() as u64 - reader.offset());
    }
}

fn draft() -> Draft {
    let bytes: Box<[u8]> = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\n".as_slice().into();
    let head = StoredHead { status: 200, hidden_from: bytes.len() as u32, bytes, etag: 23..26, last_modified: Some(7) };
    Draft { head, times: Times { stored_ms: 1, fresh_until_ms: 2, ..Times::default() }, ..Draft::default() }
}
