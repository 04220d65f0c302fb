//! `weir lab ab --factorial`: from two configurations to all combinations of their changes, to a report.

use weir_conf::Tree;
use weir_lab::change::changes;
use weir_lab::factorial::{self, Factorial};
use weir_lab::schedule::Looks;
use weir_lab::texts;
use weir_words::{Language, Said, say};

use super::asked::{ask, design, edge_of, load, places, side, together};
use super::exit;
use super::flags::AbArgs;
use super::kept::experiment;
use super::sheet::Sheet;

/// Runs the comparison, prints the report and stores the run.
pub(super) fn run(args: &AbArgs, language: Language) -> Result<u8, Said> {
    let (files, path) = places(args)?;
    let edge = edge_of(&args.stack.edge)?;
    let [before, after] = files.as_slice() else { return Err(say!(texts::ERR_BEFORE_AFTER)) };
    let (before, after) = (side(before, edge.clone())?, side(after, edge.clone())?);
    let factors = factorial::factors(&changes(&before.tree, &after.tree), &together(args))?;
    let sheets = (0..1usize << factors.len()).map(|cell| {
        let on = factors.iter().enumerate().filter(|(at, _)| cell >> at & 1 == 1);
        let on: Vec<&str> = on.flat_map(|(_, factor)| factor.directives.iter().map(String::as_str)).collect();
        let root = factorial::mixed(&before.tree.root, &after.tree.root, &|name| on.contains(&name))?;
        let mut sheet = Sheet::write(&before, Tree { root, ..after.tree.clone() })?;
        // Read the file back: a run stores the configuration that the edge served.
        sheet.side = side(&sheet.side.file, edge.clone())?;
        Ok(sheet)
    });
    let sheets = sheets.collect::<Result<Vec<Sheet>, Said>>()?;
    let load = load(&args.load.sent, (args.load.block, args.load.warmup), path)?;
    let rounds = args.design.pairs.map_or_else(|| factorial::rounds(factors.len()), usize::from);
    let design =
        weir_lab::ask::Design { looks: Looks::one(rounds), ..design(&args.design, &args.stack, &load, false)? };
    let it = Factorial {
        factors,
        sides: sheets.iter().map(|sheet| sheet.side.clone()).collect(),
        ask: ask(&args.stack, &args.load, load, &[&before, &after])?,
        design,
    };
    let (run, code) =
        experiment(&args.stack, it.design.seed, language, |stop, progress| factorial::run(&it, stop, progress))?;
    let is_worse = run["verdict"]["is_regression"] == true;
    Ok(if code == 0 && is_worse { exit::REGRESSION } else { code })
}
