//! Purges: in force at once, in every tier, and after a restart.

use super::*;

fn key(key: &str) -> Purge {
    Purge::of_key(key.as_bytes())
}

#[test]
fn a_purge_takes_what_it_names_and_no_more() {
    let mut bench = Bench::in_memory(4 * MIB);
    let tagged = Draft { tags: vec![Tag::of(b"red")], ..draft() };
    bench.store_draft("/b/1", tagged, b"body").unwrap();
    for path in ["/a/1", "/a/2", "/ab", "/b/2"] {
        bench.store(path, b"body").unwrap();
    }
    assert!(bench.zone.purge(key("/a/1"), Force::Hard));
    assert!(!bench.zone.purge(key("/a/1"), Force::Hard), "it is gone already");
    assert!(bench.find("/a/1").is_none() && bench.find("/a/2").is_some());
    bench.zone.purge(key("/a/*"), Force::Hard);
    assert!(bench.find("/a/2").is_none() && bench.find("/ab").is_some());
    bench.zone.purge(Purge::Tag(Tag::of(b"red")), Force::Hard);
    assert!(bench.find("/b/1").is_none() && bench.find("/b/2").is_some());
    bench.zone.purge(Purge::All, Force::Hard);
    assert!(bench.find("/ab").is_none() && bench.find("/b/2").is_none());
    bench.store("/ab", b"after").unwrap();
    assert_eq!(bench.body_of("/ab").unwrap(), b"after");
    assert_eq!(bench.zone.figures().purged, 5);
}

#[test]
fn a_tally_counts_what_a_purge_names_before_it_is_in_force() {
    let bench = Bench::in_memory(4 * MIB);
    bench.store_draft("/b/1", Draft { tags: vec![Tag::of(b"red")], ..draft() }, b"body").unwrap();
    for path in ["/a/1", "/a/2"] {
        bench.store(path, b"body").unwrap();
    }
    bench.store_variant("/v", "gzip", b"zipped");
    bench.store_variant("/v", "", b"plain");
    let zone = bench.zone.clone();
    let count = |purges: Vec<Purge>| {
        let zone = zone.clone();
        weir_net::worker::block_on(async move { zone.tally(&purges).await }).unwrap()
    };
    for (purges, named) in [
        (vec![key("/a/1")], 1),
        (vec![key("/v")], 2),
        (vec![key("/a/*")], 2),
        (vec![key("/a/*"), key("/a/1")], 2),
        (vec![Purge::Tag(Tag::of(b"red"))], 1),
        (vec![Purge::All], 5),
        (vec![key("/c")], 0),
        (vec![key("/c*")], 0),
    ] {
        let tally = count(purges.clone());
        assert_eq!(tally.named, named, "{purges:?}");
        assert!(named > 0 || tally.other.is_some(), "an example for {purges:?}");
    }
    bench.zone.purge(key("/a/*"), Force::Hard);
    assert_eq!(count(vec![key("/a/*")]).named, 0, "they are gone already");
}

#[test]
fn a_purged_key_loses_all_its_variants() {
    let mut bench = Bench::in_memory(4 * MIB);
    for force in [Force::Soft, Force::Hard] {
        bench.store_variant("/a", "gzip", b"zipped");
        bench.store_variant("/a", "", b"plain");
        bench.zone.purge(key("/a"), force);
        for value in ["gzip", ""] {
            let stale = bench.find_as("/a", Some(value)).map(|object| object.is_soft_purged());
            assert_eq!(stale, (force == Force::Soft).then_some(true));
        }
    }
    bench.store_variant("/a", "gzip", b"zipped");
    bench.zone.purge(key("/*"), Force::Hard);
    assert!(bench.find_as("/a", Some("gzip")).is_none());
}

#[test]
fn a_soft_purge_makes_stale_until_it_is_fetched_again() {
    let mut bench = Bench::in_memory(4 * MIB);
    for purge in [key("/a"), key("/*")] {
        bench.store("/a", b"body").unwrap();
        let held = bench.find("/a").unwrap();
        bench.zone.purge(purge, Force::Soft);
        assert!(bench.find("/a").unwrap().is_soft_purged() && held.is_soft_purged());
        bench.store("/a", b"body").unwrap();
        assert!(!bench.find("/a").unwrap().is_soft_purged());
    }
}

#[test]
fn what_is_being_fetched_when_it_is_purged_is_not_stored() {
    for purge in [key("/a"), key("/*"), Purge::All] {
        let mut bench = Bench::in_memory(4 * MIB);
        let mut fill = bench.lead("/a").fill(draft(), bench.now).unwrap();
        fill.push(b"body", bench.now).unwrap();
        bench.zone.purge(purge, Force::Hard);
        // The sweep keeps the rules that a fetch in progress must be checked against.
        for _ in 0..1000 {
            bench.keeper.turn(&bench.zone, bench.now);
        }
        assert_eq!(fill.finish(bench.now).err(), Some(StoreRefusal::Purged));
        assert!(bench.find("/a").is_none());
        bench.work();
        assert_eq!(bench.zone.figures().bans, 0);
    }
}

#[test]
fn the_sweep_applies_purges_to_what_nobody_asks_for() {
    let mut bench = Bench::in_memory(4 * MIB);
    for number in 0..1000 {
        bench.store(&format!("/{}/{number}", number % 2), b"body").unwrap();
    }
    bench.zone.purge(key("/0/*"), Force::Hard);
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().bans), (1000, 1));
    bench.work();
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().bans), (500, 0));
}

#[test]
fn ten_thousand_purges_hold() {
    let mut bench = Bench::in_memory(16 * MIB);
    for number in 0..10_000 {
        bench.store(&format!("/{number}/x"), b"body").unwrap();
        bench.zone.purge(key(&format!("/{number}/*")), Force::Hard);
        assert!(bench.find(&format!("/{number}/x")).is_none());
        if number % 100 == 0 {
            bench.work();
        }
    }
    bench.work();
    assert_eq!((bench.zone.figures().objects, bench.zone.figures().bans), (0, 0));
}

#[test]
fn purged_stays_purged_when_the_process_is_killed_right_after() {
    for (purge, force) in
        [(key("/a"), Force::Hard), (key("/a*"), Force::Hard), (Purge::All, Force::Hard), (key("/a*"), Force::Soft)]
    {
        let room = Room::new();
        let mut bench = Bench::on_disk(&room);
        bench.work();
        bench.store("/a", b"body").unwrap();
        bench.work();
        bench.zone.purge(purge.clone(), force);
        // The thread had no turn since.
        let mut bench = Bench::on_disk(&room);
        assert_eq!(bench.find("/a").map(|object| object.is_soft_purged()), (force == Force::Soft).then_some(true));
        bench.work();
        assert_eq!(bench.find("/a").map(|object| object.is_soft_purged()), (force == Force::Soft).then_some(true));
        assert_eq!(room.files().len(), usize::from(force == Force::Soft), "{purge:?}");
        // The rule may be removed once it is applied.
        let mut bench = Bench::on_disk(&room);
        assert_eq!(bench.zone.figures().bans, 0);
        bench.work();
        assert_eq!(bench.find("/a").map(|object| object.is_soft_purged()), (force == Force::Soft).then_some(true));
    }
}

#[test]
fn a_damaged_record_of_purges_purges_everything() {
    let room = Room::new();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    bench.store("/a", b"body").unwrap();
    bench.work();
    std::fs::write(room.0.join(purges::PURGES_FILE), "weir-purges 1 1\nnonsense\n").unwrap();
    let mut bench = Bench::on_disk(&room);
    bench.work();
    assert!(bench.find("/a").is_none() && room.files().is_empty());
}
