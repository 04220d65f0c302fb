//! Words the verdict: one of a few words, and its evidence. No other module names a bottleneck.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use weir_net::clock;

use super::attempt::{Copied, Tried};
use super::korean;
use super::prove::{Elasticity, Proof};
use super::quiet;
use super::rule::{Segment, Squeeze, Tier, percent};
use super::rules::{Finding, waits};
use super::run::{Why, finding_json, segment_ms};
use super::signals::{Role, Signals};
use super::told;
use super::widen;
use crate::metric::digits;

/// The vocabulary: each word, and its condition.
pub const WORDS: &[(&str, &str)] = &[
    ("no verdict", "the lab cannot use the blocks, because of the load generator, the host or the stack"),
    (
        "POLICY",
        "the configuration refuses or delays so many requests on purpose that the lab cannot see another limit; the verdict names the statement, its line and its number",
    ),
    (
        "PROVED",
        "good answers fall when the lab takes a part of the suspect away (elasticity surely above 0.3), rise when the lab adds to it (surely by 3 %, or by half of the few that failed), and do not fall when the lab takes from another resource (surely below 0.2)",
    ),
    (
        "SHARED",
        "good answers fall when the lab takes from any of two or more suspects (elasticity of each surely above 0.3), and rise when it adds to each",
    ),
    (
        "SUSPECTED",
        "a count, or the use of the suspect, points to it, but the lab has no proof: it did not squeeze the suspect, squeezing gave no clear result, or adding to the suspect changed nothing or was impossible",
    ),
    (
        "UNATTRIBUTED",
        "a resource is at its limit and no rule names it, or squeezing excluded every suspect; the verdict says where the time went",
    ),
    ("NOT SATURATED", "the stack answered the whole load in time: this figure is the load, not the capacity"),
];

/// The language of a run that is not in English.
pub const KOREAN: &str = "ko";

/// All facts at the end of a run.
#[derive(Clone, Default)]
pub struct Facts {
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
    pub unproved: Option<String>,
    /// Why two of the blocks cannot both be right.
    pub contradiction: Option<String>,
    /// The parts that share CPUs, and which CPUs.
    pub cpus: Option<String>,
    /// The copy of the configuration with the remedy.
    pub copied: Option<Copied>,
    /// The result of the try.
    pub tried: Option<Tried>,
}

/// The finding that the verdict is about.
pub(super) fn lead(facts: &Facts) -> Option<usize> {
    sentence(facts).2
}

/// The outcome of a run that allows no conclusion.
pub fn no_verdict(facts: &Facts, why: &str) -> Value {
    json!({
        "signals": facts.full,
        "findings": [],
        "unread": unread(facts),
        "verdict": {"name": "no verdict", "text": format!("no verdict: {why}"), "is_regression": false},
    })
}

/// The outcome of a run, as it is stored.
pub fn outcome(facts: &Facts, it: &Why) -> Value {
    let (name, text, lead) = sentence(facts);
    let named = lead.and_then(|lead| facts.findings.get(lead));
    json!({
        "signals": facts.full,
        "half": facts.half,
        "grew": facts.grew.as_ref().map(|grew| grew.iter().map(|(segment, share)| json!([segment.name(), share])).collect::<Vec<_>>()),
        "steps": facts.steps.iter().map(|(rate, passed)| json!({"rate": rate, "passed": passed, "why": (!passed).then_some("the stack did not answer the whole load in time")})).collect::<Vec<_>>(),
        "knee": facts.knee,
        "no_knee_above": facts.no_knee_above,
        "findings": facts.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "elasticities": facts.elasticities,
        "ruled_out": ruled_out(facts),
        "unproved": facts.unproved,
        "relaxed": relaxed(facts),
        "inside": waits::lines(&facts.full),
        "unread": unread(facts),
        "unrest": quiet::unrest(&facts.full),
        "next": next_limit(facts, named),
        "lead": lead,
        "cpus": facts.cpus,
        "tried": facts.tried,
        "copied": facts.copied,
        "verify": named.zip(facts.copied.as_ref()).map(|(finding, copied)| verify(finding, it, copied)),
        "cautions": facts.full.load.cautions,
        "verdict": {"name": name, "text": text, "rule": named.map(|finding| finding.rule.id), "is_regression": false},
    })
}

/// The values that could not be read, of the block and of the probed programs.
fn unread(facts: &Facts) -> Vec<String> {
    facts.full.unread.iter().cloned().chain(told::unread(&facts.full.told)).collect()
}

/// The word, the sentence, and the number of the finding that they are about.
fn sentence(facts: &Facts) -> (&'static str, String, Option<usize>) {
    let of = |at: usize| {
        facts
            .findings
            .get(at)
            .map(|finding| format!("{}   (rule {})", finding.found.subject, finding.rule.id))
            .unwrap_or_default()
    };
    let elasticity = |at: usize| {
        let found = facts.elasticities.iter().find(|arm| arm.finding == Some(at) && !arm.is_relaxed);
        found.map_or_else(String::new, |arm| format!(", elasticity {:.2} [{:.2}, {:.2}]", arm.value, arm.low, arm.high))
    };
    if !facts.is_saturated {
        let offered = match facts.full.load.offered {
            Some(offered) => format!("{}/s offered and {}/s answered", digits(offered), digits(facts.full.goodput())),
            None if facts.full.load.is_closed => {
                format!(
                    "{} connections gave {}/s, and more connections give more",
                    facts.full.load.connections,
                    digits(facts.full.goodput())
                )
            }
            None => format!("the stack answered the script: {}/s", digits(facts.full.goodput())),
        };
        let noticed = if facts.findings.is_empty() { String::new() } else { format!("; noticed: {}", of(0)) };
        let lead = (!facts.findings.is_empty()).then_some(0);
        return (
            "NOT SATURATED",
            format!("NOT SATURATED  {offered}: capacity unknown (weir lab capacity finds it){noticed}"),
            lead,
        );
    }
    if facts.findings.first().is_some_and(|finding| finding.rule.tier == Tier::Policy) {
        return ("POLICY", format!("POLICY  {}", of(0)), Some(0));
    }
    match &facts.proof {
        Some(Proof::Proved(at)) => ("PROVED", format!("PROVED  {}{}", of(*at), elasticity(*at)), Some(*at)),
        Some(Proof::Shared(several)) => {
            let names: Vec<String> = several.iter().map(|at| format!("{}{}", of(*at), elasticity(*at))).collect();
            ("SHARED", format!("SHARED  {}", names.join(" and ")), several.first().copied())
        }
        Some(Proof::RuledOut) => (
            "UNATTRIBUTED",
            format!("UNATTRIBUTED  squeezing a suspect changes nothing; {}", where_it_went(facts)),
            None,
        ),
        Some(Proof::Unclear(_)) | None => match facts.findings.iter().position(Finding::may_limit) {
            Some(at) => ("SUSPECTED", format!("SUSPECTED  {}{}", of(at), elasticity(at)), Some(at)),
            None => ("UNATTRIBUTED", format!("UNATTRIBUTED  {}", where_it_went(facts)), None),
        },
    }
}

/// The part of a request's way in which unexplained time was spent.
fn where_it_went(facts: &Facts) -> String {
    let grown = Segment::ALL.iter().map(|segment| {
        let then = facts.half.as_ref().map_or(0.0, |half| segment_ms(half, *segment));
        (*segment, segment_ms(&facts.full, *segment) - then)
    });
    let (segment, ms) = grown.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((Segment::Outside, 0.0));
    let than = if facts.half.is_some() { " more than at half the load" } else { "" };
    let look = match segment {
        Segment::Wait | Segment::Connect => match waits::leading(&facts.full) {
            Some(waits) => format!("; {waits}"),
            None if facts.full.inside.is_some() => String::new(),
            None => {
                "; the lab does not see the application's work in that time: use --inside, the application's metrics, or a profiler"
                    .to_owned()
            }
        },
        Segment::Outside | Segment::Edge | Segment::Body => String::new(),
    };
    format!(
        "{} ms{than} in the segment \"{}\", {} of requests failed{look}",
        digits(ms),
        segment.name(),
        percent(facts.full.failed_share())
    )
}

/// Every resource that was checked and has room, with its figure.
fn ruled_out(facts: &Facts) -> Vec<String> {
    let s = &facts.full;
    let suspected =
        |squeeze: &Squeeze| facts.findings.iter().any(|finding| finding.found.squeeze.as_ref() == Some(squeeze));
    let mut list = Vec::new();
    for process in s.processes.iter().filter(|process| process.usage() < 0.85 && process.throttled < 0.05) {
        if !suspected(&Squeeze::Cpu(process.name.clone())) {
            let name = if process.role == Role::Client { "client" } else { process.name.as_str() };
            list.push(format!("{name} CPU {}", percent(process.usage())));
        }
        let (fds, limit) = process.fds;
        if process.role == Role::Edge
            && limit > 0
            && fds * 10 < limit * 8
            && !suspected(&Squeeze::Files(process.name.clone()))
        {
            list.push(format!("edge files {fds} of {limit}"));
        }
    }
    if let Some(hub) = s.hub() {
        let waiting = hub.queues.values().max_by_key(|(most, _)| *most);
        if let Some((most, room)) = waiting.filter(|(most, room)| most * 2 < *room) {
            list.push(format!("accept queues {most} of {room}"));
        }
        let held = hub.held.values().map(|(held, _)| *held).max().unwrap_or(0);
        if hub.ports > 0 && held * 10 < hub.ports * 8 && !suspected(&Squeeze::Ports(hub.name.clone())) {
            list.push(format!("ports {held} of {}", hub.ports));
        }
    }
    if let Some(slots) = s.conf.worker_connections.filter(|slots| s.edge.is_known && s.edge.active_max * 2 < *slots) {
        list.push(format!("connection table {} of {slots}", s.edge.active_max));
    }
    for host in &s.hosts {
        if let Some(most) = host.link_max.filter(|most| host.link_bits < 0.8 * most) {
            list.push(format!("link of {} {}", host.name, percent(host.link_bits / most)));
        }
    }
    let squeezed = facts.elasticities.iter().filter(|arm| arm.high < super::prove::OTHERS && !arm.is_relaxed);
    list.extend(squeezed.map(|arm| {
        let (from, to) = (digits(arm.from), digits(arm.to));
        format!("{} from {from} to {to}: elasticity {:.2} [{:.2}, {:.2}]", arm.name, arm.value, arm.low, arm.high)
    }));
    list
}

/// The change of the answers when the lab gave more of a suspect.
fn relaxed(facts: &Facts) -> Option<String> {
    let told: Vec<String> = facts.elasticities.iter().filter(|arm| arm.is_relaxed).map(widen::in_words).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The next CPU that becomes full, and the rate at which it does, if an answer costs as much CPU as at half the load
/// (utilisation law).
fn next_limit(facts: &Facts, named: Option<&Finding>) -> Option<String> {
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
    (bound > facts.full.goodput()).then(|| format!("next limit: CPU of {name} at about {}/s", digits(bound)))
}

/// The command that compares before and after.
fn verify(finding: &Finding, it: &Why, copied: &Copied) -> String {
    let file = it.side.file.display();
    // If paths begin in the file's directory, the copy has to stand there too.
    let (first, after) = if copied.is_beside {
        let beside = it.side.file.with_file_name("after.conf").display().to_string();
        (format!("cp {} {beside} && ", copied.file.display()), beside)
    } else {
        (String::new(), copied.file.display().to_string())
    };
    let mut flags = String::new();
    if copied.names.len() > 1 {
        flags += &format!(" --together {}", copied.names.join(","));
    }
    if let Some(origin) = &it.ask.origin {
        flags += &format!(" --origin {}", quoted(origin));
    }
    if let Some(quota) = it.ask.quota {
        flags += &format!(" --edge-quota {quota}");
    }
    for field in &it.ask.headers {
        flags += &format!(" -H {}", quoted(field));
    }
    let edge = match &it.side.edge {
        crate::ask::Edge::Weir => String::new(),
        edge => format!(" --edge {}", edge.name()),
    };
    let load = match &it.ask.load {
        crate::ask::Load::Path { path, connections, rate: Some(rate) } => {
            format!("--rate {rate} -c {connections} {path}")
        }
        crate::ask::Load::Path { path, connections, rate: None } => format!("-c {connections} {path}"),
        crate::ask::Load::Script { file, .. } => format!("--load {}", file.display()),
    };
    let metric = if it.ask_is_about_errors(finding) { " --metric errors" } else { "" };
    format!("{first}weir lab ab{edge} {file} {after} {load}{flags}{metric}")
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Why {
    fn ask_is_about_errors(&self, finding: &Finding) -> bool {
        finding.rule.tier == super::rule::Tier::Limit && finding.found.explains.is_empty()
    }
}

/// The verdict as it is printed, in the run's language: the word, the evidence, the resources that were ruled out,
/// one recommended change.
pub fn text(run: &Value) -> String {
    let is_korean = run["language"] == KOREAN;
    let say = |text: &str| if is_korean { korean::or_as_it_is(text) } else { text.to_owned() };
    let word = |value: &Value| say(value.as_str().unwrap_or_default());
    let mut lines = vec![word(&run["verdict"]["text"])];
    let mut line = |label: &str, text: &str| {
        if !text.is_empty() {
            let label = if is_korean { korean::padded(korean::label(label), 12) } else { format!("{label:<11}") };
            lines.push(format!("  {label} {text}"));
        }
    };
    line("answers", &say(&answers(&run["signals"]["load"])));
    for why in run["unrest"].as_array().into_iter().flatten() {
        line("not quiet", &word(why));
    }
    let findings = run["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lead = run["lead"].as_u64().and_then(|at| findings.get(usize::try_from(at).ok()?));
    if let Some(lead) = lead {
        for pair in lead["evidence"].as_array().into_iter().flatten() {
            line(pair[0].as_str().unwrap_or_default(), &word(&pair[1]));
        }
    }
    if let Some(knee) = run["knee"].as_f64() {
        line("knee", &format!("{}/s", digits(knee)));
    }
    if let Some(least) = run["no_knee_above"].as_f64() {
        line("knee", &say(&format!("every rate down to {}/s failed: start lower (--rate)", digits(least))));
    }
    let grew: Vec<String> = run["grew"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair[0].as_str()?, pair[1].as_f64()?)))
        .filter(|(_, share)| *share >= 0.1)
        .map(|(name, share)| format!("{} {}", say(name), percent(share)))
        .collect();
    line("grew", &grew.join(", "));
    let listed: Vec<String> = run["ruled_out"].as_array().into_iter().flatten().map(word).collect();
    line("ruled out", &listed.join(", "));
    for other in findings.iter().filter(|finding| Some(*finding) != lead) {
        let text = |name: &str| other[name].as_str().unwrap_or_default();
        line("also", &say(&format!("{}   (rule {})", text("subject"), text("rule"))));
    }
    let is_said = |told: &Value| {
        let evidence = lead.and_then(|lead| lead["evidence"].as_array());
        evidence.is_some_and(|evidence| evidence.iter().any(|pair| pair[1] == *told))
    };
    for told in run["inside"].as_array().into_iter().flatten().filter(|told| !is_said(told)) {
        line("inside", &word(told));
    }
    line("CPUs", &word(&run["cpus"]));
    line("not proved", &word(&run["unproved"]));
    line("given more", &word(&run["relaxed"]));
    for why in run["unread"].as_array().into_iter().flatten() {
        line("not read", &word(why));
    }
    if let Some(lead) = lead {
        line("try", &word(&lead["knob"]));
        line("tried", &word(&run["tried"]["text"]));
        let next = run["next"].as_str().map_or_else(String::new, |next| format!("; {}", say(next)));
        line("expect", &(word(&lead["expect"]) + &next));
        line("verify", &word(&run["verify"]));
        line("undo", &say("the lab changed nothing: your files are unchanged"));
    }
    lines.join("\n") + "\n"
}

/// The answers by status, and how many of them were good. Empty if the run stored no block.
fn answers(load: &Value) -> String {
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
        list.push(format!("none × {none}"));
    }
    format!("{well} of {sent} good ({good}): {}", list.join(", "))
}

/// The vocabulary as a table, for the guide.
pub fn table() -> String {
    let rows = WORDS.iter().map(|(word, when)| format!("| {word} | {when} |\n"));
    format!("| verdict | condition |\n|---|---|\n{}", rows.collect::<String>())
}

pub(super) fn now_ms() -> u64 {
    u64::try_from(clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::rules::find;

    fn facts() -> Facts {
        let mut full = Signals::quiet();
        full.said.insert("no_port".into(), 400);
        full.load.errors.insert("502".into(), 400);
        full.hosts.iter_mut().for_each(|host| {
            host.ports = 200;
            host.held.insert("127.0.0.1:3000".into(), (200, 190));
        });
        Facts {
            findings: find(&full, None),
            full,
            half: Some(Signals::quiet()),
            is_saturated: true,
            ..Facts::default()
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
        let said = |facts: &Facts| sentence(facts).0;
        assert_eq!(said(&facts()), "SUSPECTED");
        assert_eq!(said(&Facts { is_saturated: false, ..facts() }), "NOT SATURATED");
        assert_eq!(said(&Facts { findings: Vec::new(), ..facts() }), "UNATTRIBUTED");
        assert_eq!(said(&Facts { proof: Some(Proof::RuledOut), ..facts() }), "UNATTRIBUTED");
        assert_eq!(said(&Facts { proof: Some(Proof::Shared(vec![0, 0])), ..facts() }), "SHARED");
        assert_eq!(said(&Facts { proof: Some(Proof::Unclear("x".into())), ..facts() }), "SUSPECTED");
        let proved = Facts { proof: Some(Proof::Proved(0)), elasticities: vec![arm(Some(0), 0.97)], ..facts() };
        let (name, text, lead) = sentence(&proved);
        assert_eq!((name, lead), ("PROVED", Some(0)));
        assert!(text.contains("127.0.0.1:3000: local ports   (rule B01), elasticity 0.97 [0.92, 1.02]"), "{text}");
        assert_eq!(no_verdict(&facts(), "x")["verdict"]["name"], "no verdict");
        let all = ["no verdict", "POLICY", "PROVED", "SHARED", "SUSPECTED", "UNATTRIBUTED", "NOT SATURATED"];
        assert_eq!(WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_run_is_printed_in_its_language() {
        let mut run = json!({
            "lead": 0, "knee": 190.0, "grew": [["bodies", 0.8]], "ruled_out": ["edge CPU 20 %", "ports 3 of 200"],
            "findings": facts().findings.iter().map(finding_json).collect::<Vec<_>>(), "next": next_limit(&facts(), None),
            "verify": "weir lab ab x after.conf",
            "verdict": {"text": sentence(&facts()).1},
        });
        let english = text(&run);
        assert!(english.starts_with("SUSPECTED  edge → 127.0.0.1:3000: local ports   (rule B01)\n"), "{english}");
        assert!(english.contains("\n  ruled out   edge CPU 20 %, ports 3 of 200\n"), "{english}");
        run["language"] = json!(KOREAN);
        let korean = text(&run);
        assert!(korean.starts_with("SUSPECTED (의심됨)  엣지 → 127.0.0.1:3000: 로컬 포트   (규칙 B01)\n"), "{korean}");
        assert!(korean.contains("\n  제외됨       edge CPU 20 %, 포트 200개 중 3개\n"), "{korean}");
        assert!(korean.contains("다음 병목: app의 CPU, 초당 약 667건에서\n"), "{korean}");
        assert_eq!(korean.lines().count(), english.lines().count());
    }

    /// A knee is a rate at which every request was answered. If no block was, no knee is named.
    #[test]
    fn a_knee_that_nobody_measured_is_not_named() {
        let mut run = json!({"verdict": {"text": "x"}, "no_knee_above": 12.5});
        let english = text(&run);
        assert!(
            english.contains("knee        every rate down to 12.5/s failed") && !english.contains("knee        12.5/s"),
            "{english}"
        );
        run["language"] = json!(KOREAN);
        assert!(text(&run).contains("초당 12.5건까지 낮춰도"), "{}", text(&run));
    }

    /// A command that compares with a file that does not exist cannot be run.
    #[test]
    fn what_compares_is_named_only_where_there_is_a_copy() {
        let side = crate::ask::tests::side();
        let it = Why { side, ask: crate::ask::tests::ask(), ..Why::of_tests() };
        assert_eq!(outcome(&facts(), &it)["verify"], Value::Null);
        let copied = Copied { file: "/r/1.after.conf".into(), names: vec!["a".into(), "b".into()], is_beside: false };
        let verify = |copied: Copied| {
            let run = outcome(&Facts { copied: Some(copied), ..facts() }, &it);
            run["verify"].as_str().unwrap_or_default().to_owned()
        };
        let said = verify(copied.clone());
        assert_eq!(said, "weir lab ab /n.conf /r/1.after.conf -c 1 / --together a,b --metric errors");
        let said = verify(Copied { is_beside: true, ..copied });
        assert!(said.starts_with("cp /r/1.after.conf /after.conf && weir lab ab /n.conf /after.conf"), "{said}");
    }

    #[test]
    fn what_has_room_is_listed_with_its_number() {
        let list = ruled_out(&Facts { elasticities: vec![arm(None, 0.02)], ..facts() });
        assert!(
            list.contains(&"edge CPU 20 %".to_owned()) && list.contains(&"accept queues 0 of 511".to_owned()),
            "{list:?}"
        );
        assert!(list.iter().any(|text| text.starts_with("x from 1.00 to 0.800: elasticity 0.02")), "{list:?}");
        assert!(!list.iter().any(|text| text.starts_with("ports")), "{list:?}");
        assert_eq!(next_limit(&facts(), None), Some("next limit: CPU of app at about 667/s".to_owned()));
    }
}
