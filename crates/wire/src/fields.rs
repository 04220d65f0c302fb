//! The fields of a message being written: one buffer for all texts, order and case kept.

use crate::{Known, word};

/// A list of fields. Clearing keeps the memory.
#[derive(Default)]
pub struct Fields {
    text: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy)]
struct Item {
    name: (u32, u32),
    value: (u32, u32),
    known: Option<Known>,
    live: bool,
}

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
    pub fn clear(&mut self) {
        self.text.clear();
        self.items.clear();
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
        let end = self.text.len() as u32;
        self.items.push(Item { name: (start, middle), value: (middle, end), known, live: true });
    }

    /// Replaces the bytes that would end a line, whichever directive added them: see [`make_safe`].
    #[inline]
    pub fn make_safe(&mut self) {
        make_safe(&mut self.text);
    }

    /// Appends a field whose value `write` produces.
    pub fn push_with(&mut self, name: &[u8], known: Option<Known>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let middle = self.text.len() as u32;
        write(&mut self.text);
        let end = self.text.len() as u32;
        self.items.push(Item { name: (start, middle), value: (middle, end), known, live: true });
    }

    /// The first field of a known name.
    pub fn get(&self, known: Known) -> Option<&[u8]> {
        self.items.iter().find(|item| item.live && item.known == Some(known)).map(|item| self.slice(item.value))
    }

    /// Whether the list has a field of that known name.
    #[inline]
    pub fn has(&self, known: Known) -> bool {
        self.items.iter().any(|item| item.live && item.known == Some(known))
    }

    /// Removes every field of a known name.
    pub fn remove(&mut self, known: Known) {
        for item in &mut self.items {
            if item.known == Some(known) {
                item.live = false;
            }
        }
    }

    /// Removes every field of a name, case ignored.
    pub fn remove_name(&mut self, name: &[u8]) {
        for index in 0..self.items.len() {
            let same = self.items.get(index).is_some_and(|item| self.slice(item.name).eq_ignore_ascii_case(name));
            if let (true, Some(item)) = (same, self.items.get_mut(index)) {
                item.live = false;
            }
        }
    }

    /// Removes every field whose name `is_one` finds.
    pub fn remove_where(&mut self, is_one: impl Fn(&[u8]) -> bool) {
        for index in 0..self.items.len() {
            let found = self.items.get(index).is_some_and(|item| item.live && is_one(self.slice(item.name)));
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
            item.value = (start, self.text.len() as u32);
        }
    }

    /// The fields in order.
    pub fn iter(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.items.iter().filter(|item| item.live).map(|item| self.read(item))
    }

    fn read(&self, item: &Item) -> FieldRef<'_> {
        FieldRef { name: self.slice(item.name), value: self.slice(item.value), known: item.known }
    }

    fn slice(&self, (start, end): (u32, u32)) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or_default()
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
}
