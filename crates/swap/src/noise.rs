//! The parts in which two answers of A differ, by route: after enough differences, a part counts for nothing.

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::difference::{NoiseKind, PartNoise};

/// So many requests of a route must show a part's noise before the part counts for nothing on the whole route. A request
/// that shows it itself needs none.
pub const SIGHTINGS_MIN: u64 = 2;
/// Most noisy parts of a route.
const PARTS_MAX: usize = 2000;
/// Most routes.
const ROUTES_MAX: usize = 20_000;

/// The noise of one route.
#[derive(Clone, Debug, Default)]
pub struct RouteMasks {
    /// The pairs of answers that were compared.
    of: u64,
    /// By the place of the part.
    parts: BTreeMap<String, PartMask>,
    /// A body of the route has differed.
    has_noisy_body: bool,
}

#[derive(Clone, Debug, Default)]
struct PartMask {
    differed: u64,
    kinds: BTreeMap<NoiseKind, u64>,
}

impl RouteMasks {
    /// True if this kind of noise was seen often enough at this place.
    pub fn has(&self, place: &str, kind: NoiseKind) -> bool {
        let seen = self.parts.get(place).and_then(|mask| mask.kinds.get(&kind));
        seen.is_some_and(|seen| *seen >= SIGHTINGS_MIN)
    }

    /// True if a body of the route has differed: then its length differs by chance.
    pub fn has_noisy_body(&self) -> bool {
        self.has_noisy_body
    }

    fn learn(&mut self, noise: &[PartNoise]) {
        self.of += 1;
        let mut places: Vec<&str> = Vec::new();
        for one in noise {
            if self.parts.len() >= PARTS_MAX && !self.parts.contains_key(&one.place) {
                continue;
            }
            let mask = self.parts.entry(one.place.clone()).or_default();
            // A part has several pieces, and a list has several elements of the same place.
            if !places.contains(&one.place.as_str()) {
                mask.differed += 1;
                places.push(&one.place);
            }
            *mask.kinds.entry(one.kind).or_default() += 1;
        }
    }
}

/// The noise of all routes.
#[derive(Clone, Debug, Default)]
pub struct Noise {
    routes: HashMap<String, RouteMasks>,
    /// For a route that is not known yet.
    none: RouteMasks,
}

/// A noisy part, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoisyPart {
    /// The route.
    pub route: String,
    /// The place of the part.
    pub part: String,
    /// The pairs of A's answers that differed there.
    pub differed: u64,
    /// The pairs of A's answers of the route.
    pub of: u64,
}

impl Noise {
    /// The masks of a route.
    pub fn route(&self, route: &str) -> &RouteMasks {
        self.routes.get(route).unwrap_or(&self.none)
    }

    /// True if this kind of noise was seen at this place at all.
    pub fn seen(&self, route: &str, place: &str, kind: NoiseKind) -> bool {
        self.route(route).parts.get(place).is_some_and(|mask| mask.kinds.contains_key(&kind))
    }

    /// Learns from one pair of A's answers.
    pub fn learn(&mut self, route: &str, noise: &[PartNoise]) {
        let is_body_noisy = noise.iter().any(PartNoise::is_of_body);
        if let Some(masks) = self.of(route) {
            masks.learn(noise);
            masks.has_noisy_body |= is_body_noisy;
        }
        // HEAD tells the length of the body that GET gets.
        let head = route.strip_prefix("GET ").filter(|_| is_body_noisy).map(|rest| format!("HEAD {rest}"));
        if let Some(masks) = head.and_then(|head| self.of(&head)) {
            masks.has_noisy_body = true;
        }
    }

    fn of(&mut self, route: &str) -> Option<&mut RouteMasks> {
        let has_room = self.routes.len() < ROUTES_MAX || self.routes.contains_key(route);
        has_room.then(|| self.routes.entry(route.to_owned()).or_default())
    }

    /// All noisy parts: those with the most differences first.
    pub fn parts(&self) -> Vec<NoisyPart> {
        let mut all: Vec<NoisyPart> = Vec::new();
        for (route, masks) in &self.routes {
            all.extend(masks.parts.iter().map(|(part, mask)| NoisyPart {
                route: route.clone(),
                part: part.clone(),
                differed: mask.differed,
                of: masks.of,
            }));
        }
        all.sort_by(|one, other| {
            other.differed.cmp(&one.differed).then_with(|| (&one.route, &one.part).cmp(&(&other.route, &other.part)))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(place: &str, kind: NoiseKind) -> PartNoise {
        PartNoise { place: place.to_owned(), kind }
    }

    #[test]
    fn a_part_is_masked_on_its_route_after_two_sightings() {
        let mut all = Noise::default();
        let seen = [noise("field etag", NoiseKind::Whole)];
        all.learn("GET /", &seen);
        assert!(!all.route("GET /").has("field etag", NoiseKind::Whole));
        all.learn("GET /", &seen);
        all.learn("GET /", &[]);
        assert!(all.route("GET /").has("field etag", NoiseKind::Whole));
        assert!(!all.route("GET /").has("field etag", NoiseKind::Presence));
        assert!(!all.route("GET /b").has("field etag", NoiseKind::Whole));
        let part = NoisyPart { route: "GET /".to_owned(), part: "field etag".to_owned(), differed: 2, of: 3 };
        assert_eq!(all.parts(), [part]);
    }

    #[test]
    fn a_noisy_body_makes_the_length_noise_for_head_too() {
        let mut all = Noise::default();
        all.learn("GET / 200", &[noise("origin body", NoiseKind::Whole), noise("field x", NoiseKind::Whole)]);
        assert!(!all.route("GET / 200").has_noisy_body());
        all.learn("GET / 200", &[noise("body $.at", NoiseKind::Whole)]);
        for (route, is_noisy) in [("GET / 200", true), ("HEAD / 200", true), ("POST / 200", false)] {
            assert_eq!(all.route(route).has_noisy_body(), is_noisy, "{route}");
        }
    }

    #[test]
    fn a_part_with_two_noisy_pieces_differs_once() {
        let mut all = Noise::default();
        all.learn("r", &[noise("body $.a[*]", NoiseKind::Piece(3, 1)), noise("body $.a[*]", NoiseKind::Piece(3, 2))]);
        assert_eq!(all.parts().first().map(|part| (part.differed, part.of)), Some((1, 1)));
    }
}
