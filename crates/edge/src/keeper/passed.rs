//! The descriptors that go from the keeper to the server, each with a label.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use weir_net::Listening;
use weir_net::datagrams::Receiving;
use weir_net::forward::ForwardEnd;
use weir_net::log::file::{FileKind, LogFile};

use crate::acme::responder;
use crate::drive::quic::process::QuicWays;
use crate::keeper::order::Label;
use crate::recorder;
use crate::resources::Resources;

/// An open descriptor with its label.
pub struct Passed(Label, Kept);

/// The owner of a descriptor, so that it stays open while a message is sent.
enum Kept {
    Listening(Listening),
    Datagrams(Receiving),
    Forwards(ForwardEnd),
    Log(Arc<File>),
}

impl Passed {
    /// All descriptors of a configuration.
    pub fn all(resources: &Resources) -> Vec<Passed> {
        let listening = |socket: &Listening| Passed(Label::Listening, Kept::Listening(socket.clone()));
        let datagrams = |socket: &Receiving| Passed(Label::Datagrams, Kept::Datagrams(socket.clone()));
        let mut all: Vec<Passed> = resources.sockets.values().flatten().map(listening).collect();
        all.extend(resources.datagrams.values().flatten().map(datagrams));
        if let Some(dns) = &resources.dns {
            all.push(Passed(Label::DnsDatagrams(dns.address), Kept::Datagrams(dns.datagrams.clone())));
            all.push(Passed(Label::DnsConnections, Kept::Listening(dns.connections.clone())));
        }
        all.extend(Passed::logs(resources));
        all
    }

    /// The ways of a process of QUIC.
    pub fn ways(ways: QuicWays) -> impl Iterator<Item = Passed> {
        let inbox = ways.inbox.into_iter().map(|end| Passed(Label::Inbox, Kept::Forwards(end)));
        inbox.chain(ways.older.into_iter().map(|(number, end)| Passed(Label::Older(number), Kept::Forwards(end))))
    }

    /// Its log files.
    pub fn logs(resources: &Resources) -> Vec<Passed> {
        let open = |log: &Arc<LogFile>| {
            let path = log.path().to_owned();
            let label = match log.kind() {
                FileKind::Log => Label::Log(path),
                FileKind::Record => Label::Recording(path),
            };
            Some(Passed(label, Kept::Log(log.handle()?)))
        };
        resources.logs.iter().filter_map(open).collect()
    }

    /// The labels, for the order.
    pub fn labels(all: &[Passed]) -> Vec<Label> {
        all.iter().map(|passed| passed.0.clone()).collect()
    }
}

impl AsFd for Passed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.1 {
            Kept::Listening(socket) => socket.as_fd(),
            Kept::Datagrams(socket) => socket.as_fd(),
            Kept::Forwards(end) => end.as_fd(),
            Kept::Log(file) => file.as_fd(),
        }
    }
}

/// The descriptors that came with an order.
#[derive(Default)]
pub struct Received {
    /// The resources of the configuration.
    pub resources: Resources,
    /// The open log files and recordings by path. One belongs to the resources once the configuration that names it is read:
    /// [`give_logs`].
    pub logs: Vec<(FileKind, String, File)>,
    /// The ways of this process of QUIC.
    pub ways: QuicWays,
}

/// The descriptors that came with an order.
///
/// # Errors
/// A descriptor is not what its label says.
pub fn received(labels: Vec<Label>, files: Vec<OwnedFd>) -> std::io::Result<Received> {
    let (mut received, mut dns) = (Received::default(), None);
    let Received { resources, logs, ways } = &mut received;
    for (label, file) in labels.into_iter().zip(files) {
        match label {
            Label::Listening => resources.add([Listening::from_fd(file)?]),
            Label::Datagrams => {
                let socket = Receiving::from_fd(file)?;
                resources.datagrams.entry(socket.local_addr()).or_default().push(socket);
            }
            Label::DnsDatagrams(address) => dns = Some((address, Receiving::from_fd(file)?)),
            Label::DnsConnections => {
                let connections = Listening::from_fd(file)?;
                resources.dns = dns.take().map(|(address, datagrams)| responder::ResponderSockets {
                    address,
                    datagrams,
                    connections,
                });
            }
            Label::Inbox => ways.inbox = Some(ForwardEnd::from_fd(file)?),
            Label::Older(number) => ways.older.push((number, ForwardEnd::from_fd(file)?)),
            Label::Log(path) => logs.push((FileKind::Log, path, File::from(file))),
            Label::Recording(path) => logs.push((FileKind::Record, path, File::from(file))),
        }
    }
    Ok(received)
}

/// Makes the log files write to these descriptors; gives the files, which are open as long as somebody has them.
pub fn give_logs(logs: Vec<(FileKind, String, File)>) -> Vec<Arc<LogFile>> {
    let give = |(kind, path, file): (FileKind, String, File)| {
        let log = match kind {
            FileKind::Log => LogFile::shared(&path),
            FileKind::Record => recorder::file(&path),
        };
        log.give(file);
        log
    };
    logs.into_iter().map(give).collect()
}
