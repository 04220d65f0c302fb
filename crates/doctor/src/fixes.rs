//! The fixes that a configuration can have without harm.
//!
//! weir tries each fix on a copy of the whole tree. It drops a fix that brings another finding, closes the way of a
//! special request ([`crate::ways`]), or makes a file that the program refuses. A fix may need another one, as
//! `keepalive` needs HTTP/1.1: weir then makes both.

use weir_conf::Tree;

use crate::explain;
use crate::facts::Facts;
use crate::mend::{self, Mended};
use crate::rule::{Finding, FindingLevel};
use crate::target::Target;
use crate::view::View;
use crate::ways;
use weir_words::{Said, said};

/// Most fixes, or groups of fixes, that are tried on one tree.
pub const ATTEMPTS_MAX: usize = 400;

/// Most rounds of further fixes that one fix needs.
const ROUNDS_MAX: usize = 8;

/// Findings that a fix may bring: the rule of the fix, and the rule of the finding.
pub const MAY_COME: [(&str, &str); 3] = [
    // Waiting for the lock is better than a request of each client.
    ("cache_stampede", "cache_lock_polling"),
    // A table that is large enough now is no problem; the note says so.
    ("connection_table", "headroom"),
    // Before, no WebSocket came through, so none could be closed.
    ("websocket_upgrade", "websocket_timeout"),
];

/// The questions that the caller answers for each fix.
pub struct Judges<'j> {
    /// Whether the user wants this finding fixed.
    pub is_wanted: &'j dyn Fn(&Finding) -> bool,
    /// The reason why this finding's fix must not be written, for example because a file belongs to another program.
    pub forbids: &'j dyn Fn(&Tree, &Finding) -> Option<Said>,
    /// The reason why the program would not start with these files.
    pub refuses: &'j dyn Fn(&[Mended]) -> Option<Said>,
}

impl<'j> Judges<'j> {
    /// The judges that let every wanted fix pass.
    pub fn lenient(is_wanted: &'j dyn Fn(&Finding) -> bool) -> Judges<'j> {
        Judges { is_wanted, forbids: &|_, _| None, refuses: &|_| None }
    }
}

/// A fix that weir does not make.
pub struct Dropped {
    /// The rule of the finding.
    pub rule: &'static str,
    /// The place of the finding in the first tree; empty if the finding has none.
    pub place: String,
    /// The reason.
    pub why: Said,
}

/// The fixes together.
pub struct Whole {
    /// Every changed file: its first and its last content.
    pub files: Vec<Mended>,
    /// The fixes that weir does not make.
    pub dropped: Vec<Dropped>,
    /// Wanted fixes that weir did not try. More than 0 only after [`ATTEMPTS_MAX`] attempts.
    pub left: usize,
}

/// Chooses the fixes of a tree.
pub fn choose(tree: &Tree, target: Target, facts: &Facts, judges: &Judges<'_>) -> Whole {
    let first = crate::examine(tree, target, facts);
    let mut choice = Choice { tree, target, facts, judges, first, now: None, attempts: 0, dropped: Vec::new() };
    let left = loop {
        let wanted = choice.wanted();
        if wanted.is_empty() || choice.attempts >= ATTEMPTS_MAX {
            break wanted.len();
        }
        choice.take(wanted);
    };
    let files = choice.now.as_ref().map(|(now, _)| mend::changed(tree, now)).unwrap_or_default();
    Whole { files, dropped: choice.dropped.into_iter().map(|(_, dropped)| dropped).collect(), left }
}

/// The rule and the English sentence of a finding. Other fixes may move its line, but they do not change these.
type Key = (&'static str, String);

fn key_of(finding: &Finding) -> Key {
    (finding.rule, finding.what.en().to_owned())
}

/// The number of findings with the same rule and sentence.
fn alike(all: &[Finding], one: &Finding) -> usize {
    all.iter().filter(|other| key_of(other) == key_of(one)).count()
}

struct Choice<'c> {
    tree: &'c Tree,
    target: Target,
    facts: &'c Facts,
    judges: &'c Judges<'c>,
    /// The findings of the first tree.
    first: Vec<Finding>,
    /// The tree with the fixes so far, and its findings.
    now: Option<(Tree, Vec<Finding>)>,
    attempts: usize,
    dropped: Vec<(Key, Dropped)>,
}

impl Choice<'_> {
    fn now(&self) -> &Tree {
        self.now.as_ref().map_or(self.tree, |(tree, _)| tree)
    }

    /// The findings of the present tree.
    fn found(&self) -> &[Finding] {
        self.now.as_ref().map_or(self.first.as_slice(), |(_, found)| found.as_slice())
    }

    fn examine(&self, tree: &Tree) -> Vec<Finding> {
        crate::examine(tree, self.target, self.facts)
    }

    /// The findings of the present tree that the user wants fixed, without those whose fix was dropped.
    fn wanted(&mut self) -> Vec<Finding> {
        let mut all = self.found().to_vec();
        all.retain(|finding| !finding.fix.is_empty() && (self.judges.is_wanted)(finding));
        all.retain(|finding| !self.is_dropped(finding));
        let (allowed, forbidden): (Vec<_>, Vec<_>) = all
            .into_iter()
            .map(|finding| ((self.judges.forbids)(self.now(), &finding), finding))
            .partition(|(why, _)| why.is_none());
        for (why, finding) in forbidden {
            self.drop(&finding, why.unwrap_or_default());
        }
        allowed.into_iter().map(|(_, finding)| finding).collect()
    }

    fn is_dropped(&self, finding: &Finding) -> bool {
        let key = key_of(finding);
        self.dropped.iter().any(|(dropped, _)| *dropped == key)
    }

    fn drop(&mut self, finding: &Finding, why: Said) {
        let (key, rule) = (key_of(finding), finding.rule);
        // Earlier fixes may have moved its line.
        let mut first = self.first.iter().filter(|first| key_of(first) == key);
        let place = match first.next() {
            Some(first) => first.at.map(|at| explain::place(self.tree, at)),
            None => finding.at.map(|at| explain::place(self.now(), at)),
        };
        self.dropped.push((key, Dropped { rule, place: place.unwrap_or_default(), why }));
    }

    /// Makes as many of these fixes as harm nothing. If they do harm together, it tries each half alone.
    fn take(&mut self, mut wanted: Vec<Finding>) {
        // A caller may have lost its interest meanwhile.
        wanted.retain(|finding| (self.judges.is_wanted)(finding));
        if wanted.is_empty() || self.attempts >= ATTEMPTS_MAX {
            return;
        }
        let mut set: Vec<Finding> = mend::together(self.now(), &wanted).into_iter().cloned().collect();
        match (self.attempt(&set), set.as_slice()) {
            (Ok(next), _) => self.now = Some(next),
            (Err(why), [one]) => self.drop(&one.clone(), why),
            (Err(_), _) => {
                let half = set.split_off(set.len() / 2);
                let keys: Vec<Key> = half.iter().map(key_of).collect();
                self.take(set);
                // The first half may have moved the lines of the second.
                let mut rest = self.wanted();
                rest.retain(|finding| keys.contains(&key_of(finding)));
                if !rest.is_empty() {
                    self.take(rest);
                }
            }
        }
    }

    /// The tree with these fixes and with those that they need, and its findings; or the reason why they do harm.
    fn attempt(&mut self, set: &[Finding]) -> Result<(Tree, Vec<Finding>), Said> {
        self.attempts += 1;
        let (now, before) = (self.now(), self.found());
        let mut next = mend::with(now, &mend::mend(now, set));
        let mut after = self.examine(&next);
        for _ in 0..ROUNDS_MAX {
            let mut needed = brought(&after, before, set);
            needed.retain(|finding| !finding.fix.is_empty() && (self.judges.forbids)(&next, finding).is_none());
            if needed.is_empty() {
                break;
            }
            next = mend::with(&next, &mend::mend(&next, &needed));
            after = self.examine(&next);
        }
        if let Some(new) = brought(&after, before, set).first() {
            let rule = new.rule;
            return Err(
                said!("it would bring another finding, {rule}: ", "다른 결과가 생깁니다 ({rule}): ") + new.what.clone()
            );
        }
        if set.iter().any(|finding| alike(&after, finding) >= alike(before, finding)) {
            return Err(said!("the finding would stay", "고쳐도 같은 결과가 남습니다"));
        }
        let views = (View::new(now), View::new(&next));
        if let Some(harm) = ways::harm(&views.0, &views.1, self.target, self.facts) {
            return Err(harm);
        }
        match (self.judges.refuses)(&mend::changed(self.tree, &next)) {
            Some(why) => Err(Said::from(self.target.name())
                + said!(" would refuse the file: ", "가 이 파일을 거부합니다: ")
                + why),
            None => Ok((next, after)),
        }
    }
}

/// The findings that a change has brought. A change has brought a finding if its rule had fewer findings of at least
/// this level before.
fn brought(after: &[Finding], before: &[Finding], fixed: &[Finding]) -> Vec<Finding> {
    let count = |all: &[Finding], rule: &str, level: FindingLevel| {
        all.iter().filter(|finding| finding.rule == rule && finding.level <= level).count()
    };
    let may_come = |finding: &Finding| fixed.iter().any(|fix| MAY_COME.contains(&(fix.rule, finding.rule)));
    let is_new = |finding: &&Finding| {
        count(after, finding.rule, finding.level) > count(before, finding.rule, finding.level)
            && alike(after, finding) > alike(before, finding)
            && !may_come(finding)
    };
    after.iter().filter(is_new).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::version::Version;

    const OLD: Version = Version(1, 22, 1);

    fn chosen(conf: &str, is_wanted: &dyn Fn(&Finding) -> bool) -> (String, Vec<String>) {
        let tree = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/").0;
        let facts = Facts { version_is_told: Some(OLD), ..Facts::default() };
        let whole = choose(&tree, OLD.into(), &facts, &Judges::lenient(is_wanted));
        let after = whole.files.first().map_or(conf.as_bytes(), |file| &file.after);
        let dropped = whole.dropped.iter().map(|one| format!("{} {}: {}", one.place, one.rule, one.why.en())).collect();
        (String::from_utf8_lossy(after).into_owned(), dropped)
    }

    /// A pool of connections beside WebSockets needs the map; without a block that can hold the map, it is not made.
    #[test]
    fn a_pool_beside_websockets_leaves_them_open() {
        let site = "upstream chat { server 10.0.0.1; }\nserver { listen 80; location /socket.io/ { proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\"; proxy_pass http://chat; } }\n";
        for conf in [site.to_owned(), format!("events {{ }}\nhttp {{\n{site}}}\n")] {
            let (after, dropped) = chosen(&conf, &|finding| finding.rule == "upstream_without_keepalive");
            assert!(after.contains("keepalive 32;") && !after.contains("Connection \"\""), "{after}");
            assert_eq!(dropped, Vec::<String>::new(), "{after}");
        }
    }

    /// An editor that cancels wants no fix any more.
    #[test]
    fn a_caller_without_interest_ends_the_trial() {
        let conf = "http { server { location /a { alias /b/; } location /c { alias /d/; } } }";
        let asked = std::cell::Cell::new(0);
        let loses_interest = |_: &Finding| {
            asked.set(asked.get() + 1);
            asked.get() < 2
        };
        assert!(chosen(conf, &|_| true).0.contains("location /c/"));
        let (after, dropped) = chosen(conf, &loses_interest);
        assert_eq!((after.as_str(), dropped), (conf, Vec::new()), "asked {} times", asked.get());
    }

    /// The other fixes are made all the same, and the sentence names the place before them.
    #[test]
    fn a_fix_that_the_program_refuses_is_dropped_alone() {
        let conf = "http {\nserver {\nerror_log off;\nlocation /a {\nalias /b/;\n}\nlocation /c {\nproxy_cache c;\nproxy_pass http://a;\n}\n}\n}\n";
        let tree = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/").0;
        let refuses = |files: &[Mended]| {
            let has_lock = files.iter().any(|file| String::from_utf8_lossy(&file.after).contains("proxy_cache_lock"));
            has_lock.then(|| Said::from("no lock"))
        };
        let judges = Judges { refuses: &refuses, ..Judges::lenient(&|_| true) };
        let whole = choose(&tree, OLD.into(), &Facts::default(), &judges);
        let after = String::from_utf8_lossy(&whole.files[0].after).into_owned();
        assert!(!after.contains("error_log off") && after.contains("location /a/ {"), "{after}");
        let dropped: Vec<_> = whole.dropped.iter().map(|one| (one.place.as_str(), one.rule, one.why.en())).collect();
        assert_eq!(dropped, [("/f:8", "cache_stampede", "nginx would refuse the file: no lock")]);
    }
}
