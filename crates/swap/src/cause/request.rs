//! The smallest request that shows a difference, with the earlier requests that it needs.
//!
//! Pure but for the trial, which the caller makes: it starts both sides anew and asks the requests in their order.

use super::smallest::{DeltaSearch, Trial};
use crate::request::SwapRequest;

/// Most earlier requests of the client that are tried.
const OF_CLIENT_MAX: usize = 32;
/// Most earlier requests of other clients that are tried: half of them the first, half of them the last.
const OF_OTHERS_MAX: usize = 32;

/// Asks these requests of both sides, freshly started. The last request decides the outcome. `None`: the time is over.
pub type AskBoth<'t> = &'t mut dyn FnMut(&[SwapRequest]) -> Option<Trial>;

/// The smallest request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmallestRequest {
    /// The requests that come before it, in their order.
    pub before: Vec<SwapRequest>,
    /// The request itself.
    pub request: SwapRequest,
    /// Freshly started sides show the difference. False: it is none of a request, or its cause was not asked.
    pub is_repeated: bool,
    /// The number of trials.
    pub trials: usize,
    /// No part is too many. False if the trials or the time were not enough.
    pub is_minimal: bool,
}

/// The earlier requests that may matter, in their order: the last of the same client, because of cookies, and those of other
/// clients with the same host and path, because of caches. The first of these have filled a cache, the last have renewed it.
pub fn earlier(all: &[&SwapRequest], request: &SwapRequest) -> Vec<SwapRequest> {
    let path = |one: &SwapRequest| one.target.split(|byte| *byte == b'?').next().unwrap_or_default().to_vec();
    let own_path = path(request);
    let (mut of_client, mut of_others) = (Vec::new(), Vec::new());
    for (number, one) in all.iter().enumerate() {
        if one.client == request.client {
            of_client.push(number);
        } else if one.host == request.host && path(one) == own_path {
            of_others.push(number);
        }
    }
    of_client.drain(..of_client.len().saturating_sub(OF_CLIENT_MAX));
    let (first, last) = (OF_OTHERS_MAX / 2, of_others.len().saturating_sub(OF_OTHERS_MAX / 2));
    of_others.drain(first.min(last)..last);
    let mut numbers = [of_client, of_others].concat();
    numbers.sort_unstable();
    numbers.into_iter().filter_map(|number| all.get(number).map(|one| (*one).clone())).collect()
}

/// Leaves out whatever the difference does not need: earlier requests, parameters of the query, fields, and the pairs
/// of the cookie. `Host` stays. If the request alone does not show the difference, the same request is tried before it,
/// and then the earlier requests.
pub fn smallest(before: &[SwapRequest], request: &SwapRequest, trials_max: usize, ask: AskBoth) -> SmallestRequest {
    let mut found =
        SmallestRequest { request: request.clone(), is_minimal: true, trials: 1, ..SmallestRequest::default() };
    let mut alone = ask(std::slice::from_ref(request));
    if alone == Some(Trial::Unresolved) && trials_max > 1 {
        // Both sides have started before: something else was in the way.
        found.trials += 1;
        alone = ask(std::slice::from_ref(request));
    }
    let mut is_twice = false;
    if alone == Some(Trial::Shows) {
        found.is_repeated = true;
    } else if alone.is_some() && found.trials < trials_max {
        // A cache shows its difference with the second answer.
        found.trials += 1;
        is_twice = ask(&with(std::slice::from_ref(request), request)) == Some(Trial::Shows);
        found.is_repeated = is_twice;
    }
    if !found.is_repeated {
        if before.is_empty() || found.trials >= trials_max {
            return found;
        }
        found.trials += 1;
        found.is_repeated = ask(&with(before, request)) == Some(Trial::Shows);
        if !found.is_repeated {
            return found;
        }
        let kept = found.search(before.len(), trials_max, &mut |kept| ask(&with(&chosen(before, kept), request)));
        found.before = chosen(before, &kept);
    }
    let earlier = found.before.clone();
    // The same request has to stay the same.
    let all = |part: &SwapRequest| if is_twice { vec![part.clone(); 2] } else { with(&earlier, part) };
    for part in [RequestPart::Query, RequestPart::Fields, RequestPart::Cookie] {
        let whole = found.request.clone();
        let kept = found.search(part.count(&whole), trials_max, &mut |kept| ask(&all(&part.of(&whole, kept))));
        found.request = part.of(&whole, &kept);
    }
    if is_twice {
        found.before.push(found.request.clone());
    }
    found
}

impl SmallestRequest {
    /// The items that stay.
    fn search(
        &mut self,
        count: usize,
        trials_max: usize,
        test: &mut dyn FnMut(&[usize]) -> Option<Trial>,
    ) -> Vec<usize> {
        let mut search = DeltaSearch::new(count, trials_max.saturating_sub(self.trials));
        search.run(test);
        let result = search.result();
        self.trials += result.trials;
        self.is_minimal &= result.is_minimal;
        result.kept
    }
}

/// A part of a request that is a list.
#[derive(Clone, Copy)]
enum RequestPart {
    Query,
    Fields,
    /// The pairs of the first `Cookie`.
    Cookie,
}

impl RequestPart {
    fn count(self, request: &SwapRequest) -> usize {
        match self {
            RequestPart::Query => query(request).map_or(0, |query| query.split(|byte| *byte == b'&').count()),
            RequestPart::Fields => request.fields.len(),
            RequestPart::Cookie => cookie(request).map_or(0, |cookie| cookie.split(|byte| *byte == b';').count()),
        }
    }

    /// The request with only these items of the list.
    fn of(self, request: &SwapRequest, kept: &[usize]) -> SwapRequest {
        let mut part = request.clone();
        match self {
            RequestPart::Fields => part.fields = chosen(&request.fields, kept),
            RequestPart::Query => {
                if let Some(query) = query(request) {
                    let items: Vec<&[u8]> = query.split(|byte| *byte == b'&').collect();
                    let rest = chosen(&items, kept).join(&b'&');
                    let path = request.target.len() - query.len() - 1;
                    part.target.truncate(if kept.is_empty() { path } else { path + 1 });
                    part.target.extend(rest);
                }
            }
            RequestPart::Cookie => {
                let rest = cookie(request).map(|cookie| {
                    let items: Vec<&[u8]> = cookie.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).collect();
                    chosen(&items, kept).join(&b"; "[..])
                });
                if let Some(field) = part.fields.iter_mut().find(|(name, _)| is_cookie(name)) {
                    field.1 = rest.unwrap_or_default();
                }
            }
        }
        part
    }
}

fn query(request: &SwapRequest) -> Option<&[u8]> {
    let at = request.target.iter().position(|byte| *byte == b'?')?;
    request.target.get(at + 1..)
}

fn cookie(request: &SwapRequest) -> Option<&[u8]> {
    request.fields.iter().find(|(name, _)| is_cookie(name)).map(|(_, value)| value.as_slice())
}

fn is_cookie(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"cookie")
}

fn with(before: &[SwapRequest], request: &SwapRequest) -> Vec<SwapRequest> {
    before.iter().chain([request]).cloned().collect()
}

fn chosen<T: Clone>(items: &[T], kept: &[usize]) -> Vec<T> {
    kept.iter().filter_map(|item| items.get(*item).cloned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn request(target: &str, fields: &[(&str, &str)]) -> SwapRequest {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        SwapRequest { host: "h".to_owned(), target: target.into(), fields, ..SwapRequest::default() }
    }

    /// Shows the difference if the last request has these bytes in its target or fields, and one before has these.
    fn needs(
        last: &'static [&'static str],
        earlier: Option<&'static str>,
    ) -> impl FnMut(&[SwapRequest]) -> Option<Trial> {
        move |all| {
            let text = |one: &SwapRequest| {
                let fields = one.fields.iter().map(|(name, value)| [name.as_slice(), value].join(&b':'));
                String::from_utf8(fields.fold(one.target.clone(), |all, field| [all, field].join(&b'\n'))).unwrap()
            };
            let (request, before) = all.split_last()?;
            let is_there = earlier.is_none_or(|earlier| before.iter().any(|one| text(one).contains(earlier)));
            let has_all = last.iter().all(|needed| text(request).contains(needed));
            Some(if is_there && has_all { Trial::Shows } else { Trial::Silent })
        }
    }

    #[test]
    fn only_the_needed_parts_stay() {
        let whole = request("/p?a=1&b=2&c=3", &[("accept", "*"), ("cookie", "x=1; y=2;z=3"), ("range", "bytes=0-1")]);
        let found = smallest(&[], &whole, 100, &mut needs(&["b=2", "y=2"], None));
        assert_eq!(found.request, request("/p?b=2", &[("cookie", "y=2")]));
        assert!(found.is_repeated && found.is_minimal && found.before.is_empty());
        let found = smallest(&[], &whole, 100, &mut needs(&["range"], None));
        assert_eq!(found.request, request("/p", &[("range", "bytes=0-1")]));
        // A path without parameters is tried, and an empty query stays if it is needed.
        let found = smallest(&[], &request("/p?", &[]), 100, &mut needs(&["?"], None));
        assert_eq!(found.request.target, b"/p?");
    }

    #[test]
    fn needed_earlier_requests_stay() {
        let before: Vec<SwapRequest> = (0..20).map(|number| request(&format!("/{number};"), &[])).collect();
        let found = smallest(&before, &request("/p?a=1", &[]), 100, &mut needs(&["/p"], Some("/7;")));
        assert_eq!((found.before, found.request), (vec![request("/7;", &[])], request("/p", &[])));
        assert!(found.is_repeated && found.is_minimal);
    }

    #[test]
    fn a_difference_of_the_second_answer_needs_the_request_twice() {
        let whole = request("/p?a=1&b=2", &[("accept", "*"), ("range", "bytes=0-1")]);
        let mut needed = needs(&["b=2", "range"], Some("b=2"));
        let mut test = |all: &[SwapRequest]| match all {
            // The cache's key is the whole target.
            [first, last] if first.target != last.target => Some(Trial::Silent),
            all => needed(all),
        };
        let small = request("/p?b=2", &[("range", "bytes=0-1")]);
        for before in [vec![], vec![request("/p", &[])]] {
            let found = smallest(&before, &whole, 100, &mut test);
            assert_eq!((&found.before, &found.request), (&vec![small.clone()], &small));
            assert!(found.is_repeated && found.is_minimal);
        }
    }

    #[test]
    fn a_difference_that_does_not_repeat_is_said() {
        let whole = request("/p?a=1", &[("a", "b")]);
        let found = smallest(std::slice::from_ref(&whole), &whole, 100, &mut |_| Some(Trial::Silent));
        assert_eq!((found.is_repeated, found.trials, &found.request), (false, 3, &whole));
        assert!(!smallest(&[], &whole, 100, &mut |_| None).is_repeated);
    }

    #[test]
    fn earlier_requests_are_the_client_s_and_those_of_the_path() {
        let of = |client, target: &str| SwapRequest { client, ..request(target, &[]) };
        let targets = |all: &[SwapRequest], last: &SwapRequest| -> Vec<String> {
            let found = earlier(&all.iter().collect::<Vec<_>>(), last);
            found.into_iter().map(|one| String::from_utf8(one.target).unwrap()).collect()
        };
        let all = [of(1, "/a"), of(2, "/b?x"), of(2, "/c")];
        assert_eq!(targets(&all, &of(1, "/b?y")), ["/a", "/b?x"]);
        assert!(targets(&[], &of(1, "/b?y")).is_empty());
        // The last of the client, the first and the last of the others.
        let many: Vec<SwapRequest> = (0..200).map(|number| of(number % 2, &format!("/a?{number}"))).collect();
        let found = targets(&many, &of(1, "/a"));
        assert_eq!(found.len(), OF_CLIENT_MAX + OF_OTHERS_MAX);
        assert_eq!((found[0].as_str(), found[15].as_str(), found[16].as_str()), ("/a?0", "/a?30", "/a?137"));
    }

    proptest! {
        #[test]
        fn the_smallest_request_shows_the_difference(
            needed in prop::sample::subsequence(vec!["a=1", "b=2", "x=1", "y=2", "range", "accept"], 0..6),
            earlier in prop::option::of(0_usize..9),
            trials_max in 1_usize..200,
        ) {
            let before: Vec<SwapRequest> = (0..9).map(|number| request(&format!("/{number}"), &[])).collect();
            let whole = request("/p?a=1&b=2&c=3", &[("accept", "*"), ("cookie", "x=1; y=2"), ("range", "bytes=0-1")]);
            let needed: &'static [&'static str] = needed.leak();
            let earlier: Option<&'static str> = earlier.map(|number| &*format!("/{number}").leak());
            let mut trials = 0;
            let mut test = needs(needed, earlier);
            let found = smallest(&before, &whole, trials_max, &mut |all| {
                trials += 1;
                test(all)
            });
            prop_assert_eq!(found.trials, trials);
            prop_assert!(trials <= trials_max);
            if found.is_repeated {
                prop_assert_eq!(test(&with(&found.before, &found.request)), Some(Trial::Shows));
            }
            if found.is_repeated && found.is_minimal {
                prop_assert_eq!(found.before.len(), usize::from(earlier.is_some()));
                let fields = needed.iter().filter(|one| ["range", "accept"].contains(one)).count();
                let cookie = usize::from(needed.iter().any(|one| ["x=1", "y=2"].contains(one)));
                prop_assert_eq!(found.request.fields.len(), fields + cookie);
            }
        }
    }
}
