//! `check FILES`: reads each file as a separate script, and prints its plan or its problems.
#![allow(clippy::print_stdout)]

use std::path::Path;

use weir_load::script::{ScriptOptions, load};

fn main() {
    let mut refused = 0;
    for file in std::env::args().skip(1) {
        let options = ScriptOptions {
            files: vec![file.as_str().into()],
            env: std::env::vars().collect(),
            ..ScriptOptions::default()
        };
        let no_js = |path: &Path| Err(format!("{}: scripts in JavaScript are read by another part", path.display()));
        match load(&options, &no_js) {
            Ok(plan) => {
                print!("== {file}\n{plan}");
                plan.warnings.iter().for_each(|warning| println!("warning: {warning}"));
            }
            Err(refusal) => {
                refused += 1;
                print!("== {file}\nrefused ({}): {}", refusal.exit, refusal.text);
                refusal.warnings.iter().for_each(|warning| println!("warning: {warning}"));
            }
        }
    }
    println!("== {refused} refused");
}
