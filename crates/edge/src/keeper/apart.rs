//! A server in a process of its own, without root. When it dies, the keeper starts another one at once: the listening
//! sockets stay open, so only the exchanges under way are lost.
//!
//! Invariant: the keeper reads only [`Report`]s from the server, each of at most one packet.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use weir_host as host;
use weir_http::hold::reach::Reach;
use weir_meter::live::Canary;
use weir_net::answers::Answers;
use weir_net::clock::{self, Instant};
use weir_net::forward::ForwardEnd;
use weir_net::log::{self, Level};
use weir_net::process::{self, Channel, Identity, Life};
use weir_net::worker;

use crate::canary::terms::{CanaryOrder, CanaryServe};
use crate::drive::quic::process::{QuicProcess, QuicWays};
use crate::keeper::desk::{Allowed, Clerk, Desk};
use crate::keeper::order::{Order, Report, Serve, User};
use crate::keeper::passed::Passed;
use crate::keeper::processes::Processes;
use crate::keeper::{Bell, CanaryNews, KeptServer, Load, News};
use crate::log_files;
use crate::resources::Resources;

/// Reports that wait for the keeper, at most; the server waits for room.
const REPORTS_MAX: usize = 16;
/// How often a server is started in place of one that died, for long: once in this time.
const START_EVERY: Duration = Duration::from_secs(1);
/// Servers that are started at once before that limit holds.
const STARTS_AT_ONCE: u32 = 10;
/// A server that has not put a configuration in force in this time is killed.
const SERVE_PATIENCE: Duration = Duration::from_secs(60);
/// A server that was told to stop and still runs after this time is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// A server that has closed its channel and still runs after this time is killed; how often the keeper looks.
const END_PATIENCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(1);
/// A server with a worker that has not answered for this time is replaced.
const HANG: Duration = Duration::from_secs(30);
/// A server that was replaced because a worker hangs may finish its other exchanges for this time.
const FINISH_PATIENCE: Duration = Duration::from_secs(10);

/// A process that serves.
struct Process {
    child: Child,
    channel: Channel,
    reports: Receiver<Report>,
    user: Option<User>,
    /// The places of its first configuration.
    reach: Reach,
    /// The limit on open files that it has.
    nofile: u64,
    /// When all workers had answered last.
    answered: Instant,
    /// When it is killed, if it has not ended by then.
    until: Option<Instant>,
    /// The newest state of its canary.
    canary: Option<Box<Canary>>,
}

/// The last configuration that came into force, for a server that takes the place of one that died.
#[derive(Clone)]
struct Last {
    serve: Serve,
    answers: Arc<Answers>,
    resources: Resources,
    reach: Reach,
}

/// The server.
pub struct Apart {
    /// The name of the process in `ps`.
    title: String,
    bell: Bell,
    desk: Desk,
    processes: Processes,
    serving: Option<Process>,
    /// Processes that finish their exchanges.
    finishing: Vec<Process>,
    last: Option<Last>,
    is_succeeded: bool,
    is_quitting: bool,
    /// When as many servers may be started at once as ever; each start moves it on by [`START_EVERY`].
    rested: Instant,
    /// When the next server is started.
    again: Option<Instant>,
    /// The server with the canary has ended.
    has_died: bool,
}

impl Apart {
    /// A server without a process yet.
    pub fn new(title: &str, bell: Bell) -> Apart {
        Apart {
            title: title.to_owned(),
            bell,
            desk: Desk::default(),
            processes: Processes::new(),
            serving: None,
            finishing: Vec::new(),
            last: None,
            is_succeeded: false,
            is_quitting: false,
            rested: clock::precise(),
            again: None,
            has_died: false,
        }
    }

    /// Starts a process, and lets it put a configuration in force.
    fn begin(&mut self, last: &Last) -> Result<Process, String> {
        let quic = self.processes.begin().map_err(|error| format!("socketpair() failed {}", log::Os(&error)))?;
        let mut process = Process::start(&self.title, &self.bell, &self.desk, last)?;
        if let Err(message) = process.serve(last, Some(quic)) {
            process.log_end();
            return Err(message);
        }
        if self.is_succeeded {
            process.tell(&Order::Succeed(true), &[]);
        }
        log::global(Level::Notice, format_args!("start worker process {}", process.child.id()));
        Ok(process)
    }

    /// Puts a configuration in force, in the process that serves or in another one.
    fn serve_next(&mut self, next: &Last) -> Result<(), String> {
        match self.serving.as_mut().filter(|process| process.can_serve(next)) {
            Some(process) => process.serve(next, None),
            None => {
                self.serving.iter().for_each(|before| before.tell(&Order::Succeed(true), &[]));
                let process = self.begin(next).inspect_err(|_| {
                    self.serving.iter().for_each(|before| before.tell(&Order::Succeed(self.is_succeeded), &[]));
                })?;
                if let Some(mut before) = self.serving.replace(process) {
                    before.finish(None);
                    self.finishing.push(before);
                }
                Ok(())
            }
        }
    }

    /// Starts a server in place of one that has died.
    fn revive(&mut self) {
        let Some(last) = self.last.clone() else { return };
        self.again = None;
        match self.begin(&last) {
            Ok(process) => self.serving = Some(process),
            Err(message) => {
                log::global(Level::Emerg, format_args!("{message}"));
                self.start_again();
            }
        }
    }

    /// Lets the next server start, at once if the limit allows it.
    fn start_again(&mut self) {
        let now = clock::precise();
        self.rested = self.rested.max(now) + START_EVERY;
        let spent = self.rested.saturating_duration_since(now);
        self.again = Some(now + spent.saturating_sub(START_EVERY * STARTS_AT_ONCE));
    }

    /// The serving process has ended.
    fn ended(&mut self, mut process: Process) {
        process.log_end();
        self.has_died = true;
        if !self.is_quitting {
            self.start_again();
        }
    }

    /// Starts another server, because a worker of this one hangs. The other workers finish their exchanges.
    fn replace_hanging(&mut self) {
        let Some(mut process) = self.serving.take() else { return };
        process.log_hang();
        self.has_died = true;
        process.tell(&Order::Succeed(true), &[]);
        process.finish(Some(FINISH_PATIENCE));
        self.finishing.push(process);
        self.revive();
    }
}

impl KeptServer for Apart {
    fn serve(&mut self, load: Load) -> Result<(), String> {
        let serve = Serve {
            generation: load.conf.generation,
            dashboard: load.conf.dashboard,
            user: load.identity.as_ref().map(User::from),
            ask_every_ms: u64::try_from(load.ask_every.as_millis()).unwrap_or(u64::MAX),
            quic: None,
            canary: load.canary,
            labels: Vec::new(),
        };
        let (answers, reach) = (load.answers, load.conf.reach.clone());
        let next = Last { serve, answers, resources: load.resources, reach };
        self.desk.allow_next(Allowed::of(&load.conf, load.identity.as_ref()));
        // The server has a parsed configuration of its own.
        drop((load.conf, load.tree));
        if let Some(CanaryServe::Beside(..)) = next.serve.canary {
            // Its errands are allowed beside the others, until another configuration comes into force.
            let here = self.serving.as_mut().ok_or_else(|| "the server is not there".to_owned());
            let served = here.and_then(|process| match process.obstacle(&next) {
                Some(what) => Err(format!("a canary runs in the same server, which {what}: change it with a reload")),
                None => process.serve(&next, None),
            });
            return served.inspect_err(|_| self.desk.settle(false));
        }
        let served = self.serve_next(&next);
        self.desk.settle(served.is_ok());
        served?;
        self.last = Some(next);
        self.again = None;
        Ok(())
    }

    fn refuse(&mut self, why: Vec<String>) {
        if let Some(process) = &self.serving {
            process.tell(&Order::Refuse(why), &[]);
        }
    }

    fn left(&mut self) -> (String, Vec<ForwardEnd>) {
        self.processes.left()
    }

    fn reopen(&mut self) {
        let Some(last) = &self.last else { return };
        log_files::reopen();
        let logs = Passed::logs(&last.resources);
        for process in self.serving.iter().chain(&self.finishing) {
            process.tell(&Order::Reopen(Passed::labels(&logs)), &logs);
        }
    }

    fn succeed(&mut self, is_succeeded: bool) {
        if self.is_quitting {
            // The successor may have a successor of its own, which reads the sockets of QUIC.
            return;
        }
        self.is_succeeded = is_succeeded;
        self.serving.iter().for_each(|process| process.tell(&Order::Succeed(is_succeeded), &[]));
    }

    fn steer(&mut self, order: CanaryOrder) {
        self.serving.iter().for_each(|process| process.tell(&Order::Canary(order), &[]));
    }

    fn canary(&mut self) -> CanaryNews {
        if std::mem::take(&mut self.has_died) {
            return CanaryNews::Died;
        }
        let state = self.serving.as_mut().and_then(|process| process.canary.take());
        state.map_or(CanaryNews::None, CanaryNews::State)
    }

    fn quit(&mut self) {
        self.is_quitting = true;
        self.last = None;
        self.again = None;
        self.serving.iter_mut().for_each(|process| process.finish(None));
        // Without a process, there is nothing to wait for.
        self.bell.ring();
    }

    fn stop(&mut self) {
        self.is_quitting = true;
        self.last = None;
        for process in self.serving.take().into_iter().chain(self.finishing.drain(..)) {
            process.tell(&Order::Stop, &[]);
            process.wait_for_end();
        }
    }

    fn news(&mut self) -> News {
        let mut news = News::None;
        let now = clock::precise();
        if let Some(mut process) = self.serving.take() {
            match process.hear() {
                Heard::Ended => self.ended(process),
                heard => {
                    if heard == Heard::Alive {
                        news = News::Alive;
                    }
                    let hangs = now.saturating_duration_since(process.answered) >= HANG && !process.is_traced();
                    self.serving = Some(process);
                    if hangs && !self.is_quitting {
                        self.replace_hanging();
                    }
                }
            }
        }
        let mut finishing = std::mem::take(&mut self.finishing);
        finishing.retain_mut(|process| match process.hear() {
            Heard::Ended => {
                process.log_end();
                false
            }
            Heard::Nothing | Heard::Alive => {
                if process.until.is_some_and(|until| now >= until) {
                    process.kill();
                }
                true
            }
        });
        self.finishing = finishing;
        if self.again.is_some_and(|again| clock::precise() >= again) {
            self.revive();
        }
        match self.is_quitting && self.serving.is_none() && self.finishing.is_empty() {
            true => News::Ended,
            false => news,
        }
    }

    fn wait(&self) -> Option<Duration> {
        let now = clock::precise();
        let hang = self.serving.as_ref().map(|process| process.answered + HANG);
        let ends = self.finishing.iter().filter_map(|process| process.until);
        let next = ends.chain(self.again).chain(hang).min()?;
        // A process that is traced is not replaced: its time is over, and stays so.
        Some(next.saturating_duration_since(now).max(Duration::from_millis(50)))
    }
}

/// The reports of a process since the last look.
#[derive(PartialEq, Eq)]
enum Heard {
    Nothing,
    Alive,
    Ended,
}

impl Process {
    fn start(title: &str, bell: &Bell, desk: &Desk, last: &Last) -> Result<Process, String> {
        let failed = |error: std::io::Error| format!("could not start the server {}", log::Os(&error));
        let (child, channel) = process::start_server(title).map_err(failed)?;
        let (send, reports) = sync_channel(REPORTS_MAX);
        let user = last.serve.user.clone();
        let clerk = Clerk::new(user.as_ref().map(Identity::from)).map_err(failed)?;
        let (own, bell, desk) = (channel.another().map_err(failed)?, bell.clone(), desk.clone());
        let life = Life::of(&child);
        worker::block_aside("server", move || {
            // A message that is no report is the end of this server's reports.
            while let Ok(Some((bytes, answer))) = own.receive_while(&life) {
                match (Report::from_bytes(&bytes), answer) {
                    (None, _) => break,
                    (Some(Report::Errand(errand)), Some(answer)) => desk.take(errand, answer, &clerk),
                    (Some(report), _) => {
                        if send.send(report).is_err() {
                            break;
                        }
                        bell.ring();
                    }
                }
            }
            drop(send);
            bell.ring();
        })
        .map_err(failed)?;
        let now = clock::precise();
        let (reach, nofile) = (last.reach.clone(), process::nofile());
        Ok(Process { child, channel, reports, user, reach, nofile, answered: now, until: None, canary: None })
    }

    /// Whether this process can serve the configuration.
    fn can_serve(&self, next: &Last) -> bool {
        let obstacle = self.obstacle(next);
        if let Some(what) = &obstacle {
            let pid = self.child.id();
            log::global(Level::Notice, format_args!("worker process {pid} {what}: another one takes its place"));
        }
        obstacle.is_none()
    }

    /// Why this process cannot serve the configuration: it cannot become another user, and it cannot write where its first
    /// configuration did not.
    fn obstacle(&self, next: &Last) -> Option<String> {
        if self.user != next.serve.user {
            return Some("has another user".to_owned());
        }
        let place = next.reach.new_write(&self.reach)?;
        Some(format!("may not write to \"{}\"", place.display()))
    }

    /// Sends a configuration, and waits until it is in force. A process that takes too long is killed: nobody knows which
    /// configuration it has.
    fn serve(&mut self, last: &Last, quic: Option<(QuicProcess, QuicWays)>) -> Result<(), String> {
        let mut all = Passed::all(&last.resources);
        let quic = quic.map(|(process, ways)| {
            all.extend(Passed::ways(ways));
            process
        });
        let order = Order::Serve(Box::new(Serve { labels: Passed::labels(&all), quic, ..last.serve.clone() }));
        let files: Vec<BorrowedFd<'_>> = all.iter().map(AsFd::as_fd).collect();
        let nofile = process::nofile();
        if self.nofile != nofile {
            match process::share_nofile(self.child.id()) {
                Ok(()) => self.nofile = nofile,
                Err(error) => {
                    log::global(Level::Alert, format_args!("prlimit(RLIMIT_NOFILE) failed {}", log::Os(&error)));
                }
            }
        }
        let sent = self.channel.send(&order.to_bytes(&last.answers.to_bytes()), &files);
        sent.map_err(|error| format!("could not reach the server {}", log::Os(&error)))?;
        let until = clock::precise() + SERVE_PATIENCE;
        loop {
            match self.reports.recv_timeout(until.saturating_duration_since(clock::precise())) {
                Ok(Report::Serves) => {
                    self.answered = clock::precise();
                    return Ok(());
                }
                Ok(Report::Refuses(message)) => return Err(message),
                Ok(Report::Canary(state)) => self.canary = Some(state),
                Ok(Report::Silent(_) | Report::Errand(_)) => {}
                Err(RecvTimeoutError::Disconnected) => return Err("the server ended before it served".to_owned()),
                Err(RecvTimeoutError::Timeout) => {
                    self.kill();
                    return Err(format!("the server did not take the configuration in {} s", SERVE_PATIENCE.as_secs()));
                }
            }
        }
    }

    /// A process that is not there any more has no use for an order.
    fn tell(&self, order: &Order, files: &[Passed]) {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        let _ = self.channel.send(&order.to_bytes(&[]), &files);
    }

    fn finish(&mut self, patience: Option<Duration>) {
        self.tell(&Order::Quit, &[]);
        self.until = patience.map(|patience| clock::precise() + patience);
    }

    fn hear(&mut self) -> Heard {
        let mut heard = Heard::Nothing;
        loop {
            match self.reports.try_recv() {
                Ok(Report::Silent(seats)) if seats.is_empty() => {
                    self.answered = clock::precise();
                    heard = Heard::Alive;
                }
                Ok(Report::Silent(seats)) => {
                    let silent = clock::precise().saturating_duration_since(self.answered).as_secs();
                    for seat in seats {
                        log::global(Level::Alert, format_args!("worker {seat} has not answered for {silent} s"));
                    }
                }
                Ok(Report::Canary(state)) => self.canary = Some(state),
                Ok(Report::Serves | Report::Refuses(_) | Report::Errand(_)) => {}
                Err(TryRecvError::Empty) => return heard,
                Err(TryRecvError::Disconnected) => return Heard::Ended,
            }
        }
    }

    /// Whether a debugger holds the process: it hangs because somebody wants that.
    fn is_traced(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|pid| pid.trim() != "0")
    }

    /// Logs where each worker thread is.
    fn log_hang(&self) {
        let (pid, silent) = (self.child.id(), clock::precise().saturating_duration_since(self.answered).as_secs());
        log::global(
            Level::Alert,
            format_args!("worker process {pid} has not answered for {silent} s: another one takes its place"),
        );
        for (name, place) in host::places_of(pid).into_iter().filter(|(name, _)| name.starts_with("worker ")) {
            log::global(Level::Alert, format_args!("{name} of worker process {pid}: {place}"));
        }
    }

    fn kill(&mut self) {
        // A process that has just ended is the aim.
        let _ = self.child.kill();
    }

    /// Waits for a process whose channel is closed, and logs how it ended, in nginx's words.
    fn log_end(&mut self) {
        let until = clock::precise() + END_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            // The kernel closes the channel of a process that dies before its end can be seen. A process that closes its
            // channel and goes on obeys nobody.
            if clock::precise() >= until {
                self.kill();
            }
            std::thread::sleep(LOOK);
        }
        let Ok(status) = self.child.wait() else { return };
        let pid = self.child.id();
        match (status.signal(), status.code()) {
            (Some(signal), _) => {
                let core = if status.core_dumped() { " (core dumped)" } else { "" };
                log::global(Level::Alert, format_args!("worker process {pid} exited on signal {signal}{core}"));
            }
            (None, code) => {
                let code = code.unwrap_or(0);
                let level = if code == 0 { Level::Notice } else { Level::Alert };
                log::global(level, format_args!("worker process {pid} exited with code {code}"));
            }
        }
    }

    /// Waits until a process that was told to stop has ended; kills it if it takes too long.
    fn wait_for_end(mut self) {
        let until = clock::precise() + STOP_PATIENCE;
        loop {
            let left = until.saturating_duration_since(clock::precise());
            match self.reports.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.kill();
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.log_end();
    }
}
