//! The disk tier.

use super::*;

/// Leaves a directory with `/a` on disk, of a zone that has ended.
fn left(room: &Room) {
    let mut bench = Bench::on_disk(room);
    bench.work();
    bench.store("/a", b"body").unwrap();
    bench.work();
    assert_eq!(room.files().len(), 1);
}

#[test]
fn a_restart_finds_it_again() {
    let room = Room::new();
    left(&room);
    let mut bench = Bench::on_disk(&room);
    bench.work();
    let figures = bench.zone.figures();
    assert_eq!((figures.objects, figures.memory, figures.size, figures.cold), (1, 0, 4096, false));
    let object = bench.find("/a").unwrap();
    assert_eq!((body_of(&object), object.head.clone(), object.times), (b"body".to_vec(), draft().head, draft().times));
    // The object is in memory from here on.
    assert!(Arc::ptr_eq(&object, &bench.find("/a").unwrap()));
    assert!(bench.zone.figures().memory > 0);
}

#[test]
fn it_is_found_while_the_directory_has_not_been_read() {
    let room = Room::new();
    left(&room);
    let mut bench = Bench::on_disk(&room);
    assert!(bench.zone.figures().cold);
    assert_eq!(bench.body_of("/a").unwrap(), b"body");
    assert!(bench.find("/b").is_none());
    bench.work();
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().disk_errors), (1, 0));
}

#[test]
fn what_is_stored_while_an_older_file_is_read_is_newer_than_it() {
    let room = Room::new();
    left(&room);
    let mut bench = Bench::on_disk(&room);
    let key = bench.zone.key(b"/a");
    let (_, Found::Cold(cold)) = bench.zone.find(&key, bench.now, |_| None) else { panic!("it is known already") };
    let mut load = std::pin::pin!(cold.load());
    let mut poll = || load.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    // Another request fetched it before the thread read it.
    bench.store("/a", b"newer").unwrap();
    bench.work();
    let Poll::Ready(loaded) = poll() else { panic!("nobody answers") };
    assert!(loaded.is_none_or(|object| body_of(&object) == b"newer"));
    assert_eq!(bench.body_of("/a").unwrap(), b"newer");
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert_eq!(bench.body_of("/a").unwrap(), b"newer");
}

#[test]
fn a_key_purged_before_its_file_was_read_is_gone() {
    for force in [Force::Hard, Force::Soft] {
        for asks_before in [false, true] {
            let room = Room::new();
            left(&room);
            let mut bench = Bench::on_disk(&room);
            assert!(bench.zone.figures().cold);
            bench.zone.purge(Purge::of_key(b"/a"), force);
            if !asks_before {
                bench.work();
            }
            let found = bench.find("/a");
            assert_eq!(found.is_none(), force == Force::Hard, "{asks_before}");
            assert!(found.is_none_or(|object| object.is_soft_purged()));
            // The purge still holds after the next start.
            bench.work();
            let mut bench = Bench::on_disk(&room);
            bench.work();
            let found = bench.find("/a");
            assert_eq!(found.is_none(), force == Force::Hard);
            assert!(found.is_none_or(|object| object.is_soft_purged()));
        }
    }
}

#[test]
fn variants_come_back_too() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    bench.store_variant("/a", "gzip", b"zipped");
    bench.store_variant("/a", "", b"plain");
    bench.work();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert_eq!(body_of(&bench.find_as("/a", Some("gzip")).unwrap()), b"zipped");
    assert_eq!(body_of(&bench.find_as("/a", Some("")).unwrap()), b"plain");
    assert!(bench.find_as("/a", Some("br")).is_none());
    bench.zone.purge(Purge::of_key(b"/a"), Force::Hard);
    assert!(room.files().is_empty());
}

#[test]
fn what_left_memory_comes_back_from_its_file() {
    let room = Room::new();
    let mut bench = Bench::new(MIB, Some(room.directory()));
    bench.work();
    for number in 0..40 {
        bench.store(&format!("/{number}"), &[number; 100 << 10]).unwrap();
        bench.work();
    }
    let figures = bench.zone.figures();
    assert_eq!((figures.objects, room.files().len()), (40, 40));
    assert!(figures.memory <= MIB && figures.evictions > 0);
    for number in 0..40 {
        assert_eq!(bench.body_of(&format!("/{number}")).unwrap(), [number; 100 << 10]);
    }
    assert!(bench.zone.figures().memory <= MIB);
}

#[test]
fn damaged_files_are_dropped_and_nothing_of_them_is_served() {
    for damage in 0..5 {
        let room = Room::new();
        left(&room);
        let path = room.files().remove(0);
        let mut bytes = std::fs::read(&path).unwrap();
        let end = bytes.len() - 1;
        match damage {
            0 => bytes.truncate(end),
            1 => bytes.truncate(100),
            2 => bytes[end] ^= 1,
            3 => bytes.clear(),
            _ => bytes[140] ^= 1,
        }
        std::fs::write(&path, bytes).unwrap();
        let mut bench = Bench::on_disk(&room);
        bench.work();
        assert!(bench.find("/a").is_none(), "damage {damage}");
        assert_eq!((bench.zone.figures().disk_errors, bench.zone.figures().objects), (1, 0), "damage {damage}");
        assert!(room.files().is_empty());
        bench.store("/a", b"again").unwrap();
        bench.work();
        assert_eq!(room.files().len(), 1);
    }
}

#[test]
fn a_file_under_another_name_is_not_its_object() {
    let room = Room::new();
    left(&room);
    let path = room.files().remove(0);
    let other = room.directory().path_of_name(&format!(
        "{}{}",
        "0".repeat(27),
        &path.to_str().unwrap()[path.to_str().unwrap().len() - 5..]
    ));
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::rename(path, other).unwrap();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert!(bench.find("/a").is_none() && room.files().is_empty());
}

#[test]
fn what_a_killed_process_was_writing_is_removed() {
    let room = Room::new();
    let label = Label { key: b"/a".as_slice().into(), ..Label::default() };
    let ours = directory::Run { process: std::process::id(), start: 1 };
    let parent = directory::Run { process: std::os::unix::process::parent_id(), start: 1 };
    for run in [ours, parent] {
        std::mem::forget(room.directory().begin(&label, run).unwrap());
    }
    assert_eq!(room.files().len(), 2);
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert!(bench.find("/a").is_none());
    let left = room.files();
    assert_eq!(left.len(), 1, "the other process still runs");
    assert!(left[0].to_str().unwrap().contains(&format!(".{}-1-", parent.process)));
}

#[test]
fn a_disk_that_fails_leaves_memory_and_comes_back_by_itself() {
    let room = Room::new();
    let directory = Directory { path: room.0.join("deep"), ..room.directory() };
    let mut bench = Bench::new(4 * MIB, Some(directory.clone()));
    bench.work();
    // A file in place of the directory: nothing can be written, even by root.
    std::fs::remove_dir_all(&directory.path).unwrap();
    std::fs::write(&directory.path, "").unwrap();
    for number in 0..10 {
        bench.store(&format!("/{number}"), b"body").unwrap();
        bench.work();
    }
    let figures = bench.zone.figures();
    // Only the first write was tried.
    assert_eq!((figures.objects, figures.disk_skipped), (10, 9));
    assert_eq!(bench.body_of("/3").unwrap(), b"body");
    bench.pass(11);
    bench.store("/10", b"body").unwrap();
    bench.work();
    assert_eq!(bench.zone.figures().disk_skipped, 9);
    std::fs::remove_file(&directory.path).unwrap();
    bench.pass(11);
    bench.store("/11", b"body").unwrap();
    bench.store("/12", b"body").unwrap();
    bench.work();
    assert_eq!(room.files().len(), 2);
    assert_eq!(bench.zone.figures().size, 8192);
}

#[test]
fn a_directory_that_cannot_be_used_leaves_memory() {
    let room = Room::new();
    std::fs::write(room.0.join("file"), "").unwrap();
    let directory = Directory { path: room.0.join("file"), ..room.directory() };
    let mut bench = Bench::new(4 * MIB, Some(directory));
    bench.store("/a", b"body").unwrap();
    bench.work();
    assert_eq!(bench.body_of("/a").unwrap(), b"body");
    assert_eq!((bench.zone.figures().disk_errors, bench.zone.figures().disk_skipped), (1, 1));
}

#[test]
fn files_take_no_more_than_max_size_and_the_unused_go_first() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.zone.retune(Tuning { max_size: Some(10 * 4096), ..Tuning::default() });
    bench.work();
    for number in 0..20 {
        bench.store(&format!("/{number}"), b"body").unwrap();
        assert!(bench.find("/0").is_some());
        bench.pass(1);
        bench.work();
    }
    for _ in 0..3 {
        bench.pass(10);
        bench.work();
    }
    assert_eq!((room.files().len(), bench.zone.figures().size), (10, 10 * 4096));
    assert!(bench.find("/0").is_some() && bench.find("/1").is_none());
}

#[test]
fn temporary_files_may_be_elsewhere() {
    let room = Room::new();
    let temp = Room::new();
    let directory = Directory { temp_path: Some(temp.0.clone()), ..room.directory() };
    let mut bench = Bench::new(4 * MIB, Some(directory));
    bench.work();
    bench.store("/a", b"body").unwrap();
    bench.work();
    assert_eq!((room.files().len(), temp.files().len()), (1, 0));
}

#[test]
fn names_and_levels_are_those_of_nginx() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    bench.store("http://localhost/", b"body").unwrap();
    bench.work();
    // printf 'http://localhost/' | md5sum
    assert_eq!(room.files(), [room.0.join("7/4d/c9db569cb388e160e4b86ca1ddff84d7")]);
}

#[test]
fn a_directory_emptied_by_hand_is_a_miss_and_no_error() {
    let room = Room::new();
    left(&room);
    let mut bench = Bench::on_disk(&room);
    bench.work();
    std::fs::remove_file(room.files().remove(0)).unwrap();
    assert!(bench.find("/a").is_none());
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().disk_errors), (0, 0));
}

#[test]
fn a_confirmed_object_is_on_disk_as_confirmed() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    let old = bench.store("/a", b"body").unwrap();
    let times = Times { fresh_until_ms: 99, ..old.times };
    bench.lead("/a").confirm(&old, old.head.clone(), times, bench.now).unwrap();
    bench.work();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert_eq!(bench.find("/a").unwrap().times.fresh_until_ms, 99);
}

#[test]
fn a_thread_of_its_own_does_all_this() {
    let room = Room::new();
    let settings =
        Settings { name: "own".to_owned(), keys_bytes: MIB, memory_bytes: 4 * MIB, directory: Some(room.directory()) };
    for round in 0..2 {
        let zone = Zone::new(settings.clone());
        zone.start(None).unwrap();
        zone.start(None).unwrap();
        let found = weir_net::worker::block_on({
            let zone = zone.clone();
            async move {
                let key = zone.key(b"/a");
                match zone.find(&key, clock::now(), |_| None) {
                    (_, Found::Cold(cold)) => cold.load().await,
                    (_, Found::Object(object)) => Some(object),
                    (_, Found::Nothing) => None,
                }
            }
        });
        assert_eq!(found.unwrap().is_some(), round == 1);
        if round == 0 {
            let bench = Bench { zone: zone.clone(), keeper: Keeper::default(), now: clock::now() };
            bench.store("/a", b"body").unwrap();
            while room.files().len() != 1 || zone.figures().size == 0 {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn a_start_without_room_for_another_record_goes_on_with_the_old_one() {
    let room = Room::new();
    left(&room);
    // Nothing can be written under that name, even by root.
    let blocked = room.0.join(format!("{}.new", purges::PURGES_FILE));
    std::fs::create_dir_all(&blocked).unwrap();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert_eq!(bench.body_of("/a").unwrap(), b"body");
    bench.store("/b", b"body").unwrap();
    bench.work();
    assert_eq!((room.files().len(), bench.zone.figures().disk_errors), (2, 0));
    // Purge, then kill the process before the files are removed.
    bench.zone.purge(Purge::Prefix(b"/a".as_slice().into()), Force::Hard);
    drop(bench);
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert!(bench.find("/a").is_none() && bench.find("/b").is_some());
}

#[test]
fn what_stays_in_memory_has_no_file_and_takes_the_place_of_one() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    bench.store("/a", b"on disk").unwrap();
    bench.work();
    assert_eq!(room.files().len(), 1);
    let fleeting = || Draft { stays_in_memory: true, ..draft() };
    bench.store_draft("/a", fleeting(), b"in memory").unwrap();
    bench.store_draft("/b", fleeting(), b"in memory").unwrap();
    bench.work();
    assert_eq!(room.files(), Vec::<std::path::PathBuf>::new());
    assert_eq!(bench.body_of("/a").unwrap(), b"in memory");
    assert_eq!(bench.body_of("/b").unwrap(), b"in memory");
}

#[test]
fn without_memory_even_that_has_a_file() {
    let room = Room::new();
    let mut bench = Bench::new(0, Some(room.directory()));
    bench.work();
    bench.store_draft("/a", Draft { stays_in_memory: true, ..draft() }, b"").unwrap();
    bench.work();
    assert_eq!(room.files().len(), 1);
}
