//! Bodies longer than the memory tier allows: written to a file while they arrive, and read along.

use super::*;

const PIECE: usize = 64 << 10;

fn piece(number: usize) -> Vec<u8> {
    (0..PIECE).map(|at| (number * 31 + at / 7) as u8).collect()
}

fn whole(count: usize) -> Vec<u8> {
    (0..count).flat_map(piece).collect()
}

fn small(room: &Room) -> Bench {
    let mut bench = Bench::new(MIB, Some(room.directory()));
    bench.work();
    bench
}

fn store_long(bench: &mut Bench, key: &str, count: usize) -> Arc<Object> {
    let mut fill = bench.lead(key).fill(draft(), bench.now).unwrap();
    for number in 0..count {
        fill.push(&piece(number), bench.now).unwrap();
        bench.keeper.turn(&bench.zone, bench.now);
    }
    fill.finish(bench.now).unwrap()
}

#[test]
fn a_long_body_is_found_in_its_file_and_after_a_restart() {
    let room = Room::new();
    let mut bench = small(&room);
    let growing = store_long(&mut bench, "/long", 40);
    assert!(!growing.is_whole());
    bench.work();
    let object = bench.find("/long").unwrap();
    assert!(matches!(object.body, Body::File(_)));
    assert!(body_of(&object) == whole(40));
    assert!(body_of(&growing) == whole(40), "who began to read it while it grew goes on");
    assert!(bench.zone.figures().memory < 1 << 16);
    let mut bench = small(&room);
    assert!(bench.body_of("/long").unwrap() == whole(40));
}

#[test]
fn a_reader_follows_a_body_that_leaves_memory_under_it() {
    let room = Room::new();
    let mut bench = small(&room);
    let mut fill = bench.lead("/long").fill(draft(), bench.now).unwrap();
    let object = fill.object().clone();
    for number in 0..40 {
        fill.push(&piece(number), bench.now).unwrap();
        bench.keeper.turn(&bench.zone, bench.now);
        assert!(body_of(&object) == whole(number + 1));
    }
    fill.finish(bench.now).unwrap();
    bench.work();
    assert!(body_of(&object) == whole(40));
    // A file that is replaced or removed stays readable.
    bench.zone.purge(Purge::All, Force::Hard);
    bench.work();
    assert!(room.files().is_empty());
    assert!(body_of(&object) == whole(40));
}

#[test]
fn the_fill_waits_for_a_disk_that_is_behind() {
    let room = Room::new();
    let mut bench = small(&room);
    let mut fill = bench.lead("/long").fill(draft(), bench.now).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut pushed = 0;
    while std::pin::pin!(fill.ready()).poll(&mut context).is_ready() {
        fill.push(&piece(pushed), bench.now).unwrap();
        pushed += 1;
    }
    assert_eq!(pushed * PIECE, spool::AHEAD_BYTES_MAX as usize + PIECE);
    bench.work();
    assert!(std::pin::pin!(fill.ready()).poll(&mut context).is_ready());
}

#[test]
fn a_body_that_is_cut_leaves_nothing() {
    let room = Room::new();
    let mut bench = small(&room);
    let mut fill = bench.lead("/long").fill(draft(), bench.now).unwrap();
    for number in 0..20 {
        fill.push(&piece(number), bench.now).unwrap();
        bench.keeper.turn(&bench.zone, bench.now);
    }
    assert_eq!(room.files().len(), 1, "the temporary file");
    drop(fill);
    bench.work();
    assert!(room.files().is_empty() && bench.find("/long").is_none());
    assert_eq!((bench.zone.figures().disk_errors, bench.zone.figures().flights), (0, 0));
}

#[test]
fn a_disk_that_fails_midway_cuts_the_body_and_what_is_short_goes_on() {
    let room = Room::new();
    let directory = Directory { path: room.0.join("deep"), ..room.directory() };
    let mut bench = Bench::new(MIB, Some(directory.clone()));
    bench.work();
    std::fs::remove_dir_all(&directory.path).unwrap();
    std::fs::write(&directory.path, "").unwrap();
    let mut fill = bench.lead("/long").fill(draft(), bench.now).unwrap();
    let mut pushed = Ok(());
    for number in 0..20 {
        pushed = pushed.and(fill.push(&piece(number), bench.now));
        bench.keeper.turn(&bench.zone, bench.now);
    }
    assert_eq!(pushed, Err(StoreRefusal::TooLarge));
    drop(fill);
    assert_eq!(bench.zone.figures().flights, 0);
    let length = Some(2 * MIB);
    assert!(bench.lead("/long").fill(Draft { length, ..draft() }, bench.now).is_err(), "not while the disk rests");
    bench.store("/short", b"body").unwrap();
    assert_eq!(bench.body_of("/short").unwrap(), b"body");
}

#[test]
fn a_long_object_is_confirmed_in_place() {
    let room = Room::new();
    let mut bench = small(&room);
    store_long(&mut bench, "/long", 20);
    bench.work();
    let before = room.files();
    let old = bench.find("/long").unwrap();
    let times = Times { fresh_until_ms: 99, ..old.times };
    for head_bytes in [40, 4000] {
        let head = StoredHead { bytes: vec![b'h'; head_bytes].into(), ..old.head.clone() };
        // `join` does not count an object that is only on disk as newer.
        let confirmed = bench.lead("/long").confirm(&old, head.clone(), times, bench.now).unwrap();
        assert!(Arc::ptr_eq(&bench.find("/long").unwrap(), &confirmed), "found while its file is rewritten");
        bench.work();
        assert_eq!(room.files(), before);
        let found = bench.find("/long").unwrap();
        assert_eq!((found.times.fresh_until_ms, &found.head), (99, &head));
        assert!(body_of(&found) == whole(20));
    }
    assert!(body_of(&old) == whole(20), "an earlier reader is not disturbed");
}

#[test]
fn a_long_body_that_changed_in_its_file_is_never_given() {
    let room = Room::new();
    let mut bench = small(&room);
    store_long(&mut bench, "/long", 40);
    bench.work();
    for at in [1, PIECE * 20, PIECE * 40] {
        let path = room.files().remove(0);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - at;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let mut bench = small(&room);
        assert!(bench.find("/long").is_none(), "before the directory was read");
        bench.work();
        let figures = bench.zone.figures();
        assert_eq!((figures.objects, figures.disk_errors, room.files().len()), (0, 1, 0));
        store_long(&mut bench, "/long", 40);
        bench.work();
        assert!(bench.body_of("/long").unwrap() == whole(40));
    }
}

#[test]
fn a_purge_while_a_long_body_is_checked_is_in_force() {
    let room = Room::new();
    store_long(&mut small(&room), "/long", 40);
    let mut bench = small(&room);
    store_long(&mut bench, "/long", 40);
    bench.work();
    let mut bench = small(&room);
    let key = bench.zone.key(b"/long");
    let (_, Found::Cold(cold)) = bench.zone.find(&key, bench.now, |_| None) else { panic!("it is not in memory") };
    let mut load = std::pin::pin!(cold.load());
    let mut context = Context::from_waker(Waker::noop());
    assert!(load.as_mut().poll(&mut context).is_pending());
    bench.keeper.turn(&bench.zone, bench.now);
    assert!(load.as_mut().poll(&mut context).is_pending(), "one turn does not read it all");
    bench.zone.purge(Purge::Key(b"/long".as_slice().into()), Force::Hard);
    bench.work();
    assert!(matches!(load.as_mut().poll(&mut context), Poll::Ready(None)));
    assert!(room.files().is_empty());
}
