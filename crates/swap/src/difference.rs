//! The words for what two answers have and have not in common.

use weir_words::{Said, said};

/// The value of an absent part.
pub const NONE: &str = "none";

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// Both have it, with different values.
    Value,
    /// B lacks it.
    Absent,
    /// Only B has it.
    Extra,
    /// Both have the same in another order.
    Order,
}

impl DifferenceKind {
    /// The word for JSON.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceKind::Value => "value",
            DifferenceKind::Absent => "absent",
            DifferenceKind::Extra => "extra",
            DifferenceKind::Order => "order",
        }
    }
}

/// A part in Korean: `status`, `body`, `field x-cache`.
pub fn part_in_korean(part: &str) -> String {
    match part {
        "status" => "상태 코드".to_owned(),
        "no answer" => "응답 없음".to_owned(),
        "order of fields" => "헤더 순서".to_owned(),
        "log" => "로그".to_owned(),
        "origin request" => "오리진이 받은 요청".to_owned(),
        part => {
            let of = |prefix: &str, ko: &str| part.strip_prefix(prefix).map(|rest| format!("{ko}{rest}"));
            let found = of("origin field ", "오리진이 받은 헤더 ").or_else(|| of("field ", "헤더 "));
            found.or_else(|| of("body", "본문")).unwrap_or_else(|| part.to_owned())
        }
    }
}

/// The value of a part, with its words in both languages.
pub fn value_said(value: &str) -> Said {
    let body = || value.split_once(" bytes, at ")?.1.split_once(": ");
    match body() {
        _ if value == NONE => said!("{NONE}", "없음"),
        Some((at, rest)) if at.bytes().all(|byte| byte.is_ascii_digit()) => {
            let count = value.split(' ').next().unwrap_or_default();
            said!("{count} bytes, at {at}: {rest}", "{count}바이트, {at}바이트부터: {rest}")
        }
        _ => Said::from(value.to_owned()),
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartDifference {
    /// `status`, `field NAME`, `order of fields`, `body`, `body $.a.b`, `no answer`, `log`, `origin request` or `origin
    /// field NAME`.
    pub part: String,
    /// The exact place in the part, which is unique in the answer: `field set-cookie sid`.
    pub place: String,
    /// Its kind.
    pub kind: DifferenceKind,
    /// The value of A, for a person.
    pub a: String,
    /// The value of B.
    pub b: String,
    /// The kinds of noise that would explain it all together.
    pub ways: Vec<NoiseKind>,
}

/// Parts with the length of the body.
const LENGTHS: &[&str] = &[
    "field content-length",
    "log $body_bytes_sent",
    "log $bytes_sent",
    "log $gzip_ratio",
    "log $sent_http_content_length",
    "log $upstream_http_content_length",
    "log $upstream_response_length",
];

impl PartDifference {
    /// Both have a length of the body, and another one: with a noisy body, it tells nothing that the body does not.
    pub fn is_length(&self) -> bool {
        self.kind == DifferenceKind::Value && LENGTHS.contains(&self.part.as_str())
    }
}

/// A part in which the two answers of A differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartNoise {
    /// The place, with `*` for each number of an element: `body $.list[*].at`.
    pub place: String,
    /// The way in which it differs.
    pub kind: NoiseKind,
}

impl PartNoise {
    /// It is in the body of the answer.
    pub fn is_of_body(&self) -> bool {
        self.place == "body" || self.place.starts_with("body ")
    }
}

/// The way in which a part is noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoiseKind {
    /// One of the answers lacks it.
    Presence,
    /// Nothing of the value can be compared.
    Whole,
    /// A piece of the value: the number of pieces, and the piece's index.
    Piece(usize, usize),
}

/// The result for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The differences.
    pub differences: Vec<PartDifference>,
    /// Differences that weir's documentation explains, by the index in [`crate::compare::EXPLAINED`].
    pub explained: Vec<usize>,
    /// The noise of this request.
    pub noise: Vec<PartNoise>,
    /// The two answers of A are of the same kind, so that B's can be compared with them.
    pub is_comparable: bool,
}

/// The port of an arm, and the one that it stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The arm's own port.
    pub own: u16,
    /// The port that clients know.
    pub of: u16,
    /// URLs do not need that port.
    pub is_default: bool,
}
