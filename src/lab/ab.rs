//! `weir lab ab`: from flags to a comparison, to a report.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use weir_conf::Tree;
use weir_doctor::{Build, Target};
use weir_lab::ab::{self, Comparison, Warm};
use weir_lab::ask::{Ask, EdgeProgram, Load, Side};
use weir_lab::change::{changes, one_factor};
use weir_lab::said::Said;
use weir_lab::survey::survey;
use weir_lab::texts;
use weir_words::{Language, say};

use super::asked::{ask, design, edge_of, link, load, places, protocols, side, together};
use super::exit;
use super::flags::{AbArgs, DesignArgs};
use super::kept::experiment;
use super::sheet::Sheet;

/// Runs the comparison, prints the report and stores the run.
pub(super) fn run(args: &AbArgs, language: Language) -> Result<u8, Said> {
    let mut it = comparison(args)?;
    let _sheets = if args.keep_warm { keep_warm(&mut it)? } else { Vec::new() };
    lint(&mut it, args.stack.json, language);
    let (run, code) = experiment(&args.stack, it.design.seed, language, |stop, progress| ab::run(&it, stop, progress))?;
    let is_worse = run["verdict"]["is_regression"] == true && !args.aa;
    Ok(if code == 0 && is_worse { exit::REGRESSION } else { code })
}

/// Checks that the duet compares only CPU cost, and gives both edges the same CPU share.
fn duet(args: &AbArgs, ask: &mut Ask, design: &mut DesignArgs) -> Result<(), Said> {
    let metric = design.metric.get_or_insert_with(|| "cpu".to_owned());
    if metric != "cpu" {
        return Err(say!(texts::ERR_DUET_METRIC, &*metric));
    }
    if !matches!(ask.load, Load::Path { rate: Some(_), .. }) {
        return Err(say!(texts::ERR_DUET_RATE));
    }
    if ask.warm_up.is_zero() || args.load.warmup_load.is_some() {
        return Err(say!(texts::ERR_DUET_WARMUP));
    }
    if !ask.is_isolated {
        return Err(say!(texts::ERR_DUET_ROOT));
    }
    ask.quota.get_or_insert(ask.cpus.edge.len().max(1) as f64 / 2.0);
    Ok(())
}

/// Writes the files for a comparison that keeps its edge running: one file for each configuration, and the file that
/// the edge serves. The files exist as long as the returned sheets.
fn keep_warm(it: &mut Comparison) -> Result<Vec<Sheet>, Said> {
    let Some(after) = &it.after else { return Ok(Vec::new()) };
    let (one, other) = (survey(&it.before.tree), survey(&after.tree));
    if one.listens != other.listens || one.caches != other.caches || one.peers != other.peers {
        return Err(say!(texts::ERR_KEEP_WARM));
    }
    let sheets = [&it.before, after, &it.before].map(|side| Sheet::write(side, side.tree.clone()));
    let sheets = sheets.into_iter().collect::<Result<Vec<Sheet>, Said>>()?;
    if let [before, after, served] = sheets.as_slice() {
        let files = (before.side.file.clone(), after.side.file.clone());
        it.warm = Some(Warm { served: served.side.clone(), files });
    }
    Ok(sheets)
}

/// Prints that a change is expected to have no effect if the edge behaves that way without it. The doctor knows the
/// defaults of each version of nginx, and weir's different defaults.
fn lint(it: &mut Comparison, is_json: bool, language: Language) {
    let Some(after) = &it.after else { return };
    if let Some(target) = target(&it.before.edge).filter(|target| self::target(&after.edge) == Some(*target)) {
        it.lint(&move |before, after, _| no_effect(before, after, target));
        let expected = it.no_effect.iter().map(|why| texts::EXPECTED_NONE.with(&[why.into()]));
        expected.filter(|_| !is_json).for_each(|line| println!("{}", line.say(language)));
    }
}

/// The doctor's reasons why no difference between the two can have an effect.
pub(super) fn no_effect(before: &Tree, after: &Tree, target: Target) -> Vec<Said> {
    weir_doctor::without_effect(before, after, target)
}

/// The program that reads the configuration, if the doctor knows it. The path of an nginx may lead to a weir of that
/// name.
fn target(edge: &EdgeProgram) -> Option<Target> {
    let EdgeProgram::Nginx(path) = edge else { return Some(Target::Weir) };
    let output = Command::new(path).arg0("nginx").arg("-V").stdin(Stdio::null()).output().ok()?;
    Build::read(&String::from_utf8_lossy(&output.stderr)).map(|build| Target::of(&build))
}

fn comparison(args: &AbArgs) -> Result<Comparison, Said> {
    let (files, path) = places(args)?;
    let edge = edge_of(&args.stack.edge)?;
    let edge_after = args.edge_after.as_deref().map_or_else(|| Ok(edge.clone()), edge_of)?;
    let [protocol, protocol_after] = protocols(args)?;
    let before = Side { protocol, ..side(&files[0], edge)? };
    let after = files.get(1).map(|file| side(file, edge_after)).transpose()?;
    let after = after.map(|after| Side { protocol: protocol_after, ..after });
    let (factor, changes) = match &after {
        None => ("nothing".to_owned(), Vec::new()),
        Some(after) => factor(&before, after, args)?,
    };
    let load = load(&args.load.sent, (args.load.block, args.load.warmup), path)?;
    let sides: Vec<&Side> = [&before].into_iter().chain(&after).collect();
    let mut ask = ask(&args.stack, &args.load, load.clone(), &sides)?;
    ask.link = link(&args.link);
    let mut asked = args.design.clone();
    if args.duet {
        duet(args, &mut ask, &mut asked)?;
    }
    let design = design(&asked, &args.stack, &load, args.aa)?;
    Ok(Comparison {
        before,
        after,
        factor,
        changes,
        no_effect: Vec::new(),
        ask,
        design,
        warm: None,
        is_duet: args.duet,
    })
}

type Factor = (String, Vec<weir_lab::change::Difference>);

fn factor(before: &Side, after: &Side, args: &AbArgs) -> Result<Factor, Said> {
    let found = changes(&before.tree, &after.tree);
    if before.protocol != after.protocol {
        let edge = (before.edge != after.edge).then(|| Said::from(after.edge.name()));
        return match found.first().map(weir_lab::change::Difference::said).or(edge) {
            None => Ok((format!("protocol: {} → {}", before.protocol.name(), after.protocol.name()), found)),
            Some(change) => Err(say!(texts::ERR_TWO_FACTORS_PROTOCOL, change)),
        };
    }
    if before.edge == after.edge {
        return one_factor(&found, &together(args)).map(|factor| (factor, found));
    }
    match found.first() {
        None => Ok((format!("edge: {} → {}", before.edge.name(), after.edge.name()), found)),
        Some(change) => Err(say!(texts::ERR_TWO_FACTORS, change.said())),
    }
}
