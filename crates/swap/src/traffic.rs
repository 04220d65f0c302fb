//! The requests for A and B.

mod example;
pub mod generated;
pub mod logs;
pub mod plan;
pub mod recorded;
pub mod routes;
pub(crate) mod tail;
pub mod urls;

use std::collections::BTreeMap;

use weir_words::{Said, said};

use crate::request::SwapRequest;

/// Methods that should change nothing (RFC 9110 §9.2.1).
pub const SAFE: &[&str] = &["GET", "HEAD", "OPTIONS"];

/// Why a request is not sent again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReplayed {
    /// Its method may change something.
    Method(String),
    /// A word in its path announces an action.
    Action,
    /// A and B have no address in common that takes it.
    NoDoor,
    /// The line of a log, or its time, cannot be read.
    Unread,
    /// It is beyond the number of requests that the user wants.
    Beyond,
    /// It opens a tunnel: a WebSocket, or CONNECT.
    Tunnel,
    /// The recording does not have its body.
    NoBody,
    /// No arm answered earlier requests of its route in time.
    Late,
}

impl NotReplayed {
    /// The reason for a person.
    pub fn said(&self) -> Said {
        match self {
            NotReplayed::Method(method) => said!(
                "{method} may change something (--all-methods with --snapshot and --restore asks it)",
                "{method}은(는) 상태를 바꿀 수 있습니다(--all-methods와 --snapshot, --restore로 포함)"
            ),
            NotReplayed::Action => said!(
                "a word in the path announces an action (--ask-all asks it)",
                "경로에 동작을 뜻하는 단어가 있습니다(--ask-all로 포함)"
            ),
            NotReplayed::NoDoor => {
                said!("no address of A and B takes it", "A와 B의 어떤 주소로도 보낼 수 없습니다")
            }
            NotReplayed::Unread => said!("the line cannot be read", "읽을 수 없는 줄입니다"),
            NotReplayed::Beyond => said!("beyond --requests", "--requests를 넘었습니다"),
            NotReplayed::Tunnel => said!("it opens a tunnel", "터널을 여는 요청입니다"),
            NotReplayed::NoBody => said!("its body is not there", "본문이 없습니다"),
            NotReplayed::Late => said!(
                "answers to earlier requests of its route did not end in time (--timeout)",
                "같은 경로의 앞선 요청에 대한 응답이 제한 시간 안에 끝나지 않았습니다(--timeout)"
            ),
        }
    }
}

/// Requests, and those that are left out.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// The requests, in the order of asking.
    pub requests: Vec<SwapRequest>,
    /// The others, counted by the reason.
    pub not_replayed: BTreeMap<NotReplayed, u64>,
    /// Sentences about the sources.
    pub sources: Vec<Said>,
}

impl Traffic {
    /// Counts a request that is left out.
    pub fn leave_out(&mut self, why: NotReplayed) {
        *self.not_replayed.entry(why).or_default() += 1;
    }

    /// Adds the requests of another source.
    pub fn add(&mut self, other: Traffic) {
        self.requests.extend(other.requests);
        self.sources.extend(other.sources);
        for (why, count) in other.not_replayed {
            *self.not_replayed.entry(why).or_default() += count;
        }
    }

    /// Puts the requests in the order of their time, from 0 on, and keeps at most `most`: all requests of some clients, which the seed
    /// chooses.
    pub fn order(&mut self, most: usize, seed: u64) {
        let first = self.requests.iter().map(|request| request.at_us).min().unwrap_or(0);
        self.requests.iter_mut().for_each(|request| request.at_us -= first);
        self.requests.sort_by_key(|request| request.at_us);
        let all = self.requests.len();
        if all <= most {
            return;
        }
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for request in &self.requests {
            *counts.entry(request.client).or_default() += 1;
        }
        let mut clients: Vec<(u64, usize)> = counts.into_iter().collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut clients);
        let mut chosen = BTreeMap::new();
        let mut room = most;
        for (client, count) in clients {
            let taken = count.min(room);
            room -= taken;
            chosen.insert(client, taken);
        }
        self.requests.retain(|request| match chosen.get_mut(&request.client) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        });
        self.not_replayed.insert(NotReplayed::Beyond, (all - self.requests.len()) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_traffic_has_whole_clients_in_their_order() {
        let request = |client: u64, at_us: u64| SwapRequest { client, at_us, ..SwapRequest::default() };
        let all = (0..30).map(|number| request(number % 10, 100 - number));
        let mut traffic = Traffic { requests: all.collect(), ..Traffic::default() };
        traffic.order(9, 1);
        let mut clients: Vec<u64> = traffic.requests.iter().map(|request| request.client).collect();
        assert!(traffic.requests.is_sorted_by_key(|request| request.at_us));
        clients.sort_unstable();
        clients.dedup();
        assert_eq!((traffic.requests.len(), clients.len()), (9, 3));
        assert_eq!(traffic.not_replayed.get(&NotReplayed::Beyond), Some(&21));
    }
}
