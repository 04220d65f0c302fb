//! Groups targets that differ only in ids, names or values of the query: they are one route with parameters.

use foldhash::HashMap;

use super::detail::CallTraits;
use super::gather::{AccessLogs, LoggedCall, LoggedRequest, is_asset};

/// Most routes; all other targets of a method are one route, whose parameter is the whole target.
pub(super) const ROUTES_MAX: usize = 200;
/// Most segments of a path that are looked at; the rest counts as one segment.
const SEGMENTS_MAX: usize = 20;
/// Most parts of a query that have names of their own; a longer query is one parameter.
const QUERY_PARTS_MAX: usize = 20;
/// So many different names at one place of the path are values of a parameter.
const SIBLINGS_MIN: usize = 20;
/// Fewer names are values, too, if hardly any occurs again.
const RARE_SIBLINGS_MIN: usize = 6;
/// A name with this many times the mean of its siblings keeps a route of its own.
const POPULAR_TIMES: u64 = 5;
/// Shortest text of hexadecimal digits, or of letters and digits in one word, that counts as an id.
const HASH_CHARS_MIN: usize = 12;

/// A piece of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum RoutePiece {
    Text(String),
    /// A parameter, with a name that describes it.
    Value(String),
}

/// A method with a target that may have parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Route {
    pub(super) method: Box<str>,
    pub(super) pieces: Vec<RoutePiece>,
    pub(super) traits: CallTraits,
}

impl Route {
    /// `GET /users/:id`.
    pub(super) fn shown(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            RoutePiece::Text(text) => text.clone(),
            RoutePiece::Value(name) => format!(":{name}"),
        });
        format!("{} {}{}", self.method, pieces.collect::<String>(), self.traits.shown())
    }

    pub(super) fn is_asset(&self) -> bool {
        self.pieces
            .last()
            .is_some_and(|piece| matches!(piece, RoutePiece::Text(text) if is_asset(&format!("/x{text}"))))
    }
}

/// The route of a call, and the values of its parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct RoutedCall {
    pub(super) route: u16,
    pub(super) values: Vec<Box<str>>,
}

/// A route's share of the log.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteShare {
    pub(super) requests: u64,
    pub(super) statuses: Vec<(u16, u64)>,
    /// True if an answer was a redirect: a client follows it with a request of its own, which is in the log too.
    pub(super) redirects: bool,
}

#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The most frequent first.
    pub(super) all: Vec<Route>,
    pub(super) shares: Vec<RouteShare>,
    /// By the number of the call.
    pub(super) places: HashMap<u32, RoutedCall>,
    /// Requests of routes beyond [`ROUTES_MAX`].
    pub(super) gathered: u64,
}

impl Routes {
    pub(super) fn place(&self, call: u32) -> Option<&RoutedCall> {
        self.places.get(&call)
    }
}

/// A call, its number of requests, and its values.
type Known = (u32, u64, Vec<Box<str>>);

/// A target that finds its route.
struct Path<'l> {
    call: u32,
    method: &'l str,
    traits: CallTraits,
    segments: Vec<&'l str>,
    query: Option<&'l str>,
    requests: u64,
    /// The shape of each segment.
    shape: Vec<Shape<'l>>,
}

/// Text around a value, or text alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Shape<'l> {
    text: &'l str,
    /// The name of the value, the value, and the text after it.
    value: Option<(&'static str, &'l str, &'l str)>,
}

impl<'l> Shape<'l> {
    fn of_text(text: &'l str) -> Shape<'l> {
        Shape { text, value: None }
    }

    /// The same for all values.
    fn key(&self) -> (&'l str, Option<&'l str>) {
        (self.text, self.value.map(|(_, _, end)| end))
    }
}

/// Finds the routes of the requests.
pub(super) fn find(log: &AccessLogs, requests: &[LoggedRequest]) -> Routes {
    let mut totals: HashMap<u32, u64> = HashMap::default();
    for request in requests {
        *totals.entry(request.call).or_default() += 1;
    }
    let mut totals: Vec<(u32, u64)> = totals.into_iter().collect();
    totals.sort_unstable();
    let path = |(call, requests): &(u32, u64)| {
        let one = log.calls.get(*call as usize)?;
        Some(path(*call, one, *requests))
    };
    let mut paths: Vec<Path<'_>> = totals.iter().filter_map(path).collect();
    let mut indices: Vec<usize> = (0..paths.len()).collect();
    shape(&mut paths, &mut indices, 0);
    let mut known: HashMap<Route, Vec<Known>> = HashMap::default();
    for path in &paths {
        let (route, values) = route(path);
        known.entry(route).or_default().push((path.call, path.requests, values));
    }
    let mut known: Vec<_> = known.into_iter().collect();
    let sum = |calls: &[Known]| calls.iter().map(|(_, requests, _)| requests).sum::<u64>();
    known.sort_by_cached_key(|(route, calls)| (std::cmp::Reverse(sum(calls)), route.shown()));
    let mut routes = Routes::default();
    for (route, calls) in known {
        if routes.all.len() < ROUTES_MAX {
            for (call, _, values) in calls {
                routes.places.insert(call, RoutedCall { route: routes.all.len() as u16, values });
            }
            routes.all.push(route);
        } else {
            routes.gather(log, &route, &calls);
        }
    }
    routes.count(requests);
    routes
}

/// The routes of requests, in their order: each method with its target, in which ids, names and the values of the query
/// are parameters: `GET /users/:id`.
pub fn routes_of<'r>(requests: impl Iterator<Item = (&'r str, &'r str)>) -> Vec<String> {
    let call = |(method, target): (&str, &str)| LoggedCall {
        method: method.into(),
        host: 0,
        target: target.into(),
        traits: CallTraits::default(),
    };
    let log = AccessLogs { calls: requests.map(call).collect(), ..AccessLogs::default() };
    let numbers = 0..log.calls.len() as u32;
    let one = |call| LoggedRequest { at_ms: 0, took_ms: 0, client: 0, call, detail: 0, status: 0 };
    let requests: Vec<LoggedRequest> = numbers.clone().map(one).collect();
    let routes = find(&log, &requests);
    let shown = |call| routes.place(call).and_then(|place| routes.all.get(usize::from(place.route))).map(Route::shown);
    numbers.map(|call| shown(call).unwrap_or_default()).collect()
}

impl Routes {
    /// The calls of a rare route become values of one route for all rare targets of the method.
    fn gather(&mut self, log: &AccessLogs, route: &Route, calls: &[Known]) {
        let rest = Route {
            method: route.method.clone(),
            traits: route.traits,
            pieces: vec![RoutePiece::Text("/".to_owned()), RoutePiece::Value("path".to_owned())],
        };
        let number = self.all.iter().position(|route| *route == rest).unwrap_or_else(|| {
            self.all.push(rest);
            self.all.len() - 1
        });
        for (call, requests, _) in calls {
            let target = log.calls.get(*call as usize).map_or("/", |call| &call.target);
            let values = vec![target.strip_prefix('/').unwrap_or(target).into()];
            self.gathered += requests;
            self.places.insert(*call, RoutedCall { route: number as u16, values });
        }
    }

    fn count(&mut self, requests: &[LoggedRequest]) {
        self.shares = vec![RouteShare::default(); self.all.len()];
        for request in requests {
            let Some(place) = self.places.get(&request.call) else { continue };
            let Some(share) = self.shares.get_mut(usize::from(place.route)) else { continue };
            share.requests += 1;
            share.redirects |= (300..400).contains(&request.status) && request.status != 304;
            match share.statuses.iter_mut().find(|(status, _)| *status == request.status) {
                Some((_, count)) => *count += 1,
                None => share.statuses.push((request.status, 1)),
            }
        }
        for share in &mut self.shares {
            share.statuses.sort_by_key(|(status, count)| (std::cmp::Reverse(*count), *status));
        }
    }
}

fn path(call: u32, one: &LoggedCall, requests: u64) -> Path<'_> {
    let (path, query) = match one.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*one.target, None),
    };
    let segments = path.strip_prefix('/').unwrap_or(path).splitn(SEGMENTS_MAX, '/').collect();
    Path { call, method: &one.method, traits: one.traits, segments, query, requests, shape: Vec::new() }
}

/// Gives the segments at this depth their shapes, then the segments below, separately for each shape.
fn shape(paths: &mut [Path<'_>], of: &mut [usize], depth: usize) {
    fn segment<'l>(paths: &[Path<'l>], at: usize, depth: usize) -> Option<&'l str> {
        paths.get(at)?.segments.get(depth).copied()
    }
    // Names with the same end are siblings, so that images do not mix with pages.
    let mut siblings: HashMap<&str, HashMap<&str, u64>> = HashMap::default();
    for at in of.iter() {
        if let Some(text) = segment(paths, *at, depth).filter(|text| id(text).is_none() && !text.is_empty()) {
            let requests = paths.get(*at).map_or(0, |path| path.requests);
            *siblings.entry(end_of(text)).or_default().entry(text).or_default() += requests;
        }
    }
    let fixed = |text: &str| text.is_empty() || siblings.get(end_of(text)).is_none_or(|names| is_fixed(names, text));
    let shapes: Vec<(usize, Shape<'_>)> = of
        .iter()
        .filter_map(|at| {
            let text = segment(paths, *at, depth)?;
            let shape = match id(text) {
                Some(shape) => shape,
                None if fixed(text) => Shape::of_text(text),
                None => {
                    let end = end_of(text);
                    let name = if end.is_empty() { "slug" } else { "file" };
                    Shape { text: "", value: Some((name, text.strip_suffix(end).unwrap_or(text), end)) }
                }
            };
            Some((*at, shape))
        })
        .collect();
    let mut groups: HashMap<(&str, Option<&str>), Vec<usize>> = HashMap::default();
    for (at, shape) in shapes {
        groups.entry(shape.key()).or_default().push(at);
        if let Some(path) = paths.get_mut(at) {
            path.shape.push(shape);
        }
    }
    for group in groups.values_mut() {
        shape_below(paths, group, depth + 1);
    }
}

fn shape_below(paths: &mut [Path<'_>], group: &mut [usize], depth: usize) {
    if depth < SEGMENTS_MAX {
        shape(paths, group, depth);
    }
}

/// True if this name among its siblings is a part of the application, and not a value.
fn is_fixed(names: &HashMap<&str, u64>, text: &str) -> bool {
    let (different, total) = (names.len() as u64, names.values().sum::<u64>());
    let is_rare = names.len() >= RARE_SIBLINGS_MIN && total * 2 <= different * 3;
    if names.len() < SIBLINGS_MIN && !is_rare {
        return true;
    }
    names.get(text).is_some_and(|own| *own * different > total * POPULAR_TIMES && *own > POPULAR_TIMES)
}

/// The end of a file's name with its dot, or nothing.
fn end_of(text: &str) -> &str {
    let end = text.rfind('.').filter(|at| *at > 0).and_then(|at| text.get(at..)).unwrap_or_default();
    let is_end = (2..=6).contains(&end.len()) && end.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric());
    if is_end && end.bytes().any(|byte| byte.is_ascii_alphabetic()) { end } else { "" }
}

/// The shape of a number, a UUID, a hash or a token, perhaps with the end of a file's name.
fn id(text: &str) -> Option<Shape<'_>> {
    let end = end_of(text);
    let stem = text.strip_suffix(end).unwrap_or(text);
    is_id(stem).then_some(Shape { text: "", value: Some(("id", stem, end)) })
}

fn is_id(stem: &str) -> bool {
    let all = |is: fn(&u8) -> bool| !stem.is_empty() && stem.bytes().all(|byte| is(&byte));
    let has_digit = stem.bytes().any(|byte| byte.is_ascii_digit());
    let is_number = has_digit && all(|byte| byte.is_ascii_digit() || b"-.".contains(byte));
    let is_hash = stem.len() >= HASH_CHARS_MIN && has_digit && all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let digits = stem.bytes().filter(u8::is_ascii_digit).count();
    // A word with one number in it is a name; a token mixes both.
    let is_token =
        stem.len() >= HASH_CHARS_MIN + 4 && digits >= 3 && all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    is_number || is_hash || is_token
}

/// The route of a path whose segments have shapes, with its values.
fn route(path: &Path<'_>) -> (Route, Vec<Box<str>>) {
    let mut pieces = Pieces::default();
    for shape in &path.shape {
        pieces.text("/");
        pieces.text(shape.text);
        if let Some((name, value, end)) = shape.value {
            pieces.value(name, value);
            pieces.text(end);
        }
    }
    if let Some(query) = path.query {
        pieces.text("?");
        pieces.query(query);
    }
    (Route { method: path.method.into(), pieces: pieces.pieces, traits: path.traits }, pieces.values)
}

#[derive(Default)]
struct Pieces {
    pieces: Vec<RoutePiece>,
    values: Vec<Box<str>>,
}

impl Pieces {
    fn text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(RoutePiece::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(RoutePiece::Text(text.to_owned())),
        }
    }

    fn value(&mut self, name: &str, value: &str) {
        self.pieces.push(RoutePiece::Value(name.to_owned()));
        self.values.push(value.into());
    }

    fn query(&mut self, query: &str) {
        if query.split('&').count() > QUERY_PARTS_MAX {
            return self.value("query", query);
        }
        for (number, part) in query.split('&').enumerate() {
            if number > 0 {
                self.text("&");
            }
            match part.split_once('=') {
                Some((name, value)) => {
                    self.text(name);
                    self.text("=");
                    self.value(&plain(name), value);
                }
                None if is_id(part) => self.value("query", part),
                None => self.text(part),
            }
        }
    }
}

/// A name that a template can have.
pub(super) fn plain(name: &str) -> String {
    let text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(20).collect();
    match text.bytes().next() {
        Some(first) if first.is_ascii_alphabetic() => text,
        _ => format!("q{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routes of these targets; equal targets are one call.
    fn routes(targets: &[String]) -> Vec<String> {
        let mut different: Vec<&String> = targets.iter().collect();
        different.sort();
        different.dedup();
        let calls = different.iter().map(|target| LoggedCall {
            method: "GET".into(),
            host: 0,
            target: target.as_str().into(),
            traits: CallTraits::default(),
        });
        let log = AccessLogs { calls: calls.collect(), ..AccessLogs::default() };
        let call = |target: &String| different.binary_search(&target).map_or(0, |call| call as u32);
        let request =
            |target| LoggedRequest { at_ms: 0, took_ms: 0, client: 0, call: call(target), detail: 0, status: 200 };
        let requests: Vec<LoggedRequest> = targets.iter().map(request).collect();
        let mut shown: Vec<String> = find(&log, &requests).all.iter().map(Route::shown).collect();
        shown.sort();
        shown
    }

    #[test]
    fn each_request_has_its_route() {
        let targets = ["/a/1", "/b?x=1", "/a/2"];
        let routes = routes_of(targets.iter().map(|target| ("HEAD", *target)));
        assert_eq!(routes, ["HEAD /a/:id", "HEAD /b?x=:x", "HEAD /a/:id"]);
    }

    #[test]
    fn ids_slugs_and_queries_become_parameters() {
        let mut targets: Vec<String> = (0..40).map(|n| format!("/users/{n}/orders")).collect();
        targets.extend((0..40).map(|n| format!("/blog/a-title-{}", "x".repeat(n + 1))));
        targets.extend((0..25).map(|n| format!("/static/img{}.png", "i".repeat(n))));
        targets.extend((0..200).map(|_| "/blog/".to_owned()));
        for target in [
            "/o/3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "/c/d41d8cd98f00b204e9800998ecf8427e.js",
            "/api/v1/list?page=2&sort=up",
            "/api/v1/list?page=3&sort=",
            "/api/v1/list?1700000000",
            "/v2/about",
        ] {
            targets.push(target.to_owned());
        }
        assert_eq!(
            routes(&targets),
            [
                "GET /api/v1/list?:query",
                "GET /api/v1/list?page=:page&sort=:sort",
                "GET /blog/",
                "GET /blog/:slug",
                "GET /c/:id.js",
                "GET /o/:id",
                "GET /static/:file.png",
                "GET /users/:id/orders",
                "GET /v2/about",
            ]
        );
    }

    #[test]
    fn a_popular_sibling_keeps_its_route_and_too_many_routes_are_gathered() {
        let mut targets: Vec<String> = (0..30).map(|n| format!("/p/n{}x", "a".repeat(n))).collect();
        targets.extend((0..100).map(|_| "/p/search".to_owned()));
        assert_eq!(routes(&targets), ["GET /p/:slug", "GET /p/search"]);
        // Each name is asked for twice, and each place has few names: all are routes of their own.
        let words = ["a", "b", "c", "d", "e", "f", "g"];
        let mut many = Vec::new();
        for number in 0..words.len().pow(3) {
            let word = |divisor: usize| words[number / divisor % words.len()];
            let target = format!("/{}/{}/{}", word(49), word(7), word(1));
            many.extend([target.clone(), target]);
        }
        let found = routes(&many);
        assert_eq!(found.len(), ROUTES_MAX + 1);
        assert!(found.contains(&"GET /:path".to_owned()), "{found:?}");
    }
}
