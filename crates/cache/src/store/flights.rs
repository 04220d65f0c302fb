//! The fetches of a zone that are in progress: at most one flight for each place.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use weir_net::Instant;

use super::flight::Flight;
use super::label::Place;
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// The most fetches in a zone that others can wait for; further requests fetch without the cache.
pub const FLIGHTS_MAX: usize = 65_536;

/// The parts of the table, each with a lock of its own.
pub const PARTS: usize = 64;

type Part = HashMap<Place, Arc<Flight>>;

/// The table.
pub struct Flights {
    parts: Box<[Mutex<Part>]>,
    count: AtomicUsize,
    /// Fetches that nobody waits for: a purge must reach them too.
    beside: Mutex<Vec<Weak<Flight>>>,
}

/// The part of a request that found no fresh object.
pub enum Boarded<T> {
    /// It leads this flight, with this turn.
    Leads(Arc<Flight>, u32),
    /// It is one of the waiters of this flight.
    Waits(Arc<Flight>),
    /// It has what was stored meanwhile.
    Has(T),
    /// Too many fetches are in progress.
    Passes,
}

impl Flights {
    /// A table without flights.
    pub fn new(parts: usize) -> Flights {
        let parts = (0..parts.max(1)).map(|_| Mutex::new(Part::new())).collect();
        Flights { parts, count: AtomicUsize::new(0), beside: Mutex::new(Vec::new()) }
    }

    /// Joins the flight of a place, or begins one unless `stored` returns something. `born` is the number of purges so
    /// far.
    pub fn board<T>(
        &self,
        key: &[u8],
        place: Place,
        (now, born): (Instant, u32),
        stored: impl FnOnce() -> Option<T>,
    ) -> Boarded<T> {
        let mut flights = self.part(place);
        if let Some(flight) = flights.get(&place).cloned() {
            if !flight.is_of(key, place.variant) {
                return Boarded::Passes;
            }
            return match flight.take_if_vacant(now, born) {
                Some(turn) => Boarded::Leads(flight, turn),
                None => {
                    flight.add_waiter();
                    Boarded::Waits(flight)
                }
            };
        }
        if let Some(stored) = stored() {
            return Boarded::Has(stored);
        }
        if self.count.fetch_add(1, Ordering::Relaxed) >= FLIGHTS_MAX {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Boarded::Passes;
        }
        let flight = Arc::new(Flight::new(key.into(), place, now, born));
        flights.insert(place, flight.clone());
        Boarded::Leads(flight, 1)
    }

    /// Lets purges reach a fetch that others cannot find in the table; `false` if there are too many.
    pub fn note_beside(&self, flight: &Arc<Flight>) -> bool {
        let mut beside = lock(&self.beside);
        if beside.len() == beside.capacity() {
            beside.retain(|flight| flight.strong_count() > 0);
        }
        let has_room = beside.len() < FLIGHTS_MAX;
        if has_room {
            beside.push(Arc::downgrade(flight));
        }
        has_room
    }

    /// The leader of this turn has its response: the flight is over.
    pub fn land(&self, flight: &Arc<Flight>, turn: u32) {
        if flight.is_led_by(turn) {
            let mut flights = self.part(flight.place);
            self.strike(&mut flights, flight);
        }
    }

    /// The leader of this turn gives up: a waiter leads, or the flight is over.
    pub fn give_up(&self, flight: &Arc<Flight>, turn: u32) {
        if flight.vacate(turn) {
            self.land_if_vacant(flight);
        }
    }

    /// Removes a flight, unless a request took it over meanwhile.
    pub fn land_if_vacant(&self, flight: &Arc<Flight>) {
        let mut flights = self.part(flight.place);
        if flight.is_deserted() {
            self.strike(&mut flights, flight);
        }
    }

    /// Prevents storing the responses of fetches in progress for a key.
    pub fn purge(&self, key: &[u8]) {
        let is_of = |flight: &Flight| *flight.key == *key;
        let beside: Vec<Arc<Flight>> = {
            let beside = lock(&self.beside);
            beside.iter().filter_map(Weak::upgrade).filter(|flight| is_of(flight)).collect()
        };
        beside.iter().for_each(|flight| flight.purge());
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for part in &self.parts {
            lock(part).values().filter(|flight| is_of(flight)).for_each(|flight| flight.purge());
        }
    }

    /// The number of purges when the oldest fetch began.
    pub fn oldest(&self) -> Option<u32> {
        self.parts.iter().filter_map(|part| lock(part).values().map(|flight| flight.born()).min()).min()
    }

    /// The fetches that others can wait for.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn strike(&self, flights: &mut Part, flight: &Arc<Flight>) {
        if flights.get(&flight.place).is_some_and(|known| Arc::ptr_eq(known, flight)) {
            flights.remove(&flight.place);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    fn part(&self, place: Place) -> MutexGuard<'_, Part> {
        lock(&self.parts[place.hash as usize % self.parts.len()])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
