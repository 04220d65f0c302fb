//! A server that runs a configuration on loopback ports of its own.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use std::os::unix::process::CommandExt;

use weir_conf::Tree;
use weir_net::{clock, process};
use weir_words::{Said, said};

use super::conf::SideConf;
use super::edits::{AccessLogPlace, LOG, Moved};
use super::room::{self, Room, STDERR, ServerWish};
use crate::doors::{self, Door};
use crate::logs::LogPlace;
use crate::taps::Taps;
use crate::taps::edits::UntappedOrigin;
use crate::watch::ServerWatch;

/// Longest wait until a server listens.
const START_MAX: Duration = Duration::from_secs(60);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Longest time in which a server ends by itself.
const END_MAX: Duration = Duration::from_secs(5);
/// The verb and the flag of the child.
pub const CHILD_WORDS: [&str; 2] = ["swap", "--beside"];

/// A running server, and its directory. Both end when it is dropped, and also when this process is killed.
pub struct StartedServer {
    child: Child,
    room: Room,
    logs: Vec<LogPlace>,
    taps: Option<Arc<Taps>>,
    ports: Vec<SocketAddr>,
}

impl StartedServer {
    /// Starts a server that listens at a port of its own for each door of its configuration.
    ///
    /// # Errors
    /// A sentence for the user, with the program's own messages.
    pub fn start(conf: &SideConf, wish: &ServerWish<'_>) -> Result<StartedServer, Said> {
        let mut server = StartedServer::begin(conf, wish)?;
        server.wait()?;
        Ok(server)
    }

    /// Starts a server, and does not wait until it listens.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn begin(conf: &SideConf, wish: &ServerWish<'_>) -> Result<StartedServer, Said> {
        let doors = doors::of(&conf.tree)?;
        let ports = doors::ports(&doors)?;
        let moved: Vec<Moved> =
            doors.iter().map(|door: &Door| door.address.clone()).zip(ports.iter().copied()).collect();
        let room = Room::new().map_err(Said::from)?;
        let taps = wish.is_watched.then(Taps::start).transpose();
        let taps = taps.map_err(|error| Said::from(format!("weir: {error}")))?.map(Arc::new);
        let changes = |tree: &Tree, room: &Path| {
            let tapped = taps.iter().flat_map(|taps| taps.edits(tree, room, &moved));
            wish.changes.iter().flat_map(|changes| changes(tree, room)).chain(tapped).collect()
        };
        let logs = room.furnish(conf, &moved, &ServerWish { changes: Some(&changes), ..*wish }).map_err(Said::from)?;
        let place = |log: &AccessLogPlace| LogPlace::of(&conf.tree, &log.named, room.path().join(&log.file));
        let logs = logs.iter().map(place).collect();
        let child = spawn(conf, &room).map_err(Said::from)?;
        Ok(StartedServer { child, room, logs, taps, ports })
    }

    /// Waits until the server listens at all its ports.
    ///
    /// # Errors
    /// A sentence for the user, with the program's own messages.
    pub fn wait(&mut self) -> Result<(), Said> {
        let began = clock::precise();
        while self.ports.iter().any(|port| TcpStream::connect(port).is_err()) {
            let ended = self.child.try_wait().map_err(|error| Said::from(format!("weir: {error}")))?;
            let log = || self.room.tail(STDERR) + &self.log();
            if ended.is_some() {
                return Err(said!("the server did not start: {}", "서버가 시작하지 않았습니다: {}", log().trim()));
            }
            if clock::precise() - began > START_MAX {
                let (seconds, log) = (START_MAX.as_secs(), log());
                return Err(said!(
                    "the server does not listen after {seconds} s: {}",
                    "서버가 {seconds}초가 지나도 리슨하지 않습니다: {}",
                    log.trim()
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Its addresses, in the order of [`doors::of`].
    pub fn ports(&self) -> &[SocketAddr] {
        &self.ports
    }

    /// The end of its error log.
    pub fn log(&self) -> String {
        self.room.tail(LOG)
    }

    /// Its own directory.
    pub fn directory(&self) -> &Path {
        self.room.path()
    }

    /// Shows its log lines and its requests to origins from now on.
    pub fn watch(&self) -> ServerWatch {
        ServerWatch::new(self.logs.clone(), self.taps.clone())
    }

    /// The origins that are not seen, with the reason.
    pub fn untapped(&self) -> Vec<UntappedOrigin> {
        self.taps.as_ref().map(|taps| taps.untapped()).unwrap_or_default()
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        // The child ends when its standard input closes.
        drop(self.child.stdin.take());
        let began = clock::precise();
        while matches!(self.child.try_wait(), Ok(None)) {
            if clock::precise() - began > END_MAX {
                // The child leads a group with everything that it started.
                let _ = process::kill_group(self.child.id());
                let _ = self.child.wait();
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn spawn(conf: &SideConf, room: &Room) -> Result<Child, String> {
    let (first, others) = conf.program.own.split_first().ok_or("weir has no program")?;
    let said = room::new_secret(&room.path().join(STDERR)).map_err(|error| format!("{STDERR}: {error}"))?;
    let mut command = Command::new(first);
    command.args(others).args(CHILD_WORDS).arg(room.path());
    // A signal of the terminal is for weir swap, which then ends its children.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said).process_group(0);
    process::detach(&mut command);
    command.spawn().map_err(|error| format!("{}: {error}", first.display()))
}
