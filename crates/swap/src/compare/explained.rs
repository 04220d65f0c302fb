//! The differences between nginx and weir that are deliberate.

use weir_words::{Words, words};

use super::parts::PADDING;
use crate::difference::{Compared, NONE, PartDifference};

/// A deliberate difference.
pub struct Explained {
    /// Its name, for JSON.
    pub name: &'static str,
    /// The reason, for the page.
    pub reason: Words,
    is_it: fn(&PartDifference, Explaining) -> bool,
}

/// The other facts about the answers.
#[derive(Clone, Copy, Debug)]
pub struct Explaining {
    /// The method is HEAD.
    pub is_head: bool,
    /// nginx has answered from its cache, and weir has asked the origin, because this client or one before has a session.
    pub is_guarded: bool,
    /// nginx's page has comments for Chrome at its end.
    pub is_padded: bool,
    /// Both have answered 304.
    pub is_not_modified: bool,
    /// Only weir tells the age of its answer: it comes from weir's cache.
    pub is_aged: bool,
    /// weir has answered a range or a condition of the client for its cache, and nginx has answered the whole.
    pub is_of_cache: bool,
    /// Both bodies have a content coding.
    pub is_coded: bool,
    /// nginx's answer comes in chunks.
    pub is_chunked: bool,
    /// The status of both answers; 0 if they have none in common.
    pub status: u16,
    /// Both answers broke off.
    pub is_broken: bool,
    /// Neither answer has a byte of a body.
    pub is_empty: bool,
    /// The answer may come from an origin that speaks HTTP/2: no origin was asked in another protocol.
    pub is_of_http2: bool,
    /// The body, or that of an answer whose line is in nginx's log, is a page of the server itself, with the server's name.
    pub is_page: bool,
}

/// The name of the difference that weir's guard makes.
const GUARD: &str = "guard of a cache";

/// The deliberate differences.
pub const EXPLAINED: &[Explained] = &[
    Explained {
        name: "ranges and conditions of a cache",
        reason: words(
            "where weir's cache asks for whole answers, weir answers ranges and conditions itself: Accept-Ranges",
            "캐시가 전체 응답을 받는 곳에서는 weir가 범위와 조건부 요청에 직접 응답합니다: Accept-Ranges",
        ),
        is_it: |one, with| {
            let is_told = one.part == "field accept-ranges" && one.a == NONE && one.b == "bytes";
            let is_status = ["status", "log $status"].contains(&one.part.as_str());
            let is_field = one.part.starts_with("log $sent_http_");
            is_told || (with.is_of_cache && (is_status || is_field || counts_bytes(one)))
        },
    },
    Explained {
        name: GUARD,
        reason: words(
            "weir's cache shares no answer with a request that has credentials or the cookie of a session, unless the answer says public or s-maxage",
            "weir의 캐시는 인증 정보나 세션 쿠키가 있는 요청에는, 응답에 public이나 s-maxage가 없는 한 저장한 응답을 주지 않습니다",
        ),
        is_it: |one, with| {
            let is_of_origin = one.part == "origin request" || one.part.starts_with("log $upstream_");
            let is_told = [&one.a, &one.b].iter().all(|value| CACHE_WORDS.contains(&value.as_str()));
            with.is_guarded && (is_of_origin || is_told)
        },
    },
    Explained {
        name: "age",
        reason: words(
            "weir tells the age of an answer from its cache (RFC 9111 5.1)",
            "weir는 캐시에서 꺼낸 응답의 나이를 알립니다(RFC 9111 5.1)",
        ),
        is_it: |one, _| one.part == "field age" && one.a == NONE,
    },
    Explained {
        name: "place of Date",
        reason: words(
            "weir keeps the origin's Date of an answer from its cache, in its place (RFC 9111 4)",
            "weir는 캐시에서 꺼낸 응답에 오리진의 Date를 그 자리에 그대로 둡니다(RFC 9111 4)",
        ),
        is_it: |one, with| {
            with.is_aged && one.part == "order of fields" && without("date", &one.a) == without("date", &one.b)
        },
    },
    Explained {
        name: "allow",
        reason: words(
            "weir names the allowed methods in a 405: Allow (RFC 9110 15.5.6)",
            "weir는 405 응답에 허용하는 메서드를 Allow로 알립니다(RFC 9110 15.5.6)",
        ),
        is_it: |one, _| one.part == "field allow" && one.a == NONE,
    },
    Explained {
        name: "order of Vary",
        reason: words(
            "weir adds its own Vary after the origin's, once; the order has no meaning (RFC 9110 12.5.5)",
            "weir는 자신의 Vary를 오리진의 것 뒤에 한 번 붙입니다. 순서에는 의미가 없습니다(RFC 9110 12.5.5)",
        ),
        is_it: |one, _| one.part == "field vary" && sorted(&one.a) == sorted(&one.b),
    },
    Explained {
        name: "length of a page",
        reason: words(
            "HEAD tells the length of an error page, and the server's name is in the page",
            "HEAD는 오류 페이지의 길이를 알리는데, 페이지에 서버 이름이 있습니다",
        ),
        is_it: |one, with| with.is_head && one.part == "field content-length" && differs_by_name(one),
    },
    Explained {
        name: "comments for Chrome",
        reason: words(
            "nginx adds comments to its error pages for Chrome (msie_padding), so that they are longer and may be compressed; weir does not",
            "nginx는 Chrome에 보내는 오류 페이지에 주석을 덧붙여(msie_padding) 페이지가 길어지고 압축되기도 합니다. weir는 붙이지 않습니다",
        ),
        is_it: |one, with| with.is_padded && (is_of_coding(one) || has_length(one) || counts_bytes(one)),
    },
    Explained {
        name: "length of 304",
        reason: words(
            "a 304 of weir has no Content-Length; nginx passes that of the origin on",
            "weir의 304 응답에는 Content-Length가 없습니다. nginx는 오리진의 것을 그대로 전합니다",
        ),
        is_it: |one, with| {
            let parts = ["field content-length", "log $sent_http_content_length"];
            with.is_not_modified && parts.contains(&one.part.as_str()) && [NONE, "-", ""].contains(&one.b.as_str())
        },
    },
    Explained {
        name: "bytes with the server's name",
        reason: words(
            "the log counts the bytes of the server's name, in the head and in error pages",
            "로그의 바이트 수에는 헤더와 오류 페이지에 있는 서버 이름의 길이가 포함됩니다",
        ),
        is_it: |one, with| {
            let is_of_page = with.is_page && one.part == "log $body_bytes_sent";
            (is_of_page || one.part == "log $bytes_sent") && differs_by_name(one)
        },
    },
    Explained {
        name: "bytes of chunks",
        reason: words(
            "nginx's log also counts the bytes that frame the chunks of the body",
            "nginx의 로그는 본문의 청크를 나누는 바이트도 셉니다",
        ),
        is_it: |one, with| with.is_chunked && counts_bytes(one),
    },
    Explained {
        name: "cookie of a server that gave no answer",
        reason: words(
            "weir sets the cookie of sticky with an answer of the server; nginx also sets it with its own 502 and 504",
            "weir는 서버가 응답할 때만 sticky 쿠키를 설정합니다. nginx는 자체 502와 504 응답에도 설정합니다",
        ),
        is_it: |one, with| {
            let is_md5 = |value: &str| value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_cookie = one.part == "field set-cookie" && one.a.strip_prefix('=').is_some_and(is_md5);
            is_cookie && one.b == NONE && matches!(with.status, 502 | 504)
        },
    },
    Explained {
        name: "status in the log",
        reason: words(
            "weir logs the status that the client gets; nginx logs that of error_page, also if a range or a condition makes it 206 or 304",
            "weir는 클라이언트가 받는 상태 코드를 기록합니다. nginx는 범위나 조건 때문에 206이나 304가 되어도 error_page의 코드를 기록합니다",
        ),
        is_it: |one, with| {
            one.part == "log $status" && matches!(with.status, 206 | 304) && one.b == with.status.to_string()
        },
    },
    Explained {
        name: "bytes of a broken answer",
        reason: words(
            "the connection ended before the answer did: its bytes in the log depend on packets",
            "응답이 끝나기 전에 연결이 끊겼습니다. 로그의 바이트 수는 패킷에 따라 달라집니다",
        ),
        is_it: |one, with| with.is_broken && counts_bytes(one),
    },
    Explained {
        name: "length of a stored answer",
        reason: words(
            "weir knows the length of an answer that its cache has whole",
            "weir는 캐시에 온전히 있는 응답의 길이를 압니다",
        ),
        is_it: |one, with| with.is_aged && has_length(one),
    },
    Explained {
        name: "no body over HTTP/2",
        reason: words(
            "an origin that speaks HTTP/2 tells that there is no body: weir says length 0, nginx sends an empty list of chunks",
            "HTTP/2 오리진은 본문이 없음을 알립니다. weir는 길이 0을 알리고 nginx는 빈 청크를 보냅니다",
        ),
        is_it: |one, with| with.is_empty && with.is_of_http2 && has_length(one),
    },
    Explained {
        name: "compressed bytes",
        reason: words(
            "the same body has another length under another compressor",
            "같은 본문도 압축기가 다르면 길이가 다릅니다",
        ),
        is_it: |one, with| with.is_coded && (counts_bytes(one) || one.part == "log $gzip_ratio"),
    },
    Explained {
        name: "HTTP/1.1 to origins",
        reason: words(
            "weir speaks HTTP/1.1 to origins and keeps connections, as nginx does from 1.29.7 on",
            "weir는 오리진에 HTTP/1.1로 요청하고 연결을 유지합니다. nginx는 1.29.7부터 그렇습니다",
        ),
        is_it: |one, _| {
            let is_closed = one.part == "origin field connection" && one.a == "close" && one.b == NONE;
            // nginx puts Host first in HTTP/1.1, and where the file has it in HTTP/1.0.
            let is_moved = one.part == "origin order" && without("host", &one.a) == without("host", &one.b);
            is_closed || is_moved || one.part == "origin request" && one.a.replace(" HTTP/1.0", " HTTP/1.1") == one.b
        },
    },
];

/// The values of `$upstream_cache_status`.
const CACHE_WORDS: &[&str] = &["MISS", "BYPASS", "EXPIRED", "STALE", "UPDATING", "REVALIDATED", "HIT"];
/// The bytes that nginx adds to an error page for Chrome.
const PADDING_BYTES: u64 = 6 * PADDING.len() as u64;
/// The most letters that two names of servers differ by: `nginx/1.22.1 (Debian)` and `weir`.
const NAME_MAX: u64 = 40;

/// The different values, in the order of the alphabet.
fn sorted(values: &str) -> Vec<&str> {
    // A control character is shown as a dot between the values of several fields.
    let mut all: Vec<&str> = values.split([',', '\u{b7}']).map(str::trim).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// B tells the length, and A sends chunks.
fn has_length(one: &PartDifference) -> bool {
    (one.part == "field content-length" && one.a == NONE) || (one.part == "field transfer-encoding" && one.b == NONE)
}

/// Only A's answer is compressed.
fn is_of_coding(one: &PartDifference) -> bool {
    let names = ["content-encoding", "content_encoding", "vary"];
    let name = one.part.strip_prefix("field ").or_else(|| one.part.strip_prefix("log $sent_http_"));
    one.part == "log $gzip_ratio"
        || (name.is_some_and(|name| names.contains(&name)) && [NONE, "-", ""].contains(&one.b.as_str()))
}

/// A variable of the log with the length of the answer.
fn counts_bytes(one: &PartDifference) -> bool {
    ["log $body_bytes_sent", "log $bytes_sent"].contains(&one.part.as_str())
}

/// The order of the other fields.
fn without<'o>(field: &str, order: &'o str) -> Vec<&'o str> {
    order.split(", ").filter(|name| *name != field).collect()
}

fn differs_by_name(one: &PartDifference) -> bool {
    match (one.a.parse::<u64>(), one.b.parse::<u64>()) {
        // The page for Chrome: an answer to HEAD does not show whether it is one.
        (Ok(theirs), Ok(ours)) => {
            theirs.abs_diff(ours) <= NAME_MAX || theirs.saturating_sub(PADDING_BYTES).abs_diff(ours) <= NAME_MAX
        }
        _ => false,
    }
}

/// Sets deliberate differences apart.
#[must_use]
pub fn explain(mut compared: Compared, with: Explaining) -> Compared {
    let reason = |one: &PartDifference| EXPLAINED.iter().position(|explained| (explained.is_it)(one, with));
    compared.explained = compared.differences.iter().filter_map(reason).collect();
    compared.differences.retain(|one| reason(one).is_none());
    compared
}

/// True if weir's guard of the cache explains a difference.
pub fn is_guarded(compared: &Compared) -> bool {
    compared.explained.iter().any(|index| EXPLAINED.get(*index).is_some_and(|explained| explained.name == GUARD))
}
