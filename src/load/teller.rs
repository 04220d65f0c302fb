//! Output while a script runs: reports to stdout as Artillery prints them, a live view to stderr, metrics to
//! scrapers.

use std::io::IsTerminal;
use std::time::UNIX_EPOCH;

use weir_load::output::console::Console;
use weir_load::output::expose::exposition;
use weir_load::output::live;
use weir_load::output::{SelfCheck, honest, v1};
use weir_load::plan::{Phase, Plan};
use weir_load::publish::Publisher;
use weir_load::record::{Merger, Period};
use weir_load::run::{RunProgress, RunWatch};
use weir_load::selfcheck::Sampler;
use weir_net::clock;
use weir_net::process::terminal_size;
use weir_words::{Language, Said, say};

use super::flags::RunArgs;
use super::metrics;
use super::view::{View, has_colours};

/// Milliseconds between two updates of the served metrics.
const EXPOSE_EVERY_MS: u64 = 1_000;

/// Prints the events of a run: reports to stdout as Artillery does, the live view to stderr.
pub(super) struct Teller {
    /// The style of reports.
    pub console: Console,
    /// Time at which the first phase began.
    pub started_ms: Option<u64>,
    /// The exit code that a processor wants.
    pub exit_code: Option<i32>,
    is_v1: bool,
    eyes: Eyes,
    phases: Vec<String>,
    publisher: Option<Publisher>,
}

impl Teller {
    /// The teller for a run of this plan; the error is for the user.
    pub fn new(args: &RunArgs, plan: &Plan, language: Language) -> Result<Teller, Said> {
        let stdout = std::io::stdout();
        Ok(Teller {
            console: Console {
                columns: terminal_size(&stdout).map(|(columns, _)| columns),
                is_colour: stdout.is_terminal() && has_colours(),
                is_quiet: args.quiet,
                suppressed: plan.suppressed(),
                language,
                ..Console::default()
            },
            is_v1: args.summary == "v1",
            eyes: Eyes::new(args, language)?,
            phases: plan.phases.iter().map(|phase| phase.name.clone()).collect(),
            started_ms: None,
            exit_code: None,
            publisher: Publisher::start(&plan.plugins.publish, &plan.target)?,
        })
    }

    /// Ends the run, and returns the generator's own measurements.
    pub fn fared(&mut self) -> Sampler {
        self.eyes.fared()
    }

    /// Waits until all metrics have been published, and prints those that were not.
    pub fn publish_rest(&mut self) {
        let said = self.publisher.take().map(Publisher::finish).unwrap_or_default();
        said.iter().for_each(|sentence| eprintln!("{}", sentence.say(self.console.language)));
    }

    fn say(&mut self, text: &str) {
        self.eyes.view.say(text);
    }

    /// Removes the live view, so that something can be printed.
    fn clear(&mut self) {
        self.eyes.view.clear();
    }

    /// The report of the whole run.
    pub fn summary(&mut self, whole: &Period, check: &SelfCheck) {
        let now = now_ms();
        let verdict = honest::verdict_first(check, &self.console);
        let summary = match self.is_v1 {
            true => v1::summary(&self.console, whole, now),
            false => self.console.summary(whole, whole.stamps.first(), now),
        };
        self.say(&format!("{verdict}{summary}"));
        self.clear();
    }
}

impl RunWatch for Teller {
    fn phase_started(&mut self, index: usize, phase: &Phase) {
        let now = now_ms();
        if self.started_ms.is_none() {
            self.started_ms = Some(now);
            self.publisher.iter_mut().for_each(Publisher::started);
        }
        let text = match self.is_v1 {
            true => v1::phase_started(&self.console, Some(&phase.name), index, &phase.shown, now),
            false => self.console.phase_started(&phase.name, index, &phase.shown, now),
        };
        self.say(&text);
    }

    fn phase_completed(&mut self, index: usize, phase: &Phase) {
        if !self.is_v1 {
            let text = self.console.phase_completed(&phase.name, index, &phase.shown, now_ms());
            self.say(&text);
        }
    }

    fn line(&mut self, line: &str) {
        self.say(&format!("{line}\n"));
    }

    fn period(&mut self, period: &Period) {
        self.publisher.iter_mut().for_each(|publisher| publisher.period(period));
        let text = match self.is_v1 {
            true => v1::period(&self.console, period, self.started_ms.unwrap_or(period.start_ms)),
            false => self.console.period(period),
        };
        self.say(&text);
    }

    fn debug(&mut self, line: &str) {
        self.clear();
        eprintln!("  {line}");
    }

    fn exit_code(&mut self, code: i32) {
        self.exit_code = Some(code);
    }

    fn late(&mut self, start_ms: u64) {
        let said = say!(weir_load::texts::agents::LATE_METRICS, start_ms);
        self.say(&format!("{}\n", said.say(self.console.language)));
    }

    fn progress(&mut self, progress: &RunProgress, merger: &Merger) {
        for sentence in self.publisher.as_ref().map(Publisher::sentences).unwrap_or_default() {
            self.clear();
            eprintln!("{}", sentence.say(self.console.language));
        }
        let phase = progress.phase.and_then(|index| self.phases.get(index).cloned()).unwrap_or_default();
        self.eyes.look(progress, merger, phase, 0);
    }
}

/// Output that every kind of load has: the live view, the served metrics, and the measurements of the generator
/// itself.
pub(super) struct Eyes {
    /// The live view, and the lines printed beside it.
    pub view: View,
    sampler: Sampler,
    page: Option<metrics::MetricsPage>,
    exposed_ms: u64,
}

impl Eyes {
    /// Opens everything; the error is for the user.
    pub fn new(args: &RunArgs, language: Language) -> Result<Eyes, Said> {
        Ok(Eyes {
            view: View::new(args.quiet, language),
            sampler: Sampler::default(),
            page: args.prometheus.map(metrics::serve).transpose()?,
            exposed_ms: 0,
        })
    }

    /// Shows the progress of the run; `connections` is the number for a run without virtual users.
    pub fn look(&mut self, progress: &RunProgress, merger: &Merger, phase: String, connections: u64) {
        self.sampler.look();
        let now = now_ms();
        if let Some(page) = &self.page
            && now.saturating_sub(self.exposed_ms) >= EXPOSE_EVERY_MS
        {
            self.exposed_ms = now;
            page.set(exposition(&merger.outcome()));
        }
        let place = live::LiveProgress {
            elapsed_ms: u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX),
            planned_ms: u64::try_from(progress.length.as_millis()).unwrap_or(u64::MAX),
            phase,
            connections,
        };
        self.view.draw(merger, &place, now);
    }

    /// Ends the run: removes the view, and returns the generator's own measurements.
    pub fn fared(&mut self) -> Sampler {
        self.view.clear();
        std::mem::take(&mut self.sampler)
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    u64::try_from(clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
