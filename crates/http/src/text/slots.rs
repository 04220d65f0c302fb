//! Values that variables keep in an exchange.

/// A name's number, the same in the configuration's definitions and the exchange's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariableId(pub u32);

/// The values of variables that the exchange keeps, and the captures of the last match.
#[derive(Clone, Default)]
pub struct SlotStore {
    values: Vec<Option<Vec<u8>>>,
    /// `$1` to `$9`.
    pub captures: Captures,
}

impl SlotStore {
    /// The value kept under this number.
    pub fn get(&self, id: VariableId) -> Option<&[u8]> {
        self.values.get(id.0 as usize)?.as_deref()
    }

    /// Keeps a value.
    pub fn set(&mut self, id: VariableId, value: &[u8]) {
        let index = id.0 as usize;
        if self.values.len() <= index {
            self.values.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.values.get_mut(index) {
            *slot = Some(value.to_vec());
        }
    }

    /// The values kept.
    pub fn iter(&self) -> impl Iterator<Item = (VariableId, &[u8])> {
        (0..).zip(&self.values).filter_map(|(id, value)| Some((VariableId(id), value.as_deref()?)))
    }

    /// Puts back the captures of an earlier match. Without any, those of the last match stay.
    pub fn restore(&mut self, before: Captures) {
        if !before.is_empty() {
            self.captures = before;
        }
    }

    /// The same values, without captures.
    pub fn without_captures(&self) -> SlotStore {
        SlotStore { values: self.values.clone(), captures: Captures::default() }
    }

    /// Forgets all of them; the memory stays.
    pub fn clear(&mut self) {
        self.values.clear();
        self.captures.clear();
    }
}

/// The groups of the last successful match: `$0` to `$9`. They own their text, so that rewriting the subject is safe.
#[derive(Clone, Default)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Vec<Option<(usize, usize)>>,
}

impl Captures {
    /// The text of one group, if the group took part in the match.
    pub fn get(&self, group: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(group)?)?;
        self.subject.get(start..end)
    }

    /// Whether nothing has matched.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Forgets the match.
    pub fn clear(&mut self) {
        self.groups.clear();
    }

    /// Remembers the groups of a match, as places in `subject`.
    pub fn fill(&mut self, subject: &[u8], groups: impl Iterator<Item = Option<(usize, usize)>>) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        self.groups.clear();
        self.groups.extend(groups);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_own_their_text_and_a_failed_match_keeps_none() {
        let mut slots = SlotStore::default();
        let mut subject = b"abc".to_vec();
        slots.captures.fill(&subject, [Some((0, 3)), Some((1, 2)), None].into_iter());
        subject.clear();
        let shown = |slots: &SlotStore| (0..4).map(|at| slots.captures.get(at).map(<[u8]>::to_vec)).collect::<Vec<_>>();
        let first = [Some(b"abc".to_vec()), Some(b"b".to_vec()), None, None];
        assert_eq!(shown(&slots), first);
        slots.set(VariableId(2), b"x");
        assert!(slots.without_captures().captures.is_empty());
        let before = std::mem::take(&mut slots.captures);
        slots.captures.fill(b"z", [Some((0, 1))].into_iter());
        slots.restore(Captures::default());
        assert_eq!(slots.captures.get(0), Some(&b"z"[..]), "without earlier captures, those of the last match stay");
        slots.restore(before);
        assert_eq!(shown(&slots), first);
        assert_eq!(slots.iter().map(|(id, value)| (id.0, value.to_vec())).collect::<Vec<_>>(), [(2, b"x".to_vec())]);
        slots.clear();
        assert!(slots.captures.is_empty() && slots.get(VariableId(2)).is_none());
    }
}
