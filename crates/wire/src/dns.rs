//! DNS messages, as far as a stub resolver needs them: one question out, the answer to it in (RFC 1035, RFC 2782).
//!
//! The bytes are untrusted. An answer counts only if it has this question and this number. Of an answer, only the
//! records of the name and of the names that its aliases lead to count. The other sections (authority, additional)
//! are not read.

mod name;
pub mod serve;
#[cfg(test)]
mod tests;
pub mod update;

use std::net::IpAddr;

pub use name::{BadName, NAME_BYTES_MAX, Name};

/// Bytes of the fixed part at the beginning.
const HEADER_BYTES: usize = 12;

/// Records read of one answer, at most: a message of 64 KiB holds less than twice as many.
pub const RECORDS_MAX: usize = 4096;

/// Aliases followed within one answer, at most (nginx: 50 over all answers).
pub const ALIASES_MAX: usize = 50;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const TYPE_SRV: u16 = 33;
const CLASS_IN: u16 = 1;

/// Bits of the header's second word.
const RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const TRUNCATED: u16 = 0x0200;
const RECURSION_DESIRED: u16 = 0x0100;

/// The kind of the requested records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Its IPv4 addresses.
    A,
    /// Its IPv6 addresses.
    Aaaa,
    /// The hosts of a service.
    Srv,
}

impl Kind {
    fn code(self) -> u16 {
        match self {
            Kind::A => TYPE_A,
            Kind::Aaaa => TYPE_AAAA,
            Kind::Srv => TYPE_SRV,
        }
    }
}

/// A server's verdict on a question (RFC 1035 §4.1.1), in nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u8);

impl Code {
    /// No error.
    pub const NO_ERROR: Code = Code(0);
    /// The server did not understand the question.
    pub const FORMAT_ERROR: Code = Code(1);
    /// The server has an error of its own.
    pub const SERVER_FAILURE: Code = Code(2);
    /// The name does not exist.
    pub const NAME_ERROR: Code = Code(3);

    /// nginx: `ngx_resolver_strerror`.
    pub fn words(self) -> &'static str {
        match self.0 {
            0 => "No error",
            1 => "Format error",
            2 => "Server failure",
            3 => "Host not found",
            4 => "Unimplemented",
            5 => "Operation refused",
            _ => "Unknown error",
        }
    }
}

/// One host of a service (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The lowest is tried first.
    pub priority: u16,
    /// Its share among the hosts of the same priority.
    pub weight: u16,
    /// Its port.
    pub port: u16,
    /// Its host.
    pub target: Name,
}

/// An answer to the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The server's verdict on the question.
    pub code: Code,
    /// Seconds for which all of it is valid: the shortest TTL of the read records.
    pub ttl_s: u32,
    /// The last alias, if the answer does not resolve it: the next name to ask for.
    pub alias: Option<Name>,
    /// Addresses of the requested kind.
    pub addresses: Vec<IpAddr>,
    /// For `Kind::Srv`.
    pub services: Vec<Service>,
}

/// The result of reading some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The answer.
    Reply(Reply),
    /// The answer did not fit a datagram: ask again over TCP.
    Truncated,
    /// Something else: another number, another question, not a response.
    Foreign,
    /// It seems to be the answer, but its format is wrong.
    Malformed,
}

/// The question, ready to be sent in a datagram; over TCP, its length in two bytes must come before it.
pub fn query(id: u16, name: &Name, kind: Kind) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + name.wire().len() + 4);
    for word in [id, RECURSION_DESIRED, 1, 0, 0, 0] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(name.wire());
    out.extend_from_slice(&kind.code().to_be_bytes());
    out.extend_from_slice(&CLASS_IN.to_be_bytes());
    out
}

/// Reads the response to `query(id, name, kind)`.
pub fn read(bytes: &[u8], id: u16, name: &Name, kind: Kind) -> Message {
    let mut reader = Reader { bytes, at: 0 };
    let (Some(number), Some(flags), Some(questions), Some(records), Some(_), Some(_)) =
        (reader.word(), reader.word(), reader.word(), reader.word(), reader.word(), reader.word())
    else {
        return Message::Foreign;
    };
    if number != id || flags & RESPONSE == 0 || flags & OPCODE != 0 {
        return Message::Foreign;
    }
    let code = Code((flags & 0xf) as u8);
    match reader.question() {
        Some((asked, kind_code, CLASS_IN)) if questions == 1 && asked == *name && kind_code == kind.code() => {}
        // A server that could not read the question need not repeat it.
        None | Some(_) if questions == 0 && code == Code::FORMAT_ERROR => {}
        Some(_) | None => return Message::Foreign,
    }
    if flags & TRUNCATED != 0 {
        return Message::Truncated;
    }
    let nothing = Reply { code, ttl_s: 0, alias: None, addresses: Vec::new(), services: Vec::new() };
    if code != Code::NO_ERROR {
        return Message::Reply(nothing);
    }
    match reader.records(usize::from(records).min(RECORDS_MAX)) {
        Some(records) => Message::Reply(chain(name, kind, records, nothing)),
        None => Message::Malformed,
    }
}

/// A record of the answer.
struct Record {
    owner: Name,
    ttl_s: u32,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(Name),
    Service(Service),
}

/// Follows the aliases from `name` on, and takes the records of the last name.
fn chain(name: &Name, kind: Kind, records: Vec<Record>, nothing: Reply) -> Reply {
    let mut reply = Reply { ttl_s: u32::MAX, ..nothing };
    let mut end = name.clone();
    for _ in 0..ALIASES_MAX {
        let next = records.iter().find_map(|record| match &record.data {
            Data::Alias(target) if record.owner == end => Some((target, record.ttl_s)),
            Data::Alias(_) | Data::Address(_) | Data::Service(_) => None,
        });
        let Some((target, ttl_s)) = next else { break };
        reply.ttl_s = reply.ttl_s.min(ttl_s);
        end = target.clone();
    }
    for record in records.into_iter().filter(|record| record.owner == end) {
        match (record.data, kind) {
            (Data::Address(address @ IpAddr::V4(_)), Kind::A)
            | (Data::Address(address @ IpAddr::V6(_)), Kind::Aaaa) => {
                reply.addresses.push(address);
            }
            (Data::Service(service), Kind::Srv) => reply.services.push(service),
            (Data::Address(_) | Data::Service(_) | Data::Alias(_), _) => continue,
        }
        reply.ttl_s = reply.ttl_s.min(record.ttl_s);
    }
    let has_nothing = reply.addresses.is_empty() && reply.services.is_empty();
    reply.alias = (has_nothing && end != *name).then_some(end);
    if reply.ttl_s == u32::MAX {
        reply.ttl_s = 0;
    }
    reply
}

/// A place in a message.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn word(&mut self) -> Option<u16> {
        self.take(2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes)
    }

    fn name(&mut self) -> Option<Name> {
        let (name, after) = Name::read(self.bytes, self.at)?;
        self.at = after;
        Some(name)
    }

    fn question(&mut self) -> Option<(Name, u16, u16)> {
        Some((self.name()?, self.word()?, self.word()?))
    }

    fn records(&mut self, count: usize) -> Option<Vec<Record>> {
        let mut records = Vec::new();
        for _ in 0..count {
            if let Some(record) = self.record()? {
                records.push(record);
            }
        }
        Some(records)
    }

    /// `Some(None)` is a record of a kind that weir does not use.
    fn record(&mut self) -> Option<Option<Record>> {
        let owner = self.name()?;
        let (kind, class) = (self.word()?, self.word()?);
        let ttl = self.take(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)?;
        // RFC 2181 §8: a TTL with its highest bit set counts as 0.
        let ttl_s = if ttl > i32::MAX as u32 { 0 } else { ttl };
        let length = usize::from(self.word()?);
        let start = self.at;
        let end = start.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        let data = if class == CLASS_IN { self.data(kind, length)? } else { None };
        if self.at > end {
            return None;
        }
        self.at = end;
        Some(data.map(|data| Record { owner, ttl_s, data }))
    }

    fn data(&mut self, kind: u16, length: usize) -> Option<Option<Data>> {
        Some(Some(match kind {
            TYPE_A => Data::Address(IpAddr::from(<[u8; 4]>::try_from(self.take(length)?).ok()?)),
            TYPE_AAAA => Data::Address(IpAddr::from(<[u8; 16]>::try_from(self.take(length)?).ok()?)),
            TYPE_CNAME => Data::Alias(self.name()?),
            TYPE_SRV => Data::Service(Service {
                priority: self.word()?,
                weight: self.word()?,
                port: self.word()?,
                target: self.name()?,
            }),
            _ => return Some(None),
        }))
    }
}
