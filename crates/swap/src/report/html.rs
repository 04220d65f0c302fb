//! The report as one page that needs nothing else.

use weir_dash::inline::{Page, escape};
use weir_words::{Language, Said, said};

use super::model::{ReportedDifference, SwapReport};
use super::text::{bound, line_of, percent, verdict};
use crate::cause::CauseSide;
use crate::compare::EXPLAINED;
use crate::difference::{part_in_korean, value_said};
use crate::verdict::SwapVerdict;

/// Most rows of a table; the JSON has all.
const ROWS_MAX: usize = 500;

/// The page.
pub fn html(report: &SwapReport, language: Language) -> String {
    let part = PageParts { report, language };
    let body =
        [part.head(), part.differences(), part.traffic(), part.routes(), part.noise(), part.exercised()].concat();
    let title = format!("weir swap: {} → {}", report.names[0], report.names[1]);
    let is_korean = language == Language::Korean;
    Page { is_korean, maker: "weir swap", title: &title, body: &body, module: None }.render()
}

struct PageParts<'r> {
    report: &'r SwapReport,
    language: Language,
}

impl PageParts<'_> {
    fn say(&self, said: Said) -> String {
        escape(said.say(self.language))
    }

    fn head(&self) -> String {
        let (tone, shape) = match self.report.verdict {
            SwapVerdict::Same => ("good", "●"),
            SwapVerdict::Differs => ("bad", "■"),
            SwapVerdict::Undecided => ("idle", "○"),
        };
        let [a, b] = self.report.names.each_ref().map(|name| escape(name));
        let (title, verdict, bound) = (
            self.say(said!("B in the place of A", "A 대신 B")),
            self.say(verdict(self.report)),
            self.say(bound(self.report)),
        );
        format!(
            "<h1>{title}</h1>\n<section class=\"verdict {tone}\"><span class=\"mark {tone}\"><span class=\"shape\" aria-hidden=\"true\">{shape}</span></span><span class=\"words\">{verdict}</span></section>\n<p class=\"hint\">A: <code>{a}</code> · B: <code>{b}</code></p>\n<p>{bound}</p>\n"
        )
    }

    fn section(&self, title: Said, content: &str) -> String {
        if content.is_empty() {
            return String::new();
        }
        format!("<h2>{}</h2>\n<section class=\"card\">{content}</section>\n", self.say(title))
    }

    fn table(&self, heads: &[Said], rows: impl Iterator<Item = Vec<String>>) -> String {
        let rows: String = rows
            .take(ROWS_MAX)
            .map(|row| {
                let cells: String = row.iter().map(|cell| format!("<td class=\"text\">{cell}</td>")).collect();
                format!("<tr>{cells}</tr>\n")
            })
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        let heads: String =
            heads.iter().map(|head| format!("<th class=\"text\">{}</th>", self.say(head.clone()))).collect();
        format!("<table><tr>{heads}</tr>\n{rows}</table>\n")
    }

    fn part(&self, part: &str) -> String {
        self.say(Said::of_both(part, part_in_korean(part)))
    }

    fn differences(&self) -> String {
        let all: String = self.report.differences.iter().take(ROWS_MAX).map(|one| self.difference(one)).collect();
        if all.is_empty() { all } else { format!("<h2>{}</h2>\n{all}", self.say(said!("Differences", "차이"))) }
    }

    fn difference(&self, one: &ReportedDifference) -> String {
        let count = self.say(said!("requests: {}", "요청 {}건", one.requests));
        let value = |value: &str| self.say(value_said(value));
        let causes = one.causes.iter().map(|cause| {
            let side = match cause.side {
                CauseSide::A => "A",
                CauseSide::B => "B",
            };
            let place = escape(&format!("{side} {}:{}", cause.file, cause.line));
            format!(
                "<tr><th class=\"text\">{place}</th><td class=\"text\"><code>{}</code></td></tr>\n",
                escape(&cause.text)
            )
        });
        let causes: String = causes.collect();
        let before = one.before.iter().filter(|_| !one.causes.is_empty()).take(ROWS_MAX).map(|earlier| {
            let (after, line) = (self.say(said!("after", "먼저 보낼 요청")), escape(&line_of(earlier)));
            format!("<tr><th class=\"text\">{after}</th><td class=\"text\"><code>{line}</code></td></tr>\n")
        });
        let before: String = before.collect();
        let note = one.cause_note.iter().map(|note| format!("<p class=\"hint\">{}</p>", self.say(note.clone())));
        let routes: Vec<String> = one.routes.iter().take(ROWS_MAX).map(|route| escape(route)).collect();
        format!(
            "<section class=\"card\"><h3>{} <span class=\"hint\">{count}</span></h3>\n<table><tr><th class=\"text\">A</th><td class=\"text\"><code>{}</code></td></tr>\n<tr><th class=\"text\">B</th><td class=\"text\"><code>{}</code></td></tr>\n<tr><th class=\"text\">{}</th><td class=\"text\"><code>{}</code></td></tr>\n{before}{causes}</table>\n{}<details><summary>{}</summary><p>{}</p></details></section>\n",
            self.part(&one.part),
            value(&one.a),
            value(&one.b),
            self.say(said!("request", "요청")),
            escape(&line_of(&one.request)),
            note.collect::<String>(),
            self.say(said!("routes: {}", "경로 {}개", one.routes.len())),
            routes.join("<br>"),
        )
    }

    fn traffic(&self) -> String {
        let report = self.report;
        let mut rows = vec![vec![self.say(said!("asked", "보냄")), report.asked.to_string(), String::new()]];
        for (why, count) in &report.not_replayed {
            rows.push(vec![self.say(said!("not asked", "보내지 않음")), count.to_string(), self.say(why.said())]);
        }
        for (index, count) in &report.explained {
            if let Some(one) = EXPLAINED.get(*index) {
                let reason = self.say(Said::of_both(one.reason.en, one.reason.ko));
                rows.push(vec![self.say(said!("deliberate", "의도된 차이")), count.to_string(), reason]);
            }
        }
        rows.push(vec![
            self.say(said!("gone when asked again", "다시 요청하니 사라짐")),
            report.passing.to_string(),
            String::new(),
        ]);
        let sources: String = report
            .sources
            .iter()
            .map(|source| format!("<p class=\"hint\">{}</p>\n", self.say(source.clone())))
            .collect();
        let heads = [Said::default(), said!("requests", "요청 수"), said!("reason", "이유")];
        self.section(said!("Requests", "요청"), &(self.table(&heads, rows.into_iter()) + &sources))
    }

    fn routes(&self) -> String {
        let rows = self.report.routes.iter().map(|one| {
            let few = if one.is_shown() { String::new() } else { self.say(said!("too few", "너무 적음")) };
            vec![escape(&one.route), one.requests.to_string(), one.differing.to_string(), few]
        });
        let heads = [said!("route", "경로"), said!("requests", "요청 수"), said!("differ", "다름"), Said::default()];
        self.section(said!("Routes", "경로"), &self.table(&heads, rows))
    }

    fn noise(&self) -> String {
        let rows = self
            .report
            .noise
            .iter()
            .map(|one| vec![self.part(&one.part), format!("{} / {}", one.differed, one.of), escape(&one.route)]);
        let heads = [said!("part", "부분"), said!("A differs from A", "A끼리 다름"), said!("route", "경로")];
        self.section(said!("Not compared", "비교하지 않음"), &self.table(&heads, rows))
    }

    fn exercised(&self) -> String {
        let asked = self.report.asked.max(1) as f64;
        let rows = self.report.exercised.iter().map(|one| {
            let share = match one.requests {
                0 => self.say(said!("never", "없음")),
                count => percent(count as f64 / asked),
            };
            let place = escape(&format!("{}:{}", one.file, one.line));
            vec![place, format!("<code>{}</code>", escape(&one.text)), one.requests.to_string(), share]
        });
        let heads = [
            said!("place", "위치"),
            said!("statement", "지시어"),
            said!("requests", "요청 수"),
            said!("share", "비율"),
        ];
        self.section(said!("Statements that the requests ran through", "요청이 거친 지시어"), &self.table(&heads, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judgement;

    #[test]
    fn the_page_escapes_names() {
        let report = SwapReport::of(&Judgement::default(), ["<a>".to_owned(), "b&".to_owned()]);
        for language in [Language::English, Language::Korean] {
            let page = html(&report, language);
            assert!(page.contains("A: <code>&lt;a&gt;</code>") && !page.contains("<a>"), "{page}");
        }
    }
}
