//! Coalescing: a busy worker sleeps for a moment before it asks for events. Then one wake-up of its thread serves
//! several events.
//!
//! At part load, a wake-up costs more than the work for an event. The user gives time away for that: a request over kept
//! connections waits for the network twice in a worker, until it is read and until its answer is read. So events may wait
//! for half of the user's time, from one wake-up of the worker to the next: while it works, and then while it sleeps.
//!
//! A worker that has little time left does not sleep: events wait for it anyway. It sleeps only if it expects several
//! events meanwhile. A client that is alone sends again only after its answer, so no event comes in between. So weir counts
//! how often another client comes than the one before.
//!
//! With `Coalesce::Auto`, the time follows the requests: a fiftieth of the time within which a quarter of them are over.

use std::cell::Cell;
use std::time::Duration;

use crate::instant::{Instant, NS_PER_MS};
use crate::slots::SlotKey;

/// The time over which weir counts: after it, an event counts for a third.
const MEMORY_NS: f64 = 5.0 * NS_PER_MS as f64;
/// Events that a sleep must promise: it wakes the thread once itself.
const EXPECTED_MIN: f64 = 1.5;
/// A shorter sleep costs more than it saves.
const SLEEP_MIN_NS: u64 = 20_000;
/// A request of another client is followed by its answer.
const EVENTS_OF_A_REQUEST: f64 = 2.0;
/// A worker that works for more of its time does not sleep.
const BUSY_MAX: f64 = 0.8;
/// While a connection is being opened weir does not sleep, but for this time at most: its request waits a third time.
const OPENING_NS: u64 = NS_PER_MS;

/// `Coalesce::Auto` gives this part of a request's time away: half of it until weir reads the request, half until weir
/// reads the answer.
const AUTO_PART: f64 = 50.0;
/// Bounds of the request's time that `Coalesce::Auto` goes by: below, weir would not sleep; above, the time is 1 ms.
const QUICK_NS: (f64, f64) = (1e6, 50e6);
/// A request moves that time by this part of it: down with three steps, up with one, so that a quarter of requests is below.
const QUICK_STEP: f64 = 1.0 / 64.0;

/// By how much a worker's sleeps may delay a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coalesce {
    /// The worker never sleeps while it is busy.
    Off,
    /// By at most this time.
    Time(Duration),
    /// By a fiftieth of the time within which a quarter of the requests are over; by at most 1 ms.
    Auto,
}

/// A worker's coalescing.
pub(crate) struct Coalescing {
    /// The time from one wake-up to the next.
    turn_ns: Cell<u64>,
    /// With `Coalesce::Auto`, about the time within which a quarter of the requests are over.
    quick_ns: Cell<Option<f64>>,
    /// The client of the last event.
    client: Cell<SlotKey>,
    /// How often another client came since `counted`.
    changes: Cell<u32>,
    /// The same for each nanosecond, with a memory.
    rate: Cell<f64>,
    /// The share of its time in which the worker works, with a memory.
    busy: Cell<f64>,
    counted: Cell<Option<Instant>>,
    /// Connections that are being opened.
    opening: Cell<u32>,
    /// While there are any, weir does not sleep before this moment.
    awake_until: Cell<Option<Instant>>,
}

impl Coalescing {
    pub(crate) const fn new() -> Coalescing {
        Coalescing {
            turn_ns: Cell::new(0),
            quick_ns: Cell::new(None),
            client: Cell::new(SlotKey::NONE),
            changes: Cell::new(0),
            rate: Cell::new(0.0),
            busy: Cell::new(0.0),
            counted: Cell::new(None),
            opening: Cell::new(0),
            awake_until: Cell::new(None),
        }
    }

    /// Sets by how much a request may be delayed. Returns whether the worker may sleep, now or later.
    pub(crate) fn set(&self, how: Coalesce) -> bool {
        let turn_ns = match how {
            Coalesce::Off | Coalesce::Auto => 0,
            Coalesce::Time(time) => u64::try_from(time.as_nanos() / 2).unwrap_or(u64::MAX),
        };
        self.turn_ns.set(turn_ns);
        self.quick_ns.set((how == Coalesce::Auto).then_some(QUICK_NS.0));
        self.rate.set(0.0);
        self.busy.set(0.0);
        self.changes.set(0);
        self.counted.set(None);
        self.is_on() || how == Coalesce::Auto
    }

    /// Notes how long a request took.
    #[inline]
    pub(crate) fn took(&self, ns: u64) {
        let Some(quick) = self.quick_ns.get() else { return };
        let step = if (ns as f64) < quick { -3.0 * QUICK_STEP } else { QUICK_STEP };
        let quick = (quick + quick * step).clamp(QUICK_NS.0, QUICK_NS.1);
        self.quick_ns.set(Some(quick));
        self.turn_ns.set((quick / AUTO_PART / 2.0) as u64);
    }

    /// Notes an event of a client's connection.
    #[inline]
    pub(crate) fn client_came(&self, client: SlotKey) {
        if self.client.replace(client) != client {
            self.changes.set(self.changes.get().saturating_add(1));
        }
    }

    /// Notes that weir opens a connection.
    pub(crate) fn opening(&self, now: Option<Instant>) {
        self.opening.set(self.opening.get().saturating_add(1));
        self.awake_until.set(now.map(|now| now + Duration::from_nanos(OPENING_NS)));
    }

    /// Notes that such a connection is made, or is given up.
    pub(crate) fn opened(&self) {
        self.opening.set(self.opening.get().saturating_sub(1));
    }

    /// Whether the worker may sleep at all.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.turn_ns.get() >= SLEEP_MIN_NS
    }

    /// How long to sleep now, in nanoseconds, if the worker has worked since `woken`; `None` not to sleep.
    pub(crate) fn sleep(&self, woken: Instant, now: Instant) -> Option<u64> {
        let worked_ns = now.ns_since(woken);
        self.count(worked_ns as f64, now);
        let sleep_ns = self.turn_ns.get().checked_sub(worked_ns).filter(|ns| *ns >= SLEEP_MIN_NS)?;
        let expected = self.rate.get() * EVENTS_OF_A_REQUEST * sleep_ns as f64;
        let is_awake = self.opening.get() > 0 && self.awake_until.get().is_some_and(|until| now < until);
        (expected >= EXPECTED_MIN && self.busy.get() <= BUSY_MAX && !is_awake).then_some(sleep_ns)
    }

    fn count(&self, worked_ns: f64, now: Instant) {
        let since = self.counted.replace(Some(now)).map_or(0.0, |before| now.ns_since(before) as f64);
        let changes = f64::from(self.changes.take());
        if since > 0.0 {
            let weight = (since / MEMORY_NS).min(1.0);
            let mix = |before: f64, latest: f64| before * (1.0 - weight) + latest * weight;
            self.rate.set(mix(self.rate.get(), changes / since));
            self.busy.set(mix(self.busy.get(), (worked_ns / since).min(1.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets clients come in turn, one each `every`, and asks after work of a length; returns how often weir would sleep.
    fn sleeps(coalescing: &Coalescing, clients: u32, (every, work): (Duration, Duration), count: u32) -> u32 {
        let mut now = crate::instant::precise();
        let mut sleeps = 0;
        for number in 0..count {
            now = now + every;
            coalescing.client_came(SlotKey::unpack(u64::from(number % clients)));
            let woken = now;
            now = now + work;
            sleeps += u32::from(coalescing.is_on() && coalescing.sleep(woken, now).is_some());
        }
        sleeps
    }

    #[test]
    fn a_busy_worker_sleeps_and_a_client_alone_is_never_delayed() {
        let coalescing = Coalescing::new();
        let time = |wait, work| (Duration::from_micros(wait), Duration::from_micros(work));
        let (often, seldom) = (time(40, 10), time(990, 10));
        assert_eq!(sleeps(&coalescing, 64, often, 1000), 0, "off");
        assert!(coalescing.set(Coalesce::Time(Duration::from_micros(200))));
        assert_eq!(sleeps(&coalescing, 1, often, 1000), 0, "alone");
        assert!(sleeps(&coalescing, 64, often, 1000) > 900, "20,000 a second");
        assert!(sleeps(&coalescing, 64, seldom, 100) < 10, "1,000 a second");
        assert_eq!(sleeps(&coalescing, 64, seldom, 1000), 0, "1,000 a second, for a second");
        assert!(sleeps(&coalescing, 64, time(5, 45), 1000) < 300, "20,000 a second that take all of its time");
        assert!(!coalescing.set(Coalesce::Off));
        assert_eq!(sleeps(&coalescing, 64, often, 1000), 0, "off again");
    }

    #[test]
    fn nothing_is_delayed_while_weir_opens_a_connection() {
        let coalescing = Coalescing::new();
        coalescing.set(Coalesce::Time(Duration::from_micros(200)));
        sleeps(&coalescing, 64, (Duration::from_micros(40), Duration::from_micros(10)), 1000);
        let now = crate::instant::precise() + Duration::from_millis(50);
        assert!(coalescing.sleep(now, now).is_some());
        coalescing.opening(Some(now));
        coalescing.opening(Some(now));
        assert_eq!(coalescing.sleep(now, now), None);
        coalescing.opened();
        assert_eq!(coalescing.sleep(now, now), None, "one is left");
        let later = now + Duration::from_millis(1);
        assert!(coalescing.sleep(later, later).is_some(), "not for ever");
        coalescing.opened();
        assert!(coalescing.sleep(now, now).is_some());
    }

    #[test]
    fn work_and_sleep_together_take_half_of_the_time() {
        let coalescing = Coalescing::new();
        coalescing.set(Coalesce::Time(Duration::from_micros(400)));
        sleeps(&coalescing, 64, (Duration::from_micros(40), Duration::from_micros(10)), 1000);
        for (worked_us, sleep) in
            [(0, Some(200_000)), (50, Some(150_000)), (179, Some(21_000)), (190, None), (5000, None)]
        {
            let woken = crate::instant::precise() + Duration::from_millis(50);
            let now = woken + Duration::from_micros(worked_us);
            coalescing.rate.set(1.0);
            coalescing.counted.set(Some(now));
            assert_eq!(coalescing.sleep(woken, now), sleep, "{worked_us} us");
        }
    }

    #[test]
    fn auto_follows_the_quicker_quarter_of_requests() {
        let coalescing = Coalescing::new();
        assert!(coalescing.set(Coalesce::Auto) && !coalescing.is_on(), "nothing is known yet");
        // Every eighth request is quick; of the others, some are much slower.
        let slow =
            |number: u32| if number.is_multiple_of(8) { 100_000 } else { 20_000_000 * u64::from(1 + number % 3) };
        (0..1000).for_each(|number| coalescing.took(slow(number)));
        let turn_ns = coalescing.turn_ns.get();
        assert!((180_000..220_000).contains(&turn_ns), "20 ms: {turn_ns}");
        (0..1000).for_each(|_| coalescing.took(u64::MAX));
        assert_eq!(coalescing.turn_ns.get(), 500_000, "not above 1 ms");
        // Half of them come out of the cache.
        (0..1000u32).for_each(|number| coalescing.took(if number.is_multiple_of(2) { 50_000 } else { 20_000_000 }));
        assert!(!coalescing.is_on(), "{}", coalescing.turn_ns.get());
    }
}
