//! `weir ci ab`: two revisions, from their names to a verdict, within a budget.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use weir_ci::build::build;
use weir_ci::checkout::RevisionRoom;
use weir_ci::judge::{self, ALPHA, CiOutcome, CiVerdict};
use weir_ci::plan::{self, PAIRS_LEAST, PairPlan, PlanWish, RESERVE};
use weir_ci::report::{CiReport, time};
use weir_ci::revision::{CodeRevision, Repository};
use weir_ci::texts;
use weir_lab::ab::{self, Comparison, Tell};
use weir_lab::ask::{ArmApplication, Ask, Design, Load, Side};
use weir_lab::change::{Difference, changes};
use weir_lab::command::CommandLine;
use weir_lab::metric::{self, Metric};
use weir_lab::pace::{MeasuredPace, PART, pace};
use weir_lab::schedule::Looks;
use weir_lab::{html, texts as lab_texts};
use weir_load::random;
use weir_net::{Instant, clock, process, worker};
use weir_words::{Language, Said, say};

use super::flags::{CiAbArgs, FailingOutcome};
use super::outputs::{give, is_stdout_taken};
use crate::lab::asked::{ask, edge_of, load, side, threshold};
use crate::lab::exit;
use crate::lab::flags::{ComparisonLoadArgs, StackArgs};
use crate::lab::kept::write;
use crate::lab::progress::ProgressPrinter;
use crate::stop;

/// The time of a block beside warming up and measuring, if no pace was measured.
const BESIDE: Duration = Duration::from_secs(3);
/// How often the end of the budget is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// The metric that decides if the user names none. The median of a block is the latency that a disturbed machine changes least.
const METRIC: &str = "p50";

/// Why nothing was measured.
enum Unmeasured {
    /// A build, an application or an edge failed.
    Failed(Said),
    /// There is no time, or there are too few blocks.
    NoTime(Said),
    /// There is nothing to compare.
    Nothing(Said),
    /// The user ended it.
    Stopped,
}

/// The clock of a run.
struct Budget {
    began: Instant,
    length: Duration,
    /// Becomes true at the end of the budget, less [`RESERVE`], and when the user ends the run.
    stop: Arc<AtomicBool>,
    /// Becomes true when the user ends the run.
    user: Arc<AtomicBool>,
}

impl Budget {
    fn begin(length: Duration) -> Result<Budget, Said> {
        let began = clock::precise();
        let user = stop::on_signal()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (told, asked, end) = (stop.clone(), user.clone(), began + length.saturating_sub(RESERVE));
        let wait = move || {
            while !asked.load(Ordering::Relaxed) && clock::precise() < end {
                std::thread::sleep(LOOK);
            }
            told.store(true, Ordering::Relaxed);
        };
        worker::block_aside("ci budget", wait).map_err(|error| Said::from(error.to_string()))?;
        Ok(Budget { began, length, stop, user })
    }

    fn spent(&self) -> Duration {
        clock::precise() - self.began
    }

    /// The time that blocks may take.
    fn left(&self) -> Duration {
        self.length.saturating_sub(RESERVE).saturating_sub(self.spent())
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_stopped(&self) -> bool {
        self.user.load(Ordering::Relaxed)
    }

    /// The reason for an error that the end of the budget may have caused.
    fn why(&self, error: Said) -> Unmeasured {
        match (self.is_stopped(), self.is_over()) {
            (true, _) => Unmeasured::Stopped,
            (false, true) => Unmeasured::NoTime(error),
            (false, false) => Unmeasured::Failed(error),
        }
    }
}

/// One revision in its directory.
struct Arm<'r> {
    name: &'static str,
    revision: &'r CodeRevision,
    directory: PathBuf,
}

/// The results of the measurement.
#[derive(Default)]
struct Measured {
    run: Option<Value>,
    pace: Option<MeasuredPace>,
    not_done: Vec<Said>,
    is_isolated: bool,
}

/// Runs the comparison and writes the reports.
pub(super) fn run(args: &CiAbArgs, language: Language) -> Result<u8, Said> {
    let budget = Budget::begin(args.budget)?;
    let here = std::env::current_dir().map_err(|error| say!(texts::ERR_OF_FILE, ".", error.to_string()))?;
    let repository = Repository::around(&here)?;
    let revisions = [repository.revision(&args.before)?, repository.revision(&args.after)?];
    let conf = repository.inside(&here, &args.conf)?;
    let within = repository.inside(&here, Path::new(".")).unwrap_or_default();
    let primary = args.metric.as_deref().unwrap_or(METRIC);
    let primary = metric::of(primary).ok_or_else(|| {
        let known: Vec<&str> = metric::METRICS.iter().map(|metric| metric.key).collect();
        say!(lab_texts::ERR_METRIC, primary, known.join(", "))
    })?;
    let threshold = threshold(primary, args.threshold)?;
    let seed = args.seed.unwrap_or_else(|| random::below(1_000_000) as u64);
    let place = args.work.clone().unwrap_or_else(std::env::temp_dir);
    let tell = |said: Said| eprintln!("{}", said.say(language));
    let room = RevisionRoom::new(&place, &mut |said| tell(said))?;
    let mut measured = Measured::default();
    let job =
        Job { args, budget: &budget, repository: &repository, room: &room, conf: &conf, within: &within, language };
    let ended = job.measure(&revisions, (primary, threshold, seed), &mut measured);
    drop(room);
    let (verdict, is_failed) = concluded(ended, measured.run.as_ref());
    let [before, after] = revisions;
    let report = CiReport {
        before,
        after,
        conf: conf.display().to_string(),
        verdict,
        run: measured.run,
        pace: measured.pace,
        not_done: measured.not_done,
        time: (args.budget, budget.spent()),
        is_isolated: measured.is_isolated,
        command: CommandLine::new(std::env::args()),
        marker: args.outputs.marker.clone().unwrap_or_else(|| "ab".to_owned()),
    };
    write_all(args, &report, language)?;
    Ok(match () {
        () if budget.is_stopped() => exit::INTERRUPTED,
        () if is_failed => exit::FAILED,
        () => code(args, report.verdict.outcome),
    })
}

/// The exit code of an outcome.
fn code(args: &CiAbArgs, outcome: CiOutcome) -> u8 {
    match args.codes || args.fail_on.contains(&FailingOutcome(Some(outcome))) {
        true => outcome.code(),
        false => 0,
    }
}

/// The verdict, and whether the comparison could not run.
fn concluded(ended: Result<(), Unmeasured>, run: Option<&Value>) -> (CiVerdict, bool) {
    let without = |outcome, text| CiVerdict { outcome, text, figures: Vec::new() };
    match (ended, run) {
        (Ok(()), Some(run)) => (judge::judge(run), false),
        (Ok(()), None) | (Err(Unmeasured::Stopped), _) => (without(CiOutcome::Undecided, say!(texts::STOPPED)), false),
        (Err(Unmeasured::Failed(why)), _) => (without(CiOutcome::Undecided, why), true),
        (Err(Unmeasured::NoTime(why)), _) => (without(CiOutcome::Undecided, why), false),
        (Err(Unmeasured::Nothing(why)), _) => (without(CiOutcome::NoDifference, why), false),
    }
}

fn write_all(args: &CiAbArgs, report: &CiReport, language: Language) -> Result<(), Said> {
    let outputs = &args.outputs;
    if !is_stdout_taken(&[&outputs.markdown, &outputs.junit, &outputs.json]) {
        print!("{}", report.text(language));
    }
    give(outputs.markdown.as_deref(), || report.markdown(language))?;
    give(outputs.junit.as_deref(), || report.junit())?;
    give(outputs.json.as_deref(), || format!("{:#}\n", report.json()))?;
    match (&args.html, &report.run) {
        (Some(path), Some(run)) => write(path, &html::page(run, language)),
        _ => Ok(()),
    }
}

/// Everything that a measurement needs.
struct Job<'j> {
    args: &'j CiAbArgs,
    budget: &'j Budget,
    repository: &'j Repository,
    room: &'j RevisionRoom,
    /// The configuration, below the top of the repository.
    conf: &'j Path,
    /// The directory of the commands, below the top of the repository.
    within: &'j Path,
    language: Language,
}

impl Job<'_> {
    fn tell(&self, said: &Said) {
        eprintln!("{}", said.say(self.language));
    }

    fn measure(
        &self,
        revisions: &[CodeRevision; 2],
        design: (&'static Metric, f64, u64),
        into: &mut Measured,
    ) -> Result<(), Unmeasured> {
        let names = ["A", "B"];
        let mut arms = Vec::new();
        for (name, revision) in names.into_iter().zip(revisions) {
            self.tell(&say!(texts::UNPACKS, name, &*revision.asked, revision.short()));
            // Both paths have the same length, so that they cost the same.
            let unpacked = self.room.unpack(self.repository, revision, name, &self.budget.stop);
            let directory = unpacked.map_err(|why| self.budget.why(why))?;
            if directory.join(".gitmodules").exists() {
                into.not_done.push(say!(texts::SUBMODULES, &*revision.asked));
            }
            arms.push(Arm { name, revision, directory });
        }
        let sides = arms.iter().map(|arm| self.side(arm)).collect::<Result<Vec<Side>, Said>>();
        let sides = sides.map_err(Unmeasured::Failed)?;
        let [before, after] = sides.as_slice() else { return Ok(()) };
        let found = changes(&before.tree, &after.tree);
        if found.is_empty() && self.args.origin.is_none() {
            return Err(Unmeasured::Nothing(say!(texts::NOTHING_CHANGED)));
        }
        arms.iter().try_for_each(|arm| self.build(arm))?;
        self.compare((before, after), (revisions, found), design, into)
    }

    /// The configuration of a revision, with its application.
    fn side(&self, arm: &Arm<'_>) -> Result<Side, Said> {
        let file = arm.directory.join(self.conf);
        if !file.is_file() {
            return Err(say!(texts::ERR_NO_CONF, &*arm.revision.asked, self.conf.display().to_string()));
        }
        let directory = arm.directory.join(self.within);
        let application = self.args.origin.clone().map(|command| ArmApplication { command, directory });
        Ok(Side { application, ..side(&file, edge_of(&self.args.edge)?)? })
    }

    fn build(&self, arm: &Arm<'_>) -> Result<(), Unmeasured> {
        let Some(command) = &self.args.build else { return Ok(()) };
        self.tell(&say!(texts::BUILDS, arm.name, command));
        let log = self.room.path().join(format!("{}.build.log", arm.name));
        let took = build(arm.name, command, &arm.directory.join(self.within), &log, &self.budget.stop);
        let took = took.map_err(|why| self.budget.why(why))?;
        self.tell(&say!(texts::BUILT, arm.name, took.as_secs()));
        Ok(())
    }

    fn compare(
        &self,
        (before, after): (&Side, &Side),
        (revisions, found): (&[CodeRevision; 2], Vec<Difference>),
        (primary, threshold, seed): (&'static Metric, f64, u64),
        into: &mut Measured,
    ) -> Result<(), Unmeasured> {
        // Each connection needs a descriptor in the load and in the edge. If the kernel refuses to raise the limit, the old
        // limit stays.
        let _ = process::raise_nofile();
        let mut progress = ProgressPrinter::new(&self.room.path().join("runs"), self.language);
        let mut ask = self.ask(&[before, after]).map_err(Unmeasured::Failed)?;
        into.is_isolated = ask.is_isolated;
        if matches!(ask.load, Load::Path { rate: None, .. }) {
            let measured = pace(&ask, [before, after], &self.budget.stop, &mut progress);
            let measured = measured.map_err(|why| self.budget.why(why))?;
            let Some(measured) = measured else { return Err(self.budget.why(say!(texts::BUDGET_ENDED_PACE))) };
            let shown = |value: f64| metric::digits(value);
            let [one, other] = measured.capacity.map(shown);
            progress.tell(&say!(texts::PACED, one, other, shown(measured.rate), shown(PART * 100.0)));
            if let Load::Path { rate, .. } = &mut ask.load {
                *rate = Some(measured.rate);
            }
            into.pace = Some(measured);
        }
        let PairPlan { block, pairs } = self.planned(&ask, primary, into.pace.as_ref())?;
        ask.block = block;
        let shown = metric::digits(block.as_secs_f64());
        progress.tell(&say!(texts::PLANNED, pairs, shown, time(self.args.budget), time(self.budget.left())));
        let mut at = vec![PAIRS_LEAST, pairs];
        at.dedup();
        let design = Design {
            primary,
            is_chosen: self.args.metric.is_some(),
            command: CommandLine::new(std::env::args()),
            threshold,
            looks: Looks { at, alpha: ALPHA },
            seed,
        };
        let comparison = Comparison {
            before: before.clone(),
            after: Some(after.clone()),
            factor: format!("{} → {}", revisions[0].short(), revisions[1].short()),
            changes: found,
            no_effect: Vec::new(),
            ask,
            design,
            warm: None,
            is_duet: false,
        };
        let run = ab::run(&comparison, &self.budget.stop, &mut progress);
        progress.end();
        let mut run = run.map_err(|why| self.budget.why(why))?;
        run["command"] = CommandLine::new(std::env::args()).words().into();
        if self.budget.is_over() && !self.budget.is_stopped() {
            let figures = run["metrics"].as_array().into_iter().flatten();
            let done = figures.filter_map(|figure| figure["pairs"].as_u64()).max().unwrap_or(0);
            if (done as usize) < pairs {
                into.not_done.push(say!(texts::BUDGET_ENDED, done, pairs));
            }
        }
        into.run = Some(run);
        if self.budget.is_stopped() { Err(Unmeasured::Stopped) } else { Ok(()) }
    }

    /// The settings of all blocks; the plan sets their length later.
    fn ask(&self, sides: &[&Side]) -> Result<Ask, Said> {
        let args = self.args;
        let stack = StackArgs {
            edge: args.edge.clone(),
            origin: args.origin.clone(),
            edge_cpus: None,
            client_cpus: None,
            origin_cpus: None,
            edge_quota: None,
            plain: args.plain,
            port: args.port,
            noisy: !args.strict,
            seed: args.seed,
            store: PathBuf::new(),
            html: None,
            json: false,
        };
        let block = args.block.unwrap_or(plan::BLOCK.0);
        let sent = load(&args.sent, (block, args.warmup), args.path.clone())?;
        let sending = ComparisonLoadArgs { sent: args.sent.clone(), block, warmup: args.warmup, warmup_load: None };
        ask(&stack, &sending, sent, sides)
    }

    /// The blocks and pairs for which there is time.
    fn planned(&self, ask: &Ask, primary: &Metric, pace: Option<&MeasuredPace>) -> Result<PairPlan, Unmeasured> {
        let (beside, enough, block) = match ask.load {
            Load::Script { length, .. } => (BESIDE, Duration::ZERO, Some(length)),
            Load::Path { rate, .. } => {
                let beside = self.args.warmup + pace.map_or(BESIDE, |pace| pace.beside);
                // Without a metric of the user's, a block with few requests is compared by their mean.
                let needed = if self.args.metric.is_some() { primary.requests_min } else { metric::SMALL.requests_min };
                let enough = needed as f64 / rate.unwrap_or(1.0).max(1e-3);
                (beside, Duration::try_from_secs_f64(enough.ceil()).unwrap_or(Duration::MAX / 64), self.args.block)
            }
        };
        let wish =
            PlanWish { left: self.budget.left(), beside, enough, block, pairs: self.args.pairs.map(usize::from) };
        plan::plan(&wish).map_err(|(fits, needed)| {
            let minutes = (self.budget.spent() + RESERVE + needed).as_secs_f64() / 60.0;
            let asked = format!("{:.0}m", minutes.ceil() + 1.0);
            Unmeasured::NoTime(say!(texts::BUDGET_SHORT, time(self.args.budget), fits, PAIRS_LEAST, asked))
        })
    }
}
