//! The options of `record`.

use std::path::PathBuf;

/// Millionths in the whole.
pub const PPM: u32 = 1_000_000;

/// The smallest `max=`: a few blocks.
pub const FILE_BYTES_MIN: u64 = 256 << 10;

/// `max=` without one.
const FILE_BYTES: u64 = 256 << 20;

/// The largest body that is kept.
pub const BODY_BYTES_MAX: u64 = 64 << 10;

/// The options of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// The file.
    pub path: String,
    /// The largest size of the file.
    pub max_bytes: u64,
    /// The share of clients that are recorded, in millionths.
    pub share_ppm: u32,
    /// `client=` as written; `None` for the address.
    pub client: Option<String>,
    /// `bodies=on`.
    pub has_bodies: bool,
    /// The media types whose bodies are kept.
    pub kinds: Vec<MediaKind>,
    /// `websocket=on`.
    pub has_messages: bool,
    /// `hashes=on`: bodies are hashed, so weir must see the bytes of answers.
    pub has_hashes: bool,
    /// Recording begins with the configuration, and not with an order.
    pub starts_on: bool,
    /// Where the key is from.
    pub key: KeySource,
}

/// Where the key of the hashes is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// It is made when a recorder begins, and nobody else knows it.
    Memory,
    /// It is in a file.
    File(String),
}

impl KeySource {
    /// The file.
    pub fn file(&self) -> Option<&str> {
        match self {
            KeySource::Memory => None,
            KeySource::File(path) => Some(path),
        }
    }
}

/// Media types that `types=` names by one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// `application/json`, and types that end with `+json`.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `text/…`, but not XML.
    Text,
    /// `application/xml`, `text/xml`, and types that end with `+xml`.
    Xml,
}

impl MediaKind {
    /// All of them, by the words of `types=`.
    const ALL: [(&str, MediaKind); 4] =
        [("json", MediaKind::Json), ("form", MediaKind::Form), ("text", MediaKind::Text), ("xml", MediaKind::Xml)];

    /// The kinds of a list with commas; `None` for an unknown word.
    pub fn list(text: &str) -> Option<Vec<MediaKind>> {
        let kind = |word: &str| MediaKind::ALL.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        text.split(',').map(kind).collect()
    }

    /// The kind of a `Content-Type`; `None` for other types.
    pub fn of(content_type: &[u8]) -> Option<MediaKind> {
        let media =
            content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        match media.as_slice() {
            b"application/json" => Some(MediaKind::Json),
            b"application/x-www-form-urlencoded" => Some(MediaKind::Form),
            b"application/xml" | b"text/xml" => Some(MediaKind::Xml),
            other if other.ends_with(b"+json") => Some(MediaKind::Json),
            other if other.ends_with(b"+xml") => Some(MediaKind::Xml),
            other if other.starts_with(b"text/") => Some(MediaKind::Text),
            _ => None,
        }
    }
}

impl RecordOptions {
    /// The options of a file that no parameter follows.
    pub fn new(path: String) -> RecordOptions {
        RecordOptions {
            path,
            max_bytes: FILE_BYTES,
            share_ppm: PPM,
            client: None,
            has_bodies: false,
            kinds: MediaKind::ALL.iter().map(|(_, kind)| *kind).collect(),
            has_messages: false,
            has_hashes: false,
            starts_on: true,
            key: KeySource::Memory,
        }
    }

    /// The name of a parameter that `other` has another value for.
    pub fn differing(&self, other: &RecordOptions) -> Option<&'static str> {
        let pairs = [
            ("max", self.max_bytes == other.max_bytes),
            ("share", self.share_ppm == other.share_ppm),
            ("client", self.client == other.client),
            ("bodies", self.has_bodies == other.has_bodies),
            ("types", self.kinds == other.kinds),
            ("websocket", self.has_messages == other.has_messages),
            ("hashes", self.has_hashes == other.has_hashes),
            ("start", self.starts_on == other.starts_on),
            ("key", self.key == other.key),
        ];
        pairs.iter().find(|(_, is_same)| !is_same).map(|(name, _)| *name)
    }

    /// The file of the key.
    pub fn key_file(&self) -> Option<PathBuf> {
        self.key.file().map(PathBuf::from)
    }
}

/// A percentage with at most four digits after the point, in millionths: more than none, and not more than all.
pub fn share_of(text: &str) -> Option<u32> {
    let text = text.strip_suffix('%')?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 4 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let share: u32 = format!("{whole}{fraction:0<4}").parse().ok()?;
    (1..=PPM).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        for (text, share) in [
            ("100%", Some(1_000_000)),
            ("10%", Some(100_000)),
            ("0.5%", Some(5_000)),
            ("0.0001%", Some(1)),
            ("0%", None),
            ("0.00001%", None),
            ("100.1%", None),
            ("-1%", None),
            ("1.%", Some(10_000)),
            (".5%", None),
            ("10", None),
            ("99999999999%", None),
        ] {
            assert_eq!(share_of(text), share, "{text}");
        }
    }

    #[test]
    fn media_types_have_kinds() {
        for (text, kind) in [
            ("application/json", Some(MediaKind::Json)),
            ("Application/JSON; charset=utf-8", Some(MediaKind::Json)),
            ("application/problem+json", Some(MediaKind::Json)),
            ("application/x-www-form-urlencoded", Some(MediaKind::Form)),
            ("text/html;charset=x", Some(MediaKind::Text)),
            ("text/xml", Some(MediaKind::Xml)),
            ("image/svg+xml", Some(MediaKind::Xml)),
            ("image/png", None),
            ("", None),
        ] {
            assert_eq!(MediaKind::of(text.as_bytes()), kind, "{text}");
        }
    }
}
