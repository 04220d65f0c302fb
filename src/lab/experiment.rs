//! `weir lab run` and `weir lab list`: experiments that are data.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use weir_lab::ab::Tell;
use weir_lab::experiment::run::How;
use weir_lab::experiment::{self, Experiment, Places};
use weir_lab::said::Said;
use weir_lab::{html, report, store, texts};
use weir_load::random;
use weir_net::clock;
use weir_words::{Language, say};

use super::exit;
use super::flags::LabRunArgs;
use super::kept::{tell_kept, tell_next, write};
use super::labs::folder;
use super::progress::ProgressPrinter;
use crate::files::Disk;
use crate::stop;

/// Lists the experiments below a folder.
pub(super) fn list(labs: Option<&Path>, language: Language) -> Result<u8, Said> {
    let places = places(Path::new("/usr/sbin/nginx"))?;
    let mut code = 0;
    for (name, lab) in experiment::list(&folder(labs)?, &places) {
        match lab {
            Ok(lab) => {
                let missing: Vec<String> =
                    lab.missing().iter().map(|need| format!("{} ({})", need.what, need.install)).collect();
                let ci = if lab.ci.is_some() { "  [ci]" } else { "" };
                println!("{name:<8}  {}{ci}", lab.title);
                if !missing.is_empty() {
                    let missing = texts::NOT_INSTALLED.with(&[missing.join("; ").into()]);
                    println!("{:<8}  {}", "", missing.say(language));
                }
            }
            Err(why) => {
                eprintln!("{}", why.say(language));
                code = exit::FAILED;
            }
        }
    }
    Ok(code)
}

/// Runs experiments, prints each report and stores each run; prints a closing table if there are several.
pub(super) fn run(args: &LabRunArgs, language: Language) -> Result<u8, Said> {
    let places = places(&args.nginx)?;
    let stop = stop::on_signal()?;
    // Each connection needs a descriptor in the load and in the edge. If the kernel refuses to raise the limit, the
    // old limit stays.
    let _ = weir_net::process::raise_nofile();
    let seed = args.seed.unwrap_or_else(|| random::below(1_000_000) as u64);
    let how = How { edges: args.edge.iter().cloned().collect(), is_noisy: args.noisy, seed };
    let labs = wanted(args, &places)?;
    let (mut code, mut runs, began) = (0, Vec::new(), clock::precise());
    for (number, lab) in labs.iter().enumerate() {
        if let Some(why) = left_out(args, lab, clock::precise() - began) {
            println!("{}", texts::LEFT_OUT.with(&[(&lab.name).into(), why]).say(language));
            continue;
        }
        let mut progress = ProgressPrinter::new(&args.store, language);
        if labs.len() > 1 {
            let holes = [(number + 1).into(), labs.len().into(), (&lab.name).into(), (&lab.title).into()];
            progress.tell(&texts::LAB_OF.with(&holes));
        }
        let outcome = experiment::run::run(lab, &places, &how, &Disk, &stop, &mut progress);
        progress.end();
        match outcome {
            Ok(run) => {
                let kept = store::keep(&args.store, run["id"].as_str().unwrap_or("run"), &run)?;
                print!("{}", report::text(&run, language));
                tell_kept(&kept, language);
                tell_next(&run, language);
                if run["verdict"]["name"] != "holds" {
                    code = code.max(exit::REGRESSION);
                }
                page(args, lab, &run, language)?;
                runs.push(run);
            }
            Err(why) if args.all => {
                println!("{}", why.say(language));
                code = exit::FAILED;
            }
            Err(why) => return Err(why),
        }
        if stop.load(Ordering::Relaxed) {
            code = exit::INTERRUPTED;
            break;
        }
    }
    if labs.len() > 1 {
        let seconds = (clock::precise() - began).as_secs();
        print!("\n{}", experiment::report::closing(&runs, language));
        let holes = [runs.len().into(), labs.len().into(), (seconds / 60).into(), (seconds % 60).into()];
        println!("{}", texts::LABS_DONE.with(&holes).say(language));
    }
    args.table.as_deref().map_or(Ok(()), |path| write(path, &experiment::report::table(&runs)))?;
    Ok(code)
}

/// Why an experiment is left out. `None`: it runs.
fn left_out(args: &LabRunArgs, lab: &Experiment, spent: Duration) -> Option<Said> {
    let missing: Vec<&str> = lab.missing().iter().map(|need| need.install.as_str()).collect();
    if args.all && !missing.is_empty() {
        return Some(texts::NOT_INSTALLED.with(&[missing.join("; ").into()]));
    }
    let within = args.within.filter(|within| spent >= *within)?;
    Some(texts::WITHIN_OVER.with(&[format!("{within:?}").into()]))
}

/// Writes a run as a page: into a folder by the lab's name, or as the file itself.
fn page(args: &LabRunArgs, lab: &Experiment, run: &Value, language: Language) -> Result<(), Said> {
    let Some(path) = &args.html else { return Ok(()) };
    let path = if path.is_dir() { path.join(format!("{}.html", lab.name)) } else { path.clone() };
    write(&path, &html::page(run, language))
}

fn wanted(args: &LabRunArgs, places: &Places) -> Result<Vec<Experiment>, Said> {
    if args.all {
        let all =
            experiment::list(&folder(args.labs.as_deref())?, places).into_values().collect::<Result<Vec<_>, _>>()?;
        if !args.ci {
            return Ok(all);
        }
        let ci = all.into_iter().filter_map(|lab| lab.ci.clone().map(|variants| lab.only(&variants)));
        return ci.collect();
    }
    let place = |name: &String| {
        let own = PathBuf::from(name);
        let dir = if own.join(experiment::FILE).is_file() { own } else { folder(args.labs.as_deref())?.join(name) };
        if dir.join(experiment::FILE).is_file() {
            return experiment::read(&dir, places)?.only(&args.variant);
        }
        Err(say!(texts::ERR_NO_EXPERIMENT, dir.join(experiment::FILE).display().to_string()))
    };
    args.names.iter().map(place).collect()
}

pub(super) fn places(nginx: &Path) -> Result<Places, Said> {
    let weir = std::env::current_exe().map_err(|error| say!(texts::ERR_OWN_PATH, error.to_string()))?;
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).unwrap_or_else(std::env::temp_dir);
    let nginx = std::path::absolute(nginx)
        .map_err(|error| say!(texts::ERR_FILE, nginx.display().to_string(), error.to_string()))?;
    Ok(Places { weir, nginx, cache: cache.join("weir-labs") })
}
