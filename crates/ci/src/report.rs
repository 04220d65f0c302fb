//! The report of a comparison of two revisions, as text, Markdown, JUnit and JSON.

mod table;

use std::time::Duration;

use serde_json::{Value, json};
use weir_lab::command::CommandLine;
use weir_lab::pace::MeasuredPace;
use weir_lab::said::shown_list;
use weir_words::{Language, Said, say};

use crate::escape::{code, fenced, sentence};
use crate::judge::{self, ALPHA, CiVerdict, LOOKS};
use crate::junit::{self, JunitCase, JunitEnd};
use crate::noise::RunNoise;
use crate::revision::CodeRevision;
use crate::{plan, texts};

/// Most characters of a comment. GitHub takes 65,536, GitLab a million.
pub const COMMENT_MAX: usize = 60_000;
/// Most changes of the configuration that are listed.
const CHANGES_MAX: usize = 30;

/// A comparison of two revisions.
#[derive(Clone, Debug)]
pub struct CiReport {
    /// The revision before.
    pub before: CodeRevision,
    /// The revision after.
    pub after: CodeRevision,
    /// The configuration, relative to the repository.
    pub conf: String,
    /// The conclusion.
    pub verdict: CiVerdict,
    /// The run of the lab, if there was one.
    pub run: Option<Value>,
    /// The pace that was measured first.
    pub pace: Option<MeasuredPace>,
    /// The parts that there was no time for, or that were left out.
    pub not_done: Vec<Said>,
    /// The time that the run was allowed, and the time that it took.
    pub time: (Duration, Duration),
    /// Whether the blocks had namespaces of their own.
    pub is_isolated: bool,
    /// The command line.
    pub command: CommandLine,
    /// The name in the hidden marker of the comment.
    pub marker: String,
}

impl CiReport {
    /// The hidden line that a comment begins with. A pipeline finds the comment of an earlier run by it.
    pub fn marker_line(marker: &str) -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = marker.chars().filter(is_plain).take(64).collect();
        format!("<!-- weir ci: {name} -->")
    }

    /// The sentence with the outcome.
    pub fn outcome(&self) -> Said {
        say!(texts::OUTCOME, self.verdict.outcome.words().with(&[]), self.verdict.text.clone())
    }

    fn compares(&self, shown: impl Fn(&str) -> String) -> Said {
        let name = |of: &CodeRevision| format!("{} {}", shown(&of.asked), shown(of.short()));
        let (before, after) = (name(&self.before), name(&self.after));
        say!(texts::FROM_TO, before, shown(&self.before.subject), after, shown(&self.after.subject))
    }

    fn about_run(&self) -> Said {
        let place = if self.is_isolated { texts::WHERE_NAMESPACES } else { texts::WHERE_LOOPBACK };
        let run = self.run.as_ref();
        let load = run.and_then(|run| weir_lab::said::read(&run["load_said"])).unwrap_or_else(|| "-".into());
        let seed = run.map_or_else(|| "-".to_owned(), |run| run["seed"].to_string());
        say!(texts::ABOUT_RUN, load, place.with(&[]), time(self.time.1), time(self.time.0), seed)
    }

    fn changes(&self, language: Language) -> Vec<String> {
        let mut all = self.run.as_ref().map(|run| shown_list(run, "changes", language)).unwrap_or_default();
        all.truncate(CHANGES_MAX);
        all
    }

    /// The report for a terminal.
    pub fn text(&self, language: Language) -> String {
        let said = |said: &Said| said.say(language).to_owned();
        let mut lines = vec![said(&self.compares(str::to_owned))];
        lines.extend(self.changes(language).iter().map(|change| format!("  {change}")));
        if let Some(run) = &self.run {
            lines.extend([String::new(), table::text(run, &self.verdict.figures, language), String::new()]);
            let noise = RunNoise::of(run).lines();
            lines.push(said(&texts::HEAD_NOISE.with(&[])));
            lines.extend(noise.iter().map(|line| format!("  {}", said(line))));
        }
        lines.extend(self.not_done.iter().map(|one| format!("{}: {}", texts::HEAD_NOT_DONE.say(language), said(one))));
        lines.push(said(&self.about_run()));
        lines.push(said(&self.outcome()));
        if self.run.is_some() {
            lines.extend(self.seen().iter().map(|line| format!("  {}", said(line))));
        }
        lines.join("\n") + "\n"
    }

    /// The differences that the run could have seen.
    fn seen(&self) -> Vec<Said> {
        let seen = self.run.as_ref().map(judge::detectable).unwrap_or_default();
        if seen.is_empty() { vec![say!(texts::NOT_SEEN)] } else { seen }
    }

    /// The comment for a pull request.
    pub fn markdown(&self, language: Language) -> String {
        let say = |said: &Said| sentence(said.say(language));
        let heading = |text: weir_words::Text| format!("\n**{}**\n\n", text.say(language));
        let mut out = CiReport::marker_line(&self.marker) + "\n";
        let outcome = self.verdict.outcome.words().with(&[]);
        out += &format!("### weir ci: {}\n\n{}\n\n", say(&outcome), say(&self.verdict.text));
        out += &format!("{}\n", self.compares(code).say(language));
        if let Some(run) = &self.run {
            let changes = self.changes(language);
            if changes.is_empty() {
                out += &format!("\n{}\n", texts::CONF_SAME.say(language));
            } else {
                out += &heading(texts::CONF_CHANGES);
                out.extend(changes.iter().map(|change| format!("- {}\n", code(change))));
            }
            out += &format!("\n{}\n", table::markdown(run, &self.verdict.figures, language));
            out += &format!("{}\n", table::about(&self.verdict.figures).say(language));
            out.extend(
                ["\n".to_owned()].into_iter().chain(self.seen().iter().map(|line| format!("- {}\n", say(line)))),
            );
            out += &heading(texts::HEAD_NOISE);
            out.extend(RunNoise::of(run).lines().iter().map(|line| format!("- {}\n", say(line))));
        }
        if !self.not_done.is_empty() {
            out += &heading(texts::HEAD_NOT_DONE);
            out.extend(self.not_done.iter().map(|one| format!("- {}\n", say(one))));
        }
        out += &format!("\n{}\n", say(&self.about_run()));
        out += &heading(texts::HEAD_REPEAT);
        cut(out + &fenced(&self.command.to_string(), "sh"), language)
    }

    /// A case for each figure that decides.
    pub fn junit(&self) -> String {
        let figures =
            self.run.as_ref().and_then(|run| run["metrics"].as_array()).map(Vec::as_slice).unwrap_or_default();
        let case = |key: &&'static str| {
            let figure = figures.iter().find(|figure| figure["key"] == **key)?;
            let text = figure["text"].as_str().unwrap_or_default().to_owned();
            let end = match figure["verdict"].as_str().unwrap_or_default() {
                "worse" | "trade-off" => JunitEnd::Failed(text, self.text(Language::English)),
                "inconclusive" | "no verdict" | "not comparable" | "reclassified" => JunitEnd::Skipped(text),
                _ => JunitEnd::Passed,
            };
            Some(JunitCase { class: "weir.ci.ab".to_owned(), name: (*key).to_owned(), file: None, end })
        };
        let mut cases: Vec<JunitCase> = self.verdict.figures.iter().filter_map(case).collect();
        if cases.is_empty() {
            let end = match self.verdict.outcome {
                judge::CiOutcome::NoDifference => JunitEnd::Passed,
                _ => JunitEnd::Skipped(self.verdict.text.en().to_owned()),
            };
            cases.push(JunitCase { class: "weir.ci.ab".to_owned(), name: "comparison".to_owned(), file: None, end });
        }
        junit::document("weir ci ab", &cases, self.time.1.as_secs_f64())
    }

    /// The report for programs. Its schema is `docs/reference/schemas/ci-ab.json`.
    pub fn json(&self) -> Value {
        let outcome = self.verdict.outcome;
        let figures = self.run.as_ref().and_then(|run| run["metrics"].as_array()).cloned().unwrap_or_default();
        json!({
            "version": 1,
            "kind": "ci-ab",
            "verdict": {
                "name": outcome.name(),
                "text": self.verdict.text.en(),
                "text_said": self.verdict.text,
                "is_regression": outcome == judge::CiOutcome::Worse,
            },
            "code": outcome.code(),
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "conf": self.conf,
            "deciding": self.verdict.figures,
            "figures": figures,
            "detectable": self.seen().iter().map(Said::en).collect::<Vec<_>>(),
            "false_alarms": {
                "each_look": ALPHA, "looks": LOOKS, "first_look": plan::PAIRS_LEAST,
                "one_in": judge::one_in(self.verdict.figures.len()),
            },
            "noise": self.run.as_ref().map(|run| RunNoise::of(run).to_json()),
            "pace": self.pace.as_ref().map(MeasuredPace::to_json),
            "not_done": self.not_done.iter().map(Said::en).collect::<Vec<_>>(),
            "budget_s": self.time.0.as_secs_f64(),
            "spent_s": self.time.1.as_secs_f64(),
            "is_isolated": self.is_isolated,
            "command": self.command.words(),
            "run": self.run,
        })
    }
}

/// A time for people.
pub fn time(time: Duration) -> Said {
    let seconds = time.as_secs();
    match seconds < 120 {
        true => say!(texts::SECONDS, seconds),
        false => say!(texts::MINUTES, seconds / 60, seconds % 60),
    }
}

/// A comment of a bounded length. It is cut at the end of a line.
pub(crate) fn cut(text: String, language: Language) -> String {
    let Some((at, _)) = text.char_indices().nth(COMMENT_MAX) else { return text };
    let kept = text.get(..at).unwrap_or_default();
    let kept = kept.rsplit_once('\n').map_or(kept, |(kept, _)| kept);
    format!("{kept}\n\n{}\n", texts::CUT.say(language))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::CiOutcome;

    fn revision(name: &str, subject: &str) -> CodeRevision {
        CodeRevision { asked: name.to_owned(), commit: "0123456789abcdef".to_owned(), subject: subject.to_owned() }
    }

    fn figure(key: &str, verdict: &str) -> Value {
        json!({
            "key": key, "verdict": verdict, "text": format!("{key} {verdict}"), "before": 40.0, "after": 44.0, "pairs": 24,
            "effect": 0.1, "interval": [0.05, 0.15], "confidence": 0.9995, "detectable": 0.03, "is_least": [false, false],
        })
    }

    fn report(outcome: CiOutcome) -> CiReport {
        let run = json!({
            "metrics": [figure("p50", "worse"), figure("app_cpu", "inconclusive"), figure("p99", "worse")], "seed": 7,
            "blocks": [], "design": {"primary": "p50"}, "changes": ["listen: 80 → `81` | <b>"], "load": "/ at 100/s",
        });
        CiReport {
            before: revision("main", "A | `b` @team <script>"),
            after: revision("HEAD", "B"),
            conf: "nginx.conf".to_owned(),
            verdict: CiVerdict { outcome, text: "p50 worse".into(), figures: vec!["p50", "app_cpu"] },
            run: Some(run),
            pace: None,
            not_done: vec!["the <budget> ended".into()],
            time: (Duration::from_secs(600), Duration::from_secs(125)),
            is_isolated: true,
            command: CommandLine::new("weir ci ab --before main".split(' ').map(str::to_owned)),
            marker: "shop<!--".to_owned(),
        }
    }

    #[test]
    fn a_comment_has_the_verdict_first_and_no_markup_of_strangers() {
        for language in [Language::English, Language::Korean] {
            let text = report(CiOutcome::Worse).markdown(language);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[0], "<!-- weir ci: shop-- -->");
            assert!(lines[1].starts_with("### weir ci: worse") && lines[3] == "p50 worse", "{text}");
            assert!(
                text.contains("`A | 'b' @team <script>`") && text.contains("- `listen: 80 → '81' | <b>`"),
                "{text}"
            );
            assert!(text.contains("+10 %") && text.contains("99.95 %") && text.contains("3.0 %"), "{text}");
            assert!(
                text.contains("the &lt;budget&gt; ended") && text.ends_with("```sh\nweir ci ab --before main\n```\n")
            );
            assert!(!text.contains("p99"), "a figure that does not decide: {text}");
        }
    }

    #[test]
    fn a_terminal_gets_the_verdict_at_the_end() {
        let text = report(CiOutcome::Worse).text(Language::English);
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        assert!(last[2].starts_with("worse: p50 worse") && last[1].contains("p50 from 3.0 % on"), "{text}");
    }

    #[test]
    fn each_deciding_figure_is_a_case() {
        let text = report(CiOutcome::Worse).junit();
        assert!(text.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
        let none = CiReport { run: None, ..report(CiOutcome::Undecided) };
        assert!(none.junit().contains("<skipped message=\"p50 worse\"/>"));
    }

    #[test]
    fn a_long_comment_is_cut_at_a_line() {
        let long = format!("a\n{}", "x\n".repeat(COMMENT_MAX));
        let text = cut(long, Language::English);
        assert!(text.chars().count() < COMMENT_MAX + 100 && text.ends_with("too long.\n"));
        assert_eq!(cut("short\n".to_owned(), Language::English), "short\n");
    }

    #[test]
    fn the_json_has_the_code_and_the_error_probability() {
        let json = report(CiOutcome::Worse).json();
        assert_eq!((&json["code"], &json["verdict"]["name"]), (&json!(1), &json!("worse")));
        assert_eq!(json["false_alarms"]["one_in"], 500);
    }
}
