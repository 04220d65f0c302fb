//! The texts that a program shows beside its figures: queries, commands, scripts; and how much of each there is.
//!
//! These texts are data of somebody else: [`shown`] cuts them, and takes control characters out. Literals of queries are replaced before
//! (`sql`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::said::Said;

/// Most texts of one group that are kept. Further ones are left out.
const TEXTS_MAX: usize = 200;
/// Most characters of a text.
const TEXT_MAX: usize = 160;

/// Numbers of texts, by group and text.
pub type TextGroups<T> = BTreeMap<String, BTreeMap<String, T>>;

/// All readings of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Detail {
    /// Totals in the first reading that has them. The first of the numbers is the one to compare by.
    pub first: TextGroups<Vec<f64>>,
    /// The same in the last one.
    pub last: TextGroups<Vec<f64>>,
    /// How many of each there were at the moments of the readings, added up.
    pub seen: TextGroups<f64>,
    /// The largest number of each, of all readings.
    pub most: TextGroups<f64>,
    /// Number of readings.
    pub looks: u64,
    /// The figures that the program does not give, each with the line that makes it give them.
    #[serde(deserialize_with = "crate::said::read_list")]
    pub lacks: Vec<Said>,
}

impl Detail {
    /// Begins a reading. Totals of the reading before become the last ones.
    pub fn begin(&mut self) {
        self.looks += 1;
    }

    /// Notes totals of a text.
    pub fn total(&mut self, group: &str, text: &str, numbers: &[f64]) {
        // The first reading is before the load. A text that comes later began at 0.
        if self.looks <= 1 {
            put(&mut self.first, group, text, |old: &mut Vec<f64>| *old = numbers.to_vec());
        }
        put(&mut self.last, group, text, |old: &mut Vec<f64>| *old = numbers.to_vec());
    }

    /// Notes one of a text at this moment. The reading before the load counts nothing.
    pub fn see(&mut self, group: &str, text: &str) {
        if self.looks > 1 {
            put(&mut self.seen, group, text, |count: &mut f64| *count += 1.0);
        }
    }

    /// Notes a number of a text, of which the largest counts.
    pub fn largest(&mut self, group: &str, text: &str, number: f64) {
        put(&mut self.most, group, text, |most: &mut f64| *most = most.max(number));
    }

    /// Notes a figure that the program does not give.
    pub fn lack(&mut self, what: Said) {
        if !self.lacks.contains(&what) {
            self.lacks.push(what);
        }
    }

    /// How much the totals of a group grew, the largest first.
    pub fn grew(&self, group: &str) -> Vec<(String, Vec<f64>)> {
        let then = |text: &str, at: usize| {
            self.first.get(group).and_then(|group| group.get(text)?.get(at).copied()).unwrap_or(0.0)
        };
        let grown =
            |text: &str, now: &[f64]| now.iter().enumerate().map(|(at, now)| (now - then(text, at)).max(0.0)).collect();
        let all = self.last.get(group).into_iter().flatten();
        let mut all: Vec<(String, Vec<f64>)> = all.map(|(text, now)| (text.clone(), grown(text, now))).collect();
        all.retain(|(_, numbers)| numbers.first().is_some_and(|number| *number > 0.0));
        all.sort_by(|one, other| other.1.first().unwrap_or(&0.0).total_cmp(one.1.first().unwrap_or(&0.0)));
        all
    }

    /// The mean number of each text of a group at a moment, the largest first.
    pub fn mean(&self, group: &str) -> Vec<(String, f64)> {
        // The first reading is before the load, and the last one after it.
        let looks = self.looks.saturating_sub(2).max(1) as f64;
        let all = self.seen.get(group).into_iter().flatten();
        let mut all: Vec<(String, f64)> = all.map(|(text, count)| (text.clone(), count / looks)).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all
    }

    /// The largest number of a text.
    pub fn most(&self, group: &str, text: &str) -> Option<f64> {
        self.most.get(group)?.get(text).copied()
    }
}

fn put<T: Default>(groups: &mut TextGroups<T>, group: &str, text: &str, change: impl FnOnce(&mut T)) {
    let texts = groups.entry(group.to_owned()).or_default();
    if texts.len() < TEXTS_MAX || texts.contains_key(text) {
        change(texts.entry(text.to_owned()).or_default());
    }
}

/// A text of a program as it may be printed: without control characters, each white space one blank, and cut.
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    let is_hidden = |c: &char| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for word in text.split(|c: char| c.is_whitespace() || is_hidden(&c)).filter(|word| !word.is_empty()) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    match shown.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{} …", &shown[..at]),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_and_have_no_control_characters() {
        assert_eq!(shown("SELECT\u{1b}[31m\n\t x\u{202e}"), "SELECT [31m x");
        let long = shown(&"é".repeat(500));
        assert_eq!((long.chars().count(), long.ends_with(" …")), (TEXT_MAX + 2, true));
        let mut detail = Detail::default();
        detail.begin();
        (0..500).for_each(|number| detail.total("command", &number.to_string(), &[1.0]));
        assert_eq!(detail.last["command"].len(), TEXTS_MAX);
    }

    #[test]
    fn totals_grow_and_moments_are_counted() {
        let mut detail = Detail::default();
        for (time, calls) in [(100.0, 1.0), (400.0, 9.0), (500.0, 11.0)] {
            detail.begin();
            detail.total("command", "get", &[time, calls]);
            detail.see("query", "SELECT ?");
        }
        detail.total("command", "keys", &[9000.0, 3.0]);
        assert_eq!(
            detail.grew("command"),
            [("keys".to_owned(), vec![9000.0, 3.0]), ("get".to_owned(), vec![400.0, 10.0])]
        );
        assert_eq!(detail.mean("query"), [("SELECT ?".to_owned(), 2.0)]);
        detail.largest("slow", "keys", 4.0);
        detail.largest("slow", "keys", 3.0);
        assert_eq!(detail.most("slow", "keys"), Some(4.0));
    }
}
