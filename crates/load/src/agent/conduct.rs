//! The controller: finds agents, sends them the job and their shares, starts them together, collects their counts.
//!
//! A separate thread speaks to the agents. The agents' counts arrive as the same [`run::Event`]s as those of local
//! threads, so [`run::listen`] handles agents and workers alike.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value as Json, json};
use weir_net::Instant;
use weir_net::clock::precise;
use weir_redis::RedisServer;
use weir_words::{Said, say};

use super::channels::{ChannelLink, LinkEvent};
use super::clock::now_us;
use super::health;
use super::letter::{self, Letter};
use super::limits::{BEAT, BODY_BYTES_MAX, HEARD_MAX, LOOK};
use super::member::{Loss, Mate, RunAgent};
use crate::event::Event;
use crate::output::SelfCheck;
use crate::output::facts::fingerprint;
use crate::random;
use crate::record::TakenWindow;
use crate::run::{self, Before, Channel, Run, RunWatch};
use crate::texts::agents as texts;
use crate::value::{Map, Value};
use crate::worker::RunShared;

/// Most agents of one run.
pub const AGENTS_MAX: u64 = 1000;
/// Time from the start order to the first phase: longer than any message takes.
const LEAD: Duration = Duration::from_secs(2);
/// Time in which the agents must have read the job after all have come.
const READY: Duration = Duration::from_secs(300);
/// Time in which the agents must end after the stop order.
const STOP: Duration = Duration::from_secs(10);
/// Most bytes of the job in one message.
const PIECE_BYTES: usize = 512 << 10;

/// The parameters of a run on agents.
#[derive(Clone, Debug)]
pub struct WantedRun {
    /// The server to which the agents are connected.
    pub server: RedisServer,
    /// Number of agents.
    pub agents: u64,
    /// Longest time to wait for the agents.
    pub wait: Duration,
}

/// The counts of all agents together.
#[derive(Debug)]
pub struct Merged {
    /// The same as the outcome of a local run.
    pub outcome: run::RunOutcome,
    /// The self-check of each agent.
    pub checks: Vec<(String, SelfCheck)>,
    /// The missing parts of the outcome, one sentence each.
    pub incomplete: Vec<Said>,
}

/// A run on agents.
pub struct Conductor {
    orders: SyncSender<LinkEvent<Order>>,
    gathered: Receiver<Result<Vec<Mate>, Said>>,
    thread: JoinHandle<Ended>,
    agents: usize,
}

/// Orders of the main thread.
#[derive(Debug)]
enum Order {
    /// All agents begin.
    Start { start_us: i64, began: Instant, before: Vec<u8>, events: Sender<Event>, shared: Arc<RunShared> },
    /// The run is over.
    Finish,
}

/// The results of the conducting thread.
struct Ended {
    checks: Vec<(String, SelfCheck)>,
    incomplete: Vec<Said>,
    lines_lost: u64,
    is_cut: bool,
}

impl Conductor {
    /// Asks for agents; the error is for the user.
    pub fn start(wanted: &WantedRun, job: Vec<u8>) -> Result<Conductor, Said> {
        let (orders, heard) = mpsc::sync_channel(HEARD_MAX);
        let (tell, gathered) = mpsc::channel();
        let run = random::string(12);
        let link = ChannelLink::open(&wanted.server, vec![letter::up(&run)], letter::AGENTS, orders.clone())?;
        let agents = usize::try_from(wanted.agents.clamp(1, AGENTS_MAX)).unwrap_or(1);
        let mut baton = Baton {
            run,
            seats: (0..agents).map(|_| None).collect(),
            lost: Vec::new(),
            job: Packed { fingerprint: fingerprint(&[&job]), bytes: job },
            until: precise() + wanted.wait,
            wait: wanted.wait,
            all_came: false,
            gathered: Some(tell),
            show: None,
            beat: None,
            stopped: None,
            link,
        };
        let thread = std::thread::Builder::new()
            .name("conductor".to_owned())
            .spawn(move || baton.conduct(&heard))
            .map_err(|error| say!(texts::NO_THREAD, error.to_string()))?;
        Ok(Conductor { orders, gathered, thread, agents })
    }

    /// Waits until all agents have come and can begin; the error is for the user.
    pub fn gather(&self, is_stopped: &dyn Fn() -> bool) -> Result<Vec<Mate>, Said> {
        loop {
            match self.gathered.recv_timeout(LOOK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) if !is_stopped() => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(say!(texts::STOPPED_BEFORE));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(say!(texts::CONTROLLER_ENDED));
                }
            }
        }
    }

    /// Starts the agents and listens until they are done. The error says why the run could not begin.
    pub fn run(self, run: &Run, before: &Before, channel: &Channel, watch: &mut dyn RunWatch) -> Result<Merged, Said> {
        let text = |(name, value): &(Arc<str>, Value)| (name.clone(), value.clone());
        let map = Value::Map(Arc::new(before.iter().map(text).collect::<Map>()));
        let before = map.to_json().unwrap_or_else(|| "{}".to_owned()).into_bytes();
        if before.len() > BODY_BYTES_MAX {
            return Err(say!(texts::BEFORE_TOO_LARGE, BODY_BYTES_MAX));
        }
        let shared = Arc::new(RunShared::default());
        let (began, start_us) = (precise() + LEAD, now_us() + i64::try_from(LEAD.as_micros()).unwrap_or(0));
        let order = Order::Start { start_us, began, before, events: channel.sender(), shared: shared.clone() };
        let gone = |_| say!(texts::CONTROLLER_ENDED);
        self.orders.send(LinkEvent::Own(order)).map_err(gone)?;
        let mut outcome = run::listen(&run.plan.phases, began, self.agents, &shared, channel, watch)?;
        self.orders.send(LinkEvent::Own(Order::Finish)).map_err(gone)?;
        let ended = self.thread.join().map_err(|_| say!(texts::CONTROLLER_PANICKED))?;
        outcome.lines_lost += ended.lines_lost;
        outcome.is_cut = ended.is_cut;
        Ok(Merged { outcome, checks: ended.checks, incomplete: ended.incomplete })
    }
}

/// The job, ready to be sent.
struct Packed {
    bytes: Vec<u8>,
    fingerprint: String,
}

/// The thread that speaks to the agents.
struct Baton {
    run: String,
    seats: Vec<Option<RunAgent>>,
    /// Names of agents that came and disappeared before the run began.
    lost: Vec<String>,
    job: Packed,
    /// The end of the wait for agents.
    until: Instant,
    wait: Duration,
    all_came: bool,
    /// Receives the message that all agents are ready.
    gathered: Option<Sender<Result<Vec<Mate>, Said>>>,
    show: Option<Show>,
    beat: Option<Instant>,
    stopped: Option<Instant>,
    link: ChannelLink,
}

/// Facts that are known after the run has begun.
pub(super) struct Show {
    pub(super) start_us: i64,
    pub(super) began: Instant,
    pub(super) before: Vec<u8>,
    pub(super) events: Sender<Event>,
    pub(super) shared: Arc<RunShared>,
}

impl Baton {
    fn conduct(&mut self, heard: &Receiver<LinkEvent<Order>>) -> Ended {
        loop {
            match heard.recv_timeout(LOOK) {
                Ok(LinkEvent::Message(message)) => {
                    if let Some(letter) = Letter::decode(&message) {
                        self.letter(letter);
                    }
                }
                // Agents that stay silent are named later.
                Ok(LinkEvent::Gone(_) | LinkEvent::Back) => {}
                Ok(LinkEvent::Own(Order::Start { start_us, began, before, events, shared })) => {
                    self.show = Some(Show { start_us, began, before, events, shared });
                    self.beat = None;
                }
                Ok(LinkEvent::Own(Order::Finish)) => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !self.tend() {
                break;
            }
        }
        let over = self.to_run(Letter::new("state", "").with("over", true));
        // The process may end right after it.
        self.link.deliver(letter::AGENTS, &over.encode());
        self.ended()
    }

    fn to_run(&self, letter: Letter) -> Letter {
        letter.with("run", self.run.as_str())
    }

    fn letter(&mut self, letter: Letter) {
        let from = letter.text("from").to_owned();
        if !letter::is_token(&from) {
            return;
        }
        let place = self.seats.iter().position(|seat| seat.as_ref().is_some_and(|member| member.id == from));
        match (letter.kind(), place) {
            ("offer", None) => self.offer(&letter, from),
            ("busy", Some(place)) if self.show.is_none() => {
                if let Some(seat) = self.seats.get_mut(place) {
                    *seat = None;
                }
            }
            (_, Some(place)) => self.member(letter, place),
            _ => {}
        }
    }

    /// An agent is free: it gets the first free share.
    fn offer(&mut self, letter: &Letter, id: String) {
        let Some(share) = self.seats.iter().position(Option::is_none).filter(|_| self.gathered.is_some()) else {
            return;
        };
        let name = self.name_for(letter.text("name"));
        let member = RunAgent::new(id, name, letter.number("cpus").unwrap_or(0), precise());
        self.hire(&member.id, share);
        if let Some(seat) = self.seats.get_mut(share) {
            *seat = Some(member);
        }
    }

    /// The name; with a number after it if another agent has the same name.
    fn name_for(&self, name: &str) -> String {
        let clean: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        let is_taken = |name: &str| self.seats.iter().flatten().any(|member| member.name == name);
        let mut found = clean.clone();
        let mut number = 1;
        while is_taken(&found) {
            number += 1;
            found = format!("{clean}-{number}");
        }
        found
    }

    fn hire(&mut self, id: &str, share: usize) {
        let hire = self
            .to_run(Letter::new("hire", ""))
            .with("share", share)
            .with("shares", self.seats.len())
            .with("pieces", self.job.bytes.len().div_ceil(PIECE_BYTES))
            .with("fingerprint", self.job.fingerprint.as_str());
        self.link.publish(&letter::seat(id), &hire.encode());
    }

    /// Handles a message of an agent that belongs to the run.
    fn member(&mut self, letter: Letter, place: usize) {
        let run = self.run.clone();
        let shares = self.seats.len();
        let Some(member) = self.seats.get_mut(place).and_then(Option::as_mut) else { return };
        member.is_heard(precise());
        let answer = match letter.kind() {
            "clock" => Letter::new("clock", "").with("number", letter.number("number")).with("us", now_us()),
            "want" => {
                let index = letter.number("piece").and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
                let Some(piece) = self.job.bytes.chunks(PIECE_BYTES).nth(index) else { return };
                Letter::new("piece", "").with("piece", index).body(piece.to_vec())
            }
            "beat" => {
                member.beat(&letter);
                if let (Some(why), Some(show), false) = (member.refused.clone(), &self.show, member.is_over()) {
                    member.lose(place, shares, show.began, &Loss::Failed(why.trimmed()));
                    end(show, place);
                }
                return;
            }
            "tick" => {
                if let Some(tick) = member.inbox.take(letter)
                    && let Some(show) = &self.show
                {
                    heard_tick(member, &tick, place, show);
                }
                Letter::new("ack", "").with("next", member.inbox.next())
            }
            _ => return,
        };
        let seat = letter::seat(&member.id);
        self.link.publish(&seat, &answer.with("run", run).encode());
    }

    /// Does the work that is due now; returns false when the thread must end.
    fn tend(&mut self) -> bool {
        let now = precise();
        if self.show.as_ref().is_some_and(|show| show.shared.is_ending.load(Ordering::Relaxed))
            && self.stopped.is_none()
        {
            self.stopped = Some(now);
            self.beat = None;
        }
        let is_beat = self.beat.is_none_or(|beat| now.saturating_duration_since(beat) >= BEAT);
        if is_beat {
            self.beat = Some(now);
            self.tell_all();
        }
        match self.gathered {
            Some(_) => self.gather(now, is_beat),
            None => {
                self.look_for_lost(now);
                true
            }
        }
    }

    /// Sends every agent the state that the run wants.
    fn tell_all(&mut self) {
        let mut state = self.to_run(Letter::new("state", "")).with("stop", self.stopped.is_some());
        if let Some(show) = &self.show {
            state = state.with("start_us", show.start_us).body(show.before.clone());
        }
        self.link.publish(letter::AGENTS, &state.encode());
    }

    /// Looks for agents, until all are ready or it is too late.
    fn gather(&mut self, now: Instant, is_beat: bool) -> bool {
        for share in 0..self.seats.len() {
            let Some(member) = self.seats.get(share).and_then(Option::as_ref) else { continue };
            if member.is_silent(now) {
                self.lost.push(member.name.clone());
                if let Some(seat) = self.seats.get_mut(share) {
                    *seat = None;
                }
            } else if is_beat && !member.has_answered {
                let id = member.id.clone();
                self.hire(&id, share);
            }
        }
        if is_beat && self.seats.iter().any(Option::is_none) {
            let call = self.to_run(Letter::new("call", ""));
            self.link.publish(letter::AGENTS, &call.encode());
        }
        let members = || self.seats.iter().flatten();
        if !self.all_came && members().count() == self.seats.len() {
            self.all_came = true;
            self.until = now + READY;
        }
        let refusal = members().find_map(|member| Some((&member.name, member.refused.as_ref()?)));
        let outcome = if let Some((name, why)) = refusal {
            Err(say!(texts::CANNOT_RUN, name, why.trimmed()))
        } else if members().filter(|member| member.is_ready).count() == self.seats.len() {
            Ok(members().map(RunAgent::mate).collect())
        } else if now >= self.until {
            Err(self.missing())
        } else {
            return true;
        };
        let goes_on = outcome.is_ok();
        let told = self.gathered.take().is_some_and(|tell| tell.send(outcome).is_ok());
        goes_on && told
    }

    /// Names the agents that did not come, or are not ready.
    fn missing(&self) -> Said {
        let of = self.seats.len();
        let came: Vec<&str> = self.seats.iter().flatten().map(|member| member.name.as_str()).collect();
        let text = if came.len() == of {
            let late = self.seats.iter().flatten().filter(|member| !member.is_ready);
            let late: Vec<&str> = late.map(|member| member.name.as_str()).collect();
            say!(texts::NOT_READY, READY.as_secs(), late.join(", "))
        } else {
            let names = if came.is_empty() { String::new() } else { format!(" ({})", came.join(", ")) };
            say!(texts::ONLY_SOME, came.len(), of, self.wait.as_secs(), names)
        };
        if self.lost.is_empty() {
            return text;
        }
        Said::list(&[text, say!(texts::CAME_AND_WENT, self.lost.join(", "))], "")
    }

    /// Gives up on agents that are silent. Gives up on all agents that do not end in time after a stop.
    fn look_for_lost(&mut self, now: Instant) {
        let shares = self.seats.len();
        let has_stopped = self.stopped.is_some_and(|stopped| now.saturating_duration_since(stopped) >= STOP);
        let Some(show) = &self.show else { return };
        for (share, member) in self.seats.iter_mut().enumerate() {
            let Some(member) = member.as_mut().filter(|member| !member.is_over()) else { continue };
            if member.is_silent(now) || has_stopped {
                let how = if has_stopped { Loss::Unending } else { Loss::Silent };
                member.lose(share, shares, show.began, &how);
                show.shared.active.fetch_sub(std::mem::take(&mut member.active), Ordering::Relaxed);
                end(show, share);
            }
        }
    }

    fn ended(&mut self) -> Ended {
        let members = || self.seats.iter().flatten();
        Ended {
            checks: members().filter_map(|member| Some((member.name.clone(), member.check.clone()?))).collect(),
            incomplete: members().flat_map(|member| member.notes.clone()).collect(),
            lines_lost: members().map(|member| member.lines_lost).sum(),
            is_cut: members().any(|member| member.is_cut),
        }
    }
}

/// The longest name of an agent.
const NAME_CHARS_MAX: usize = 64;

/// Ends a share: [`run::listen`] no longer waits for it.
fn end(show: &Show, share: usize) {
    // It does not matter if the receiver is gone.
    let _ = show.events.send(Event::Taken { worker: share, taken: TakenWindow::default(), before_ms: u64::MAX });
    let _ = show.events.send(Event::Ended { worker: share });
}

/// Passes on the counts of an agent.
pub(super) fn heard_tick(member: &mut RunAgent, tick: &Letter, share: usize, show: &Show) {
    let body: Json = serde_json::from_slice(&tick.body).unwrap_or_default();
    let Some(taken) = body.get("taken").and_then(Json::as_str).and_then(TakenWindow::decode) else {
        member.notes.push(say!(texts::SECOND_UNREADABLE, &member.name));
        return;
    };
    for line in body.get("lines").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str) {
        show.shared.lines_waiting.fetch_add(1, Ordering::Relaxed);
        // It does not matter if the receiver is gone.
        let _ = show.events.send(Event::Line(format!("[{}] {line}", member.name)));
    }
    member.lines_lost += body.get("lines_lost").and_then(Json::as_u64).unwrap_or(0);
    let active = tick.number("active").unwrap_or(0);
    show.shared.active.fetch_add(active, Ordering::Relaxed);
    show.shared.active.fetch_sub(std::mem::replace(&mut member.active, active), Ordering::Relaxed);
    let before_ms = if member.is_over() { u64::MAX } else { tick.number("before_ms").unwrap_or(0) };
    let _ = show.events.send(Event::Taken { worker: share, taken, before_ms });
    if let Some(code) = body.get("exit_code").and_then(Json::as_i64).and_then(|code| i32::try_from(code).ok()) {
        let _ = show.events.send(Event::ExitCode(code));
    }
    let done = body.get("done").unwrap_or(&Json::Null);
    if done.is_object() {
        let is = |key: &str| done.get(key).and_then(Json::as_bool).unwrap_or(false);
        member.check = Some(health::read(done.get("check").unwrap_or(&json!({}))));
        member.is_cut = is("is_cut");
        member.lines_lost += done.get("lines_lost").and_then(Json::as_u64).unwrap_or(0);
        let _ = show.events.send(Event::Ended { worker: share });
    }
}
