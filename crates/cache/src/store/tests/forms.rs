//! Tests the forms that are kept with an object.

use super::*;
use crate::store::object::Packed;

fn gzip(level: i32) -> Coding {
    Coding { number: 0, level }
}

fn pack(bench: &Bench, object: &Arc<Object>, coding: Coding, bytes: &[u8]) -> bool {
    let Some(mut packing) = Packing::begin(&bench.zone, object, coding) else { return false };
    packing.push(bytes);
    packing.finish(bench.now)
}

#[test]
fn a_compressed_body_is_found_with_its_object_and_goes_with_it() {
    let mut bench = Bench::in_memory(4 * MIB);
    let plain = bench.store("/a", &[0; 1000]).unwrap();
    let before = bench.zone.figures().memory;
    assert!(pack(&bench, &plain, gzip(3), b"small"));
    let found = bench.find("/a").unwrap();
    assert_eq!(body_of(found.packed(gzip(3)).unwrap()), b"small");
    assert!(found.packed(gzip(4)).is_none() && plain.packed(gzip(3)).is_none());
    assert_eq!((found.serial, body_of(&found)), (plain.serial, vec![0; 1000]));
    let packed = found.packed(gzip(3)).unwrap().memory_bytes() + size_of::<Packed>() as u64;
    assert_eq!(bench.zone.figures().memory, before + packed);
    // A form of another level replaces it.
    assert!(pack(&bench, &found, gzip(4), b"tiny"));
    let found = bench.find("/a").unwrap();
    assert!(found.packed(gzip(3)).is_none() && found.packed(gzip(4)).is_some());
    // A form in another coding stands beside it.
    let brotli = Coding { number: 1, level: 4 };
    assert!(pack(&bench, &found, brotli, b"br"));
    let found = bench.find("/a").unwrap();
    assert_eq!(body_of(found.packed(brotli).unwrap()), b"br");
    assert_eq!(body_of(found.packed(gzip(4)).unwrap()), b"tiny");
    // A newer object begins without forms.
    bench.store("/a", &[1; 1000]).unwrap();
    assert!(bench.find("/a").unwrap().packed(gzip(4)).is_none());
    assert_eq!(bench.zone.figures().memory, before);
    bench.zone.purge(Purge::Key(b"/a".as_slice().into()), Force::Hard);
    assert_eq!(bench.zone.figures().memory, 0);
}

#[test]
fn what_was_replaced_or_purged_meanwhile_gets_no_form() {
    let mut bench = Bench::in_memory(4 * MIB);
    let old = bench.store("/a", b"old").unwrap();
    let mut packing = Packing::begin(&bench.zone, &old, gzip(1)).unwrap();
    packing.push(b"of the old one");
    bench.store("/a", b"new").unwrap();
    assert!(!packing.finish(bench.now));
    assert!(bench.find("/a").unwrap().packed(gzip(1)).is_none());
    let new = bench.find("/a").unwrap();
    bench.zone.purge(Purge::Prefix(b"/".as_slice().into()), Force::Hard);
    assert!(bench.find("/a").is_none());
    assert!(!pack(&bench, &new, gzip(1), b"of what is gone"));
    // A soft-purged object stays soft-purged.
    let soft = bench.store("/b", b"body").unwrap();
    bench.zone.purge(Purge::Key(b"/b".as_slice().into()), Force::Soft);
    assert!(pack(&bench, &soft, gzip(1), b"packed"));
    assert!(bench.find("/b").unwrap().is_soft_purged());
}

#[test]
fn one_at_a_time_compresses_and_who_gives_up_lets_another() {
    let bench = Bench::in_memory(4 * MIB);
    let object = bench.store("/a", b"body").unwrap();
    let first = Packing::begin(&bench.zone, &object, gzip(1));
    assert!(first.is_some() && Packing::begin(&bench.zone, &object, gzip(1)).is_none());
    drop(first);
    assert!(pack(&bench, &object, gzip(1), b"packed"));
}

#[test]
fn a_confirmed_object_keeps_its_compressed_body() {
    let mut bench = Bench::in_memory(4 * MIB);
    let object = bench.store("/a", b"body").unwrap();
    assert!(pack(&bench, &object, gzip(1), b"packed"));
    let object = bench.find("/a").unwrap();
    let leader = bench.lead("/a");
    leader.confirm(&object, object.head.clone(), Times { stored_ms: 9, ..object.times }, bench.now).ok().unwrap();
    let found = bench.find("/a").unwrap();
    assert_eq!((found.times.stored_ms, body_of(found.packed(gzip(1)).unwrap())), (9, b"packed".to_vec()));
}

#[test]
fn forms_count_and_make_others_go() {
    let mut bench = Bench::in_memory(MIB);
    for number in 0..400 {
        let object = bench.store(&format!("/{number}"), &[0; 1000]).unwrap();
        pack(&bench, &object, gzip(1), &[1; 3000]);
        assert!(bench.zone.figures().memory <= MIB);
    }
    assert!(bench.zone.figures().evictions > 0);
    let object = bench.store("/large", b"body").unwrap();
    assert!(!pack(&bench, &object, gzip(1), &vec![1; MIB as usize]), "larger than an object may be");
    assert!(bench.find("/large").is_some());
}

#[test]
fn what_is_packed_while_its_file_is_written_stays_both() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    let object = bench.store("/a", b"body").unwrap();
    assert!(pack(&bench, &object, gzip(1), b"packed"));
    bench.work();
    assert_eq!(room.files().len(), 1);
    assert!(bench.find("/a").unwrap().packed(gzip(1)).is_some());
}
