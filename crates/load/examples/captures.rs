//! `cargo run --release -p weir-load --example captures`: the time of captures with JSONPaths, and of conditions.
#![allow(clippy::expect_used)]

use std::hint::black_box;
use std::sync::Arc;
use weir_load::capture::{CapturedMessage, Extract};
use weir_load::expression::Expression;
use weir_load::random::Builtins;
use weir_load::template::Template;
use weir_load::value::Value;
use weir_load::vars::{VariableNames, Vars};
use weir_net::clock;

/// The same allocator as in weir itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: u32 = 2000;

fn main() {
    let began = clock::precise();
    drop(Expression::parse("1").expect("an expression"));
    println!("{:8.2} µs  the engine of a thread", (clock::precise() - began).as_secs_f64() * 1e6);
    for wares in [4, 40] {
        let body = body(wares);
        println!("a body of {} bytes:", body.len());
        for path in [
            "$.shop.name",
            "$.shop.wares[1].label",
            "$.shop.wares[*].id",
            "$..id",
            "$.shop.wares[-1:].id",
            "$.shop.wares[?(@.cost > 20)].id",
        ] {
            let what = Extract::json(Template::parse(path, &mut VariableNames::default()), true);
            let vars = Vars::new(Arc::new(VariableNames::default()));
            let micros = micros(|| {
                let message = CapturedMessage::new(body.as_bytes(), &|_| Value::Undefined);
                drop(black_box(what.value(&message, &vars, &Builtins)));
            });
            println!("  {micros:8.2} µs  {path}");
        }
    }
    for text in ["a == 1", "name == \"x\" and not (a > 3 or b in (1, 2))"] {
        let expression = Expression::parse(text).expect("an expression");
        let micros = micros(|| drop(black_box(expression.value(&|name| Value::from(name)))));
        println!("  {micros:8.2} µs  {text}");
    }
}

/// The best of five averages.
fn micros(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let began = clock::precise();
        (0..ROUNDS).for_each(|_| work());
        best = best.min((clock::precise() - began).as_secs_f64() * 1e6 / f64::from(ROUNDS));
    }
    best
}

fn body(wares: usize) -> String {
    let ware = |at: usize| {
        format!(
            r#"{{"id":{at},"kind":"toy","maker":"Bo","label":"Kite {at}","cost":{at}.5,"tags":["a","b"],"code":"0-{at}"}}"#
        )
    };
    let wares: Vec<String> = (0..wares).map(ware).collect();
    format!(r#"{{"shop":{{"wares":[{}],"name":"Ada's","van":{{"colour":"red","cost":20}}}}}}"#, wares.join(","))
}
