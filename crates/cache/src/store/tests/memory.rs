//! The memory tier.

use super::*;

#[test]
fn what_is_stored_is_found_as_the_same_object() {
    let mut bench = Bench::in_memory(4 * MIB);
    let stored = bench.store("/a", b"body").unwrap();
    let found = bench.find("/a").unwrap();
    assert!(Arc::ptr_eq(&stored, &found));
    assert_eq!((found.head.etag(), &found.body.chunks()[0][..]), (&b"\"a\""[..], &b"body"[..]));
    assert!(bench.find("/b").is_none());
    assert_eq!(bench.zone.figures().objects, 1);
}

#[test]
fn a_newer_object_replaces_an_older_one_whose_readers_go_on() {
    let mut bench = Bench::in_memory(4 * MIB);
    let old = bench.store("/a", b"old").unwrap();
    bench.store("/a", b"newer").unwrap();
    assert_eq!(bench.body_of("/a").unwrap(), b"newer");
    assert_eq!(body_of(&old), b"old");
    assert_eq!(bench.zone.figures().objects, 1);
}

#[test]
fn variants_are_found_by_what_the_request_says() {
    let mut bench = Bench::in_memory(4 * MIB);
    bench.store_variant("/a", "gzip", b"zipped");
    bench.store_variant("/a", "", b"plain");
    assert_eq!(body_of(&bench.find_as("/a", Some("gzip")).unwrap()), b"zipped");
    assert_eq!(body_of(&bench.find_as("/a", Some("")).unwrap()), b"plain");
    assert!(bench.find_as("/a", Some("br")).is_none());
    assert!(bench.find_as("/a", None).is_none());
    // An answer without Vary is for everybody and removes the variants.
    bench.store("/a", b"one for all").unwrap();
    assert_eq!(bench.body_of("/a").unwrap(), b"one for all");
    assert_eq!(bench.zone.figures().objects, 1);
    // And the other way round.
    bench.store_variant("/a", "gzip", b"zipped");
    assert!(bench.find_as("/a", Some("")).is_none());
    assert_eq!(bench.zone.figures().objects, 1);
}

#[test]
fn a_key_has_so_many_variants_and_the_oldest_goes() {
    let mut bench = Bench::in_memory(4 * MIB);
    for number in 0..=VARIANTS_MAX {
        bench.store_variant("/a", &number.to_string(), b"body");
    }
    assert!(bench.find_as("/a", Some("0")).is_none());
    assert!(bench.find_as("/a", Some("1")).is_some());
    assert_eq!(bench.zone.figures().objects, VARIANTS_MAX as u64);
}

#[test]
fn memory_is_bounded_and_what_is_asked_for_stays() {
    let mut bench = Bench::in_memory(MIB);
    for round in 0..20 {
        for hot in 0..50 {
            let key = format!("/hot/{hot}");
            if bench.find(&key).is_none() {
                bench.store(&key, &[0; 1000]).unwrap();
            }
        }
        // A scan of objects that are requested only once, half the memory each time.
        for cold in 0..400 {
            bench.store(&format!("/cold/{round}/{cold}"), &[0; 1000]).unwrap();
            assert!(bench.zone.figures().memory <= MIB);
        }
    }
    let hot = (0..50).filter(|hot| bench.find(&format!("/hot/{hot}")).is_some()).count();
    assert_eq!(hot, 50);
    assert!(bench.zone.figures().evictions > 7000);
}

#[test]
fn keys_are_bounded_by_their_own_size() {
    let bench = Bench::in_memory(64 * MIB);
    for number in 0..20_000 {
        let key = bench.zone.key(&u32::to_le_bytes(number)).bytes.to_vec();
        let key = bench.zone.key(&key);
        bench.zone.note_use(&key, key.place, bench.now);
    }
    let figures = bench.zone.figures();
    assert!(figures.keys <= MIB && figures.keys > MIB * 9 / 10, "{figures:?}");
}

#[test]
fn uses_are_counted_before_anything_is_stored() {
    let mut bench = Bench::in_memory(4 * MIB);
    let key = bench.zone.key(b"/a");
    for expected in 1..4 {
        assert_eq!(bench.zone.note_use(&key, key.place, bench.now), expected);
        assert!(bench.find("/a").is_none());
    }
    assert_eq!(bench.zone.figures().objects, 0);
}

#[test]
fn what_is_too_large_for_memory_is_refused_without_a_disk() {
    let bench = Bench::in_memory(MIB);
    let length = Some(MIB);
    assert_eq!(bench.lead("/a").fill(Draft { length, ..draft() }, bench.now).err(), Some(StoreRefusal::TooLarge));
    // The same if the length was unknown before and there is no reader.
    let mut fill = bench.lead("/a").fill(draft(), bench.now).unwrap();
    let mut refused = Ok(());
    for _ in 0..20 {
        refused = refused.and(fill.push(&[0; 64 << 10], bench.now));
    }
    assert_eq!(refused, Err(StoreRefusal::TooLarge));
    assert!(fill.finish(bench.now).is_err());
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().flights), (0, 0));
}

#[test]
fn who_reads_along_what_turns_out_too_large_gets_all_of_it() {
    let bench = Bench::in_memory(MIB);
    let mut fill = bench.lead("/a").fill(draft(), bench.now).unwrap();
    let context = Context::from_waker(Waker::noop());
    let mut readers: Vec<Reader> = (0..3).map(|_| Reader::new(fill.object().clone(), 0)).collect();
    let read = |reader: &mut Reader| {
        let mut count = 0;
        while let Poll::Ready(Some(piece)) = reader.poll_piece(&context) {
            let piece = piece.unwrap();
            let expected = (reader.offset() >> 16) as u8;
            assert!(piece.bytes().unwrap().iter().all(|byte| *byte == expected));
            count += piece.len();
            reader.advance(piece.len());
        }
        count
    };
    for number in 0..100 {
        assert!(fill.poll_ready(&context).is_ready());
        fill.push(&[number; 64 << 10], bench.now).unwrap();
        readers.iter_mut().take(2).for_each(|reader| assert_eq!(read(reader), 64 << 10));
        if number == 20 {
            assert!(
                matches!(bench.join_anew("/a"), Joined::Wait(waiter) if matches!(waiter.now(), Some(Waited::Pass)))
            );
        }
        if number % 40 == 39 {
            assert_eq!(read(&mut readers[2]), 40 * (64 << 10));
        }
    }
    // The slowest reader delays the rest.
    for number in 100..200 {
        if fill.poll_ready(&context).is_pending() {
            break;
        }
        fill.push(&[number; 64 << 10], bench.now).unwrap();
    }
    assert!(fill.poll_ready(&context).is_pending());
    readers.remove(2);
    for reader in &mut readers {
        read(reader);
    }
    assert!(fill.poll_ready(&context).is_ready());
    assert!(fill.finish(bench.now).is_err());
    assert!(matches!(readers[0].poll_piece(&context), Poll::Ready(None)));
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().flights), (0, 0));
}

#[test]
fn a_confirmed_object_keeps_its_body_with_other_times() {
    let mut bench = Bench::in_memory(4 * MIB);
    let old = bench.store("/a", b"body").unwrap();
    let times = Times { fresh_until_ms: 99, ..old.times };
    let confirmed = bench.lead("/a").confirm(&old, old.head.clone(), times, bench.now).unwrap();
    let found = bench.find("/a").unwrap();
    assert!(Arc::ptr_eq(&found, &confirmed) && Arc::ptr_eq(&found.body.chunks()[0], &old.body.chunks()[0]));
    assert_eq!((found.times.fresh_until_ms, old.times.fresh_until_ms), (99, 2));
}

#[test]
fn what_nobody_asks_for_goes_in_time() {
    let mut bench = Bench::in_memory(4 * MIB);
    bench.zone.retune(Tuning { inactive: Duration::from_secs(60), ..Tuning::default() });
    bench.store("/a", b"body").unwrap();
    bench.store("/b", b"body").unwrap();
    bench.work();
    for _ in 0..8 {
        bench.pass(10);
        assert!(bench.find("/a").is_some());
        bench.work();
    }
    assert!(bench.find("/a").is_some() && bench.find("/b").is_none());
    assert_eq!(bench.zone.figures().objects, 1);
}

#[test]
fn an_object_of_a_kibibyte_costs_little_more() {
    let bench = Bench::in_memory(64 * MIB);
    for number in 0..1000 {
        bench.store(&format!("http://example.com/some/path/{number}"), &[0; 1024]).unwrap();
    }
    let figures = bench.zone.figures();
    assert_eq!(figures.objects, 1000);
    let each = (figures.memory + figures.keys) / 1000 - 1024;
    assert!(each < 640, "{each} bytes besides the body");
}
