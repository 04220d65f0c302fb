//! The smallest request and the causing lines of each difference of a report.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_words::{Said, said};

use super::bisect::{self, CausingLines};
use super::edits::ConfChanges;
use super::request::{SmallestRequest, smallest};
use super::smallest::Trial;
use super::stage::{SearchedDifference, Shown, Stage, again};
use super::statements::ConfStatements;
use crate::judge::JudgeRules;
use crate::report::ReportedDifference;
use crate::request::SwapRequest;
use crate::side::{Side, SideConf};

/// The names of the servers with the configurations of A and B.
const NAME_A: &str = "A";
const NAME_B: &str = "B";
/// Most trials for the smallest request of one difference.
const REQUEST_TRIALS_MAX: usize = 80;
/// Most trials for the lines of one difference.
const LINE_TRIALS_MAX: usize = 150;

/// The bounds of all searches together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBounds {
    /// Servers that are started.
    pub servers: usize,
    /// The time.
    pub longest: Duration,
}

impl Default for SearchBounds {
    fn default() -> SearchBounds {
        SearchBounds { servers: 3000, longest: Duration::from_secs(120) }
    }
}

/// Gives each difference its smallest request and its causing lines, in the order of the list, until the bounds. A
/// difference without them gets a note that says why.
///
/// Differences in the same part with the same lines become one.
pub fn find(
    differences: &mut Vec<ReportedDifference>,
    sides: [&Side; 2],
    rules: JudgeRules,
    bounds: SearchBounds,
    stop: &AtomicBool,
) {
    let [a, b] = sides;
    let Some(stage) = Stage::new(a, b, rules, stop, bounds.servers, bounds.longest) else { return };
    let changes = match (a.conf(), b.conf()) {
        (Some(a), Some(b)) => Some(ConfChanges::between(&a.tree, &b.tree)),
        _ => None,
    };
    let mut finder = Finder { stage, changes, bounds, known: Vec::new() };
    for difference in differences.iter_mut() {
        finder.one(difference);
    }
    let mut grouped: Vec<ReportedDifference> = Vec::new();
    for one in differences.drain(..) {
        let is_same = |known: &&mut ReportedDifference| {
            let what = |one: &ReportedDifference| (one.part.clone(), one.kind, one.causes.clone());
            !one.causes.is_empty() && what(known) == what(&one)
        };
        match grouped.iter_mut().find(is_same) {
            Some(known) => {
                known.requests += one.requests;
                known.routes.extend(one.routes);
                known.routes.sort();
                known.routes.dedup();
            }
            None => grouped.push(one),
        }
    }
    *differences = grouped;
}

struct Finder<'s> {
    stage: Stage<'s>,
    changes: Option<ConfChanges>,
    bounds: SearchBounds,
    /// The changes that made earlier differences: mostly, one line makes several.
    known: Vec<BTreeSet<usize>>,
}

impl Finder<'_> {
    fn one(&mut self, difference: &mut ReportedDifference) {
        if self.stage.left() == 0 {
            difference.cause_note = Some(self.not_searched());
            return;
        }
        let (a, b) = (self.stage.a, self.stage.b);
        let searched = SearchedDifference { part: difference.part.clone(), kind: difference.kind, b: None };
        let found = smallest(&difference.before, &difference.request, REQUEST_TRIALS_MAX, &mut |requests| {
            self.stage.both(&searched, [(NAME_A, a), (NAME_B, b)], requests)
        });
        if !found.is_repeated {
            difference.cause_note = Some(match self.stage.left() {
                0 => self.not_searched(),
                _ => said!(
                    "freshly started servers do not show this difference, so its cause was not searched",
                    "새로 시작한 서버에서는 이 차이가 나타나지 않아 원인을 찾지 않았습니다"
                ),
            });
            return;
        }
        let SmallestRequest { before, request, .. } = found;
        let requests: Vec<SwapRequest> = before.iter().chain([&request]).cloned().collect();
        (difference.before, difference.request) = (before, request);
        let (lines, note) = self.lines(&searched, &requests);
        difference.cause_note = note.or_else(|| (!lines.is_minimal && !lines.causes.is_empty()).then(too_many));
        difference.causes = lines.causes;
    }

    /// The causing lines of a difference that these requests show.
    fn lines(&mut self, searched: &SearchedDifference, requests: &[SwapRequest]) -> (CausingLines, Option<Said>) {
        let none = CausingLines::default;
        let (Some(a), Some(b)) = (self.stage.a.conf(), self.stage.b.conf()) else {
            let why =
                said!("A or B is an address: there is no file to search", "A나 B가 주소라 원인을 찾을 파일이 없습니다");
            return (none(), Some(why));
        };
        let Some((request, of_a)) = requests.last().zip(self.twice(requests)) else { return (none(), None) };
        let Some(changes) = self.changes.take().filter(|changes| !changes.all.is_empty()) else {
            return self.programs(searched, requests, a, b);
        };
        let trial = Candidates { stage: &self.stage, request, requests, of_a };
        let all: BTreeSet<usize> = (0..changes.all.len()).collect();
        let result = match trial.reference(searched, &changes.mixture(&all)) {
            // A mixture has no includes, but has to mean the same.
            None if self.stage.left() > 0 => (
                none(),
                Some(said!(
                    "the text of B without its includes does not show this difference",
                    "include를 펼친 B의 설정에서는 이 차이가 나타나지 않습니다"
                )),
            ),
            None => (none(), Some(self.not_searched())),
            Some(searched) => {
                let mut test = |text: &[u8]| trial.of(&searched, text);
                let known = known(&self.known, &changes, &mut test);
                let lines = known.unwrap_or_else(|| bisect::changes(&changes, LINE_TRIALS_MAX, &mut test));
                (lines, None)
            }
        };
        let (lines, note) = result;
        if note.is_some() || !lines.causes.is_empty() {
            self.remember(&changes, &lines);
            self.changes = Some(changes);
            return (lines, note);
        }
        self.changes = Some(changes);
        self.programs(searched, requests, a, b)
    }

    /// A's answer, and its answer from another fresh server.
    fn twice(&self, requests: &[SwapRequest]) -> Option<[Shown; 2]> {
        let of_a = |name: &str| self.stage.side(name, self.stage.a, requests);
        Some([of_a(NAME_A)?, of_a(&again(NAME_A))?])
    }

    /// The statements of A's file without which the two programs do not differ.
    fn programs(
        &self,
        searched: &SearchedDifference,
        requests: &[SwapRequest],
        a: &SideConf,
        b: &SideConf,
    ) -> (CausingLines, Option<Said>) {
        let mut test = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            let sides = (a.with_text(&text), b.with_text(&text));
            let (Ok(a), Ok(b)) = sides else { return Some(Trial::Unresolved) };
            let (a, b) = (Side::Conf(Box::new(a)), Side::Conf(Box::new(b)));
            let names = [NAME_A, NAME_B].map(|name| format!("{name} {text}"));
            self.stage.both(searched, [(&names[0], &a), (&names[1], &b)], requests)
        };
        let statements = ConfStatements::of(&a.tree);
        let lines = bisect::statements(&statements, LINE_TRIALS_MAX, &mut test);
        let note = match lines.causes.is_empty() {
            true => said!(
                "the programs of A and B differ; no statement of the file is needed for it",
                "A와 B의 프로그램이 다릅니다. 이 차이에 필요한 설정 구문은 없습니다"
            ),
            false => said!(
                "the programs of A and B differ with these lines of A's file",
                "A와 B의 프로그램이 A의 파일의 이 줄에서 서로 다릅니다"
            ),
        };
        (lines, Some(note))
    }

    fn remember(&mut self, changes: &ConfChanges, lines: &CausingLines) {
        let is_cause = |(_, change): &(usize, &super::edits::ConfChange)| lines.causes.contains(&change.cause);
        let numbers: BTreeSet<usize> =
            changes.all.iter().enumerate().filter(is_cause).map(|(number, _)| number).collect();
        if !numbers.is_empty() && lines.is_minimal && !self.known.contains(&numbers) {
            self.known.push(numbers);
        }
    }

    fn not_searched(&self) -> Said {
        let SearchBounds { servers, longest } = self.bounds;
        let seconds = longest.as_secs();
        said!(
            "not searched: the search ends after {servers} started servers or {seconds} s",
            "찾지 않았습니다: 원인 찾기는 서버를 {servers}번 시작했거나 {seconds}초가 지나면 끝납니다"
        )
    }
}

fn too_many() -> Said {
    said!(
        "the trials were not enough to find the smallest set of lines",
        "시도 횟수가 모자라 줄을 더 좁히지 못했습니다"
    )
}

/// The lines of an earlier difference, if one of its sets makes this difference too, and nothing smaller does.
fn known(
    known: &[BTreeSet<usize>],
    changes: &ConfChanges,
    test: &mut dyn FnMut(&[u8]) -> Option<Trial>,
) -> Option<CausingLines> {
    let mut trials = 0;
    // Of a set with several lines, one alone may be enough here.
    for made in known.iter().filter(|made| made.len() == 1) {
        trials += 1;
        if test(&changes.mixture(made)) != Some(Trial::Shows) {
            continue;
        }
        let without = test(&changes.mixture(&BTreeSet::new()))?;
        let causes = made.iter().filter_map(|number| Some(changes.all.get(*number)?.cause.clone())).collect();
        return (without != Trial::Shows).then_some(CausingLines { causes, trials: trials + 1, is_minimal: true });
    }
    None
}

/// Trials of mixtures in the place of B. A's answers are the same in all of them.
struct Candidates<'s> {
    stage: &'s Stage<'s>,
    request: &'s SwapRequest,
    requests: &'s [SwapRequest],
    of_a: [Shown; 2],
}

impl Candidates<'_> {
    fn value(&self, searched: &SearchedDifference, shown: &Shown) -> Option<String> {
        let [first, again] = &self.of_a;
        self.stage.difference(searched, self.request, [first, again, shown])
    }

    /// The difference that this text shows. If it is B's own value, that value counts too.
    fn reference(&self, searched: &SearchedDifference, text: &[u8]) -> Option<SearchedDifference> {
        let shown = self.stage.mixture(&String::from_utf8_lossy(text), self.requests)?;
        let value = self.value(searched, &shown)?;
        let of_b = self.value(searched, &self.stage.side(NAME_B, self.stage.b, self.requests)?)?;
        Some(SearchedDifference { b: (value == of_b).then_some(value), ..searched.clone() })
    }

    fn of(&self, searched: &SearchedDifference, text: &[u8]) -> Option<Trial> {
        if self.stage.left() == 0 {
            return None;
        }
        let shown = self.stage.mixture(&String::from_utf8_lossy(text), self.requests);
        let Some(shown) = shown else { return Some(Trial::Unresolved) };
        Some(if self.value(searched, &shown).is_some() { Trial::Shows } else { Trial::Silent })
    }
}
