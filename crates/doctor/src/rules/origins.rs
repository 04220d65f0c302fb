//! A check of Origin or Referer that other sites can pass.

use weir_http::text::regex::Regex;
use weir_http::text::slots::VariableId;

use crate::regex::ambiguity::{self, Ambiguity};
use crate::regex::sample;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "origins",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[Symptom::WebSocket],
    says: words(
        "A check of Origin or Referer accepts other sites, or rejects every site",
        "Origin/Referer 검사를 다른 사이트가 통과하거나, 어떤 사이트도 통과하지 못합니다",
    ),
    remedy: words(
        "Anchor the pattern at both ends, escape the dots, and allow no other characters directly before or after the domain: `^https://([a-z0-9-]+\\.)?example\\.com$` for an Origin, with `(/|$)` at its end for a Referer.",
        "패턴을 양끝에 고정하고 점을 이스케이프하고, 도메인 바로 앞뒤에 다른 글자를 허용하지 마세요. Origin은 `^https://([a-z0-9-]+\\.)?example\\.com$`, Referer는 끝을 `(/|$)`로 하세요.",
    ),
    source: "RFC 6454 §6; gixy origins",
    check,
    fires: Example::conf("if ($http_origin ~ ^https://example\\.com) { set $cors 1; }"),
    silent: Example::conf("if ($http_origin ~ ^https://example\\.com$) { set $cors 1; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for pattern in reach::patterns(case.view) {
        let is_origin = match pattern.subject.to_ascii_lowercase().as_str() {
            "$http_origin" => true,
            "$http_referer" => false,
            "$http_referrer" => {
                found.add(
                    Finding::at(
                        pattern.spot,
                        said!(
                            "no browser sends \"Referrer\"; the header is spelt Referer",
                            "\"Referrer\"를 보내는 브라우저는 없습니다. 헤더 철자는 Referer입니다"
                        ),
                    )
                    .write("$http_referer"),
                );
                continue;
            }
            _ => continue,
        };
        let Some(tree) = pattern.tree() else { continue };
        let Ok(regex) = Regex::new(pattern.text, pattern.caseless, true, |_| VariableId(0)) else { continue };
        // The rule tries thousands of texts. With such a pattern, each may take a second.
        if ambiguity::find(&tree) == Some(Ambiguity::Exponential) {
            continue;
        }
        let matches = |text: &str| regex.is_match(text.as_bytes()).unwrap_or(false);
        let what = if !tree.is_anchored_at_start() {
            Some(said!(
                "the pattern is not anchored: it matches if the text stands anywhere in the value",
                "패턴이 고정되지 않아 값의 어디에든 그 문자열이 있으면 일치합니다"
            ))
        } else {
            let homes: Vec<String> =
                sample::meant(&tree).iter().filter_map(|text| domain(text)).map(str::to_owned).collect();
            let tails: &[&str] = if tree.is_anchored_at_end() { &[""] } else { &["", ".evil.com", "evil.com"] };
            let samples = sample::texts(&tree);
            let stranger =
                samples.iter().flat_map(|text| tails.iter().map(move |tail| format!("{text}{tail}"))).find(|text| {
                    let foreign = domain(text).is_some_and(|domain| !homes.iter().any(|home| home == domain));
                    foreign && (!is_origin || is_an_origin(text)) && matches(text)
                });
            let nobody = || {
                is_origin
                    && samples.iter().any(|text| matches(text))
                    && !samples.iter().any(|text| is_an_origin(text) && matches(text))
            };
            match stranger {
                Some(text) => Some(said!("{text:?} passes", "통과하는 값: {text:?}")),
                None if nobody() => Some(said!(
                    "an Origin is scheme://host[:port] and has no path: no Origin can match this pattern",
                    "Origin은 scheme://host[:port]이고 경로가 없어 아무것도 일치할 수 없습니다"
                )),
                None => None,
            }
        };
        if let Some(what) = what {
            found.add(Finding::at(pattern.spot, what));
        }
    }
}

/// The registrable domain of a URL's host, approximated as its last two labels, because the list of public suffixes
/// is not used. `None` if it is not a URL.
fn domain(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return Some(url);
    }
    let end = rest.find(['/', '?', '#', ':']).unwrap_or(rest.len());
    let host = rest.get(..end)?.rsplit('@').next()?;
    let second = host.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    host.get(second..)
}

/// Whether a browser could send this as Origin.
fn is_an_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let scheme_fits =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (host, port) = rest.split_once(':').unwrap_or((rest, "1"));
    let host_fits = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    scheme_fits && host_fits && !host.starts_with('.') && port.bytes().all(|byte| byte.is_ascii_digit())
}
