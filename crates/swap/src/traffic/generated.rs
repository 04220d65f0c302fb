//! Requests that are made of A's file: each location, and variants of a request that servers answer in different ways.

use super::Traffic;
use super::plan::Planner;
use crate::request::SwapRequest;

/// The end of a path that no file has.
const MISSING: &[u8] = b"weir-swap-no-such-name";

/// Requests for each location, with their variants, at most `most`.
pub fn requests(planner: &Planner<'_>, most: usize) -> Traffic {
    let mut traffic = Traffic::default();
    for (number, base) in planner.of_file(most).into_iter().enumerate() {
        for mut request in variants(base) {
            request.client = number as u64;
            request.at_us = traffic.requests.len() as u64;
            request.takes_cookies = true;
            if traffic.requests.len() < most {
                traffic.requests.push(request);
            }
        }
    }
    traffic
}

/// A request, and its variants.
fn variants(mut base: SwapRequest) -> Vec<SwapRequest> {
    base.set("User-Agent", super::urls::AGENT.as_bytes());
    base.set("Accept", b"*/*");
    let with = |name: &str, value: &[u8]| {
        let mut request = base.clone();
        request.set(name, value);
        request
    };
    let method = |method: &str| SwapRequest { method: method.to_owned(), ..base.clone() };
    let target = |target: Vec<u8>| SwapRequest { target, ..base.clone() };
    let folder = base.target.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let folder = base.target.get(..folder).unwrap_or_default();
    let mut all = vec![
        SwapRequest { wants_conditions: true, ..base.clone() },
        method("HEAD"),
        with("Range", b"bytes=0-9"),
        with("Range", b"bytes=-5"),
        with("Accept-Encoding", b"gzip"),
        with("Accept-Encoding", b"br"),
        target([base.target.as_slice(), b"?weir=swap"].concat()),
        target([folder, MISSING].concat()),
        SwapRequest { is_http10: true, ..base.clone() },
        method("OPTIONS"),
    ];
    if let Some(bare) = base.target.strip_suffix(b"/").filter(|bare| !bare.is_empty()) {
        all.push(target(bare.to_vec()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_asked_in_several_ways() {
        let base = SwapRequest { method: "GET".to_owned(), target: b"/a/".to_vec(), ..SwapRequest::default() };
        let all = variants(base);
        let has = |is: &dyn Fn(&SwapRequest) -> bool| all.iter().any(is);
        assert!(has(&|one| one.method == "HEAD") && has(&|one| one.is_http10) && has(&|one| one.wants_conditions));
        assert!(has(&|one| one.field("range").is_some()) && has(&|one| one.target == b"/a"));
        assert!(has(&|one| one.target.starts_with(b"/a/weir-swap-no")));
    }
}
