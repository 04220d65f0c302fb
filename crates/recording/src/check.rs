//! Looks for secrets that a recording still has.

use std::collections::BTreeMap;
use std::io::Read;

use weir_words::{Said, Text, say};

use crate::Fault;
use crate::model::{RecordedBody, RecordedExchange, RecordedField, RecordedText, RecordingPart};
use crate::pointer::pointer;
use crate::read::RecordingReader;
use crate::secrets::{SecretKind, TextForm, leaks};
use crate::texts;

/// Most places that a report lists.
pub const PLACES_MAX: usize = 1_000;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Parts of the recording.
    pub parts: u64,
    /// The places with secrets.
    pub findings: Vec<CheckFinding>,
    /// Places beyond [`PLACES_MAX`].
    pub unlisted: u64,
    /// The fault that ended the check early.
    pub fault: Option<Fault>,
}

/// A place with secrets that are not replaced. It never has the secret itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// The first part with it: 0 is the beginning of the recording.
    pub part: u64,
    /// The parts with it.
    pub parts: u64,
    /// The place in the part.
    pub place: Said,
    /// The kind of secret.
    pub kind: SecretKind,
}

impl CheckReport {
    /// No secret was found, and the whole recording was read.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.fault.is_none()
    }

    /// The last line of a report.
    pub fn said(&self) -> Said {
        let places = self.findings.len() as u64 + self.unlisted;
        match places {
            0 => say!(texts::RECORD_CLEAN, self.parts),
            _ => say!(texts::RECORD_NOT_CLEAN, self.parts, places),
        }
    }

    /// The line for places that are not listed.
    pub fn unlisted_said(&self) -> Option<Said> {
        (self.unlisted > 0).then(|| say!(texts::RECORD_MORE, self.unlisted))
    }
}

impl CheckFinding {
    /// The line of a report.
    pub fn said(&self) -> Said {
        let kind = texts::of_kind(self.kind).with(&[]);
        match self.parts {
            1 => say!(texts::RECORD_LEAK, self.part, self.place.clone(), kind),
            parts => say!(texts::RECORD_LEAKS, self.part, self.place.clone(), kind, parts - 1),
        }
    }
}

/// Reads a recording, and looks outside of its hidden places for everything that should be hidden, and for long random words.
pub fn check<R: Read>(reader: RecordingReader<R>) -> CheckReport {
    let mut checking = Checking::default();
    for part in reader {
        match part {
            Ok(part) => checking.part(&part),
            Err(fault) => {
                checking.report.fault = Some(fault);
                break;
            }
        }
    }
    let mut report = checking.report;
    report.findings = checking.places.into_values().collect();
    report.findings.sort_by_key(|finding| finding.part);
    report
}

#[derive(Default)]
struct Checking {
    report: CheckReport,
    /// The places by their English names and kinds.
    places: BTreeMap<(String, SecretKind), CheckFinding>,
}

impl Checking {
    fn part(&mut self, part: &RecordingPart) {
        match part {
            RecordingPart::Exchange(exchange) => self.exchange(exchange),
            RecordingPart::Message(message) => self.body(texts::RECORD_MESSAGE, b"", &message.content),
            _ => {}
        }
        self.report.parts += 1;
    }

    fn exchange(&mut self, exchange: &RecordedExchange) {
        self.text(&texts::RECORD_TARGET.with(&[]), TextForm::Target, &exchange.target);
        self.fields(texts::RECORD_REQUEST_FIELD, &exchange.fields);
        self.body(texts::RECORD_REQUEST_BODY, content_type(&exchange.fields), &exchange.body);
        if let Some(answer) = &exchange.answer {
            self.fields(texts::RECORD_ANSWER_FIELD, &answer.fields);
            self.body(texts::RECORD_ANSWER_BODY, content_type(&answer.fields), &answer.body);
        }
    }

    fn fields(&mut self, place: Text, fields: &[RecordedField]) {
        for field in fields {
            self.text(&say!(place, shown(&field.name)), TextForm::Field(&field.name), &field.value);
        }
    }

    fn body(&mut self, place: Text, content_type: &[u8], body: &RecordedBody) {
        if let Some(kept) = &body.kept {
            self.text(&place.with(&[]), TextForm::Body(content_type), kept);
        }
    }

    fn text(&mut self, place: &Said, form: TextForm<'_>, text: &RecordedText) {
        for (range, kind) in leaks(form, text) {
            let within = match pointer(&text.bytes, range.start) {
                Some(pointer) => Said::from(pointer),
                None => say!(texts::RECORD_BYTE, range.start),
            };
            self.add(say!(texts::RECORD_AT, place.clone(), within), kind);
        }
    }

    fn add(&mut self, place: Said, kind: SecretKind) {
        let part = self.report.parts;
        let key = (place.en().to_owned(), kind);
        if let Some(known) = self.places.get_mut(&key) {
            known.parts += 1;
        } else if self.places.len() < PLACES_MAX {
            self.places.insert(key, CheckFinding { part, parts: 1, place, kind });
        } else {
            self.report.unlisted += 1;
        }
    }
}

fn content_type(fields: &[RecordedField]) -> &[u8] {
    let field = fields.iter().find(|field| field.name == b"content-type");
    field.map_or(&[], |field| &field.value.bytes)
}

/// A name for a report.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(64).flat_map(char::escape_default).collect()
}
