//! The messages between the keeper and the server: JSON, then the bytes of the answers with which a configuration was read.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_dash::logs::Tail;
use weir_meter::live::Canary;
use weir_net::opening::Guard;
use weir_net::path::Links;
use weir_net::process::Identity;
use weir_words::Said;

use crate::canary::terms::{CanaryOrder, CanaryServe};
use crate::drive::quic::process::QuicProcess;

/// An order of the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Read the configuration with the answers that follow, and put it in force.
    Serve(Box<Serve>),
    /// Show that a reload was refused.
    Refuse(Vec<String>),
    /// Write to these log files from now on.
    Reopen(Vec<Label>),
    /// Another process serves too, and takes new connections when this one is told to quit; or it has ended.
    Succeed(bool),
    /// Something about the canary that runs.
    Canary(CanaryOrder),
    /// Let every exchange end, then end.
    Quit,
    /// End at once.
    Stop,
}

/// A configuration to put in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Serve {
    /// Its number.
    pub generation: u32,
    /// The address of the dashboard's own server.
    pub dashboard: Option<SocketAddr>,
    /// The user of the server; only the first configuration decides.
    pub user: Option<User>,
    /// How often the server says whether its workers answer; milliseconds.
    pub ask_every_ms: u64,
    /// The process, as QUIC knows it; only the first configuration decides.
    pub quic: Option<QuicProcess>,
    /// The configuration is that of a canary: it is put beside the one in force, or in its place.
    pub canary: Option<CanaryServe>,
    /// The labels of the message's descriptors, in their order.
    pub labels: Vec<Label>,
}

/// [`Identity`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    keeps_raw: bool,
}

/// The kind of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Label {
    /// A listening socket.
    Listening,
    /// A UDP socket of `stream` or of QUIC; those of one address come in the order in which they were bound.
    Datagrams,
    /// The UDP socket of `acme_dns_port` at this address.
    DnsDatagrams(SocketAddr),
    /// The listening socket of `acme_dns_port`.
    DnsConnections,
    /// On which newer processes forward datagrams of QUIC to this one.
    Inbox,
    /// To the older process of this number.
    Older(u16),
    /// The log file of this path.
    Log(String),
    /// The file of a recording of this path.
    Recording(String),
}

/// A message of the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report {
    /// The configuration is in force.
    Serves,
    /// The configuration is not in force, and why.
    Refuses(String),
    /// The seats of the workers that have not answered.
    Silent(Vec<usize>),
    /// The state of the canary.
    Canary(Box<Canary>),
    /// Something that the keeper is to do; the answer goes through the descriptor of the message.
    Errand(Errand),
}

impl From<&Identity> for User {
    fn from(identity: &Identity) -> User {
        let Identity { uid, gid, groups, keeps_raw } = identity.clone();
        User { uid, gid, groups, keeps_raw }
    }
}

impl From<&User> for Identity {
    fn from(user: &User) -> Identity {
        let User { uid, gid, groups, keeps_raw } = user.clone();
        Identity { uid, gid, groups, keeps_raw }
    }
}

impl Order {
    /// The message; `more` follows the order.
    pub fn to_bytes(&self, more: &[u8]) -> Vec<u8> {
        framed(self, more)
    }

    /// The order of a message, and the bytes that follow it; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Order, &[u8])> {
        unframed(bytes)
    }
}

impl Report {
    /// The message.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The report of a message; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Report> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Something that only the keeper can do while the server serves: it sees the processes of all users, and starts the
/// programs that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Errand {
    /// List the programs of the machine, and which of them serve these addresses: each with the name that the configuration
    /// has for it.
    Programs(Vec<(String, String)>),
    /// Give the end of a log that a program prints, as `dashboard_upstream_log` names it.
    Output(String),
    /// Run a program that writes a DNS record, with these arguments.
    Hook(PathBuf, [String; 3]),
    /// Open a file or a directory that the configuration names, for reading.
    Open(Opening),
    /// Find the addresses of a host.
    Resolve(String),
}

/// A file or a directory to open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Its path.
    pub path: Vec<u8>,
    /// If links are refused: whether those of the target's owner are not, and the first bytes of the path in which all are
    /// followed.
    pub guard: Option<(bool, usize)>,
}

/// The result of an errand.
#[derive(Debug, Serialize, Deserialize)]
pub enum Done {
    /// The programs, as the page shows them.
    Programs(Value),
    /// The end of the log, without its bytes: they follow the message.
    Output(Result<Tail, Said>),
    /// Why the program failed.
    Hook(Result<(), String>),
    /// The file is the message's descriptor; or the number of the error.
    Opened(Result<(), i32>),
    /// The addresses; or the resolver's words.
    Resolved(Result<Vec<IpAddr>, String>),
}

impl Opening {
    /// The file of this path.
    pub fn new(path: &[u8], guard: Guard) -> Opening {
        Opening { path: path.to_vec(), guard: guard.map(|(links, trusted)| (links == Links::OfOwner, trusted)) }
    }

    /// The links that are refused.
    pub fn guard(&self) -> Guard {
        self.guard.map(|(of_owner, trusted)| (if of_owner { Links::OfOwner } else { Links::Refused }, trusted))
    }
}

impl Done {
    /// The message.
    pub fn to_bytes(mut self) -> Vec<u8> {
        let more = match &mut self {
            Done::Output(Ok(tail)) => std::mem::take(&mut tail.bytes),
            Done::Output(Err(_)) | Done::Programs(_) | Done::Hook(_) | Done::Opened(_) | Done::Resolved(_) => {
                Vec::new()
            }
        };
        framed(&self, &more)
    }

    /// The result of a message; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Done> {
        let (done, more) = unframed(bytes)?;
        Some(match done {
            Done::Output(Ok(tail)) => Done::Output(Ok(Tail { bytes: more.to_vec(), ..tail })),
            done => done,
        })
    }
}

/// JSON with its length before it, then other bytes.
fn framed(message: &impl Serialize, more: &[u8]) -> Vec<u8> {
    // These types have no maps with other keys than texts, so they always become JSON.
    let json = serde_json::to_vec(message).unwrap_or_default();
    [&(json.len() as u64).to_le_bytes()[..], &json, more].concat()
}

fn unframed<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (json, more) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(json).ok()?, more))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn orders_and_reports_are_read_as_they_were_written() {
        let user = User { uid: 33, gid: 33, groups: vec![33, 4], keeps_raw: true };
        assert_eq!(User::from(&Identity::from(&user)), user);
        let labels = vec![Label::Listening, Label::Log("/var/log/a\"b".to_owned())];
        let order = Order::Serve(Box::new(Serve {
            generation: 3,
            dashboard: None,
            user: Some(user),
            ask_every_ms: 5000,
            quic: None,
            canary: Some(CanaryServe::Instead("/new.conf".to_owned())),
            labels,
        }));
        let bytes = order.to_bytes(b"answers");
        let (read, more) = Order::from_bytes(&bytes).unwrap();
        assert_eq!((format!("{read:?}"), more), (format!("{order:?}"), &b"answers"[..]));
        assert!(Order::from_bytes(&bytes[..20]).is_none());
        let report = Report::Silent(vec![0, 3]);
        assert_eq!(format!("{:?}", Report::from_bytes(&report.to_bytes()).unwrap()), format!("{report:?}"));
        assert!(Report::from_bytes(b"{}").is_none());
    }

    mod mutate {
        use super::*;
        use weir_mutate::mutate;

        /// Messages of the other process: a message reads the same when it is written again, and other bytes are none.
        #[test]
        fn messages() {
            let labels =
                vec![Label::Listening, Label::DnsDatagrams(([127, 0, 0, 1], 53).into()), Label::Log("/l".to_owned())];
            let serve = Serve {
                generation: 3,
                dashboard: None,
                user: None,
                ask_every_ms: 5000,
                quic: None,
                canary: None,
                labels,
            };
            let seeds = [
                Order::Serve(Box::new(serve)).to_bytes(b"more"),
                Order::Refuse(vec!["a".to_owned()]).to_bytes(b""),
                Order::Stop.to_bytes(b""),
                Report::Silent(vec![0, 3]).to_bytes(),
                Report::Errand(Errand::Hook("/bin/hook".into(), ["a".to_owned(), "b".to_owned(), "c".to_owned()]))
                    .to_bytes(),
                Done::Hook(Err("no".to_owned())).to_bytes(),
                Done::Programs(Value::Null).to_bytes(),
            ];
            let words = [
                "{",
                "}",
                "\"",
                ":",
                ",",
                "[",
                "null",
                "\"Stop\"",
                "-1",
                "4294967296",
                "\0\0\0\0\0\0\0\0",
                "\x06\0\0\0\0\0\0\0",
            ];
            mutate(&seeds, &words, |bytes| {
                if let Some((order, more)) = Order::from_bytes(bytes) {
                    assert!(more.len() + 8 <= bytes.len());
                    let again = order.to_bytes(more);
                    let (read, more_again) = Order::from_bytes(&again).unwrap();
                    assert_eq!((format!("{read:?}"), more_again), (format!("{order:?}"), more));
                }
                if let Some(report) = Report::from_bytes(bytes) {
                    let read = Report::from_bytes(&report.to_bytes()).unwrap();
                    assert_eq!(format!("{read:?}"), format!("{report:?}"));
                }
                let _ = Done::from_bytes(bytes);
            });
        }
    }
}
