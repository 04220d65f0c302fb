//! Secrets that are not replaced, in a text of a recording.

use std::ops::Range;

use super::body::body;
use super::fields::named;
use super::query::url;
use super::sheet::{Findings, ValueForm};
use super::table::{RANDOM_FIELDS, SecretKind};
use super::view::View;
use crate::model::RecordedText;

/// Most secrets of one text: one is enough to keep a recording secret.
const LEAKS_MAX: usize = 100;
/// Shortest random text that may be a secret.
const RANDOM_BYTES_MIN: usize = 20;
/// Fewest digits and fewest letters of it.
const RANDOM_KINDS_MIN: usize = 3;

/// The form of a text.
#[derive(Clone, Copy)]
pub(crate) enum TextForm<'f> {
    /// The value of the field with this name.
    Field(&'f [u8]),
    /// A target.
    Target,
    /// A body with this content type.
    Body(&'f [u8]),
}

/// A secret that is not replaced: its place in the text, and its kind.
pub(crate) type Leak = (Range<usize>, SecretKind);

/// The secrets of a text outside of its hidden places.
pub(crate) fn leaks(form: TextForm<'_>, text: &RecordedText) -> Vec<Leak> {
    let mut unhidden = Unhidden { text, leaks: Vec::new() };
    let view = View::new(&text.bytes);
    match form {
        TextForm::Field(name) => {
            named(name, view, &mut unhidden);
            if !RANDOM_FIELDS.iter().any(|known| known.as_bytes() == name) {
                unhidden.random(0..text.bytes.len());
            }
        }
        TextForm::Target => {
            url(view, &mut unhidden);
            // The names of files have hashes of their content.
            let query = memchr::memchr(b'?', &text.bytes).unwrap_or(text.bytes.len());
            unhidden.random(query..text.bytes.len());
        }
        TextForm::Body(content_type) => body(content_type, view, &mut unhidden),
    }
    unhidden.leaks
}

struct Unhidden<'t> {
    text: &'t RecordedText,
    leaks: Vec<Leak>,
}

impl Findings for Unhidden<'_> {
    fn found(&mut self, view: View<'_>, range: Range<usize>, kind: SecretKind, _: ValueForm) {
        let place = view.place(range.start)..view.place(range.end);
        if self.leaks.len() < LEAKS_MAX && self.is_open(&place) {
            self.leaks.push((place, kind));
        }
    }

    fn is_found(&self, place: usize) -> bool {
        let hidden = &self.text.hidden;
        let first = hidden.partition_point(|(_, end)| *end as usize <= place);
        hidden.get(first).is_some_and(|(begin, _)| *begin as usize <= place)
    }
}

impl Unhidden<'_> {
    /// A letter or a digit of the place is not replaced.
    fn is_open(&self, place: &Range<usize>) -> bool {
        let hidden = &self.text.hidden;
        let first = hidden.partition_point(|(_, end)| *end as usize <= place.start);
        let mut at = place.start;
        for (begin, end) in &hidden[first..] {
            if at >= place.end || self.has_letters(at..(*begin as usize).min(place.end)) {
                break;
            }
            at = *end as usize;
        }
        self.has_letters(at..place.end)
    }

    fn has_letters(&self, range: Range<usize>) -> bool {
        let bytes = self.text.bytes.get(range).unwrap_or_default();
        bytes.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
    }

    /// Long words of letters and digits in no order.
    fn random(&mut self, range: Range<usize>) {
        let bytes = &self.text.bytes[range.clone()];
        let mut begin = 0;
        for end in 0..=bytes.len() {
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+');
            if bytes.get(end).is_some_and(is_word) {
                continue;
            }
            let place = range.start + begin..range.start + end;
            if self.leaks.len() < LEAKS_MAX && is_random(&bytes[begin..end]) && !self.is_known(&place) {
                self.leaks.push((place, SecretKind::Random));
            }
            begin = end + 1;
        }
    }

    /// A part of the place is replaced, or found already.
    fn is_known(&self, place: &Range<usize>) -> bool {
        let hidden = &self.text.hidden;
        let first = hidden.partition_point(|(_, end)| *end as usize <= place.start);
        if hidden.get(first).is_some_and(|(begin, _)| (*begin as usize) < place.end) {
            return true;
        }
        self.leaks.iter().any(|(known, _)| known.start < place.end && place.start < known.end)
    }
}

/// Digits and letters, or small and capital letters, that change often.
fn is_random(word: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| word.iter().filter(|byte| is(byte)).count();
    let digits = count(u8::is_ascii_digit);
    let letters = count(u8::is_ascii_alphabetic);
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let changes = word.windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count();
    word.len() >= RANDOM_BYTES_MIN
        && digits >= RANDOM_KINDS_MIN
        && letters >= RANDOM_KINDS_MIN
        && changes * 5 >= word.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Secrets;

    #[test]
    fn a_secret_is_found_only_where_it_is_not_replaced() {
        let secrets = Secrets::new([1; 16]);
        let value = b"a=5; b=alice@shop.example";
        let replaced = secrets.field(b"cookie", value);
        assert_eq!(leaks(TextForm::Field(b"cookie"), &replaced), []);
        let open = RecordedText::plain(*value);
        let kinds: Vec<_> = leaks(TextForm::Field(b"cookie"), &open);
        assert_eq!(kinds, [(2..3, SecretKind::Cookie), (7..25, SecretKind::Cookie)]);
        let half = RecordedText { bytes: value.to_vec(), hidden: vec![(2, 3), (7, 12)] };
        assert_eq!(leaks(TextForm::Field(b"cookie"), &half), [(7..25, SecretKind::Cookie)]);
        let signs = RecordedText { bytes: b"a=x-y".to_vec(), hidden: vec![(2, 3), (4, 5)] };
        assert_eq!(leaks(TextForm::Field(b"cookie"), &signs), [], "a sign is no secret");
    }

    #[test]
    fn long_random_words_may_be_secrets() {
        let random =
            |name: &str, value: &str| leaks(TextForm::Field(name.as_bytes()), &RecordedText::plain(value)).len();
        assert_eq!(random("x-thing", "a 4f9a1c07be22d98e4f9a1c07be22d98e"), 1);
        assert_eq!(random("x-thing", "aB3kd9XqPz1LmN0sTuVw"), 1);
        assert_eq!(random("x-request-id", "4f9a1c07be22d98e4f9a1c07be22d98e"), 0);
        assert_eq!(random("x-thing", "12345678901234567890 a-long-name-of-words getUserProfileByIdAndName"), 0);
        assert_eq!(random("x-thing", "123e4567-e89b-12d3-a456-426614174000"), 0, "a number of a thing");
        let target = |text: &str| leaks(TextForm::Target, &RecordedText::plain(text)).len();
        assert_eq!(target("/app.4f9a1c07be22d98e4f9a1c07be22d98e.js"), 0);
        assert_eq!(target("/?x=4f9a1c07be22d98e4f9a1c07be22d98e"), 1);
        let long = "4f9a1c07be22d98e4f9a1c07be22d98e ".repeat(10);
        assert_eq!(random("x-thing", &long), 10);
    }
}
