//! The thread of an agent that runs a job: reads the job, waits for the start, runs its share, reports its counts.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use serde_json::{Value as Json, json};
use weir_net::Instant;
use weir_words::Said;

use super::channels::LinkEvent;
use super::health;
use super::job::{self, Job};
use crate::plan::{Phase, Plan};
use crate::processor;
use crate::record::{Merger, Period, TakenWindow};
use crate::run::{self, Before, Channel, Run, RunProgress, RunWatch};
use crate::script;
use crate::selfcheck::Sampler;

/// Reports of the thread to the agent.
#[derive(Debug)]
pub enum WorkReport {
    /// The thread can begin, with this many threads.
    Ready(usize),
    /// The thread cannot begin or cannot go on; the reason is for the user.
    Refused(Said),
    /// Counts, and the time up to which everything is reported.
    Taken(TakenWindow, u64),
    /// A `log` step's text.
    Line(String),
    /// Virtual users under way.
    Active(u64),
    /// The exit code that the processor wants.
    ExitCode(i32),
    /// Everything is reported; the result of the run.
    Done(Json),
}

/// The agent's order to begin.
pub struct Start {
    /// When the first phase begins.
    pub at: Instant,
    /// The controller's lead over this clock, ms.
    pub ahead_ms: i64,
    /// The variables that `before` set.
    pub before: Before,
}

/// The inputs of the thread.
pub struct Work {
    /// The number of the job, to which its reports belong.
    pub number: u64,
    /// The job, packed.
    pub bytes: Vec<u8>,
    /// The share of the arrivals.
    pub share: (u64, u64),
    /// Most threads; `None`: no limit.
    pub workers_max: Option<usize>,
    /// Delivers the start; if it closes, the run does not begin.
    pub start: Receiver<Start>,
    /// Ends the run.
    pub channel: Channel,
    /// Receives the reports.
    pub ear: SyncSender<LinkEvent<(u64, WorkReport)>>,
}

impl Work {
    /// Runs the job from beginning to end.
    pub fn run(self) {
        let ear = self.ear.clone();
        let number = self.number;
        if let Err(why) = self.try_run() {
            // It does not matter if the receiver is gone.
            let _ = ear.send(LinkEvent::Own((number, WorkReport::Refused(why))));
        }
    }

    fn try_run(self) -> Result<(), Said> {
        let job = job::unpack(&self.bytes)?;
        let plan = script::load(&job.options, &processor::load_script).map_err(|refusal| refusal.text)?;
        let workers = self.workers(&job, &plan);
        let mut teller = Teller { number: self.number, ear: self.ear, sampler: Sampler::default() };
        teller.tell(WorkReport::Ready(workers));
        // The channel is closed: the controller is gone, or has cancelled the run.
        let Ok(start) = self.start.recv() else { return Ok(()) };
        let run = Run {
            plan: Arc::new(plan),
            workers,
            seed: job.seed,
            share: self.share,
            start: Some(start.at),
            ahead_ms: Some(start.ahead_ms),
        };
        let outcome = run::serve(&run, start.before, self.channel, &mut teller)?;
        let check = std::mem::take(&mut teller.sampler).finish(outcome.merger.own());
        let done = json!({
            "is_interrupted": outcome.is_interrupted, "is_cut": outcome.is_cut, "lines_lost": outcome.lines_lost,
            "check": health::write(&check),
        });
        teller.tell(WorkReport::Done(done));
        drop(job.dir);
        Ok(())
    }

    fn workers(&self, job: &Job, plan: &Plan) -> usize {
        let workers = match job.workers {
            Some(workers) => workers,
            // As without agents: one worker keeps one state of the processor's module.
            None if plan.processor.is_some() => 1,
            None => weir_host::effective_cpus(),
        };
        workers.min(self.workers_max.unwrap_or(usize::MAX)).clamp(1, run::WORKERS_MAX)
    }
}

struct Teller {
    number: u64,
    ear: SyncSender<LinkEvent<(u64, WorkReport)>>,
    sampler: Sampler,
}

impl Teller {
    fn tell(&self, report: WorkReport) {
        // It does not matter if the receiver is gone.
        let _ = self.ear.send(LinkEvent::Own((self.number, report)));
    }
}

impl RunWatch for Teller {
    fn phase_started(&mut self, _: usize, _: &Phase) {}

    fn phase_completed(&mut self, _: usize, _: &Phase) {}

    fn line(&mut self, line: &str) {
        self.tell(WorkReport::Line(line.to_owned()));
    }

    fn period(&mut self, _: &Period) {}

    fn late(&mut self, _: u64) {}

    fn progress(&mut self, progress: &RunProgress, _: &Merger) {
        self.sampler.look();
        self.tell(WorkReport::Active(progress.active));
    }

    fn exit_code(&mut self, code: i32) {
        self.tell(WorkReport::ExitCode(code));
    }

    fn taken(&mut self, taken: &TakenWindow, before_ms: u64) {
        self.tell(WorkReport::Taken(taken.clone(), before_ms));
    }
}
