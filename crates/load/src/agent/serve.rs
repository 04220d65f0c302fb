//! The agent: offers itself, fetches a job, runs its share, sends its counts.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value as Json;
use weir_net::Instant;
use weir_net::clock::precise;
use weir_redis::RedisServer;
use weir_words::{Said, say};

use super::channels::{ChannelLink, LinkEvent};
use super::clock::{Offset, now_us};
use super::job;
use super::letter::{self, Letter};
use super::limits::{BEAT, BODY_BYTES_MAX, HEARD_MAX, LOOK, LOST};
use super::stream::Outbox;
use super::work::{Start, Work, WorkReport};
use crate::output::facts::fingerprint;
use crate::random;
use crate::record::TakenWindow;
use crate::run::{Channel, RunStop};
use crate::texts::agents as texts;
use crate::value::parse_json;

/// Most lines of `log` steps in one tick; the others are counted as lost.
const LINES_MAX: usize = 1000;
/// Longest time to wait for a piece of the job; then the agent asks again.
const PIECE: Duration = Duration::from_secs(2);

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The server at which the agent waits.
    pub server: RedisServer,
    /// The name of the agent.
    pub name: String,
    /// Most threads; `None`: no limit.
    pub workers_max: Option<usize>,
    /// True: end after one run.
    pub once: bool,
}

/// Serves run after run until it is stopped. `tell` prints status sentences; the error is for the user.
pub fn serve(agent: &Agent, is_stopped: &dyn Fn() -> bool, tell: &mut dyn FnMut(&Said)) -> Result<(), Said> {
    let (ear, heard) = mpsc::sync_channel(HEARD_MAX);
    let id = random::string(16);
    let channels = vec![letter::AGENTS.to_owned(), letter::seat(&id)];
    let link = ChannelLink::open(&agent.server, channels, &letter::up(&id), ear.clone())?;
    tell(&say!(texts::AGENT_WAITS, &agent.name, agent.server.to_string()));
    let mut seat = Seat { agent, id, link, ear, duty: None, jobs: 0 };
    while !is_stopped() {
        seat.turn(&heard, tell);
        if agent.once && seat.jobs > 0 && seat.duty.is_none() {
            break;
        }
    }
    if let Some(duty) = &mut seat.duty {
        duty.end();
    }
    Ok(())
}

struct Seat<'a> {
    agent: &'a Agent,
    id: String,
    link: ChannelLink,
    ear: SyncSender<LinkEvent<(u64, WorkReport)>>,
    duty: Option<Duty>,
    jobs: u64,
}

/// The state of a duty.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The job is being fetched.
    Fetching,
    /// The thread reads the job.
    Preparing,
    /// The run may begin.
    Ready,
    /// The run has begun.
    Running,
    /// The job cannot be run.
    Refused(Said),
    /// Everything is counted.
    Done,
}

/// The agent's part of one run.
struct Duty {
    number: u64,
    run: String,
    share: (u64, u64),
    state: State,
    /// Time at which the agent was hired, by this machine's two clocks.
    hired: (Instant, i64),
    /// Time of the last message of the controller.
    heard: Instant,
    beat: Option<Instant>,
    offset: Offset,
    job: Fetch,
    workers: usize,
    thread: Option<JoinHandle<()>>,
    ended: Option<Instant>,
    start: Option<Sender<Start>>,
    stop: Option<RunStop>,
    told: Told,
    /// The agent sends the controller nothing more and only waits for its thread.
    is_over: bool,
}

/// The pieces of a job.
struct Fetch {
    bytes: Vec<u8>,
    next: u64,
    pieces: u64,
    fingerprint: String,
    asked: Option<Instant>,
}

/// Counts that have not been sent yet, and counts that have not been acknowledged yet.
#[derive(Default)]
pub(super) struct Told {
    taken: TakenWindow,
    before_ms: u64,
    lines: Vec<String>,
    lines_lost: u64,
    active: u64,
    exit_code: Option<i32>,
    done: Option<Json>,
    is_last_sent: bool,
    outbox: Outbox,
    ticked: Option<Instant>,
}

impl Seat<'_> {
    fn turn(&mut self, heard: &Receiver<LinkEvent<(u64, WorkReport)>>, tell: &mut dyn FnMut(&Said)) {
        match heard.recv_timeout(LOOK) {
            Ok(LinkEvent::Message(message)) => self.message(&message, tell),
            Ok(LinkEvent::Gone(why)) => tell(&say!(texts::AGENT_GONE, &self.agent.name, why)),
            Ok(LinkEvent::Back) => tell(&say!(texts::AGENT_AGAIN, &self.agent.name, self.agent.server.to_string())),
            Ok(LinkEvent::Own((number, report))) => self.report(number, report),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        self.tend(tell);
    }

    fn message(&mut self, message: &[u8], tell: &mut dyn FnMut(&Said)) {
        let Some(letter) = Letter::decode(message) else { return };
        let run = letter.text("run");
        if !letter::is_token(run) {
            return;
        }
        match (letter.kind(), &mut self.duty) {
            ("call", None) => {
                let offer = Letter::new("offer", &self.id)
                    .with("name", self.agent.name.as_str())
                    .with("cpus", weir_host::effective_cpus());
                self.link.publish(&letter::up(run), &offer.encode());
            }
            ("hire", None) => self.hire(&letter, tell),
            ("hire", Some(duty)) if duty.run != run => {
                self.link.publish(&letter::up(run), &Letter::new("busy", &self.id).encode());
            }
            (_, Some(duty)) if duty.run == run => {
                duty.heard = precise();
                self.order(&letter, tell);
            }
            _ => {}
        }
    }

    fn hire(&mut self, letter: &Letter, tell: &mut dyn FnMut(&Said)) {
        let number = |key| letter.number(key);
        let (Some(share), Some(shares), Some(pieces)) = (number("share"), number("shares"), number("pieces")) else {
            return;
        };
        let run = letter.text("run").to_owned();
        tell(&say!(texts::AGENT_RUNS, &self.agent.name, share + 1, shares, &run));
        self.jobs += 1;
        self.duty = Some(Duty {
            number: self.jobs,
            run,
            share: (share, shares),
            state: State::Fetching,
            hired: (precise(), now_us()),
            heard: precise(),
            beat: None,
            offset: Offset::default(),
            job: Fetch {
                bytes: Vec::new(),
                next: 0,
                pieces,
                fingerprint: letter.text("fingerprint").to_owned(),
                asked: None,
            },
            workers: 0,
            thread: None,
            ended: None,
            start: None,
            stop: None,
            told: Told::default(),
            is_over: false,
        });
    }

    /// Handles a message of the run's controller.
    fn order(&mut self, letter: &Letter, tell: &mut dyn FnMut(&Said)) {
        let Some(duty) = &mut self.duty else { return };
        match letter.kind() {
            "clock" => {
                if let (Some(number), Some(us)) = (letter.number("number"), letter.signed("us")) {
                    duty.offset.answer(number, us, precise());
                }
            }
            "piece" => duty.piece(letter, self.agent, &self.ear),
            "ack" => duty.told.outbox.acknowledged(letter.number("next").unwrap_or(0), precise()),
            "state" if letter.is("over") => {
                tell(&say!(texts::AGENT_OVER, &self.agent.name, &duty.run));
                duty.end();
            }
            "state" => duty.state(letter),
            _ => {}
        }
    }

    /// Handles a report of the job's thread.
    fn report(&mut self, number: u64, report: WorkReport) {
        let Some(duty) = self.duty.as_mut().filter(|duty| duty.number == number) else { return };
        match report {
            WorkReport::Ready(workers) => {
                duty.workers = workers;
                duty.turn_to(State::Ready);
            }
            WorkReport::Refused(why) => duty.turn_to(State::Refused(why)),
            WorkReport::Done(_) => {
                duty.told.note(report);
                duty.turn_to(State::Done);
            }
            report => duty.told.note(report),
        }
    }

    /// Does the work that is due now.
    fn tend(&mut self, tell: &mut dyn FnMut(&Said)) {
        let Some(duty) = &mut self.duty else { return };
        let now = precise();
        if !duty.is_over && now.saturating_duration_since(duty.heard) >= LOST {
            tell(&say!(texts::AGENT_SILENT, &self.agent.name, &duty.run));
            duty.end();
        }
        if duty.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            duty.thread = None;
            // Reports of the thread may still wait in the channel.
            duty.ended = Some(now);
        }
        let is_told = matches!(duty.state, State::Refused(_) | State::Done) || duty.is_over;
        if !is_told && duty.ended.is_some_and(|ended| now.saturating_duration_since(ended) >= BEAT) {
            duty.turn_to(State::Refused(say!(texts::THREAD_PANICKED)));
        }
        if duty.is_over {
            if duty.thread.is_none() {
                self.duty = None;
            }
            return;
        }
        let up = letter::up(&duty.run);
        for letter in duty.due(&self.id, now) {
            self.link.publish(&up, &letter.encode());
        }
    }
}

impl Duty {
    fn turn_to(&mut self, state: State) {
        self.state = state;
        // This forces a beat at once.
        self.beat = None;
    }

    /// Ends everything that is running.
    fn end(&mut self) {
        self.is_over = true;
        self.start = None;
        if let Some(stop) = &self.stop {
            stop.stop();
        }
    }

    /// Takes a piece of the job; with the last piece the thread begins.
    fn piece(&mut self, letter: &Letter, agent: &Agent, ear: &SyncSender<LinkEvent<(u64, WorkReport)>>) {
        let fetch = &mut self.job;
        if self.state != State::Fetching || letter.number("piece") != Some(fetch.next) {
            return;
        }
        if fetch.bytes.len() + letter.body.len() > job::BYTES_MAX + (1 << 20) {
            return self.turn_to(State::Refused(say!(texts::JOB_TOO_LARGE)));
        }
        fetch.bytes.extend_from_slice(&letter.body);
        fetch.next += 1;
        fetch.asked = None;
        if fetch.next < fetch.pieces {
            return;
        }
        let bytes = std::mem::take(&mut fetch.bytes);
        if fingerprint(&[&bytes]) != fetch.fingerprint {
            return self.turn_to(State::Refused(say!(texts::JOB_DAMAGED)));
        }
        let (start, starts) = mpsc::channel();
        let channel = Channel::new();
        self.stop = Some(channel.stop());
        self.start = Some(start);
        let (number, share, workers_max) = (self.number, self.share, agent.workers_max);
        let work = Work { number, bytes, share, workers_max, start: starts, channel, ear: ear.clone() };
        match std::thread::Builder::new().name("run".to_owned()).spawn(move || work.run()) {
            Ok(thread) => {
                self.thread = Some(thread);
                self.turn_to(State::Preparing);
            }
            Err(error) => self.turn_to(State::Refused(say!(texts::NO_THREAD, error.to_string()))),
        }
    }

    /// Takes the state that the controller wants from all agents.
    fn state(&mut self, letter: &Letter) {
        if letter.is("stop")
            && let Some(stop) = &self.stop
        {
            stop.stop();
        }
        let Some(start_us) = letter.signed("start_us").filter(|_| self.state == State::Ready) else { return };
        let ahead_us = self.offset.ahead_us();
        // The start is computed from the moment of hiring: a start in the past stays in the past, and late virtual
        // users are recorded as late.
        let (hired, hired_us) = self.hired;
        let after_us = start_us.saturating_sub(hired_us.saturating_add(ahead_us));
        let at = hired + Duration::from_micros(u64::try_from(after_us).unwrap_or(0));
        let Ok(crate::value::Value::Map(before)) = parse_json(&letter.body) else {
            return self.turn_to(State::Refused(say!(texts::BEFORE_DAMAGED)));
        };
        let before = before.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(start) = self.start.take() {
            // A thread that has ended reports that itself.
            let _ = start.send(Start { at, ahead_ms: ahead_us / 1000, before });
            self.turn_to(State::Running);
        }
    }

    /// The messages that are due.
    fn due(&mut self, id: &str, now: Instant) -> Vec<Letter> {
        let is_due =
            |last: Option<Instant>, every| last.is_none_or(|last| now.saturating_duration_since(last) >= every);
        let mut letters = Vec::new();
        if let Some(number) = self.offset.ask(now, now_us()) {
            letters.push(Letter::new("clock", id).with("number", number));
        }
        if self.state == State::Fetching && self.offset.is_known() && is_due(self.job.asked, PIECE) {
            self.job.asked = Some(now);
            letters.push(Letter::new("want", id).with("piece", self.job.next));
        }
        if is_due(self.beat, BEAT) {
            self.beat = Some(now);
            letters.push(self.beat(id));
        }
        let told = &mut self.told;
        let is_last = told.done.is_some();
        let is_running = matches!(self.state, State::Running | State::Done) && !told.is_last_sent;
        if is_running && !told.outbox.is_full() && (is_last || is_due(told.ticked, BEAT)) {
            told.ticked = Some(now);
            told.is_last_sent = is_last;
            letters.extend(told.tick(id, BODY_BYTES_MAX, now));
        }
        letters.extend(told.outbox.again(now));
        letters
    }

    fn beat(&self, id: &str) -> Letter {
        let nothing = Said::default();
        let (word, why) = match &self.state {
            State::Fetching => ("fetching", &nothing),
            State::Preparing => ("preparing", &nothing),
            State::Ready => ("ready", &nothing),
            State::Running => ("running", &nothing),
            State::Done => ("done", &nothing),
            State::Refused(why) => ("refused", why),
        };
        // The controller has a language of its own.
        let said = serde_json::to_value(why).ok().filter(|kept| kept.to_string().len() <= SAID_BYTES_MAX);
        Letter::new("beat", id)
            .with("state", word)
            .with("why", why.chars().take(WHY_CHARS_MAX).collect::<String>())
            .with("why_said", said)
            .with("ahead_us", self.offset.ahead_us())
            .with("error_us", self.offset.error_us())
            .with("workers", self.workers)
    }
}

/// Most bytes of the reason for a refusal in all languages; a longer reason is sent in English only.
const SAID_BYTES_MAX: usize = 16_000;
/// Most characters of the reason for a refusal that are sent.
const WHY_CHARS_MAX: usize = 4000;

impl Told {
    /// Keeps a thread's report for the next tick, except reports of the run's state.
    pub(super) fn note(&mut self, report: WorkReport) {
        match report {
            WorkReport::Ready(_) | WorkReport::Refused(_) => {}
            WorkReport::Taken(taken, before_ms) => {
                self.taken.merge(taken);
                self.before_ms = before_ms;
            }
            WorkReport::Line(line) if self.lines.len() < LINES_MAX => self.lines.push(line),
            WorkReport::Line(_) => self.lines_lost += 1,
            WorkReport::Active(active) => self.active = active,
            WorkReport::ExitCode(code) => self.exit_code = Some(code),
            WorkReport::Done(done) => self.done = Some(done),
        }
    }

    /// All kept counts as a message, in parts of at most `part_bytes_max` bytes.
    pub(super) fn tick(&mut self, id: &str, part_bytes_max: usize, now: Instant) -> Vec<Letter> {
        let taken = std::mem::take(&mut self.taken);
        let body = serde_json::json!({
            "lines": std::mem::take(&mut self.lines), "lines_lost": std::mem::take(&mut self.lines_lost),
            "taken": taken.encode(), "exit_code": self.exit_code.take(), "done": self.done,
        });
        let letter = Letter::new("tick", id).with("before_ms", self.before_ms).with("active", self.active);
        self.outbox.push(&letter.body(body.to_string().into_bytes()), part_bytes_max, now)
    }
}
