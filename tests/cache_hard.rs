//! The cache under faults: a killed process, a full disk, damaged files, many clients on one key.
//!
//! Each test has a real edge and an origin of its own that counts its requests. Durations are printed, never
//! asserted.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "cache_hard/stage.rs"]
mod stage;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use needs::{Need, cases};
use stage::{Edge, LONG, Origin, Room, answer, body_of, files, objects};
use support::within;

/// Clients for one key.
const CROWD: usize = 1000;

/// A name, and the change it makes to a file.
type Damage = (&'static str, fn(&mut Vec<u8>));

fn main() -> ExitCode {
    needs::run(cases![
        [] => a_killed_edge_leaves_nothing_half_and_finds_what_was_whole, damaged_files_are_never_served, a_thousand_on_one_expired_key_are_one_request_to_the_origin;
        [Need::Namespaces] => a_full_disk_is_said_once_and_used_again_when_it_has_room, a_disk_that_fails_in_the_middle_of_a_body_cuts_nobody;
    ])
}

fn a_killed_edge_leaves_nothing_half_and_finds_what_was_whole() {
    for (name, temp) in [("cache-killed", "temp"), ("cache-killed-beside", "cache")] {
        let room = Room::new(name);
        let origin = Origin::start();
        let path = if temp == "cache" { "memory=4m use_temp_path=off" } else { "memory=4m" };
        let mut edge = Edge::new(&room, &origin, path, "");
        edge.start();
        let whole = ["/short/1", "/middle/2", "/long/3"];
        whole.iter().for_each(|page| edge.has(page, 1));
        within("the pages are on disk", || objects(&edge.cache()).len() == whole.len());
        // Half of a long body is being written to a file.
        let client = edge.ask("/held");
        let client = std::thread::spawn(move || answer(client));
        let left_behind = || files(&edge.dir.join(temp)).into_iter().find(|path| path.extension().is_some());
        let is_long = |path: &Path| path.metadata().is_ok_and(|data| data.len() as usize > LONG / 4);
        within("half a body is in a file", || left_behind().is_some_and(|path| is_long(&path)));
        let half = left_behind().unwrap();
        edge.kill();
        assert!(client.join().unwrap().is_err() && half.exists(), "{}", half.display());
        origin.open();
        edge.start();
        edge.has("/held", 2);
        whole.iter().for_each(|page| edge.has(page, 1));
        within("what was left behind is gone", || !half.exists());
        within("the page is on disk", || objects(&edge.cache()).len() == whole.len() + 1);
        edge.has("/held", 2);
        assert_eq!(edge.log_lines("[crit]") + edge.log_lines("[alert]"), 0, "{}", edge.log());
        assert_eq!(files(&edge.dir.join(temp)).iter().filter(|path| path.extension().is_some()).count(), 0);
    }
}

fn a_full_disk_is_said_once_and_used_again_when_it_has_room() {
    let room = Room::new("cache-full");
    let origin = Origin::start();
    let mut edge = Edge::new(&room, &origin, "memory=32m use_temp_path=off", "");
    edge.start_on_small_disk();
    let disk = edge.cache_inside();
    edge.has("/middle/first", 1);
    within("the disk is used", || objects(&disk).len() == 1);
    fill(&disk.join("ballast"));
    // A body of unknown length is being written when the disk gets full: its client still gets the whole body.
    edge.has("/chunked/long", 1);
    for round in 0..2 {
        (0..20).for_each(|page| edge.has(&format!("/middle/{page}"), 1));
        edge.has("/long", round + 1);
    }
    edge.has("/middle/first", 1);
    within("the log says so", || edge.log_lines("No space left on device") > 0);
    assert_eq!(objects(&disk).len(), 1);
    std::fs::remove_file(disk.join("ballast")).unwrap();
    let (begun, mut page) = (Instant::now(), 0);
    within("the disk is used again", || {
        page += 1;
        edge.has(&format!("/middle/later/{page}"), 1);
        objects(&disk).len() > 1
    });
    println!("used again {:?} after there was room", begun.elapsed());
    within("the log says so", || edge.log_lines("the disk works again") == 1);
    assert_eq!(edge.log_lines("No space left on device"), 1, "{}", edge.log());
    (0..20).for_each(|page| edge.has(&format!("/middle/{page}"), 1));
}

fn a_disk_that_fails_in_the_middle_of_a_body_cuts_nobody() {
    let room = Room::new("cache-midway");
    let origin = Origin::start();
    let mut edge = Edge::new(&room, &origin, "memory=4m use_temp_path=off", "");
    edge.start_on_small_disk();
    let page = "/held/early";
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let client = edge.ask(page);
            // The client has the beginning of its answer.
            assert_eq!(client.peek(&mut [0]).unwrap(), 1);
            client
        })
        .collect();
    let clients: Vec<_> = clients.into_iter().map(|client| std::thread::spawn(move || answer(client))).collect();
    within("a part of the body is in a file", || {
        files(&edge.cache_inside()).iter().any(|path| path.metadata().is_ok_and(|data| data.len() as usize > LONG / 8))
    });
    // The rest does not fit on the disk.
    origin.open();
    for client in clients {
        assert!(client.join().unwrap().expect("a whole answer") == body_of(page, 1));
    }
    within("the log says so", || edge.log_lines("No space left on device") > 0);
    assert_eq!(origin.asked(page), 1);
    // The object was not stored, and the next client still gets the page.
    edge.has(page, 2);
}

fn damaged_files_are_never_served() {
    let damages: [Damage; 5] = [
        ("flipped-last", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("flipped-middle", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x40;
        }),
        ("flipped-head", |bytes| bytes[150] ^= 1),
        ("truncated", |bytes| bytes.truncate(bytes.len() * 2 / 3)),
        ("emptied", Vec::clear),
    ];
    let room = Room::new("cache-damaged");
    let origin = Origin::start();
    let mut edge = Edge::new(&room, &origin, "memory=4m", "");
    edge.start();
    let sizes = ["short", "long"];
    let pages: Vec<_> = sizes.iter().flat_map(|size| damages.map(|(name, _)| format!("/{size}/{name}"))).collect();
    let intact = ["/short/intact", "/long/intact"];
    pages.iter().map(String::as_str).chain(intact).for_each(|page| edge.has(page, 1));
    within("the pages are on disk", || objects(&edge.cache()).len() == pages.len() + intact.len());
    edge.end();
    let mut damaged = Vec::new();
    for (page, (_, damage)) in pages.iter().zip(damages.iter().cycle()) {
        let (path, mut bytes) = file_of(&edge, page);
        damage(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        damaged.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    edge.start();
    pages.iter().for_each(|page| edge.has(page, 2));
    intact.iter().for_each(|page| edge.has(page, 1));
    let log = edge.log();
    for name in damaged {
        let lines = log.lines().filter(|line| line.contains(&name) && line.contains("removed the cache file"));
        assert_eq!(lines.count(), 1, "{name}: {log}");
    }
    // After a restart, the edge finds the pages that were fetched again.
    within("the pages are on disk", || objects(&edge.cache()).len() == pages.len() + intact.len());
    edge.end();
    edge.start();
    pages.iter().for_each(|page| edge.has(page, 2));
}

fn a_thousand_on_one_expired_key_are_one_request_to_the_origin() {
    let locks = ["", "proxy_cache_lock on; proxy_cache_lock_timeout 60s;"];
    for (number, lock) in locks.into_iter().enumerate() {
        let room = Room::new(&format!("cache-crowd-{number}"));
        let origin = Origin::start();
        let more = format!("{lock} proxy_cache_lock_age 60s;");
        let mut edge = Edge::new(&room, &origin, "memory=4m", &more);
        edge.start();
        let page = "/short/brief/locked";
        edge.has(page, 1);
        // The page is valid for a second.
        std::thread::sleep(Duration::from_millis(1100));
        let before = edge.requests();
        let clients: Vec<_> = (0..CROWD).map(|_| edge.ask(page)).collect();
        within("the origin is asked", || origin.asked(page) == 2);
        within("all have asked", || edge.requests() > before + CROWD);
        let released = Instant::now();
        origin.open();
        let expected = body_of(page, 2);
        for (number, client) in clients.into_iter().enumerate() {
            let body = answer(client);
            assert!(body.as_ref() == Ok(&expected), "client {number}: {:?}", body.err());
        }
        println!("\"{lock}\": {CROWD} answered {:?} after the origin did", released.elapsed());
        assert_eq!(origin.asked(page), 2, "{lock}");
    }
}

/// The file that stores a page, and its bytes.
fn file_of(edge: &Edge, page: &str) -> (PathBuf, Vec<u8>) {
    let needle = format!("{page} version ");
    let of_page = |path: PathBuf| {
        let bytes = std::fs::read(&path).ok()?;
        bytes.windows(needle.len()).any(|part| part == needle.as_bytes()).then_some((path, bytes))
    };
    objects(&edge.cache()).into_iter().find_map(of_page).unwrap_or_else(|| panic!("{page} is in no file"))
}

/// Writes a file until the disk is full.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}
