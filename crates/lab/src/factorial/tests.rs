#![allow(clippy::unwrap_used)]

use weir_conf::{MemoryFiles, Tree, lay_out};
use weir_words::Language;

use super::*;
use crate::change::changes;
use crate::command::CommandLine;
use crate::metric::of;
use crate::stats::chance::normal;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn tree(text: &str) -> Tree {
    let (tree, problems) = weir_conf::load(&MemoryFiles::new().with("/n", text), "/n", "/", &|_| false);
    assert!(problems.is_empty(), "{problems:?}");
    tree
}

fn conf(main: &str, server: &str) -> Tree {
    tree(&format!(
        "{main} events {{ }} http {{ gzip on; server {{ listen 80; {server} location / {{ return 200; }} }} }}"
    ))
}

#[test]
fn mixtures_have_some_of_the_changes_and_not_the_others() {
    let before = conf("worker_processes 1;", "keepalive_timeout 5s; add_header A 1; add_header B 2;");
    let after = conf("worker_processes 2;", "add_header A 9; sendfile on;");
    let found =
        factors(&changes(&before, &after), &vec![vec!["sendfile".to_owned(), "keepalive_timeout".to_owned()]]).unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    for cell in 0..8usize {
        let on: Vec<&String> =
            found.iter().enumerate().filter(|(at, _)| cell >> at & 1 == 1).flat_map(|(_, f)| &f.directives).collect();
        let root = mixed(&before.root, &after.root, &|name| on.iter().any(|one| *one == name)).unwrap();
        let text = String::from_utf8(lay_out(&root)).unwrap();
        let has = |name: &str| on.iter().any(|one| *one == name);
        assert_eq!(text.contains("worker_processes 2;"), has("worker_processes"), "{text}");
        assert_eq!(text.contains("add_header A 9;"), has("add_header"), "{text}");
        assert_eq!(text.contains("add_header A 1;\n        add_header B 2;"), !has("add_header"), "{text}");
        assert_eq!(text.contains("keepalive_timeout 5s;"), !has("sendfile"), "{text}");
        assert_eq!(text.contains("sendfile on;"), has("sendfile"), "{text}");
        assert!(text.contains("gzip on;") && text.contains("return 200;"), "{text}");
        let differing = changes(&before, &tree(&text));
        assert_eq!(
            differing.len(),
            on.iter().filter(|name| changes(&before, &after).iter().any(|c| c.name == ***name)).count()
        );
    }
}

#[test]
fn what_cannot_be_mixed_is_refused() {
    let (one, other) = (conf("", ""), conf("", "location /a { }"));
    assert!(mixed(&one.root, &other.root, &|_| true).unwrap_err().contains("\"location /a\" is a whole block"));
    let refusal = |main: &str, server: &str| factors(&changes(&one, &conf(main, server)), &Vec::new()).unwrap_err();
    assert!(refusal("", "").contains("are equal"));
    assert!(refusal("worker_processes 2;", "").contains("remove --factorial"));
    assert!(refusal("worker_processes 2;", "rewrite ^ /x;").contains("lines matters"));
    let many = refusal("worker_processes 2; worker_priority 1;", "sendfile on; tcp_nopush on;");
    assert!(many.contains("4 factors give 16 combinations"), "{many}");
}

#[test]
fn every_round_has_all_combinations_and_its_mirror() {
    for seed in 0..20 {
        let order = order(seed, 4, 8);
        assert_eq!(order.len(), 8);
        for two in order.chunks(2) {
            assert_eq!(two[0], two[1].iter().rev().copied().collect::<Vec<_>>());
            let mut sorted = two[0].clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
    }
    assert_eq!([2, 3].map(rounds), [8, 9]);
}

fn experiment() -> Factorial {
    let factor =
        |name: &str| Factor { name: name.to_owned(), directives: vec![name.to_owned()], changes: vec![name.into()] };
    let side = Side {
        file: PathBuf::from("/n"),
        tree: conf("", ""),
        edge: crate::ask::EdgeProgram::Weir,
        protocol: crate::ask::LoadProtocol::Http1,
        application: None,
    };
    Factorial {
        factors: vec![factor("a"), factor("b")],
        sides: vec![side; 4],
        ask: crate::ask::tests::ask(),
        design: Design {
            primary: of("p95").unwrap(),
            is_chosen: true,
            command: CommandLine::default(),
            threshold: 0.05,
            looks: crate::schedule::Looks::one(8),
            seed: 1,
        },
    }
}

/// Rounds of a metric. Each factor, and both together, move its logarithm.
fn blocks(seed: u64, a: f64, b: f64, both: f64) -> Vec<(usize, Block)> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let one = |(round, cell): (usize, usize)| {
        let bit = |at: usize| (cell >> at & 1) as f64;
        // Rounds drift. A contrast within a round does not see the drift.
        let log = a * bit(0) + b * bit(1) + both * bit(0) * bit(1) + 0.1 * round as f64 + 0.01 * normal(&mut rng);
        let values: BTreeMap<String, f64> = [("p95".to_owned(), 40.0 * log.exp())].into();
        let block = Block { pair: round, requests: 10_000, values, ..crate::block::tests::empty() };
        (cell, block)
    };
    (0..8).flat_map(|round| (0..4).map(move |cell| (round, cell))).map(one).collect()
}

#[test]
fn main_effects_and_their_interaction_are_found_again() {
    let it = experiment();
    let found = analyse(&it, &blocks(3, -0.2, 0.0, 0.1), None, 1.0);
    let text = found.verdict["text"].as_str().unwrap();
    // The mean of a's effects, without b and with it: -0.2 and -0.1.
    let effect = |mask: usize| found.effects.iter().find(|e| e["mask"] == mask).unwrap()["effect"].as_f64().unwrap();
    assert!((effect(1) - (-0.15f64).exp_m1()).abs() < 0.01 && (effect(2) - 0.05f64.exp_m1()).abs() < 0.01, "{text}");
    assert!((effect(3) - 0.1f64.exp_m1()).abs() < 0.02, "{text}");
    assert!(text.starts_with("a: faster by ") && text.contains("; a with b: interaction +"), "{text}");
    assert!(text.contains("98.3 % CI"), "{text}");
}

#[test]
fn no_effects_are_none_and_too_few_rounds_say_so() {
    let it = experiment();
    let text = |blocks: &[(usize, Block)]| analyse(&it, blocks, None, 1.0).verdict["text"].as_str().unwrap().to_owned();
    let none = text(&blocks(5, 0.0, 0.0, 0.0));
    assert!(none.contains("a: no difference larger than 5.0 % (8 rounds)"), "{none}");
    assert!(none.contains("a with b: no interaction larger than 5.0 %"), "{none}");
    let few: Vec<(usize, Block)> = blocks(5, 0.0, 0.0, 0.0).into_iter().filter(|(_, block)| block.pair < 3).collect();
    assert!(text(&few).starts_with("a: not comparable: 3 rounds, and the first look is at 7"), "{}", text(&few));
    assert_eq!(analyse(&it, &few, Some(&"x".into()), 1.0).verdict["text"], "no verdict: x");
    let mut spoiled = blocks(5, 0.0, 0.0, 0.0);
    spoiled[0].1.spoiled.push("x".to_owned());
    assert_eq!(analyse(&it, &spoiled, None, 1.0).effects[0]["rounds"], 7);
}

/// In 300 experiments without an effect, all three contrasts together give false alarms at most as often as allowed.
#[test]
fn all_contrasts_together_cry_wolf_once_in_twenty() {
    let it = experiment();
    let cries = |seed: &u64| {
        let found = analyse(&it, &blocks(*seed, 0.0, 0.0, 0.0), None, 1.0);
        found.effects.iter().filter(|effect| effect["metric"] == "p95").any(|effect| {
            let ends = (effect["interval"][0].as_f64().unwrap(), effect["interval"][1].as_f64().unwrap());
            ends.0 > 0.0 || ends.1 < 0.0
        })
    };
    let cried = (0..300).filter(cries).count();
    assert!(cried <= 26, "{cried} of 300");
}

#[test]
fn a_report_has_every_combination_and_effect() {
    let it = experiment();
    let blocks = blocks(3, -0.2, 0.0, 0.1);
    let found = analyse(&it, &blocks, None, 1.0);
    let json: Vec<Value> = blocks
        .iter()
        .map(|(cell, block)| {
            let mut json = block.to_json();
            json["cell"] = (*cell).into();
            json
        })
        .collect();
    let run = json!({
        "kind": "factorial", "id": "x", "load": "/1k", "before": {"file": "/n"}, "environment": {"before": "nginx/1.22.1"},
        "cells": ["nothing", "a", "b", "a with b"], "factors": [{"name": "a", "changes": ["a: 1 → 2"]}], "seed": 1,
        "asked": {"block_s": 1.0}, "design": {"primary": "p95", "rounds": 8, "alpha": 0.0167}, "blocks": json,
        "effects": found.effects, "verdict": found.verdict,
    });
    let text = crate::report::text(&run, Language::English);
    for part in [
        "p95 with nothing",
        "p95 with a with b",
        "interaction of a with b",
        "Verdict: a: faster by",
        "Verdict: b: ",
        "98.3 %",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(crate::html::page(&run, Language::English).contains("interaction of a with b"));
}
