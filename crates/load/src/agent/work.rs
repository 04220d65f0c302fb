//! The thread of an agent that runs a job: reads it, waits for the start, serves its share, tells what it counts.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use serde_json::{Value as Json, json};
use weir_net::Instant;

use super::health;
use super::job::{self, Job};
use super::nats::Heard;
use crate::plan::{Phase, Plan};
use crate::processor;
use crate::record::{Merger, Period, Taken};
use crate::run::{self, Before, Channel, Progress, Run, Watch};
use crate::script;
use crate::selfcheck::Sampler;

/// What the thread tells the agent.
#[derive(Debug)]
pub enum Report {
    /// It can begin; so many threads.
    Ready(usize),
    /// It cannot, or could not go on: why, for the user.
    Refused(String),
    /// What was counted, and up to when everything is told.
    Taken(Taken, u64),
    /// A `log` step's text.
    Line(String),
    /// Virtual users under way.
    Active(u64),
    /// What the processor wants the exit code to be.
    ExitCode(i32),
    /// Everything is told: how it ended.
    Done(Json),
}

/// What the agent tells the thread: begin.
pub struct Start {
    /// When the first phase begins.
    pub at: Instant,
    /// What the controller's clock is ahead, ms.
    pub ahead_ms: i64,
    /// What `before` left.
    pub before: Before,
}

/// What the thread needs.
pub struct Work {
    /// The number of the job, so that its reports are known.
    pub number: u64,
    /// The job, packed.
    pub bytes: Vec<u8>,
    /// Which part of the arrivals.
    pub share: (u64, u64),
    /// Threads at most.
    pub workers_max: Option<usize>,
    /// Says when; closed is never.
    pub start: Receiver<Start>,
    /// What ends it.
    pub channel: Channel,
    /// Who hears of it.
    pub ear: SyncSender<Heard<(u64, Report)>>,
}

impl Work {
    /// Does all of it.
    pub fn run(self) {
        let ear = self.ear.clone();
        let number = self.number;
        if let Err(why) = self.try_run() {
            // Nobody listens any more: then it does not matter.
            let _ = ear.send(Heard::Own((number, Report::Refused(why))));
        }
    }

    fn try_run(self) -> Result<(), String> {
        let job = job::unpack(&self.bytes)?;
        let plan = script::load(&job.options, &processor::load_script).map_err(|refusal| refusal.text)?;
        let workers = self.workers(&job, &plan);
        let mut teller = Teller { number: self.number, ear: self.ear, sampler: Sampler::default() };
        teller.tell(Report::Ready(workers));
        // A closed channel: the controller has gone, or has thought better of it.
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
        teller.tell(Report::Done(done));
        drop(job.dir);
        Ok(())
    }

    fn workers(&self, job: &Job, plan: &Plan) -> usize {
        let workers = match job.workers {
            Some(workers) => workers,
            // As without agents: one state of the processor's module.
            None if plan.processor.is_some() => 1,
            None => weir_meter::host::effective_cpus(),
        };
        workers.min(self.workers_max.unwrap_or(usize::MAX)).clamp(1, run::WORKERS_MAX)
    }
}

struct Teller {
    number: u64,
    ear: SyncSender<Heard<(u64, Report)>>,
    sampler: Sampler,
}

impl Teller {
    fn tell(&self, report: Report) {
        // Nobody listens any more: then it does not matter.
        let _ = self.ear.send(Heard::Own((self.number, report)));
    }
}

impl Watch for Teller {
    fn phase_started(&mut self, _: usize, _: &Phase) {}

    fn phase_completed(&mut self, _: usize, _: &Phase) {}

    fn line(&mut self, line: &str) {
        self.tell(Report::Line(line.to_owned()));
    }

    fn period(&mut self, _: &Period) {}

    fn late(&mut self, _: u64) {}

    fn progress(&mut self, progress: &Progress, _: &Merger) {
        self.sampler.look();
        self.tell(Report::Active(progress.active));
    }

    fn exit_code(&mut self, code: i32) {
        self.tell(Report::ExitCode(code));
    }

    fn taken(&mut self, taken: &Taken, before_ms: u64) {
        self.tell(Report::Taken(taken.clone(), before_ms));
    }
}
