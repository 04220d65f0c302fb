//! Chooses scenarios for the sessions, and weights with which the shares of all routes are those of the log.
//!
//! Sessions with the same routes in the same order are one scenario. A log has thousands of orders that occur once, so
//! a script takes the frequent orders, and some sessions that stand for the others. Their weights are then raked: each
//! is raised or lowered until every route has its share, and every length its number of sessions (iterative
//! proportional fitting).

use foldhash::HashMap;

use super::routes::Routes;
use super::sessions::{LogSession, STEPS_MAX, Sessions};

/// Most scenarios, without those of a single request that raking adds.
const FLOWS_MAX: usize = 90;
/// Most scenarios with an order of their own, if there are more orders than [`FLOWS_MAX`].
const COMMON_MAX: usize = 40;
/// One of this many sessions has such an order, or more of them.
const COMMON_ONE_OF: usize = 500;
/// The lengths of sessions that count as one: each number is the last one of its class.
const LENGTHS: [usize; 28] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 27, 31, 36, 42, 49, STEPS_MAX];
/// Rounds of raking.
const ROUNDS_MAX: usize = 2000;
/// Error of a route's share with which the lengths of sessions are given up.
const UNFIT: f64 = 0.005;
/// Largest error of a route's share after which raking ends.
const ERROR_MAX: f64 = 1e-4;
/// The sum of the weights: each is a share in hundredths of a percent. Artillery makes a list with a hundred entries for
/// each unit.
pub(super) const WEIGHTS: u64 = 10_000;

/// A flow of the script.
#[derive(Clone, Debug)]
pub(super) struct LogFlow<'s> {
    pub(super) routes: Vec<u16>,
    pub(super) weight: u64,
    /// The sessions with this order.
    pub(super) sessions: Vec<&'s LogSession>,
    /// True if it stands for other sessions too: its values are those of all sessions.
    pub(super) is_sample: bool,
}

/// The scenarios, the most frequent first. Their weights add up to [`WEIGHTS`].
pub(super) fn scenarios<'s>(sessions: &'s Sessions, routes: &Routes) -> Vec<LogFlow<'s>> {
    let mut orders: HashMap<Vec<u16>, Vec<&LogSession>> = HashMap::default();
    for session in &sessions.all {
        let order = sessions.steps(session).iter().map(|step| step.route).collect();
        orders.entry(order).or_default().push(session);
    }
    let mut orders: Vec<Order<'_>> = orders.into_iter().collect();
    orders.sort_by(|a, b| (b.1.len(), &a.0).cmp(&(a.1.len(), &b.0)));
    let is_whole = orders.len() <= FLOWS_MAX;
    let is_common = |(_, own): &Order<'_>| own.len() * COMMON_ONE_OF >= sessions.all.len();
    let commons = orders.iter().take(COMMON_MAX).take_while(|order| is_common(order)).count();
    let rest = if is_whole { Vec::new() } else { orders.split_off(commons) };
    let common = |(routes, sessions): Order<'s>| LogFlow { routes, weight: 0, sessions, is_sample: false };
    let mut found: Vec<LogFlow<'s>> = orders.into_iter().map(common).collect();
    let mut weights: Vec<f64> = found.iter().map(|scenario| scenario.sessions.len() as f64).collect();
    for (order, weight) in samples(rest, FLOWS_MAX - commons) {
        weights.push(weight);
        found.push(LogFlow { is_sample: true, ..common(order) });
    }
    if !is_whole {
        alone(&mut found, &mut weights, routes);
        let lengths = Lengths::of(sessions);
        let error = rake(&found, &mut weights, routes, Some(&lengths));
        if error > UNFIT {
            // These flows cannot have both the shares and the lengths of the log. The shares matter more.
            rake(&found, &mut weights, routes, None);
        }
    }
    let whole = whole(&weights, WEIGHTS);
    for (scenario, weight) in found.iter_mut().zip(whole) {
        scenario.weight = weight;
    }
    found.sort_by_key(|scenario| std::cmp::Reverse(scenario.weight));
    found
}

/// An order of routes, and the sessions that have it.
type Order<'s> = (Vec<u16>, Vec<&'s LogSession>);

/// The orders of one class of lengths, and how many of them stand for all.
struct OrderClass<'s> {
    orders: Vec<Order<'s>>,
    samples: usize,
    /// The sessions for which each of them stands.
    weight: f64,
    /// The requests of each route in a session, on average.
    mean: HashMap<u16, f64>,
}

/// Chooses orders that stand for all of these, with their first weights: the lengths of sessions are those of the log,
/// and the routes together have nearly their shares.
fn samples(rest: Vec<Order<'_>>, most: usize) -> Vec<(Order<'_>, f64)> {
    let mut classes = classes(rest, most);
    let mut wanted: HashMap<u16, f64> = HashMap::default();
    for class in &classes {
        for (route, mean) in &class.mean {
            *wanted.entry(*route).or_default() += mean * class.weight * class.samples as f64;
        }
    }
    let mut turns: Vec<usize> =
        classes.iter().enumerate().flat_map(|(number, class)| std::iter::repeat_n(number, class.samples)).collect();
    // The heavy ones first: the light ones can make up for them.
    turns.sort_by(|a, b| {
        let weight = |number: &usize| classes.get(*number).map_or(0.0, |class| class.weight);
        weight(b).total_cmp(&weight(a))
    });
    // How much the chosen orders have of each route beyond what they should have.
    let mut beyond: HashMap<u16, f64> = HashMap::default();
    let mut chosen = Vec::new();
    for number in turns {
        let Some(class) = classes.get_mut(number) else { continue };
        for (route, mean) in &class.mean {
            *beyond.entry(*route).or_default() -= mean * class.weight;
        }
        let Some(order) = class.best(&beyond, &wanted) else { continue };
        for route in &order.0 {
            *beyond.entry(*route).or_default() += class.weight;
        }
        chosen.push((order, class.weight));
    }
    chosen
}

/// Divides orders by their lengths. Each class has one sample at least, the others are shared by the numbers of requests.
fn classes<'s>(rest: Vec<Order<'s>>, most: usize) -> Vec<OrderClass<'s>> {
    let requests = |(routes, sessions): &Order<'_>| routes.len() * sessions.len();
    let all = rest.iter().map(requests).sum::<usize>().max(1);
    let mut classes: Vec<Vec<Order<'s>>> = std::iter::repeat_with(Vec::new).take(LENGTHS.len()).collect();
    for order in rest {
        classes.get_mut(class(order.0.len())).into_iter().for_each(|class| class.push(order.clone()));
    }
    let of = |orders: Vec<Order<'s>>| {
        let own = most.saturating_sub(LENGTHS.len()) * orders.iter().map(requests).sum::<usize>() / all;
        let sessions: usize = orders.iter().map(|(_, sessions)| sessions.len()).sum();
        let samples = (1 + own).min(orders.len());
        let mut mean: HashMap<u16, f64> = HashMap::default();
        for (routes, own) in &orders {
            for route in routes {
                *mean.entry(*route).or_default() += own.len() as f64 / sessions as f64;
            }
        }
        OrderClass { orders, samples, weight: sessions as f64 / samples as f64, mean }
    };
    classes.into_iter().filter(|orders| !orders.is_empty()).map(of).collect()
}

impl<'s> OrderClass<'s> {
    /// Takes the order that makes up best for those before it (herding).
    fn best(&mut self, beyond: &HashMap<u16, f64>, wanted: &HashMap<u16, f64>) -> Option<Order<'s>> {
        let cost = |(routes, _): &Order<'_>| {
            let mut own: HashMap<u16, f64> = HashMap::default();
            routes.iter().for_each(|route| *own.entry(*route).or_default() += self.weight);
            // The change of the squared distance; a rare route counts as much as a frequent one.
            own.iter().fold(0.0, |cost, (route, own)| {
                let (beyond, wanted) = (beyond.get(route).unwrap_or(&0.0), wanted.get(route).unwrap_or(&1.0));
                cost + own * (2.0 * beyond + own) / wanted
            })
        };
        let costs = self.orders.iter().map(cost).enumerate();
        let (best, _) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(self.orders.swap_remove(best))
    }
}

/// The class of a length.
fn class(length: usize) -> usize {
    LENGTHS.partition_point(|last| *last < length).min(LENGTHS.len() - 1)
}

/// The number of sessions in each class of lengths.
struct Lengths([f64; LENGTHS.len()]);

impl Lengths {
    fn of(sessions: &Sessions) -> Lengths {
        let mut lengths = Lengths([0.0; LENGTHS.len()]);
        sessions.all.iter().for_each(|session| lengths.add(sessions.steps(session).len(), 1.0));
        lengths
    }

    fn add(&mut self, length: usize, weight: f64) {
        self.0.get_mut(class(length)).into_iter().for_each(|sum| *sum += weight);
    }

    fn get(&self, length: usize) -> f64 {
        self.0.get(class(length)).copied().unwrap_or(0.0)
    }

    /// Changes the weights so that each class has its number.
    fn scale(&self, found: &[LogFlow<'_>], weights: &mut [f64]) {
        let mut given = Lengths([0.0; LENGTHS.len()]);
        found.iter().zip(weights.iter()).for_each(|(flow, weight)| given.add(flow.routes.len(), *weight));
        for (flow, weight) in found.iter().zip(weights) {
            let (given, wanted) = (given.get(flow.routes.len()), self.get(flow.routes.len()));
            if given > 0.0 && wanted > 0.0 {
                *weight *= wanted / given;
            }
        }
    }
}

/// Adds a scenario of one request for each route, so that raking can give every route its share.
fn alone(found: &mut Vec<LogFlow<'_>>, weights: &mut Vec<f64>, routes: &Routes) {
    for (number, share) in routes.shares.iter().enumerate() {
        let routes = vec![number as u16];
        let is_known = found.iter().any(|scenario| scenario.routes == routes);
        if share.requests > 0 && !is_known {
            found.push(LogFlow { routes, weight: 0, sessions: Vec::new(), is_sample: true });
            // Little, so that raking raises it only if no longer flow has enough of the route.
            weights.push(1.0);
        }
    }
}

/// Changes the weights until each route has its number of requests, in sessions of these lengths. Returns the largest
/// error of a route's share that is left.
fn rake(found: &[LogFlow<'_>], weights: &mut [f64], routes: &Routes, lengths: Option<&Lengths>) -> f64 {
    let wanted: Vec<f64> = routes.shares.iter().map(|share| share.requests as f64).collect();
    let all: f64 = wanted.iter().sum();
    let mut error = 1.0;
    for _ in 0..ROUNDS_MAX {
        // Without this part the routes would have the right shares in too many or too few sessions.
        lengths.into_iter().for_each(|lengths| lengths.scale(found, weights));
        let mut given = vec![0.0; wanted.len()];
        for (scenario, weight) in found.iter().zip(weights.iter()) {
            for route in &scenario.routes {
                if let Some(given) = given.get_mut(usize::from(*route)) {
                    *given += weight;
                }
            }
        }
        let off = given.iter().zip(&wanted).map(|(given, wanted)| (given - wanted).abs());
        error = off.fold(0.0, f64::max) / all;
        if error <= ERROR_MAX {
            break;
        }
        for (scenario, weight) in found.iter().zip(weights.iter_mut()) {
            let logs = scenario.routes.iter().filter_map(|route| {
                let (given, wanted) = (given.get(usize::from(*route))?, wanted.get(usize::from(*route))?);
                (*given > 0.0 && *wanted > 0.0).then(|| (wanted / given).ln())
            });
            *weight *= (logs.sum::<f64>() / scenario.routes.len().max(1) as f64).exp();
        }
    }
    error
}

/// Whole weights with this sum: the largest remainders are rounded up. Each weight is at least 1.
fn whole(weights: &[f64], sum: u64) -> Vec<u64> {
    let all: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| weight / all.max(f64::MIN_POSITIVE) * sum as f64).collect();
    let mut whole: Vec<u64> = exact.iter().map(|weight| (weight.floor() as u64).max(1)).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|a, b| {
        let rest = |at: &usize| exact.get(*at).map_or(0.0, |weight| weight.fract());
        rest(b).total_cmp(&rest(a))
    });
    let missing = sum.saturating_sub(whole.iter().sum());
    for at in order.iter().cycle().take(if exact.is_empty() { 0 } else { missing as usize }) {
        if let Some(weight) = whole.get_mut(*at) {
            *weight += 1;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::super::detail::CallTraits;
    use super::super::routes::{Route, RouteShare};
    use super::*;

    #[test]
    fn weights_are_whole_and_add_up() {
        assert_eq!(whole(&[1.0, 1.0, 1.0], 100).iter().sum::<u64>(), 100);
        assert_eq!(whole(&[1e9, 1.0], 100), [99, 1]);
        assert_eq!(whole(&[], 100), Vec::<u64>::new());
    }

    #[test]
    fn raking_gives_each_route_its_share() {
        let share = |requests| RouteShare { requests, ..RouteShare::default() };
        let route = |_| Route { method: "GET".into(), pieces: Vec::new(), traits: CallTraits::default() };
        let routes = Routes {
            all: (0..4).map(route).collect(),
            shares: [700, 200, 90, 10].map(share).into(),
            ..Routes::default()
        };
        let scenario =
            |routes: &[u16]| LogFlow { routes: routes.to_vec(), weight: 0, sessions: Vec::new(), is_sample: true };
        let mut found = vec![scenario(&[0, 0, 1]), scenario(&[0, 2]), scenario(&[1, 2, 1])];
        let mut weights = vec![100.0, 100.0, 100.0];
        alone(&mut found, &mut weights, &routes);
        assert_eq!(found.len(), 7);
        let mut lengths = Lengths([0.0; LENGTHS.len()]);
        for (length, sessions) in [(1, 430.0), (2, 60.0), (3, 150.0)] {
            lengths.add(length, sessions);
        }
        rake(&found, &mut weights, &routes, Some(&lengths));
        let given = |route: u16| -> f64 {
            let of = |(scenario, weight): (&LogFlow<'_>, &f64)| {
                weight * scenario.routes.iter().filter(|own| **own == route).count() as f64
            };
            found.iter().zip(&weights).map(of).sum()
        };
        for (route, wanted) in [(0, 700.0), (1, 200.0), (2, 90.0), (3, 10.0)] {
            assert!((given(route) - wanted).abs() < 1.0, "{route}: {}", given(route));
        }
        for (length, wanted) in [(1, 430.0), (2, 60.0), (3, 150.0)] {
            let of = |(flow, weight): (&LogFlow<'_>, &f64)| if flow.routes.len() == length { *weight } else { 0.0 };
            let given: f64 = found.iter().zip(&weights).map(of).sum();
            assert!((given - wanted).abs() < 1.0, "{length}: {given}");
        }
    }
    #[test]
    fn a_thousand_orders_become_few_flows_with_the_same_shares_and_lengths() {
        let mut random = fastrand::Rng::with_seed(5);
        // Each session has an order of its own: of 12 routes, the first ones more often.
        let length = |random: &mut fastrand::Rng| 1 + (random.f64().powi(3) * 30.0) as usize;
        let mut route = || (random.f64() * random.f64() * 12.0) as u16;
        let mut lengths = fastrand::Rng::with_seed(6);
        let orders: Vec<Vec<u16>> = (0..2_000).map(|_| (0..length(&mut lengths)).map(|_| route()).collect()).collect();
        let sessions = Sessions::of_orders(&orders);
        let mut shares = vec![RouteShare::default(); 12];
        orders.iter().flatten().for_each(|route| shares[usize::from(*route)].requests += 1);
        let all: u64 = shares.iter().map(|share| share.requests).sum();
        let route = |_| Route { method: "GET".into(), pieces: Vec::new(), traits: CallTraits::default() };
        let routes = Routes { all: (0..12).map(route).collect(), shares, ..Routes::default() };
        let flows = scenarios(&sessions, &routes);
        assert!(flows.len() <= FLOWS_MAX + 12, "{}", flows.len());
        assert_eq!(flows.iter().map(|flow| flow.weight).sum::<u64>(), WEIGHTS);
        let requests = |flow: &LogFlow<'_>| flow.weight * flow.routes.len() as u64;
        let given: u64 = flows.iter().map(requests).sum();
        for (number, share) in (0..).zip(&routes.shares) {
            let of = |flow: &LogFlow<'_>| flow.weight * flow.routes.iter().filter(|own| **own == number).count() as u64;
            let own = flows.iter().map(of).sum::<u64>() as f64 / given as f64;
            assert!((own - share.requests as f64 / all as f64).abs() < 0.003, "{number}: {own}");
        }
        for length in 1..=30 {
            let wanted = orders.iter().filter(|order| order.len() <= length).count() as f64 / orders.len() as f64;
            let below: u64 = flows.iter().filter(|flow| flow.routes.len() <= length).map(|flow| flow.weight).sum();
            assert!((below as f64 / WEIGHTS as f64 - wanted).abs() < 0.015, "{length}: {below} {wanted}");
        }
    }
}
