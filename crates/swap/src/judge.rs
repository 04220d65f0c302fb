//! Asks all requests, learns the noise of A, and keeps the differences that last.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_net::timer;

use crate::ask::Asker;
use crate::compare::{self, Rules, mask_key};
use crate::difference::{Compared, PartDifference};
use crate::noise::{Noise, NoisyPart, SIGHTINGS_MIN};
use crate::request::{ARMS, Arm, Observed, SwapAnswer, SwapRequest};

/// Most requests of the first pass.
const SAMPLE_MAX: usize = 1_000;
/// Time between the two answers of A in the first pass: a moment in whole seconds changes.
const APART: Duration = Duration::from_millis(1100);
/// So many requests of a route must show a difference that did not last, before it counts: a cache shows some differences
/// only once for each answer.
const PASSING_MIN: u64 = 3;
/// After so many requests of a route that no arm answers in time, the others of the route are left out.
const LATE_MAX: u64 = 2;
/// Most answers of B that are kept for [`Judge::unsteady`].
const ANSWERS_MAX: usize = 1_000;
/// Most answers that are known to be guarded.
const GUARDED_MAX: usize = 100_000;
/// Most different differences that are kept.
const FOUND_MAX: usize = 5_000;

/// A request with its route.
#[derive(Clone, Debug, Default)]
pub struct RoutedRequest {
    /// The request.
    pub request: SwapRequest,
    /// Its location, method and path with parameters.
    pub route: String,
    /// The numbers of the statements that it runs through, for [`crate::exercised`].
    pub place: Option<usize>,
}

/// How to judge.
#[derive(Clone, Copy, Debug)]
pub struct JudgeRules {
    /// A and B are the same kind of program.
    pub is_same_program: bool,
    /// A is nginx and B is weir.
    pub is_nginx_and_weir: bool,
}

/// A difference, with the number of requests that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDifference {
    /// The difference as the first of these requests shows it.
    pub difference: PartDifference,
    /// The requests.
    pub requests: u64,
    /// Their routes.
    pub routes: Vec<String>,
    /// The index of the first of these requests.
    pub first: usize,
}

/// One asked request.
#[derive(Clone, Debug)]
pub struct JudgedRequest {
    /// The request.
    pub routed: RoutedRequest,
    /// The route with the status of A's answer.
    pub route: String,
    /// The status of A's answer; 0 without an answer.
    pub status: u16,
    /// `X-Cache-Status` or `X-Cache` of A's answer.
    pub cache: Option<String>,
    /// The answers of A can be compared with that of B.
    pub is_comparable: bool,
    /// The indices of its differences in [`Judgement::found`].
    pub differences: Vec<usize>,
    /// The places of its noise.
    pub noise: BTreeSet<String>,
    /// Its deliberate differences, by the index in [`compare::EXPLAINED`].
    pub explained: BTreeSet<usize>,
    /// The parts that B gives another value with each fill of a cache.
    pub changing: Vec<String>,
}

/// All results.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// The requests, in the order of asking.
    pub requests: Vec<JudgedRequest>,
    /// The differences.
    pub found: Vec<FoundDifference>,
    /// Deliberate differences: the index in [`compare::EXPLAINED`] and the number of requests.
    pub explained: BTreeMap<usize, u64>,
    /// The noise.
    pub noise: Vec<NoisyPart>,
    /// Differences that a second round did not show.
    pub passing: u64,
    /// Requests that were left out: no arm answered earlier ones of their route in time.
    pub late: u64,
}

/// Asks and judges.
pub struct Judge {
    asker: Asker,
    rules: JudgeRules,
    stop: Arc<AtomicBool>,
    noise: Noise,
    found: Vec<FoundDifference>,
    /// By route and difference.
    numbers: HashMap<(String, PartDifference), usize>,
    /// Differences that did not last: by route and place, with the requests that showed them.
    passed: BTreeMap<(String, String), Vec<(usize, PartDifference)>>,
    judged: Judgement,
    /// B's answers with differences, by the index of the request: a cache depends on the order of asking.
    answers: BTreeMap<usize, Observed>,
    late: LateRoutes,
    /// Hosts and targets whose answers A's cache has and B's guard has not kept: the next client without a session fills B's cache.
    guarded: HashSet<(String, Vec<u8>)>,
}

impl Judge {
    /// A judge who has seen nothing.
    pub fn new(asker: Asker, rules: JudgeRules, stop: Arc<AtomicBool>) -> Judge {
        Judge {
            asker,
            rules,
            stop,
            noise: Noise::default(),
            found: Vec::new(),
            numbers: HashMap::new(),
            passed: BTreeMap::new(),
            judged: Judgement::default(),
            answers: BTreeMap::new(),
            late: LateRoutes::default(),
            guarded: HashSet::new(),
        }
    }

    /// Asks by another asker: at other servers, and without the values that were given before.
    pub fn asking(&mut self, asker: Asker) {
        self.asker = asker;
    }

    /// The requests that differ so far.
    pub fn differing(&self) -> usize {
        self.judged.requests.iter().filter(|request| !request.differences.is_empty()).count()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Learns the noise of each route from some of its requests. The two answers of A are at least a second apart. B gets
    /// the requests too, so that its caches are like those of A.
    pub async fn first_pass(&mut self, requests: &[RoutedRequest]) {
        let sample = sample(requests);
        let firsts = self.arm(&sample, Arm::First).await;
        let on_time = |first: Option<Observed>| first.filter(|first| !first.answer.is_late());
        let pairs = sample.iter().zip(firsts).filter_map(|(routed, first)| Some((routed, on_time(first)?)));
        let pairs: Vec<(&RoutedRequest, Observed)> = pairs.collect();
        timer::sleep(APART).await;
        for (routed, _) in &pairs {
            self.asker.one(&routed.request, Arm::B).await;
        }
        for (routed, first) in pairs {
            let again = self.asker.one(&routed.request, Arm::Again).await;
            if let (Some(again), false) = (again, self.is_stopped()) {
                let seen = [first.clone(), again, first];
                if let Some((route, compared)) = self.compared(routed, &seen) {
                    self.noise.learn(&route, &compared.noise);
                }
            }
        }
        self.asker.forget();
    }

    /// Asks all requests, each of all arms, and judges them.
    pub async fn each(&mut self, requests: Vec<RoutedRequest>) {
        let mut waiting: VecDeque<RoutedRequest> = requests.into();
        while let Some(routed) = waiting.pop_front() {
            if self.is_stopped() {
                return;
            }
            if self.late.has(&routed) {
                self.judged.late += 1;
                continue;
            }
            let Some(seen) = self.asker.round(&routed.request).await else { continue };
            if seen.iter().all(|one| one.answer.is_late()) {
                self.late.add(&routed);
            }
            let Some((route, mut compared)) = self.compared(&routed, &seen) else { continue };
            let mut passing = Vec::new();
            if !compared.differences.is_empty()
                && let Some(second) = self.asker.round(&routed.request).await
                && let Some((_, second)) = self.compared(&routed, &second)
            {
                passing = compare::confirm(&mut compared, &second);
                self.noise.learn(&route, &second.noise);
            }
            if self.is_stopped() {
                // An answer that the end of the run cut off shows nothing.
                return;
            }
            if !compared.differences.is_empty() && self.answers.len() < ANSWERS_MAX {
                self.answers.insert(self.judged.requests.len(), seen[Arm::B as usize].clone());
            }
            for follower in conditions(&routed, &seen[Arm::First as usize]).into_iter().rev() {
                waiting.push_front(follower);
            }
            self.noise.learn(&route, &compared.noise);
            self.note(routed, route, &seen[Arm::First as usize], compared, passing);
        }
    }

    /// Asks a B with empty caches once more for the answers that differ, and removes the differences in parts that changed:
    /// the caches of A and B were filled at different times.
    pub async fn unsteady(&mut self) {
        for (index, ours) in std::mem::take(&mut self.answers) {
            let Some(judged) = self.judged.requests.get(index).cloned() else { continue };
            if self.is_stopped() {
                return;
            }
            let request = &judged.routed.request;
            let (Some(fresh), Some(rules)) = (self.asker.one(request, Arm::B).await, self.rules(request)) else {
                continue;
            };
            let own = |number: &usize| self.found.get(*number).map(|found| found.difference.clone());
            let differences = judged.differences.iter().filter_map(own).collect();
            let mut compared = Compared { differences, ..Compared::default() };
            let changing = compare::unsteady(&mut compared, &ours, &fresh, &rules);
            let keeps = |number: &usize| own(number).is_some_and(|one| compared.differences.contains(&one));
            let (kept, gone): (Vec<usize>, Vec<usize>) = judged.differences.iter().copied().partition(keeps);
            for number in gone {
                if let Some(found) = self.found.get_mut(number) {
                    found.requests -= 1;
                }
            }
            if let Some(judged) = self.judged.requests.get_mut(index) {
                (judged.differences, judged.changing) = (kept, changing);
            }
        }
    }

    /// Asks one arm for all requests, in their order. The answers are kept; `None`: the arm did not answer earlier requests
    /// of the route in time.
    pub async fn arm(&mut self, requests: &[RoutedRequest], arm: Arm) -> Vec<Option<Observed>> {
        let (mut all, mut late) = (Vec::new(), LateRoutes::default());
        for routed in requests {
            if self.is_stopped() {
                break;
            }
            let seen = match late.has(routed) {
                true => None,
                false => self.asker.one(&routed.request, arm).await,
            };
            if seen.as_ref().is_some_and(|seen| seen.answer.is_late()) {
                late.add(routed);
            }
            all.push(seen);
        }
        all
    }

    /// Judges the answers that the arms gave one after another.
    pub fn arms(&mut self, requests: Vec<RoutedRequest>, seen: [Vec<Option<Observed>>; ARMS]) {
        let [first, again, b] = seen;
        let triples = first.into_iter().zip(again).zip(b);
        let triples: Vec<Option<[Observed; ARMS]>> =
            triples.map(|((first, again), b)| Some([first?, again?, b?])).collect();
        // All the noise is known before the first difference counts.
        for (routed, seen) in requests.iter().zip(&triples) {
            if let Some((route, compared)) = seen.as_ref().and_then(|seen| self.compared(routed, seen)) {
                self.noise.learn(&route, &compared.noise);
            }
        }
        for (routed, seen) in requests.into_iter().zip(triples) {
            let Some(seen) = seen else {
                self.judged.late += 1;
                continue;
            };
            if let Some((route, compared)) = self.compared(&routed, &seen) {
                self.note(routed, route, &seen[Arm::First as usize], compared, Vec::new());
            }
        }
    }

    fn rules(&self, request: &SwapRequest) -> Option<Rules> {
        Some(Rules {
            ports: self.asker.ports(request.door)?,
            is_same_program: self.rules.is_same_program,
            is_nginx_and_weir: self.rules.is_nginx_and_weir,
            is_head: request.method == "HEAD",
            was_guarded: self.guarded.contains(&(request.host.clone(), request.target.clone())),
        })
    }

    fn compared(&self, routed: &RoutedRequest, seen: &[Observed; ARMS]) -> Option<(String, Compared)> {
        let rules = self.rules(&routed.request)?;
        let [first, again, b] = seen;
        let route = format!("{} {}", routed.route, first.answer.status());
        let compared = compare::compare([first, again, b], &rules, self.noise.route(&route));
        Some((route, compared))
    }

    fn note(
        &mut self,
        routed: RoutedRequest,
        route: String,
        first: &Observed,
        compared: Compared,
        passing: Vec<PartDifference>,
    ) {
        let index = self.judged.requests.len();
        if compare::is_guarded(&compared) && self.guarded.len() < GUARDED_MAX {
            self.guarded.insert((routed.request.host.clone(), routed.request.target.clone()));
        }
        let explained: BTreeSet<usize> = compared.explained.iter().copied().collect();
        for number in &explained {
            *self.judged.explained.entry(*number).or_default() += 1;
        }
        let noise = compared.noise.into_iter().map(|one| one.place).collect();
        self.judged.passing += passing.len() as u64;
        for one in passing {
            let key = (route.clone(), mask_key(&one.place));
            if self.passed.len() < FOUND_MAX || self.passed.contains_key(&key) {
                self.passed.entry(key).or_default().push((index, one));
            }
        }
        let differences = compared.differences.into_iter().filter_map(|one| self.number(&route, one, index)).collect();
        let cache = match &first.answer {
            SwapAnswer::Whole(answer) => answer.field("x-cache-status").or_else(|| answer.field("x-cache")),
            SwapAnswer::Failed(_) => None,
        };
        self.judged.requests.push(JudgedRequest {
            routed,
            route,
            status: first.answer.status(),
            cache: cache.map(|value| String::from_utf8_lossy(value).into_owned()),
            is_comparable: compared.is_comparable,
            differences,
            noise,
            explained,
            changing: Vec::new(),
        });
    }

    /// The number of a difference, which the request with this index shows. `None`: there are too many.
    fn number(&mut self, route: &str, difference: PartDifference, index: usize) -> Option<usize> {
        let key = (route.to_owned(), difference.clone());
        let next = self.found.len();
        let number = match self.numbers.get(&key) {
            Some(known) => *known,
            None if next < FOUND_MAX => {
                self.numbers.insert(key, next);
                let routes = vec![route.to_owned()];
                self.found.push(FoundDifference { difference, requests: 0, routes, first: index });
                next
            }
            None => return None,
        };
        if let Some(found) = self.found.get_mut(number) {
            found.requests += 1;
        }
        Some(number)
    }

    /// The results. Differences that later noise of their route explains are removed; those that did not last, but came
    /// again and again, are added.
    pub fn finish(mut self) -> Judgement {
        let passed = std::mem::take(&mut self.passed);
        for ((route, place), all) in passed {
            let is_noisy =
                all.iter().any(|(_, one)| one.ways.iter().any(|kind| self.noise.seen(&route, &place, *kind)));
            if (all.len() as u64) < PASSING_MIN || is_noisy {
                continue;
            }
            for (index, one) in all {
                let number = self.number(&route, one, index);
                if let Some(judged) = self.judged.requests.get_mut(index) {
                    judged.differences.extend(number);
                }
            }
        }
        let is_noise = |found: &FoundDifference| {
            let one = &found.difference;
            let place = mask_key(&one.place);
            let masks = |route: &String| {
                let own = self.noise.route(route);
                one.ways.iter().all(|kind| own.has(&place, *kind)) || (one.is_length() && own.has_noisy_body())
            };
            found.requests == 0 || (!one.ways.is_empty() && found.routes.iter().all(masks))
        };
        let gone: Vec<bool> = self.found.iter().map(is_noise).collect();
        let is_gone = |number: &usize| gone.get(*number).copied().unwrap_or(true);
        let mut judged = self.judged;
        let mut kept = HashMap::new();
        for (number, found) in self.found.into_iter().enumerate().filter(|(number, _)| !is_gone(number)) {
            kept.insert(number, judged.found.len());
            judged.found.push(found);
        }
        for request in &mut judged.requests {
            let own = std::mem::take(&mut request.differences);
            request.differences = own.into_iter().filter_map(|number| kept.get(&number).copied()).collect();
        }
        judged.noise = self.noise.parts();
        judged
    }
}

/// Routes whose requests are not answered in time: streams without an end, and polls that wait for news.
#[derive(Default)]
struct LateRoutes(HashMap<String, u64>);

impl LateRoutes {
    fn add(&mut self, routed: &RoutedRequest) {
        *self.0.entry(routed.route.clone()).or_default() += 1;
    }

    fn has(&self, routed: &RoutedRequest) -> bool {
        self.0.get(&routed.route).is_some_and(|count| *count >= LATE_MAX)
    }
}

/// Some requests of each route; one that is alone on its route comes twice.
fn sample(requests: &[RoutedRequest]) -> Vec<RoutedRequest> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut sample: Vec<RoutedRequest> = Vec::new();
    for routed in requests {
        let count = counts.entry(&routed.route).or_default();
        if *count < SIGHTINGS_MIN && sample.len() < SAMPLE_MAX {
            *count += 1;
            sample.push(routed.clone());
        }
    }
    let alone = |routed: &&RoutedRequest| counts.get(routed.route.as_str()) == Some(&1);
    let again: Vec<RoutedRequest> = sample.iter().filter(alone).cloned().collect();
    sample.extend(again);
    sample
}

/// The requests that ask whether the answer is still valid.
fn conditions(routed: &RoutedRequest, first: &Observed) -> Vec<RoutedRequest> {
    let SwapAnswer::Whole(answer) = &first.answer else { return Vec::new() };
    if !routed.request.wants_conditions || answer.status != 200 {
        return Vec::new();
    }
    let pairs = [("If-None-Match", answer.field("etag")), ("If-Modified-Since", answer.field("last-modified"))];
    let with = |(name, value): (&str, Option<&[u8]>)| {
        let mut routed = routed.clone();
        routed.request.wants_conditions = false;
        routed.request.set(name, value?);
        Some(routed)
    };
    pairs.into_iter().filter_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(route: &str) -> RoutedRequest {
        RoutedRequest { route: route.to_owned(), ..RoutedRequest::default() }
    }

    #[test]
    fn the_sample_has_each_route_twice() {
        let all = [routed("a"), routed("a"), routed("a"), routed("b")];
        let routes: Vec<String> = sample(&all).into_iter().map(|one| one.route).collect();
        assert_eq!(routes, ["a", "a", "b", "b"]);
    }
}
