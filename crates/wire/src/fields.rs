//! The fields of a message being written: one buffer for all texts, order and case kept.
//!
//! The fields of a parsed head enter the buffer together, and leave it together: lines that follow each other and are as the
//! sender wrote them are one copy.

use crate::encode::FieldWriter;
use crate::{Field, Known, KnownSet, Span, word};

/// A list of fields. Clearing keeps the memory.
#[derive(Default)]
pub struct Fields {
    text: Vec<u8>,
    items: Vec<Item>,
    /// The known names that were added. A field of one of them may have been removed since.
    added: KnownSet,
    /// Up to this position, no byte of the text ends the line of a field too early.
    judged: usize,
}

#[derive(Clone, Copy)]
struct Item {
    name: Span,
    value: Span,
    known: Option<Known>,
    live: bool,
}

/// The place of a parsed head in the text of [`Fields`].
#[derive(Clone, Copy)]
pub struct Adopted(u32);

/// A field as read back.
#[derive(Clone, Copy)]
pub struct FieldRef<'f> {
    /// The name as it will be sent.
    pub name: &'f [u8],
    /// The value without surrounding white space.
    pub value: &'f [u8],
    /// Its place among the names weir knows.
    pub known: Option<Known>,
}

impl Fields {
    /// Removes every field.
    #[inline]
    pub fn clear(&mut self) {
        self.text.clear();
        self.items.clear();
        self.added = KnownSet::default();
        self.judged = 0;
    }

    /// Whether no field was added since the last `clear`.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Appends a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_known(name, value, Known::of(name));
    }

    /// Appends a field; the caller passes its place among the known names.
    pub fn push_known(&mut self, name: &[u8], value: &[u8], known: Option<Known>) {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let middle = self.text.len() as u32;
        self.text.extend_from_slice(value);
        self.keep(start, middle, known);
    }

    /// Copies a head that [`Parser`](crate::Parser) has read, whose values have no byte that ends a line. It adds no field: see
    /// [`push_adopted`](Fields::push_adopted).
    pub fn adopt(&mut self, head: &[u8]) -> Adopted {
        self.make_safe();
        let start = self.text.len();
        self.text.extend_from_slice(head);
        self.judged = self.text.len();
        Adopted(start as u32)
    }

    /// Appends a field of an adopted head.
    pub fn push_adopted(&mut self, Adopted(start): Adopted, field: &Field) {
        let moved = |span: Span| Span { start: start + span.start, end: start + span.end };
        self.note(Item { name: moved(field.name), value: moved(field.value), known: field.known, live: true });
    }

    /// Adds the field whose value ends with the text.
    fn keep(&mut self, start: u32, middle: u32, known: Option<Known>) {
        let end = self.text.len() as u32;
        self.note(Item { name: Span { start, end: middle }, value: Span { start: middle, end }, known, live: true });
    }

    #[inline]
    fn note(&mut self, item: Item) {
        if let Some(known) = item.known {
            self.added.insert(known);
        }
        self.items.push(item);
    }

    /// Replaces the bytes that would end a line, whichever directive added them: see [`make_safe`].
    #[inline]
    pub fn make_safe(&mut self) {
        if let Some(text) = self.text.get_mut(self.judged..) {
            make_safe(text);
        }
        self.judged = self.text.len();
    }

    /// Appends a field whose value `write` produces.
    pub fn push_with(&mut self, name: &[u8], known: Option<Known>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let middle = self.text.len() as u32;
        write(&mut self.text);
        self.keep(start, middle, known);
    }

    /// The first field of a known name.
    pub fn get(&self, known: Known) -> Option<&[u8]> {
        self.first(known).and_then(|place| self.items.get(place)).map(|item| item.value.of(&self.text))
    }

    /// The place of the first field of a known name.
    #[inline]
    pub fn first(&self, known: Known) -> Option<usize> {
        if !self.added.contains(known) {
            return None;
        }
        self.items.iter().position(|item| item.live && item.known == Some(known))
    }

    /// Whether the list has a field of that known name.
    #[inline]
    pub fn has(&self, known: Known) -> bool {
        self.first(known).is_some()
    }

    /// Removes every field of a known name.
    pub fn remove(&mut self, known: Known) {
        if !self.added.contains(known) {
            return;
        }
        for item in &mut self.items {
            if item.known == Some(known) {
                item.live = false;
            }
        }
    }

    /// Removes every field of a name, case ignored.
    pub fn remove_name(&mut self, name: &[u8]) {
        for index in 0..self.items.len() {
            let same = self.items.get(index).is_some_and(|item| item.name.of(&self.text).eq_ignore_ascii_case(name));
            if let (true, Some(item)) = (same, self.items.get_mut(index)) {
                item.live = false;
            }
        }
    }

    /// Removes every field whose name `is_one` finds.
    pub fn remove_where(&mut self, is_one: impl Fn(&[u8]) -> bool) {
        for index in 0..self.items.len() {
            let found = self.items.get(index).is_some_and(|item| item.live && is_one(item.name.of(&self.text)));
            if let (true, Some(item)) = (found, self.items.get_mut(index)) {
                item.live = false;
            }
        }
    }

    /// Replaces all fields of that known name by one field.
    pub fn replace(&mut self, name: &[u8], value: &[u8], known: Known) {
        self.remove(known);
        self.push_known(name, value, Some(known));
    }

    /// Gives the first field of that known name another value, at its place, and removes the others. Without one, the
    /// field is appended.
    pub fn set_known(&mut self, name: &[u8], value: &[u8], known: Known) {
        let Some(place) = self.first(known) else { return self.push_known(name, value, Some(known)) };
        self.set(place, value);
        for item in self.items.iter_mut().skip(place + 1).filter(|item| item.known == Some(known)) {
            item.live = false;
        }
    }

    /// How many places the list has: the next field gets the place of this number.
    pub fn places(&self) -> usize {
        self.items.len()
    }

    /// The field at a place; `None` if it was removed.
    pub fn at(&self, place: usize) -> Option<FieldRef<'_>> {
        self.items.get(place).filter(|item| item.live).map(|item| self.read(item))
    }

    /// Gives the field at a place another value.
    pub fn set(&mut self, place: usize, value: &[u8]) {
        let start = self.text.len() as u32;
        if let Some(item) = self.items.get_mut(place) {
            self.text.extend_from_slice(value);
            item.value = Span { start, end: self.text.len() as u32 };
        }
    }

    /// The fields in order.
    pub fn iter(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.items.iter().filter(|item| item.live).map(|item| self.read(item))
    }

    /// Appends the lines of all fields but the one at the place `left_out`.
    #[inline]
    pub fn write(&self, left_out: Option<usize>, out: &mut Vec<u8>) {
        let mut lines = FieldWriter::of(&self.text);
        for (place, item) in self.items.iter().enumerate() {
            if item.live && left_out != Some(place) {
                lines.push(item.name, item.value, out);
            }
        }
        lines.finish(out);
    }

    fn read(&self, item: &Item) -> FieldRef<'_> {
        FieldRef { name: item.name.of(&self.text), value: item.value.of(&self.text), known: item.known }
    }
}

/// CR, LF and NUL in the texts of a head become spaces (RFC 9110 §5.5): no variable with a client's text can begin a
/// new line. nginx sends these bytes unchanged. Returns whether it replaced any.
#[inline]
pub fn make_safe(text: &mut [u8]) -> bool {
    if text.is_empty() || word::none_below(text, b'\r' + 1) {
        return false;
    }
    let Some(first) = memchr::memchr3(b'\r', b'\n', 0, text) else { return false };
    for byte in text.iter_mut().skip(first).filter(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        *byte = b' ';
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_ends_its_line() {
        let mut fields = Fields::default();
        fields.push(b"X-A", b"a\r\nInj: x");
        fields.push(b"X-B\n", b"b\0c");
        fields.push(b"X-C", b"plain");
        fields.make_safe();
        let lines: Vec<_> = fields.iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(lines, [(&b"X-A"[..], &b"a  Inj: x"[..]), (b"X-B ", b"b c"), (b"X-C", b"plain")]);
    }

    #[test]
    fn fields_of_a_parsed_head_keep_their_lines() {
        let head =
            b"HTTP/1.1 200 OK\r\nX-A: 1\r\nDate: d\r\nX-B: 2\r\nX-C:  3 \r\nX-D: 4\nX-E: 5\r\nVia: v\r\nX-F:\r\n\r\n";
        let mut parsed = crate::ResponseHead::new();
        assert_eq!(crate::Parser::new().response(head, &mut parsed), Ok(crate::Progress::Done));
        let mut fields = Fields::default();
        fields.push(b"X-Own", b"a\nb");
        let adopted = fields.adopt(head);
        parsed.fields.iter().for_each(|field| fields.push_adopted(adopted, field));
        fields.push(b"X-Last", b"c\rd");
        fields.make_safe();
        fields.remove(Known::Date);
        let written = |left_out, fields: &Fields| {
            let mut out = Vec::new();
            fields.write(left_out, &mut out);
            String::from_utf8(out).map(|text| text.replace("\r\n", "|")).unwrap_or_default()
        };
        let all = "X-Own: a b|X-A: 1|X-B: 2|X-C: 3|X-D: 4|X-E: 5|Via: v|X-F: |X-Last: c d|";
        assert_eq!(written(None, &fields), all);
        assert_eq!(written(fields.first(Known::Via), &fields), all.replace("Via: v|", ""));
        assert!(!fields.has(Known::Date) && fields.get(Known::Via) == Some(b"v"));
        fields.set(1, b"11");
        assert_eq!(written(None, &fields), all.replace("X-A: 1", "X-A: 11"));
        fields.clear();
        assert!(!fields.has(Known::Via) && written(None, &fields).is_empty());
    }

    #[test]
    fn a_field_gets_another_value_at_its_place() {
        let mut fields = Fields::default();
        fields.push(b"X-A", b"a");
        let place = fields.places();
        fields.push(b"X-B", b"b");
        fields.push(b"X-C", b"c");
        fields.set(place, b"another");
        fields.remove_name(b"X-C");
        assert_eq!(fields.at(place).map(|field| field.value), Some(&b"another"[..]));
        assert!(fields.at(place + 1).is_none() && fields.at(place + 2).is_none());
        fields.set(place + 2, b"nowhere");
        let values: Vec<_> = fields.iter().map(|field| field.value).collect();
        assert_eq!(values, [&b"a"[..], b"another"]);
    }
    #[test]
    fn a_known_field_gets_one_value_at_its_first_place() {
        let mut fields = Fields::default();
        for (name, value) in [("CACHE-control", "a"), ("X-B", "b"), ("Cache-Control", "c")] {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields.set_known(b"Cache-Control", b"d", Known::CacheControl);
        fields.set_known(b"Expires", b"e", Known::Expires);
        let values: Vec<_> = fields.iter().map(|field| (field.name, field.value)).collect();
        let expected = [(&b"CACHE-control"[..], &b"d"[..]), (b"X-B", b"b"), (b"Expires", b"e")];
        assert_eq!(values, expected);
    }
}
