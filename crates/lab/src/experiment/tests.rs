#![allow(clippy::unwrap_used)]
use super::*;
use crate::said::Said;
use crate::stack::{Deed, ReadyCondition};
use crate::wan::{BadLink, Direction};

/// Writes a lab's file in a folder of its own and reads it.
fn lab(name: &str, text: &str) -> Result<Experiment, Said> {
    let dir = std::env::temp_dir().join(format!("weir-test-experiment-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(FILE), text).unwrap();
    let places = Places { weir: "/w".into(), nginx: "/n".into(), cache: "/c".into() };
    let lab = read(&dir, &places);
    std::fs::remove_dir_all(dir).unwrap();
    lab
}

const WHOLE: &str = "
title: t
ci: true
needs: [{node: apt-get install nodejs}]
hosts:
  edge: {sysctls: {net.core.somaxconn: 8}}
  app: {cpus: 0.5, rate: 1000, delay: [20ms, 5ms], credits: null}
processes:
  db: {step: true, run: make}
  app: {host: app, run: [\"${weir}\", origin], env: {PORT: 3000}, ready: 3000, files: [10, 20], within: 1m, cpus: [1], free: start}
  late: {late: true, run: x}
edge: {conf: a.conf}
load: {path: /, flags: [-c, 2], to: \"app:3000\"}
at:
  - {after: 1500ms, stop: edge}
  - {after: end, as: seen, host: app, run: look}
count: {alerts: {text: alert}}
variants:
  a: {}
  b: {edge: {conf: b.conf}, processes: {app: {env: {PORT: 3001, MORE: 1}}, db: {skip: true}}}
expect:
  - {that: codes.200, is: 2, says: yes}
  - {that: [a, b], of: c, least: 1, variant: b, against: a, timed: true, says: more}
";

#[test]
fn a_lab_is_read() {
    let lab = lab("whole", WHOLE).unwrap();
    assert!(lab.ci == Some(vec![]) && lab.edges == ["nginx", "weir"] && lab.needs[0].what == "node");
    let [a, b] = lab.variants.as_slice() else { unreachable!("two variants") };
    assert_eq!((a.processes.len(), b.processes.len(), a.after_edge), (3, 2, 1));
    assert_eq!((a.hosts[1].rate_kbit, a.hosts[1].link), (Some(1000), Some(BadLink::late(20_000, 5_000))));
    let app = &a.processes[1];
    assert!(app.is_limited_late && !app.is_unlimited);
    assert_eq!((app.argv[0].as_str(), app.files, app.patience_s), ("/w", Some((10, 20)), 60));
    assert_eq!(app.ready, ReadyCondition::Answers(vec!["10.99.0.2:3000".parse().unwrap()]));
    assert_eq!(a.load.as_ref().unwrap().to, Some("10.99.0.2:3000".parse().unwrap()));
    assert!(a.front.conf.ends_with("a.conf") && b.front.conf.ends_with("b.conf"));
    assert_eq!(b.processes[0].env, [("PORT".to_owned(), "3001".to_owned()), ("MORE".to_owned(), "1".to_owned())]);
    assert_eq!((a.actions[0].at_ms, a.actions[1].at_ms), (Some(1500), None));
    assert!(matches!(&a.actions[1].deed, Deed::Run(process) if process.host == "app"));
    assert_eq!((lab.expect[0].range, lab.expect[1].range), ((2.0, 2.0), (1.0, f64::INFINITY)));
    assert_eq!(lab.expect[1].against.as_deref(), Some("a"));
    assert!(!lab.expect[0].is_timed && lab.expect[1].is_timed);
    let only = lab.clone().only(&["b".to_owned()]).unwrap();
    assert_eq!((only.variants.len(), only.expect.len()), (1, 1), "what is expected beside a goes with it");
    assert!(lab.only(&["c".to_owned()]).unwrap_err().contains("no variant c; there are a, b"));
}

#[test]
fn what_is_wrong_has_its_place() {
    let table = [
        ("ci: true", "ci: perhaps", "lab.yml:3:5: write true or false"),
        ("cpus: 0.5", "cpu: 0.5", "lab.yml:7:9: \"cpu\" is unknown here; did you mean cpus?"),
        ("host: app, run: [", "host: apq, run: [", "there is no host apq: name it under hosts"),
        ("net.core.somaxconn", "vm.swappiness", "vm.swappiness applies to the whole machine"),
        ("ready: 3000", "ready: soon", "a port, HOST:PORT, or {prints: TEXT}"),
        ("after: 1500ms", "after: later", "write a time here"),
        ("stop: edge", "stab: edge", "\"stab\" is unknown here"),
        ("files: [10, 20]", "files: [20, 10]", "[soft, hard]"),
        ("is: 2, ", "", "write \"that\" with is, least or most here"),
        ("path: /, ", "path: /, script: x, ", "one of script, path and run"),
        ("delay: [20ms, 5ms]", "delay: [1ms, 1ms, 1ms]", "one time, or [to the host, from the host]"),
        ("delay: [20ms, 5ms]", "delay: 11s", "a delay or a jitter may be at most 10 s"),
        ("delay: [20ms, 5ms]", "delay: 1ms, loss: 1", "lab.yml:7:50: write a share as 1% or 0.5%"),
        ("delay: [20ms, 5ms]", "loss: 51%", "host app: a loss or a reorder may be at most 50 %"),
        ("delay: [20ms, 5ms]", "reorder: [1%, 2%, 3%]", "[to the host, from the host]"),
        ("delay: [20ms, 5ms]", "loss: 1%, seed: 1.5", "write a whole number"),
        ("delay: [20ms, 5ms]", "delay: 1ms, seed: 1", "the seed is for jitter, loss and reorder"),
        ("free: start", "free: false", "true or start (until the measured load begins)"),
        ("ci: true", "ci: {a: 1}", "true or false"),
        ("title: t", "", "\"title\" is missing here"),
        ("b: {edge", "b: {edges: [weir], edge", "\"edges\" is unknown here"),
        ("credits: null", "credits: {instance: m5, initial: 1}", "t2.micro, t2.small"),
    ];
    for (number, (old, new, words)) in table.into_iter().enumerate() {
        let text = WHOLE.replacen(old, new, 1);
        let why = lab(&format!("wrong-{number}"), &text).unwrap_err();
        assert!(why.contains(words), "{new}: {why}");
    }
}

#[test]
fn variants_are_compared_two_and_two() {
    let compare = "compare: [{variants: [a, b], metric: mean, pairs: 6}, {variants: [b, a], metric: p50, pairs: 8}]\n";
    let expect = "  - {variant: b, verdict: better, says: b is}\n  - {variant: a, verdict: worse, says: a is not}\n";
    let read = lab("compared", &format!("{compare}{WHOLE}{expect}")).unwrap();
    let sides: Vec<_> = read.compare.iter().filter_map(|compare| compare.sides.clone()).collect();
    assert_eq!(sides, [["a", "b"], ["b", "a"]].map(|sides| sides.map(str::to_owned)));
    // Without one of its variants, there is no comparison, and nothing is expected of it.
    let only = read.only(&["b".to_owned()]).unwrap();
    assert!(only.compare.is_empty() && only.expect.iter().all(|expect| expect.verdicts.is_empty()));
    let plain = lab("alone", &format!("compare: {{metric: mean, pairs: 6}}\n{WHOLE}")).unwrap();
    assert!(plain.compare.len() == 1 && plain.compare[0].sides.is_none());
    for sides in ["[a]", "[a, c]", "[a, b, a]"] {
        let why =
            lab("sides", &format!("compare: {{variants: {sides}, metric: mean, pairs: 6}}\n{WHOLE}")).unwrap_err();
        assert!(why.contains("the names of two variants here, before and after; there are a, b"), "{why}");
    }
}

#[test]
fn a_bad_link_is_read_each_way() {
    let words = "delay: 20ms, jitter: [2ms, 0ms], loss: [0%, 1.5%], reorder: 3%, seed: 7";
    let lab = lab("link", &WHOLE.replacen("delay: [20ms, 5ms]", words, 1)).unwrap();
    let path = |jitter_us, loss| Direction { delay_us: 20_000, jitter_us, loss, reorder: 30 };
    let link = BadLink { to: path(2000, 0), from: path(0, 15), seed: Some(7) };
    assert_eq!(lab.variants[0].hosts[1].link, Some(link));
}

#[test]
fn the_guide_is_not_stale() {
    assert!(include_str!("../../../../docs/guide/experiments.md").contains(&tables()), "{}", tables());
}

#[test]
fn the_labs_of_this_repository_can_be_read() {
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    let places = Places { weir: "/w".into(), nginx: "/n".into(), cache: "/c".into() };
    let all = list(&labs, &places);
    assert!(all.len() >= 16, "{}", all.len());
    let page = include_str!("../../../../docs/labs.md");
    for (name, lab) in all {
        assert!(page.contains(&format!("| `{name}` |")), "docs/labs.md has no row of {name}");
        let lab = lab.unwrap();
        assert!(lab.variants.iter().all(|variant| variant.front.conf.is_file()), "{name}");
        assert!(!lab.expect.is_empty(), "{name} expects nothing");
    }
}
