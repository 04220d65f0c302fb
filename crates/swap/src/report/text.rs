//! The report for a terminal.

use weir_words::{Language, Said, said};

use super::model::{ReportedDifference, SwapReport};
use crate::cause::CauseSide;
use crate::compare::EXPLAINED;
use crate::difference::{part_in_korean, value_said};
use crate::request::SwapRequest;
use crate::verdict::{ROUTE_MIN, SwapVerdict};

/// Most differences, rows of a list and routes of a difference that the text shows; the JSON has all.
const SHOWN_MAX: usize = 12;
/// Most routes of one difference.
const ROUTES_MAX: usize = 3;
/// Most earlier requests of one difference.
const BEFORE_MAX: usize = 5;
/// Most characters of a target.
const TARGET_MAX: usize = 100;

/// The report for a terminal.
pub fn text(report: &SwapReport, language: Language) -> String {
    let mut out = Lines { text: String::new(), language };
    out.line(verdict(report));
    out.line(bound(report));
    for (number, one) in report.differences.iter().enumerate().take(SHOWN_MAX) {
        difference(&mut out, number + 1, one);
    }
    out.more(report.differences.len());
    traffic(&mut out, report);
    noise(&mut out, report);
    routes(&mut out, report);
    never(&mut out, report);
    out.text
}

struct Lines {
    text: String,
    language: Language,
}

impl Lines {
    fn line(&mut self, said: Said) {
        self.text.push_str(said.say(self.language));
        self.text.push('\n');
    }

    fn heading(&mut self, said: Said) {
        self.text.push('\n');
        self.line(said);
    }

    fn more(&mut self, count: usize) {
        let more = count.saturating_sub(SHOWN_MAX);
        if more > 0 {
            self.line(said!("  and {more} more (--json has all)", "  외 {more}건(--json에 모두 있습니다)"));
        }
    }
}

/// The verdict in one sentence.
pub(super) fn verdict(report: &SwapReport) -> Said {
    let (differing, of) = report.bound.requests;
    let verdict = match report.verdict {
        SwapVerdict::Same => said!(
            "B answers as A does: 0 of {of} requests differ",
            "B는 A와 똑같이 응답합니다: 요청 {of}건 모두 같습니다"
        ),
        SwapVerdict::Differs => said!(
            "B answers in another way: {differing} of {of} requests differ",
            "B의 응답이 다릅니다: 요청 {of}건 중 {differing}건이 다릅니다"
        ),
        SwapVerdict::Undecided => {
            said!("undecided: no request could be compared", "판정 불가: 비교할 수 있는 요청이 없습니다")
        }
    };
    match report.is_stopped {
        true => verdict + said!(" (the run was ended early)", " (실행을 중간에 끝냈습니다)"),
        false => verdict,
    }
}

/// The bound in one sentence.
pub(super) fn bound(report: &SwapReport) -> Said {
    let (upper, clients) = (percent(report.bound.upper), percent(report.bound.upper_clients));
    let count = report.bound.clients.1;
    let unshown = report.routes.iter().filter(|route| !route.is_shown()).count();
    let bound = said!(
        "at most {upper} of such requests differ (95 %); of such clients at most {clients} ({count} clients asked)",
        "이런 요청 중 다를 수 있는 비율은 최대 {upper}(95 %), 클라이언트 기준으로는 최대 {clients}(클라이언트 {count}개)입니다"
    );
    match unshown {
        0 => bound,
        _ => {
            bound
                + said!(
                    "; {unshown} routes with fewer than {ROUTE_MIN} requests are not shown to be the same",
                    ". 요청이 {ROUTE_MIN}건보다 적은 경로 {unshown}개는 같다고 말할 수 없습니다"
                )
        }
    }
}

/// A share, as a percentage with two digits that count.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        return format!("{percent:.0} %");
    }
    let places = if percent > 0.0 { (1 - percent.log10().floor() as i32).clamp(0, 6) as usize } else { 0 };
    format!("{percent:.places$} %")
}

/// The request on one line: `GET http host /path`.
pub(super) fn line_of(request: &SwapRequest) -> String {
    // A recording may come from anyone: a control character would be a command to the terminal.
    let text = |bytes: &[u8]| -> String {
        String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '\u{b7}' } else { c }).collect()
    };
    let target: String = text(&request.target).chars().take(TARGET_MAX).collect();
    let version = if request.is_http10 { " HTTP/1.0" } else { "" };
    let fields = request
        .fields
        .iter()
        .filter(|(name, _)| !["user-agent", "accept"].iter().any(|usual| name.eq_ignore_ascii_case(usual.as_bytes())));
    let fields: String =
        fields.map(|(name, value)| format!("  {}: {}", text(name), text(value))).take(ROUTES_MAX).collect();
    format!("{} {}{target}{version}{fields}", text(request.method.as_bytes()), text(request.host.as_bytes()))
}

fn difference(out: &mut Lines, number: usize, one: &ReportedDifference) {
    let (part, count) = (&one.part, one.requests);
    let ko = part_in_korean(part);
    out.heading(said!("{number}. {part} differs; requests: {count}", "{number}. 다른 부분: {ko}, 요청 {count}건"));
    out.line(Said::from("   A: ".to_owned()) + value_said(&one.a));
    out.line(Said::from("   B: ".to_owned()) + value_said(&one.b));
    out.line(said!("   request: {}", "   요청: {}", line_of(&one.request)));
    if !one.causes.is_empty() {
        for earlier in one.before.iter().take(BEFORE_MAX) {
            out.line(said!("   after: {}", "   먼저 보낼 요청: {}", line_of(earlier)));
        }
        let more = one.before.len().saturating_sub(BEFORE_MAX);
        if more > 0 {
            out.line(said!("   and after {more} more", "   외 {more}건"));
        }
    }
    let routes: Vec<&str> = one.routes.iter().take(ROUTES_MAX).map(String::as_str).collect();
    let (shown, more) = (routes.join(", "), one.routes.len().saturating_sub(ROUTES_MAX));
    let more = if more > 0 { said!(" and {more} more", " 외 {more}개") } else { Said::default() };
    out.line(said!("   routes: {shown}", "   경로: {shown}") + more);
    for cause in &one.causes {
        let side = match cause.side {
            CauseSide::A => "A",
            CauseSide::B => "B",
        };
        let (file, line, text) = (&cause.file, cause.line, &cause.text);
        out.line(said!("   made by {side}, {file}:{line}: {text}", "   원인: {side}, {file}:{line}: {text}"));
    }
    if let Some(note) = &one.cause_note {
        out.line(Said::from("   ".to_owned()) + note.clone());
    }
}

fn traffic(out: &mut Lines, report: &SwapReport) {
    let asked = report.asked;
    out.heading(said!("Requests: {asked} asked", "요청: {asked}건을 보냈습니다"));
    for source in &report.sources {
        out.line(Said::from("  ".to_owned()) + source.clone());
    }
    for (why, count) in &report.not_replayed {
        out.line(said!("  not asked: {count}: ", "  보내지 않음: {count}건: ") + why.said());
    }
    for (index, count) in &report.explained {
        if let Some(one) = EXPLAINED.get(*index) {
            let (en, ko) = (one.reason.en, one.reason.ko);
            out.line(said!("  deliberate: {count}: {en}", "  의도된 차이: {count}건: {ko}"));
        }
    }
    if report.passing > 0 {
        let count = report.passing;
        out.line(said!("  gone when asked again: {count}", "  다시 요청하니 사라진 차이: {count}건"));
    }
}

fn noise(out: &mut Lines, report: &SwapReport) {
    if report.noise.is_empty() {
        return;
    }
    out.heading(said!("Not compared, because A differs from itself:", "A 자신의 응답이 서로 달라 비교하지 않은 부분:"));
    for one in report.noise.iter().take(SHOWN_MAX) {
        let (differed, of, part, route) = (one.differed, one.of, &one.part, &one.route);
        let ko = part_in_korean(part);
        out.line(said!("  {part}: {differed} of {of}, {route}", "  {ko}: {of}건 중 {differed}건, {route}"));
    }
    out.more(report.noise.len());
}

fn routes(out: &mut Lines, report: &SwapReport) {
    out.heading(said!("Routes, with their requests:", "경로별 요청:"));
    for one in report.routes.iter().take(SHOWN_MAX) {
        let (route, requests, differing) = (&one.route, one.requests, one.differing);
        let few = if one.is_shown() { Said::default() } else { said!("  too few", "  너무 적음") };
        let differ =
            if differing > 0 { said!("  {differing} differ", "  {differing}건 다름") } else { Said::default() };
        out.line(Said::from(format!("  {requests:>7}  {route}")) + differ + few);
    }
    out.more(report.routes.len());
}

fn never(out: &mut Lines, report: &SwapReport) {
    let never: Vec<_> = report.exercised.iter().filter(|one| one.requests == 0).collect();
    if never.is_empty() {
        return;
    }
    out.heading(said!("Statements of A that no request ran through:", "어떤 요청도 거치지 않은 A의 지시어:"));
    for one in never.iter().take(SHOWN_MAX) {
        out.line(Said::from(format!("  {}:{} {}", one.file, one.line, one.text)));
    }
    out.more(never.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_has_two_digits_that_count() {
        for (share, text) in [(0.0000727, "0.0073 %"), (0.0757, "7.6 %"), (0.5, "50 %"), (1.0, "100 %"), (0.0, "0 %")] {
            assert_eq!(percent(share), text);
        }
    }
}
