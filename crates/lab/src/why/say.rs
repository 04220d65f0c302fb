//! Words the verdict: one of a few words, and its evidence. No other module names a bottleneck.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use weir_net::clock;
use weir_words::Language;

use super::arm::Elasticity;
use super::asked::Why;
use super::good::GoodStatuses;
use super::prove::Proof;
use super::quiet;
use super::rule::{Segment, Squeeze, Tier, of, percent};
use super::rules::{Finding, waits};
use super::signals::{LoadSignals, ProcessSignals, Role, Signals};
use super::told;
use super::tried::{Copied, Tried, Word};
use super::verify;
use super::widen;
use crate::ask::Cpus;
use crate::metric::digits;
use crate::said::{self, Said, Text, left, say, shown, shown_list};
use crate::texts;

/// If a larger part of the requests fails, a remedy is judged by the failures.
const FAILED_MAX: f64 = 0.03;
/// A script that sent less than this part of what it offers was held back.
const SENT_MIN: f64 = 0.99;

/// Most kinds of failures that a sentence lists.
const ERRORS_MAX: usize = 4;

/// All facts at the end of a run.
#[derive(Clone, Default)]
pub struct EndFacts {
    /// The block with the load as asked.
    pub full: Signals,
    /// The block with half of that load.
    pub half: Option<Signals>,
    /// Something is saturated.
    pub is_saturated: bool,
    /// Suspects, by falling weight.
    pub findings: Vec<Finding>,
    /// The growth of each part of a request's way.
    pub grew: Option<Vec<(Segment, f64)>>,
    /// The rates of the search for the knee, and whether they held.
    pub steps: Vec<(f64, bool)>,
    /// The largest rate that held. For a closed loop, the answers a second.
    pub knee: Option<f64>,
    /// No rate held; this is the smallest rate that failed.
    pub no_knee_above: Option<f64>,
    /// The results of squeezing.
    pub elasticities: Vec<Elasticity>,
    /// The conclusion from them.
    pub proof: Option<Proof>,
    /// Why there is no conclusion.
    pub unproved: Option<Said>,
    /// Why two of the blocks cannot both be right.
    pub contradiction: Option<Said>,
    /// The parts that share CPUs, and which CPUs.
    pub cpus: Option<Said>,
    /// The CPUs that the lab chose instead of the first assignment.
    pub chosen_cpus: Option<Cpus>,
    /// The copy of the configuration with the remedy.
    pub copied: Option<Copied>,
    /// The result of the try.
    pub tried: Option<Tried>,
}

/// The finding that the verdict is about.
pub(super) fn lead(facts: &EndFacts) -> Option<usize> {
    sentence(facts).2
}

/// A verdict, as a run stores it.
pub(super) fn verdict(name: &str, text: &Said, rule: Option<&str>) -> Value {
    json!({"name": name, "text": text.en(), "text_said": text, "rule": rule, "is_regression": false})
}

/// The outcome of a run that allows no conclusion.
pub fn no_verdict(facts: &EndFacts, why: &Said) -> Value {
    let mut outcome = json!({
        "signals": facts.full,
        "findings": [],
        "verdict": verdict("no verdict", &say!(NO_VERDICT, why), None),
    });
    said::keep_list(&mut outcome, "unread", &unread(facts));
    outcome
}

/// The outcome of a run, as it is stored. A sentence is stored in English, and beside it, as `NAME_said`, by the name of
/// its text.
/// `it`: the settings of the lab, which a verdict about a system that runs does not have.
pub fn outcome(facts: &EndFacts, it: Option<&Why>) -> Value {
    let (name, text, lead) = sentence(facts);
    let named = lead.and_then(|lead| facts.findings.get(lead));
    let grew = |of: &dyn Fn(Text) -> Value| {
        let all = facts.grew.as_ref()?.iter();
        Some(all.map(|(segment, share)| json!([of(segment.name()), share])).collect::<Vec<_>>())
    };
    let mut outcome = json!({
        "signals": facts.full,
        "half": facts.half,
        "grew": grew(&|name| name.en.into()),
        "grew_said": grew(&|name| json!(Said::from(name))),
        "steps": facts.steps.iter().map(|(rate, passed)| json!({"rate": rate, "passed": passed, "why": (!passed).then_some(texts::NOT_ANSWERED_IN_TIME.en)})).collect::<Vec<_>>(),
        "knee": facts.knee,
        "no_knee_above": facts.no_knee_above,
        "findings": facts.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        "elasticities": facts.elasticities,
        "lead": lead,
        "tried": facts.tried.as_ref().map(Tried::to_json),
        "copied": facts.copied,
        "verify": named.zip(facts.copied.as_ref()).zip(it).and_then(|((finding, copied), it)| verify::command(finding, it, facts.chosen_cpus.as_ref(), copied)),
        "verdict": verdict(name, &text, named.map(|finding| finding.rule.id)),
    });
    for (name, said) in [
        ("unproved", facts.unproved.as_ref()),
        ("relaxed", relaxed(facts).as_ref()),
        ("next", next_limit(facts, named).as_ref()),
        ("cpus", facts.cpus.as_ref()),
        ("check", named.and_then(|_| check(facts)).as_ref()),
    ] {
        said::keep(&mut outcome, name, said);
    }
    for (name, all) in [
        ("ruled_out", ruled_out(facts)),
        ("inside", waits::lines(&facts.full)),
        ("unread", unread(facts)),
        ("unrest", quiet::unrest(&facts.full)),
        ("cautions", facts.full.load.cautions.clone()),
    ] {
        said::keep_list(&mut outcome, name, &all);
    }
    outcome
}

/// How the user can check a remedy that the lab cannot try.
fn check(facts: &EndFacts) -> Option<Said> {
    let cannot = facts.tried.as_ref().is_none_or(|tried| tried.name == Word::CannotBeTried.name());
    let full = &facts.full;
    let failing = full.failed_share() > FAILED_MAX;
    cannot.then(|| match () {
        () if failing => say!(CHECK_FAILURES, of(full.failed(), full.load.sent)),
        // Clients that are not the lab's decide how much they send.
        () if (facts.is_saturated || full.load.is_closed) && !full.load.is_outside => {
            say!(CHECK_ANSWERS, digits(full.goodput()))
        }
        () => say!(CHECK_LATENCY, digits(full.load.ms[2])),
    })
}

/// The values that could not be read, of the block and of the probed programs.
fn unread(facts: &EndFacts) -> Vec<Said> {
    facts.full.unread.iter().cloned().chain(told::unread(&facts.full.told)).collect()
}

/// `0.97 [0.92, 1.02]`.
fn elasticity(arm: &Elasticity) -> String {
    format!("{:.2} [{:.2}, {:.2}]", arm.value, arm.low, arm.high)
}

/// The word, the sentence, and the number of the finding that they are about.
fn sentence(facts: &EndFacts) -> (&'static str, Said, Option<usize>) {
    let of = |at: usize| {
        facts.findings.get(at).map(|finding| say!(RULE, &finding.found.subject, finding.rule.id)).unwrap_or_default()
    };
    // With the elasticity, if the suspect was squeezed.
    let squeezed = |at: usize| {
        let arm = facts.elasticities.iter().find(|arm| arm.finding == Some(at) && !arm.is_relaxed);
        match (arm, facts.findings.get(at)) {
            (Some(arm), Some(finding)) => {
                say!(RULE_ELASTICITY, &finding.found.subject, finding.rule.id, elasticity(arm))
            }
            _ => of(at),
        }
    };
    if !facts.is_saturated {
        let offered = match facts.full.load.offered {
            Some(offered) => say!(OFFERED_ANSWERED, digits(offered), digits(facts.full.goodput())),
            None if facts.full.load.is_closed => {
                say!(CONNECTIONS_GAVE_MORE_CONNECTIONS, facts.full.load.connections, digits(facts.full.goodput()))
            }
            None if facts.full.load.is_outside => {
                let load = &facts.full.load;
                // A log has whole milliseconds.
                let p95 = if load.ms[2] < 1.0 { "<1".to_owned() } else { digits(load.ms[2]) };
                let rate = digits(facts.full.sent_rate());
                match load.ms[0] > 0.0 {
                    true => say!(NOW_ANSWERED, load.well, load.sent, rate, p95),
                    false => say!(NOW_ANSWERED_UNTIMED, load.well, load.sent, rate),
                }
            }
            // Answers a second would also count the time in which the last answers drain.
            None => {
                let load = &facts.full.load;
                let answered = say!(STACK_ANSWERED_OF_SCRIPT, load.well, load.sent, digits(facts.full.sent_rate()));
                held_back(load).map_or(answered.clone(), |(planned, why)| {
                    say!(SCRIPT_HELD_BACK, answered, format!("{planned:.0}"), why)
                })
            }
        };
        return match facts.findings.first() {
            Some(_) => ("NOT SATURATED", say!(OFFERED_NOTICED, offered, of(0)), Some(0)),
            None => ("NOT SATURATED", say!(OFFERED_NOT_SATURATED, offered), None),
        };
    }
    if facts.findings.first().is_some_and(|finding| finding.rule.tier == Tier::Policy) {
        return ("POLICY", say!(POLICY, of(0)), Some(0));
    }
    match &facts.proof {
        Some(Proof::Proved(at)) => ("PROVED", say!(PROVED, squeezed(*at)), Some(*at)),
        Some(Proof::Shared(several)) => {
            let mut names = several.iter().map(|at| squeezed(*at));
            let first = names.next().unwrap_or_default();
            (
                "SHARED",
                say!(SHARED, names.fold(first, |all, name| say!(SHARED_AND, all, name))),
                several.first().copied(),
            )
        }
        Some(Proof::RuledOut) => ("UNATTRIBUTED", say!(NOTHING_CHANGES, where_it_went(facts)), None),
        Some(Proof::Unclear(_)) | None => match facts.findings.iter().position(Finding::may_limit) {
            Some(at) => ("SUSPECTED", say!(SUSPECTED, squeezed(at)), Some(at)),
            None => ("UNATTRIBUTED", say!(UNATTRIBUTED, where_it_went(facts)), None),
        },
    }
}

/// How many requests a script offers, if it sent fewer by a hundredth, and what held the others back.
fn held_back(load: &LoadSignals) -> Option<(f64, Said)> {
    let planned = load.planned.filter(|planned| (load.sent as f64) < SENT_MIN * planned)?;
    let users = &load.users;
    let waiting = users.created.saturating_sub(users.completed).saturating_sub(users.failed);
    let why = [
        (users.skipped, say!(HELD_SKIPPED, users.skipped)),
        (users.failed, say!(HELD_FAILED, users.failed)),
        (waiting, say!(HELD_WAITING, waiting)),
    ];
    let why: Vec<Said> = why.into_iter().filter(|(count, _)| *count > 0).map(|(_, said)| said).collect();
    (!why.is_empty()).then(|| (planned, Said::list(&why, ", ")))
}

/// The part of a request's way in which unexplained time was spent, or the failures that nothing explains.
fn where_it_went(facts: &EndFacts) -> Said {
    let full = &facts.full;
    if full.failed_share() > FAILED_MAX {
        let mut names: Vec<(&String, &u64)> = full.load.errors.iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let quoted = |name: &str| if name.contains(' ') { format!("\"{name}\"") } else { name.to_owned() };
        let list = names.iter().take(ERRORS_MAX).map(|(name, count)| format!("{} × {count}", quoted(name)));
        let list: Vec<String> = list.collect();
        return say!(FAILED_AS, of(full.failed(), full.load.sent), list.join(", "));
    }
    let grown = Segment::ALL.iter().map(|segment| {
        let then = facts.half.as_ref().map_or(0.0, |half| segment.ms(half));
        (*segment, segment.ms(&facts.full) - then)
    });
    let (segment, ms) = grown.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((Segment::Outside, 0.0));
    let is_outside = facts.full.load.is_outside;
    let went = match facts.half {
        Some(_) if is_outside => texts::NOW_TIME_WENT_MORE,
        Some(_) => texts::TIME_WENT_MORE,
        None => texts::TIME_WENT,
    };
    let went = went.with(&[digits(ms).into(), segment.name().into(), percent(facts.full.failed_share()).into()]);
    let look = match segment {
        Segment::Wait | Segment::Connect => match waits::leading(&facts.full) {
            Some(waits) => Some(waits),
            None if facts.full.inside.is_some() => None,
            None if is_outside => Some(say!(NOW_DOES_NOT_SEE)),
            None => Some(say!(LAB_DOES_NOT_SEE)),
        },
        Segment::Outside
        | Segment::Read
        | Segment::Auth
        | Segment::Edge
        | Segment::Cache
        | Segment::Undivided
        | Segment::Failed
        | Segment::Body
        | Segment::Rate
        | Segment::Mirror => None,
    };
    match look {
        Some(look) => say!(AND_ITS_LOOK, went, look),
        None => went,
    }
}

/// Every resource that was checked and has room, with its figure.
fn ruled_out(facts: &EndFacts) -> Vec<Said> {
    let s = &facts.full;
    let suspected =
        |squeeze: &Squeeze| facts.findings.iter().any(|finding| finding.found.squeeze.as_ref() == Some(squeeze));
    let mut list = Vec::new();
    // On a system that runs, other programs that have room rule out nothing.
    let is_other = |one: &ProcessSignals| s.load.is_outside && one.role == Role::Beside && one.listens.is_empty();
    let roomy = s.processes.iter().filter(|process| process.usage() < 0.85 && process.throttled < 0.05);
    for process in roomy.filter(|process| !is_other(process)) {
        if !suspected(&Squeeze::Cpu(process.name.clone())) {
            let name = if process.role == Role::Client { "client" } else { process.name.as_str() };
            list.push(say!(RULED_OUT_CPU, name, percent(process.usage())));
        }
        let (fds, limit) = process.fds;
        if process.role == Role::Edge
            && limit > 0
            && fds * 10 < limit * 8
            && !suspected(&Squeeze::Files(process.name.clone()))
        {
            list.push(say!(EDGE_FILES, fds, limit));
        }
    }
    if let Some(hub) = s.hub() {
        let waiting = hub.queues.values().max_by_key(|(most, _)| *most);
        if let Some((most, room)) = waiting.filter(|(most, room)| most * 2 < *room) {
            list.push(say!(ACCEPT_QUEUES, most, room));
        }
        let held = hub.held.values().map(|(held, _)| *held).max().unwrap_or(0);
        if hub.ports > 0 && held * 10 < hub.ports * 8 && !suspected(&Squeeze::Ports(hub.name.clone())) {
            list.push(say!(PORTS, held, hub.ports));
        }
    }
    if let Some(slots) = s.conf.worker_connections.filter(|slots| s.edge.is_known && s.edge.active_max * 2 < *slots) {
        list.push(say!(CONNECTION_TABLE, s.edge.active_max, slots));
    }
    for host in &s.hosts {
        if let Some(most) = host.link_max.filter(|most| host.link_bits < 0.8 * most) {
            list.push(say!(LINK, &host.name, percent(host.link_bits / most)));
        }
    }
    let squeezed = facts.elasticities.iter().filter(|arm| arm.high < super::prove::OTHERS && !arm.is_relaxed);
    list.extend(
        squeezed.map(|arm| say!(RULED_OUT_ELASTICITY, &arm.name, digits(arm.from), digits(arm.to), elasticity(arm))),
    );
    list
}

/// The change of the answers when the lab gave more of a suspect.
fn relaxed(facts: &EndFacts) -> Option<Said> {
    let told: Vec<Said> = facts.elasticities.iter().filter(|arm| arm.is_relaxed).map(widen::in_words).collect();
    (!told.is_empty()).then(|| Said::list(&told, "; "))
}

/// The next CPU that becomes full, and the rate at which it does, if an answer costs as much CPU as at half the load
/// (utilisation law).
fn next_limit(facts: &EndFacts, named: Option<&Finding>) -> Option<Said> {
    let half = facts.half.as_ref()?;
    let answers = half.goodput();
    let taken = named.and_then(|finding| finding.found.squeeze.clone());
    let bounds = half.processes.iter().filter(|process| process.role != Role::Client && process.cpu > 0.01).filter_map(
        |process| {
            let is_named = taken == Some(Squeeze::Cpu(process.name.clone()));
            (!is_named && answers > 0.0).then(|| (process.name.clone(), answers * process.cpus / process.cpu))
        },
    );
    let (name, bound) = bounds.min_by(|one, other| one.1.total_cmp(&other.1))?;
    // A rate below the present one is no prediction.
    (bound > facts.full.goodput()).then(|| say!(NEXT_LIMIT_CPU_ABOUT, name, digits(bound)))
}

/// The lines of a verdict.
#[derive(Default)]
pub struct VerdictLines {
    /// The word and its sentence, two spaces between them.
    pub first: String,
    /// The evidence, and the resources that were ruled out.
    pub evidence: Vec<Fact>,
    /// One recommended change.
    pub remedy: Vec<Fact>,
}

/// A line of a verdict.
pub struct Fact {
    /// The label.
    pub label: String,
    /// The sentence.
    pub text: String,
    /// Whether the sentence is a command.
    pub is_command: bool,
}

/// The verdict as it is printed: the word, the evidence, the resources that were ruled out, one recommended change.
pub fn text(run: &Value, language: Language) -> String {
    let VerdictLines { first, evidence, remedy } = told(run, language);
    let columns = if language == Language::Korean { 12 } else { 11 };
    let line = |fact: &Fact| format!("  {} {}\n", left(&fact.label, columns), fact.text);
    format!("{first}\n{}", evidence.iter().chain(&remedy).map(line).collect::<String>())
}

/// The verdict in a language, line by line.
pub fn told(run: &Value, language: Language) -> VerdictLines {
    let mut told = VerdictLines { first: shown(&run["verdict"], "text", language), ..VerdictLines::default() };
    let mut line = |label: &str, text: &str| told.evidence.extend(fact(label, text));
    let of = |label: Text| label.say(language);
    line(of(texts::LABEL_ANSWERS), &answers(&run["signals"]["load"], language));
    line(of(texts::LABEL_SINCE), &shown(run, "since", language));
    line(of(texts::LABEL_SLOW), &shown(run, "slow", language));
    line(of(texts::LABEL_BEFORE), &shown(run, "than", language));
    for why in shown_list(run, "unrest", language) {
        line(of(texts::LABEL_NOT_QUIET), &why);
    }
    let findings = run["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lead = run["lead"].as_u64().and_then(|at| findings.get(usize::try_from(at).ok()?));
    for (label, text) in lead.map(|lead| evidence(lead, language)).unwrap_or_default() {
        line(&label, &text);
    }
    if let Some(knee) = run["knee"].as_f64() {
        line(of(texts::LABEL_KNEE), say!(RATE, digits(knee)).say(language));
    }
    if let Some(least) = run["no_knee_above"].as_f64() {
        line(of(texts::LABEL_KNEE), say!(EVERY_RATE_DOWN_FAILED, digits(least)).say(language));
    }
    line(of(texts::LABEL_GREW), &grew(run, language).join(", "));
    line(of(texts::LABEL_RULED_OUT), &shown_list(run, "ruled_out", language).join(", "));
    for other in findings.iter().filter(|finding| Some(*finding) != lead) {
        let rule = other["rule"].as_str().unwrap_or_default();
        line(of(texts::LABEL_ALSO), say!(RULE, shown(other, "subject", language), rule).say(language));
    }
    let is_said = |told: &Value| {
        let evidence = lead.and_then(|lead| lead["evidence"].as_array());
        evidence.is_some_and(|evidence| evidence.iter().any(|pair| pair[1] == *told))
    };
    let inside = run["inside"].as_array().into_iter().flatten();
    for (_, text) in inside.zip(shown_list(run, "inside", language)).filter(|(told, _)| !is_said(told)) {
        line(of(texts::LABEL_INSIDE), &text);
    }
    line(of(texts::LABEL_CPUS), &shown(run, "cpus", language));
    line(of(texts::LABEL_NOT_PROVED), &shown(run, "unproved", language));
    line(of(texts::LABEL_GIVEN_MORE), &shown(run, "relaxed", language));
    for why in shown_list(run, "unread", language) {
        line(of(texts::LABEL_NOT_READ), &why);
    }
    for why in shown_list(run, "warned", language) {
        line(of(texts::LABEL_CAUTION), &why);
    }
    if let Some(lead) = lead {
        let mut line = |label: &str, text: &str| told.remedy.extend(fact(label, text));
        line(of(texts::LABEL_TRY), &shown(lead, "knob", language));
        line(of(texts::LABEL_TRIED), &shown(&run["tried"], "text", language));
        line(of(texts::LABEL_CHECK), &shown(run, "check", language));
        let next = if run["next"].is_string() { format!("; {}", shown(run, "next", language)) } else { String::new() };
        line(of(texts::LABEL_EXPECT), &(shown(lead, "expect", language) + &next));
        let verify = run["verify"].as_str().unwrap_or_default();
        let command = |label: Text, text: &str| fact(of(label), text).map(|fact| Fact { is_command: true, ..fact });
        told.remedy.extend(command(texts::LABEL_VERIFY, verify));
        if run["kind"] != "running" {
            let undo = say!(LAB_CHANGED_NOTHING_YOUR);
            told.remedy.extend(fact(of(texts::LABEL_UNDO), undo.say(language)));
        }
    }
    let command = |label: Text, name: &str| {
        let fact = fact(of(label), run[name].as_str().unwrap_or_default());
        fact.map(|fact| Fact { is_command: true, ..fact })
    };
    told.remedy.extend(command(texts::LABEL_PROVE, "prove"));
    told.remedy.extend(fact(of(texts::LABEL_PROVE), &shown(run, "proving", language)));
    told.remedy.extend(command(texts::LABEL_ADD, "log_format"));
    told
}

/// A line of a verdict; `None` without a text.
fn fact(label: &str, text: &str) -> Option<Fact> {
    (!text.is_empty()).then(|| Fact { label: label.to_owned(), text: text.to_owned(), is_command: false })
}

/// The evidence of a stored finding: labels and observations. Without stored names, both are in English.
fn evidence(finding: &Value, language: Language) -> Vec<(String, String)> {
    let said = &finding["evidence_said"];
    let one = |(number, pair): (usize, &Value)| {
        let word = |at: usize| {
            let english = pair[at].as_str()?;
            let said = said::read(&said[number][at]).filter(|said| said.en() == english);
            Some(said.map_or_else(|| english.to_owned(), |said| said.say(language).to_owned()))
        };
        Some((word(0)?, word(1)?))
    };
    finding["evidence"].as_array().into_iter().flatten().enumerate().filter_map(one).collect()
}

/// The parts of a request's way with at least a tenth of the growth, and their shares.
fn grew(run: &Value, language: Language) -> Vec<String> {
    let one = |(number, pair): (usize, &Value)| {
        let (name, share) = (pair[0].as_str()?, pair[1].as_f64().filter(|share| *share >= 0.1)?);
        let said = said::read(&run["grew_said"][number][0]);
        Some(format!("{} {}", said.as_ref().map_or(name, |said| said.say(language)), percent(share)))
    };
    run["grew"].as_array().into_iter().flatten().enumerate().filter_map(one).collect()
}

/// The answers by status, and how many of them were good. Empty if the run stored no block.
fn answers(load: &Value, language: Language) -> String {
    let (Some(sent), Some(well), Some(good)) = (load["sent"].as_u64(), load["well"].as_u64(), load["good"].as_str())
    else {
        return String::new();
    };
    let mut statuses: Vec<(&String, u64)> = load["statuses"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(code, count)| Some((code, count.as_u64()?)))
        .collect();
    statuses.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), (*code).clone()));
    let codes = load["statuses"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum::<u64>();
    let none = sent.saturating_sub(codes.max(load["answered"].as_u64().unwrap_or(codes)));
    let mut list: Vec<String> = statuses.iter().map(|(code, count)| format!("{code} × {count}")).collect();
    if none > 0 {
        list.push(say!(NO_ANSWER_TIMES, none).say(language).to_owned());
    }
    let good_statuses: GoodStatuses = good.parse().unwrap_or_default();
    let is_good = |code: &str| code.parse().is_ok_and(|status| good_statuses.has(status));
    let whole_and_cut: u64 = statuses.iter().filter(|(code, _)| is_good(code)).map(|(_, count)| count).sum();
    if whole_and_cut > well {
        list.push(say!(CUT_OFF_TIMES, whole_and_cut - well).say(language).to_owned());
    }
    let said = say!(GOOD, well, sent, good, list.join(", "));
    let messages = ["good", "sent", "received"].map(|name| load["messages"][name].as_u64().unwrap_or(0));
    match messages {
        [_, 0, _] => said,
        [well, sent, received] if codes == 0 => say!(ONLY_MESSAGES, well, sent, received),
        [well, sent, received] => say!(GOOD_MESSAGES, said, well, sent, received),
    }
    .say(language)
    .to_owned()
}

pub(super) fn now_ms() -> u64 {
    u64::try_from(clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::rules::find;
    use crate::why::signals::UserCounts;

    fn facts() -> EndFacts {
        let mut full = Signals::quiet();
        full.said.insert("no_port".into(), 400);
        full.load.errors.insert("502".into(), 400);
        full.hosts.iter_mut().for_each(|host| {
            host.ports = 200;
            host.held.insert("127.0.0.1:3000".into(), (200, 190));
        });
        EndFacts {
            findings: find(&full, None),
            full,
            half: Some(Signals::quiet()),
            is_saturated: true,
            ..EndFacts::default()
        }
    }

    fn arm(finding: Option<usize>, value: f64) -> Elasticity {
        Elasticity {
            name: "x".into(),
            finding,
            from: 1.0,
            to: 0.8,
            value,
            low: value - 0.05,
            high: value + 0.05,
            rounds: 6,
            is_relaxed: false,
            needed: 0.0,
        }
    }

    #[test]
    fn each_word_has_its_case() {
        let said = |facts: &EndFacts| sentence(facts).0;
        assert_eq!(said(&facts()), "SUSPECTED");
        assert_eq!(said(&EndFacts { is_saturated: false, ..facts() }), "NOT SATURATED");
        assert_eq!(said(&EndFacts { findings: Vec::new(), ..facts() }), "UNATTRIBUTED");
        // Failures without a cause are told by their names: how long answers took does not explain them.
        let unnamed = sentence(&EndFacts { findings: Vec::new(), ..facts() }).1;
        assert_eq!(unnamed, "UNATTRIBUTED  400 of 2000 (20 %) requests failed: 502 × 400");
        assert_eq!(said(&EndFacts { proof: Some(Proof::RuledOut), ..facts() }), "UNATTRIBUTED");
        assert_eq!(said(&EndFacts { proof: Some(Proof::Shared(vec![0, 0])), ..facts() }), "SHARED");
        assert_eq!(said(&EndFacts { proof: Some(Proof::Unclear("x".into())), ..facts() }), "SUSPECTED");
        let proved = EndFacts { proof: Some(Proof::Proved(0)), elasticities: vec![arm(Some(0), 0.97)], ..facts() };
        let (name, text, lead) = sentence(&proved);
        assert_eq!((name, lead), ("PROVED", Some(0)));
        assert!(text.contains("127.0.0.1:3000: local ports   (rule B01), elasticity 0.97 [0.92, 1.02]"), "{text}");
        assert_eq!(no_verdict(&facts(), &"x".into())["verdict"]["name"], "no verdict");
    }

    #[test]
    fn a_run_is_printed_in_its_language() {
        let mut run = json!({
            "lead": 0, "knee": 190.0, "grew": [["bodies", 0.8]],
            "findings": facts().findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "verify": "weir lab ab x after.conf",
            "verdict": verdict("SUSPECTED", &sentence(&facts()).1, None),
        });
        said::keep_list(&mut run, "ruled_out", &[say!(RULED_OUT_CPU, "edge", "20 %"), say!(PORTS, 3u64, 200u64)]);
        said::keep(&mut run, "next", next_limit(&facts(), None).as_ref());
        let english = text(&run, Language::English);
        assert!(english.starts_with("SUSPECTED  edge → 127.0.0.1:3000: local ports   (rule B01)\n"), "{english}");
        assert!(english.contains("\n  ruled out   edge CPU 20 %, ports 3 of 200\n"), "{english}");
        let korean = text(&run, Language::Korean);
        assert!(korean.starts_with("SUSPECTED (의심됨)  엣지 → 127.0.0.1:3000: 로컬 포트   (규칙 B01)\n"), "{korean}");
        assert!(korean.contains("\n  제외됨       edge CPU 20 %, 포트 200개 중 3개\n"), "{korean}");
        assert!(korean.contains("다음 병목: app의 CPU, 초당 약 667건에서\n"), "{korean}");
        assert_eq!(korean.lines().count(), english.lines().count());
    }

    /// A knee is a rate at which every request was answered. If no block was, no knee is named.
    #[test]
    fn a_knee_that_nobody_measured_is_not_named() {
        let run = json!({"verdict": {"text": "x"}, "no_knee_above": 12.5});
        let english = text(&run, Language::English);
        assert!(
            english.contains("knee        every rate down to 12.5/s failed") && !english.contains("knee        12.5/s"),
            "{english}"
        );
        let korean = text(&run, Language::Korean);
        assert!(korean.contains("초당 12.5건까지 낮춰도"), "{korean}");
    }

    /// 40 a second for ten seconds, and the last answer half a second later: that are no 38 a second.
    #[test]
    fn a_script_is_answered_as_it_was_sent() {
        let mut full = Signals::quiet();
        (full.load.offered, full.load.sent, full.load.well, full.seconds) = (None, 400, 400, 10.5);
        let answered = EndFacts { full, findings: Vec::new(), is_saturated: false, ..facts() };
        let text = sentence(&answered).1;
        assert!(text.contains("answered 400 of the script's 400 requests, sent at 40.0/s"), "{text}");
    }

    #[test]
    fn a_script_that_was_held_back_says_by_what() {
        let mut full = Signals::quiet();
        (full.load.offered, full.load.planned, full.load.sent, full.load.well) = (None, Some(400.0), 378, 378);
        full.load.users = UserCounts { created: 390, completed: 370, failed: 8, skipped: 10 };
        let of = |full: &Signals| {
            sentence(&EndFacts { full: full.clone(), findings: Vec::new(), is_saturated: false, ..facts() }).1
        };
        let text = of(&full);
        assert!(
            text.contains("378 of the script's 378 requests, sent at 37.8/s; the script offers 400: 10 users did not begin, because maxVusers of them were there, 8 users failed and sent no more, 12 users still waited"),
            "{text}"
        );
        full.load.sent = 398;
        assert!(!of(&full).contains("offers"));
    }

    #[test]
    fn messages_are_good_beside_their_number() {
        let mut load = serde_json::to_value(Signals::quiet().load).unwrap_or_default();
        load["messages"] = json!({"sent": 80, "good": 74, "received": 75});
        let text = answers(&load, Language::English);
        load["statuses"] = json!({});
        assert!(answers(&load, Language::English).starts_with("messages: 74 of 80 good"));
        assert!(
            text.ends_with("messages: 74 of 80 good (sent, and answered where the script waits for it), 75 received"),
            "{text}"
        );
    }

    #[test]
    fn a_remedy_that_cannot_be_tried_says_how_to_check_it() {
        let checked = |facts: &EndFacts| check(facts).map(|said| said.en().to_owned());
        let tried = |word| EndFacts { tried: Some(Tried::without(word, "x")), ..facts() };
        let failing = checked(&tried(Word::CannotBeTried));
        assert!(failing.is_some_and(|text| text.contains("fewer than 400 of 2000 (20 %) of the requests fail")));
        assert_eq!(checked(&tried(Word::Helps)), None);
        let full = Signals::quiet();
        let answers = checked(&EndFacts { full: full.clone(), ..tried(Word::CannotBeTried) });
        assert!(answers.is_some_and(|text| text.contains("above 200/s")));
        let quiet = EndFacts { full, is_saturated: false, ..tried(Word::CannotBeTried) };
        assert!(checked(&quiet).is_some_and(|text| text.contains("p95 falls below 4.00 ms")));
    }

    /// A command that compares with a file that does not exist cannot be run.
    #[test]
    fn what_compares_is_named_only_where_there_is_a_copy() {
        let it = Why { side: crate::ask::tests::side(), ask: crate::ask::tests::ask(), ..Why::of_tests() };
        assert_eq!(outcome(&facts(), Some(&it))["verify"], Value::Null);
        let copied = Copied { file: "/r/1.after.conf".into(), ..Copied::default() };
        let run = outcome(&EndFacts { copied: Some(copied), ..facts() }, Some(&it));
        assert!(
            run["verify"].as_str().is_some_and(|said| said.starts_with("weir lab ab /n.conf /r/1.after.conf -c 1 /"))
        );
    }

    #[test]
    fn what_has_room_is_listed_with_its_number() {
        let list = ruled_out(&EndFacts { elasticities: vec![arm(None, 0.02)], ..facts() });
        assert!(
            list.iter().any(|text| text == "edge CPU 20 %") && list.iter().any(|text| text == "accept queues 0 of 511"),
            "{list:?}"
        );
        assert!(list.iter().any(|text| text.starts_with("x from 1.00 to 0.800: elasticity 0.02")), "{list:?}");
        assert!(!list.iter().any(|text| text.starts_with("ports")), "{list:?}");
        assert!(next_limit(&facts(), None).is_some_and(|next| next == "next limit: CPU of app at about 667/s"));
    }
}
