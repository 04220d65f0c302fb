//! Tries one setting after another, compares each in blocks, and keeps only those that are shown to help.
//!
//! The caller passes in the two parts: a doctor that recommends knobs, and the comparison, [`crate::ab`]. A
//! [`Draft`] holds the changed content of files.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};
use weir_conf::Files;
use weir_words::Language;

use crate::report::parts::{self, INDENT};
use crate::said::{Said, Text, left, say, shown, shown_list, width};
use crate::texts;

/// Most knobs that one run tries.
pub const TRIES_MAX: usize = 32;
/// The only verdict that keeps a change.
const HELPS: &str = "better";

/// Changed contents of files that are not written yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The new contents, by full path.
    pub changed: BTreeMap<String, Vec<u8>>,
}

impl Draft {
    /// This draft with further changed files.
    #[must_use]
    pub fn with(&self, changed: impl IntoIterator<Item = (String, Vec<u8>)>) -> Draft {
        let mut draft = self.clone();
        draft.changed.extend(changed);
        draft
    }

    /// The files with the draft's changes.
    pub fn over<'d>(&'d self, files: &'d dyn Files) -> impl Files + 'd {
        Over { draft: self, files }
    }
}

struct Over<'d> {
    draft: &'d Draft,
    files: &'d dyn Files,
}

impl Files for Over<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.draft.changed.get(path).map_or_else(|| self.files.read(path), |bytes| Ok(bytes.clone()))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        self.files.glob(pattern)
    }
}

/// A recommended change: one idea, in one or several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name. A name is tried once.
    pub name: String,
    /// Why it is recommended.
    pub says: Said,
    /// The files with the change.
    pub draft: Draft,
}

/// Recommends and compares.
pub trait Bench {
    /// Knobs for the files in this draft, the most promising first.
    fn knobs(&mut self, draft: &Draft) -> Result<Vec<Knob>, Said>;

    /// Compares two drafts and returns the run of [`crate::ab`]. `None` if the user stopped the lab. If a change is
    /// known to have no effect, the reason is the result, without a run.
    fn compare(&mut self, before: &Draft, after: &Draft, name: &str) -> Result<Option<Compared>, Said>;
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// A run.
    Run(Box<Value>),
    /// It was not run: the change has no effect, for this reason.
    Pointless(Said),
}

/// A knob that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct KnobTry {
    /// The knob.
    pub knob: String,
    /// Why it was recommended.
    pub says: Said,
    /// The changes in that run: in English, and by name.
    pub changes: (Value, Value),
    /// The run that compared it.
    pub run: Option<String>,
    /// The verdict's name and sentence.
    pub verdict: (String, Said),
    /// The knob is kept.
    pub is_kept: bool,
}

/// The result of tuning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuned {
    /// Every knob tried, in order.
    pub tries: Vec<KnobTry>,
    /// The files with all kept knobs.
    pub draft: Draft,
    /// The comparison of all kept knobs with the start, if there are several.
    pub total: Option<Value>,
    /// Why it ended before every knob was tried.
    pub cut: Option<Said>,
}

/// Tries knobs until every recommended one was tried.
///
/// # Errors
/// A comparison could not run. Only the report of the earlier tries is lost; the caller has their runs.
pub fn tune(bench: &mut dyn Bench, tries_max: usize) -> Result<Tuned, Said> {
    let start = Draft::default();
    let mut it = Tuned::default();
    loop {
        let knobs = bench.knobs(&it.draft)?;
        let Some(knob) = knobs.into_iter().find(|knob| it.tries.iter().all(|tried| tried.knob != knob.name)) else {
            break;
        };
        if it.tries.len() >= tries_max.min(TRIES_MAX) {
            it.cut = Some(say!(CUT_BY_TRIES, it.tries.len()));
            break;
        }
        let Some(compared) = bench.compare(&it.draft, &knob.draft, &knob.name)? else {
            it.cut = Some(say!(STOPPED));
            return Ok(it);
        };
        let tried = judged(&knob, &compared);
        // The cause that spoils one comparison spoils the next too.
        let is_hopeless = tried.verdict.0 == "no verdict";
        if is_hopeless {
            it.cut = Some(tried.verdict.1.clone());
        }
        if tried.is_kept {
            it.draft = knob.draft;
        }
        it.tries.push(tried);
        if is_hopeless {
            break;
        }
    }
    // Effects do not add up, so the sum of all kept knobs is measured too.
    if it.kept().count() > 1 && it.cut.is_none() {
        match bench.compare(&start, &it.draft, texts::EVERYTHING_KEPT.en)? {
            Some(Compared::Run(run)) => it.total = Some(*run),
            Some(Compared::Pointless(_)) => {}
            None => it.cut = Some(say!(STOPPED)),
        }
    }
    Ok(it)
}

fn judged(knob: &Knob, compared: &Compared) -> KnobTry {
    let (changes, run, verdict) = match compared {
        Compared::Run(run) => {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let changes = (run["changes"].clone(), run["changes_said"].clone());
            (changes, Some(word(&run["id"])), (word(&run["verdict"]["name"]), said(&run["verdict"])))
        }
        Compared::Pointless(why) => (<_>::default(), None, ("not run".to_owned(), say!(POINTLESS, why))),
    };
    let is_kept = verdict.0 == HELPS;
    KnobTry { knob: knob.name.clone(), says: knob.says.clone(), changes, run, verdict, is_kept }
}

/// The sentence of a verdict, from its name if it has one.
fn said(verdict: &Value) -> Said {
    let english = || Said::from(verdict["text"].as_str().unwrap_or_default());
    crate::said::read(&verdict["text_said"]).unwrap_or_else(english)
}

impl Tuned {
    /// The kept knobs.
    pub fn kept(&self) -> impl Iterator<Item = &KnobTry> {
        self.tries.iter().filter(|tried| tried.is_kept)
    }

    /// The verdict's name and sentence.
    pub fn verdict(&self) -> (&'static str, Said) {
        let kept: Vec<&str> = self.kept().map(|tried| tried.knob.as_str()).collect();
        let (some, of) = (kept.len(), self.tries.len());
        let proof = match (&self.total, self.kept().next()) {
            (Some(total), _) => say!(TOGETHER, said(&total["verdict"])),
            (None, Some(only)) if kept.len() == 1 => only.verdict.1.clone(),
            _ => say!(TOGETHER_UNMEASURED),
        };
        match (kept.is_empty(), self.tries.is_empty(), &self.cut) {
            (false, ..) => ("tuned", say!(TUNED, some, of, kept.join(", "), proof)),
            (true, _, Some(why)) => ("no verdict", say!(NOTHING_KEPT, why)),
            (true, true, None) => ("nothing to try", say!(NOTHING_TO_TRY)),
            (true, false, None) => ("nothing helps", say!(NONE_HELPS, some, of)),
        }
    }

    /// The result, as a run stores it. `before` gives the original files.
    pub fn to_json(&self, before: &dyn Fn(&str) -> Vec<u8>) -> Value {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (name, sentence) = self.verdict();
        let tries: Vec<Value> = self
            .tries
            .iter()
            .map(|tried| {
                json!({
                    "knob": tried.knob, "says": tried.says.en(), "says_said": tried.says,
                    "changes": tried.changes.0, "changes_said": tried.changes.1, "run": tried.run,
                    "verdict": {"name": tried.verdict.0, "text": tried.verdict.1.en(), "text_said": tried.verdict.1},
                    "is_kept": tried.is_kept,
                })
            })
            .collect();
        let files: Vec<Value> = self
            .draft
            .changed
            .iter()
            .map(|(name, after)| json!({"name": name, "before": text(&before(name)), "after": text(after)}))
            .collect();
        json!({
            "kind": "tune",
            "tries": tries,
            "files": files,
            "total": self.total.as_ref().map(|run| run["id"].clone()),
            "cut": self.cut.as_ref().map(Said::en),
            "cut_said": self.cut,
            "verdict": {"name": name, "text": sentence.en(), "text_said": sentence},
        })
    }
}

/// A run of this kind as text for a terminal.
pub fn text(run: &Value, language: Language) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![parts::title(run, language)];
    let columns = [texts::KEPT, texts::DROPPED].iter().map(|text| width(text.say(language))).max().unwrap_or(0);
    for tried in run["tries"].as_array().into_iter().flatten() {
        let mark = left(fate(tried).say(language), columns);
        lines.extend([String::new(), format!("{mark}  {}: {}", word(&tried["knob"]), shown(tried, "says", language))]);
        lines.extend(shown_list(tried, "changes", language).iter().map(|change| format!("{INDENT}{change}")));
        let run = tried["run"].as_str().map(|id| say!(TRY_RUN, id)).unwrap_or_default();
        lines.push(format!("{INDENT}{}{}", shown(&tried["verdict"], "text", language), run.say(language)));
    }
    if let Some(diff) = run["diff"].as_str().filter(|diff| !diff.is_empty()) {
        lines.extend([String::new(), diff.trim_end().to_owned()]);
    }
    lines.extend([String::new(), parts::verdict(run, language)]);
    if run["files"].as_array().is_some_and(|files| !files.is_empty()) {
        let id = word(&run["id"]);
        lines.push(say!(WRITE_IT, id).say(language).to_owned());
    }
    lines.join("\n") + "\n"
}

/// The word for whether a knob is kept.
pub(crate) fn fate(tried: &Value) -> Text {
    if tried["is_kept"] == true { texts::KEPT } else { texts::DROPPED }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Knobs by name, the verdict of each comparison, and the comparisons so far.
    struct Fake {
        knobs: Vec<(&'static str, &'static str)>,
        compared: Vec<String>,
        patience: usize,
    }

    impl Fake {
        fn new(knobs: &[(&'static str, &'static str)]) -> Fake {
            Fake { knobs: knobs.to_vec(), compared: Vec::new(), patience: usize::MAX }
        }
    }

    impl Bench for Fake {
        fn knobs(&mut self, draft: &Draft) -> Result<Vec<Knob>, Said> {
            let knob = |name: &str| Knob {
                name: name.to_owned(),
                says: Said::default(),
                draft: draft.with([(format!("/{name}"), name.as_bytes().to_vec())]),
            };
            // "then" is recommended only after "first" is there.
            let is_offered = |name: &str| name != "then" || draft.changed.contains_key("/first");
            Ok(self.knobs.iter().filter(|(name, _)| is_offered(name)).map(|(name, _)| knob(name)).collect())
        }

        fn compare(&mut self, before: &Draft, after: &Draft, name: &str) -> Result<Option<Compared>, Said> {
            if self.patience == 0 {
                return Ok(None);
            }
            self.patience -= 1;
            self.compared.push(format!("{name}: {} -> {}", before.changed.len(), after.changed.len()));
            let verdict = self.knobs.iter().find(|(known, _)| *known == name).map_or("better", |(_, verdict)| verdict);
            Ok(Some(match verdict {
                "inert" => Compared::Pointless("it is the default".into()),
                name => Compared::Run(Box::new(json!({"id": "r", "verdict": {"name": name, "text": name}}))),
            }))
        }
    }

    #[test]
    fn what_helps_is_kept_and_the_rest_is_not() {
        let mut fake = Fake::new(&[
            ("then", "better"),
            ("no", "worse"),
            ("first", "better"),
            ("idle", "inert"),
            ("so", "inconclusive"),
        ]);
        let tuned = tune(&mut fake, 9).unwrap();
        assert_eq!(
            fake.compared,
            ["no: 0 -> 1", "first: 0 -> 1", "then: 1 -> 2", "idle: 2 -> 3", "so: 2 -> 3", "everything kept: 0 -> 2"]
        );
        assert_eq!(tuned.draft.changed.keys().collect::<Vec<_>>(), ["/first", "/then"]);
        let (name, text) = tuned.verdict();
        assert_eq!((name, text.en()), ("tuned", "2 of 5 knobs kept (first, then); together: better"));
    }

    #[test]
    fn every_end_has_its_words() {
        let verdict =
            |knobs: &[(&'static str, &'static str)], tries| tune(&mut Fake::new(knobs), tries).unwrap().verdict();
        assert_eq!(verdict(&[], 9).0, "nothing to try");
        assert_eq!(verdict(&[("a", "no difference"), ("b", "trade-off")], 9).0, "nothing helps");
        assert_eq!(verdict(&[("a", "better")], 9), ("tuned", say!(TUNED, 1u32, 1u32, "a", "better")));
        // A noisy machine ends it: the next knob would not be visible either.
        assert_eq!(verdict(&[("a", "no verdict"), ("b", "better")], 9).0, "no verdict");
        assert!(verdict(&[("a", "better"), ("b", "better"), ("c", "better")], 2).1.contains("together: not measured"));
        let mut fake = Fake { patience: 1, ..Fake::new(&[("a", "worse"), ("b", "better")]) };
        assert_eq!(tune(&mut fake, 9).unwrap().verdict(), ("no verdict", say!(NOTHING_KEPT, say!(STOPPED))));
    }

    #[test]
    fn a_run_says_what_was_tried_and_how_to_take_it_back() {
        let tuned = tune(&mut Fake::new(&[("a", "better")]), 9).unwrap();
        let mut run = tuned.to_json(&|_| b"old".to_vec());
        run["id"] = json!("7");
        run["diff"] = json!("-old\n+a\n");
        assert_eq!(run["files"], json!([{"name": "/a", "before": "old", "after": "a"}]));
        let text = text(&run, Language::English);
        for part in ["kept     a", "-old\n+a", "Verdict: 1 of 1", "weir lab undo 7"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
