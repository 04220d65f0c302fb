//! Compares the answers of A, of A again and of B to one request. A part in which the answers of A differ is noise.

mod body;
mod explained;
mod html;
mod parts;

use std::collections::BTreeSet;

pub use explained::{EXPLAINED, Explained, Explaining, explain, is_guarded};
pub use parts::{AnswerPart, Parts, mask_key};

use crate::difference::{Compared, DifferenceKind, NoiseKind, PartDifference, PartNoise, Port};
use crate::noise::RouteMasks;
use crate::request::{self, ARMS, Arm, Observed, OriginRequest, SwapAnswer, SwapField, WholeAnswer};
use crate::watch::LOOP_MIN;

/// Most differences of one body that are told apart; of more, the whole body is one difference.
const BODY_DIFFERENCES_MAX: usize = 8;
/// The place of the one difference that stands for many parts of a body. The bytes of the body have the place `body`, and
/// noise in the bytes alone explains nothing of the parts.
const MANY_PARTS: &str = "body parts";
/// How answers are compared.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The ports of the arms.
    pub ports: [Port; ARMS],
    /// A and B are the same kind of program: the server's name and pages of its own count.
    pub is_same_program: bool,
    /// A is nginx and B is weir: weir's deliberate differences are set apart.
    pub is_nginx_and_weir: bool,
    /// The method is HEAD.
    pub is_head: bool,
    /// weir's cache has not kept this answer for a request before: that one was of a client with a session.
    pub was_guarded: bool,
}

/// Compares what the three arms showed.
pub fn compare(seen: [&Observed; ARMS], rules: &Rules, masks: &RouteMasks) -> Compared {
    // A server that nobody reaches shows nothing. Neither does a request that comes back to the server again and again: how
    // often depends on the connections that the server has.
    let is_away = |one: &&Observed| one.answer == SwapAnswer::Failed("ECONNREFUSED".to_owned());
    let is_loop = |one: &&Observed| one.origin.len() > LOOP_MIN;
    if seen.iter().all(is_away) || seen.iter().all(is_loop) {
        return Compared::default();
    }
    let head = |arm: Arm| {
        let (own, port, first) = (seen[arm as usize], &rules.ports[arm as usize], Arm::First as usize);
        let lines = parts::lines_as(&own.log, port, &seen[first].log, &rules.ports[first]);
        parts::parts(own, &lines, port, rules.is_same_program)
    };
    let [first, again, b] = Arm::ALL.map(head);
    let mut judge = Judge { masks, compared: Compared { is_comparable: true, ..Compared::default() } };
    // Answers of other kinds have nothing to compare.
    for place in ["no answer", "status"] {
        judge.part(place, [&first, &again, &b]);
        let noise = std::mem::take(&mut judge.compared.noise);
        if !noise.is_empty() {
            return Compared { noise, ..Compared::default() };
        }
    }
    let is_other = !judge.compared.differences.is_empty();
    judge.part(parts::ORIGIN_COUNT, [&first, &again, &b]);
    let count = |parts: &Parts| parts.get(parts::ORIGIN_COUNT).cloned();
    let has_same_count = count(&first) == count(&again) && count(&first) == count(&b);
    let places: BTreeSet<&String> = first.keys().chain(again.keys()).chain(b.keys()).collect();
    for place in places {
        // With another status, the fields and the body belong to another answer.
        let is_of_answer = place.starts_with("field ") || place == "no answer" || place == "status";
        // Of another number of requests to origins, none belongs to another.
        let is_uncounted = place.starts_with("origin ") && (!has_same_count || place == parts::ORIGIN_COUNT);
        if (!is_other || !is_of_answer) && !is_uncounted {
            judge.part(place, [&first, &again, &b]);
        }
    }
    if !is_other {
        // weir's own Vary and Accept-Ranges have other places.
        let left_out: &[&str] = if rules.is_nginx_and_weir { &["vary", "accept-ranges"] } else { &[] };
        judge.order("order of fields", seen, left_out, &|one| match &one.answer {
            SwapAnswer::Whole(answer) => Some(&answer.fields),
            SwapAnswer::Failed(_) => None,
        });
        judge.body(seen, rules);
    }
    for number in 0..seen.iter().map(|one| one.origin.len()).min().filter(|_| has_same_count).unwrap_or(0) {
        judge.order(&parts::numbered("origin order", number), seen, &[], &move |one| {
            Some(&one.origin.get(number)?.fields)
        });
    }
    let mut compared = judge.compared;
    if masks.has_noisy_body() || compared.noise.iter().any(PartNoise::is_of_body) {
        compared.differences.retain(|one| !one.is_length());
    }
    compared.differences.sort();
    compared.differences.dedup();
    match rules.is_nginx_and_weir {
        true => explain(compared, explaining(seen, rules)),
        false => compared,
    }
}

/// The facts on which deliberate differences depend.
fn explaining([seen_a, _, seen_b]: [&Observed; ARMS], rules: &Rules) -> Explaining {
    let is_head = rules.is_head;
    let is_guarded = seen_b.is_personal || rules.was_guarded;
    let [a, b] = [seen_a, seen_b].map(|one| match &one.answer {
        SwapAnswer::Whole(answer) => Some(answer),
        SwapAnswer::Failed(_) => None,
    });
    let has = |answer: Option<&WholeAnswer>, name: &str| answer.is_some_and(|answer| answer.field(name).is_some());
    let is_aged = has(b, "age") && !has(a, "age");
    let status = |answer: Option<&WholeAnswer>| answer.map_or(0, |answer| answer.status);
    let is_for_cache = a.zip(b).is_some_and(|(a, b)| is_part(b, a) || is_unchanged(b, a)) && asks_for_all(seen_b);
    let is_empty = |answer: Option<&WholeAnswer>| answer.is_some_and(|answer| answer.body_bytes == 0);
    let is_padded = |answer: &WholeAnswer| {
        parts::is_own_page(&answer.body) && memchr::memmem::find(&answer.body, parts::PADDING).is_some()
    };
    Explaining {
        is_head,
        is_guarded: is_guarded && seen_a.origin.is_empty() && !seen_b.origin.is_empty(),
        is_padded: a.is_some_and(is_padded),
        is_not_modified: (status(a), status(b)) == (304, 304),
        is_aged,
        is_of_cache: is_for_cache || (is_aged && status(a) == 200 && matches!(status(b), 206 | 416)),
        is_page: a.is_some_and(|answer| parts::is_own_page(&answer.body)) || logs_an_error(seen_a),
        is_coded: has(a, "content-encoding") && has(b, "content-encoding"),
        is_chunked: has(a, "transfer-encoding"),
        status: if status(a) == status(b) { status(a) } else { 0 },
        is_broken: a.is_none() && b.is_none(),
        is_empty: !is_head && is_empty(a) && is_empty(b),
        is_of_http2: seen_a.origin.is_empty() && seen_b.origin.is_empty(),
    }
}

/// The answer is the part of the other one that its `Content-Range` says.
fn is_part(answer: &WholeAnswer, whole: &WholeAnswer) -> bool {
    let range = || {
        let value = std::str::from_utf8(answer.field("content-range")?).ok()?;
        let (range, length) = value.strip_prefix("bytes ")?.split_once('/')?;
        let (from, to) = range.split_once('-')?;
        let is_of_whole = length.parse() == Ok(whole.body.len());
        whole.body.get(from.parse::<usize>().ok()?..=to.parse().ok()?).filter(|_| is_of_whole)
    };
    (whole.status, answer.status) == (200, 206) && range() == Some(answer.body.as_slice())
}

/// An origin was asked, for the whole: that is the cache's way.
fn asks_for_all(seen: &Observed) -> bool {
    let is_asked = |request: &OriginRequest| {
        ["range", "if-none-match", "if-modified-since"]
            .iter()
            .any(|name| request::field(&request.fields, name).is_some())
    };
    !seen.origin.is_empty() && !seen.origin.iter().any(is_asked)
}

/// The answer says that the client has the whole one already.
fn is_unchanged(answer: &WholeAnswer, whole: &WholeAnswer) -> bool {
    let is_same = |name: &str| answer.field(name).is_some() && answer.field(name) == whole.field(name);
    (whole.status, answer.status) == (200, 304) && (is_same("etag") || is_same("last-modified"))
}

/// One of several log lines is that of an error: a server of the same file has answered another one with its page.
fn logs_an_error(seen: &Observed) -> bool {
    let is_error = |(name, value): &(String, Vec<u8>)| name == "$status" && value.first() >= Some(&b'3');
    seen.log.len() > 1 && seen.log.iter().any(|line| line.values.iter().any(is_error))
}

/// Removes the differences that a second round of answers does not have: B differs from itself there, or has caught up
/// with a cache. Returns them.
pub fn confirm(compared: &mut Compared, second: &Compared) -> Vec<PartDifference> {
    let lasts = |one: &PartDifference| second.differences.iter().any(|other| other.place == one.place);
    // A second round with noise in the status says nothing against the first one.
    let all = std::mem::take(&mut compared.differences);
    let (lasting, passing) = all.into_iter().partition(|one| !second.is_comparable || lasts(one));
    compared.differences = lasting;
    passing
}

/// Removes the differences in parts that two answers of B do not share: the application changes them with each fill of a
/// cache, and the caches of A and B were filled at different times. An answer with another status shows nothing about the
/// parts, so it removes none. Returns the parts.
pub fn unsteady(compared: &mut Compared, ours: &Observed, fresh: &Observed, rules: &Rules) -> Vec<String> {
    let same = [ours, fresh, ours];
    let port = rules.ports[Arm::B as usize];
    let rules = Rules { ports: [port; ARMS], is_same_program: true, is_nginx_and_weir: false, ..*rules };
    let among = compare(same, &rules, &RouteMasks::default());
    if !among.is_comparable {
        return Vec::new();
    }
    let changes = |one: &PartDifference| {
        let key = mask_key(&one.place);
        let is_part = |noise: &PartNoise| noise.is_of_body() && noise.place != "body";
        among.noise.iter().any(|noise| noise.place == key || (key == MANY_PARTS && is_part(noise)))
    };
    let all = std::mem::take(&mut compared.differences);
    let (passing, lasting): (Vec<_>, Vec<_>) = all.into_iter().partition(changes);
    compared.differences = lasting;
    passing.into_iter().map(|one| one.part).collect()
}

/// The fields of an answer or of a request.
type FieldsOf = dyn Fn(&Observed) -> Option<&Vec<SwapField>>;

/// Collects differences and noise.
struct Judge<'m> {
    masks: &'m RouteMasks,
    compared: Compared,
}

impl Judge<'_> {
    fn part(&mut self, place: &str, [first, again, b]: [&Parts; ARMS]) {
        self.values(place, [first.get(place), again.get(place), b.get(place)]);
    }

    /// Compares one part of the three answers.
    fn values(&mut self, place: &str, [first, again, b]: [Option<&AnswerPart>; ARMS]) {
        let key = mask_key(place);
        let mut own: Vec<NoiseKind> = Vec::new();
        match (first, again) {
            (Some(first), Some(again)) => own.extend(first.noise(again)),
            (None, None) => {}
            _ => own.push(NoiseKind::Presence),
        }
        let is_noise = |kind: NoiseKind| own.contains(&kind) || self.masks.has(&key, kind);
        let (kind, ways) = match (first, b) {
            (Some(first), Some(b)) => (first.kind(b), first.differing(b)),
            (None, None) => (DifferenceKind::Value, Vec::new()),
            (Some(_), None) => (DifferenceKind::Absent, vec![NoiseKind::Presence]),
            (None, Some(_)) => (DifferenceKind::Extra, vec![NoiseKind::Presence]),
        };
        let is_whole = is_noise(NoiseKind::Whole) && !ways.contains(&NoiseKind::Presence);
        let is_explained = is_whole || ways.iter().all(|kind| is_noise(*kind));
        let noise = own.into_iter().map(|kind| PartNoise { place: key.clone(), kind });
        self.compared.noise.extend(noise);
        if !is_explained {
            let part = first.or(b).map(|part| part.name.clone()).unwrap_or_default();
            let (a, b) = parts::shown(place, first, b);
            self.compared.differences.push(PartDifference { part, place: place.to_owned(), kind, a, b, ways });
        }
    }

    /// Compares the order of the fields that stand equally often on all sides.
    fn order(&mut self, place: &str, seen: [&Observed; ARMS], left_out: &[&str], fields: &FieldsOf) {
        let all = seen.map(|one| {
            let name = |(name, _): &SwapField| String::from_utf8_lossy(name).to_ascii_lowercase();
            Some(fields(one)?.iter().map(name).collect::<Vec<String>>())
        });
        let is_common = |name: &&str| {
            let count = |names: &Vec<String>| names.iter().filter(|own| own == name).count();
            let mut counts = all.iter().flatten().map(count);
            let first = counts.next();
            !left_out.contains(name) && counts.all(|count| Some(count) == first)
        };
        let [one, other, of_b] = all.each_ref().map(|names| {
            let mut common: Vec<&str> = Vec::new();
            for name in names.as_ref()?.iter().map(String::as_str).filter(is_common) {
                if !common.contains(&name) {
                    common.push(name);
                }
            }
            let name = place.split(" #").next().unwrap_or(place).to_owned();
            Some(AnswerPart { name, pieces: vec![common.join(", ").into_bytes()] })
        });
        self.values(place, [one.as_ref(), other.as_ref(), of_b.as_ref()]);
        if let Some(last) = self.compared.differences.last_mut().filter(|last| last.place == place) {
            last.kind = DifferenceKind::Order;
        }
    }

    /// Compares the bodies: as bytes, and if they differ, by their parts.
    fn body(&mut self, seen: [&Observed; ARMS], rules: &Rules) {
        let bodies = Arm::ALL.map(|arm| match &seen[arm as usize].answer {
            SwapAnswer::Whole(answer) => {
                let port = &rules.ports[arm as usize];
                Some(body::normal(answer, port, rules.is_same_program))
            }
            SwapAnswer::Failed(_) => None,
        });
        let [Some(first), Some(again), Some(b)] = bodies else { return };
        if first == again && first == b {
            return;
        }
        let before = self.compared.differences.len();
        let of = |arm: Arm, bytes: &[u8]| match &seen[arm as usize].answer {
            SwapAnswer::Whole(answer) => body::parts(answer, bytes),
            SwapAnswer::Failed(_) => None,
        };
        let trees = [of(Arm::First, &first), of(Arm::Again, &again), of(Arm::B, &b)];
        let whole = [body::whole(&first), body::whole(&again), body::whole(&b)];
        let [Some(of_first), Some(of_again), Some(of_b)] = &trees else {
            return self.values("body", [Some(&whole[0]), Some(&whole[1]), Some(&whole[2])]);
        };
        let places: BTreeSet<&String> = of_first.keys().chain(of_again.keys()).chain(of_b.keys()).collect();
        places.into_iter().for_each(|place| self.part(place, [of_first, of_again, of_b]));
        let count = self.compared.differences.len() - before;
        // Between a page and JSON, each part would be a difference.
        let is_other_kind = body::is_page(of_first) != body::is_page(of_b) && count > 1;
        if count > BODY_DIFFERENCES_MAX || is_other_kind {
            self.compared.differences.truncate(before);
            let (a, b) = parts::shown("body", Some(&whole[0]), Some(&whole[2]));
            let (part, place) = ("body".to_owned(), MANY_PARTS.to_owned());
            let (kind, ways) = (DifferenceKind::Value, vec![NoiseKind::Whole]);
            self.compared.differences.push(PartDifference { part, place, kind, a, b, ways });
        } else if of_first == of_b && of_first == of_again {
            // Only the bytes between the parts differ.
            self.values("body", [Some(&whole[0]), Some(&whole[1]), Some(&whole[2])]);
        }
    }
}

#[cfg(test)]
mod tests;
