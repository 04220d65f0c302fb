//! Measures the store of the cache, without a socket: `cargo run --release -p weir-cache --example cache_bench [KEYS]`.
//!
//! Prints nanoseconds a hit on one thread and on two, among all keys and among few, bytes per object of 1 KiB, the longest single call while a million
//! keys are stored, and how many of a skewed sequence of requests are hits with a tenth of the objects in memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Duration;

use weir_cache::store::{Draft, Found, Joined, Settings, StoredHead, Zone};
use weir_net::{Instant, clock};

fn main() {
    let keys: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let before = resident();
    let zone = zone(u64::from(keys) * 4096);
    let longest = fill(&zone, keys);
    let figures = zone.figures();
    let each = |bytes: u64| bytes / u64::from(keys);
    println!("{keys} objects of 1 KiB: {} stored", figures.objects);
    println!("  counted {} + {} bytes each (memory + keys)", each(figures.memory), each(figures.keys));
    println!("  resident {} bytes each", each(resident().saturating_sub(before)));
    println!("  longest single store {longest:?}");
    for (threads, among) in [(1, keys), (2, keys), (1, 1000), (2, 1000)] {
        println!("  hit among {among}, {threads} threads: {:.0} ns", hits(&zone, among.min(keys), threads));
    }
    println!("  shards found locked: {}", zone.figures().contended);
    for share in [0.01, 0.1] {
        println!("hits of a skewed sequence, {share} of it in memory: {:.3}", skewed(share));
    }
}

fn zone(memory_bytes: u64) -> Arc<Zone> {
    Zone::new(Settings { name: "bench".to_owned(), keys_bytes: 1 << 32, memory_bytes, directory: None })
}

fn key(number: u32) -> String {
    format!("http://www.example.com/some/path/{number:08}.html")
}

fn store(zone: &Arc<Zone>, text: &str, body: &[u8], now: Instant) {
    let key = zone.key(text.as_bytes());
    let (place, _) = zone.find(&key, now, |_| None);
    let Joined::Lead(leader) = zone.join(&key, place, None, now) else { return };
    let bytes: Box<[u8]> = vec![b'h'; 300].into();
    let head = StoredHead { status: 200, hidden_from: 300, bytes, ..StoredHead::default() };
    let mut fill = leader.fill(Draft { head, ..Draft::default() }, now).unwrap();
    fill.push(body, now).unwrap();
    fill.finish(now).unwrap();
}

/// Stores them all; the longest call.
fn fill(zone: &Arc<Zone>, keys: u32) -> Duration {
    let (body, mut longest) = ([0; 1024], Duration::ZERO);
    for number in 0..keys {
        let text = key(number);
        let began = clock::precise();
        store(zone, &text, &body, began);
        longest = longest.max(clock::precise() - began);
    }
    longest
}

/// Nanoseconds a hit takes one thread, key and all, among so many keys.
fn hits(zone: &Arc<Zone>, keys: u32, threads: u32) -> f64 {
    let texts: Vec<String> = (0..100_000).map(|number: u32| key(number.wrapping_mul(2_654_435_761) % keys)).collect();
    let now = clock::now();
    let began = clock::precise();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..10 {
                    for text in &texts {
                        let key = zone.key(text.as_bytes());
                        let (_, found) = zone.find(&key, now, |_| None);
                        assert!(matches!(found, Found::Object(_)));
                    }
                }
            });
        }
    });
    (clock::precise() - began).as_nanos() as f64 / 1e6
}

/// The share of hits among requests whose popularity falls as 1/rank (Zipf, exponent 1), one in four for something
/// never asked for again.
fn skewed(share: f64) -> f64 {
    const OBJECTS: u32 = 100_000;
    let zone = zone((f64::from(OBJECTS) * share * 1700.0) as u64);
    let (mut hits, mut state) = (0, 88_172_645_463_325_252u64);
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    const REQUESTS: u32 = 1_000_000;
    for number in 0..REQUESTS {
        let rank = f64::from(OBJECTS).powf(random()) as u32;
        let number = if random() < 0.25 { OBJECTS + number } else { rank };
        let text = key(number);
        let now = clock::now();
        match zone.find(&zone.key(text.as_bytes()), now, |_| None) {
            (_, Found::Object(_)) => hits += 1,
            _ => store(&zone, &text, &[0; 1024], now),
        }
    }
    f64::from(hits) / f64::from(REQUESTS)
}

/// Bytes of memory this process holds.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
