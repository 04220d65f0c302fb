//! Reads the account of a loaded edge: weir's API, or nginx's `stub_status` and private log, in one form.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weir_meter::live::Snapshot;
use weir_net::Address;

use super::account::{Account, Acted};
use super::plan::WatchPlan;
use super::sink::Sink;

/// How long an edge may take to report its account. An edge that takes longer is busy, and the missing account shows
/// it.
const PATIENCE: Duration = Duration::from_millis(200);
/// Most bytes of an answer.
const ANSWER_MAX: usize = 8 << 20;

/// Reads the account of an edge, once for each sample.
pub type AccountReader = Box<dyn FnMut() -> Account + Send>;

/// The reader for the edge of a block.
pub fn of_block(plan: WatchPlan, sink: Option<Sink>) -> AccountReader {
    Box::new(move || account(&plan, sink.as_ref()))
}

fn account(plan: &WatchPlan, sink: Option<&Sink>) -> Account {
    if plan.at.as_os_str().is_empty() {
        return Account::default();
    }
    if let Some(sink) = sink {
        sink.asks();
    }
    let Some(text) = get(&plan.at) else {
        return sink.map(Sink::account).unwrap_or_default();
    };
    if plan.is_weir { weir(&text) } else { nginx(&text, sink.map(Sink::account).unwrap_or_default()) }
}

/// The account in a snapshot of weir's.
pub fn weir(text: &str) -> Account {
    match Snapshot::from_json(text) {
        Ok(snapshot) => of_weir(&snapshot),
        Err(error) => Account { unread: Some(error.to_string()), ..Account::default() },
    }
}

/// The account in a page of `stub_status`, with the sums of the log.
pub fn nginx(page: &str, logged: Account) -> Account {
    let Some([active, accepted, handled, requests, waiting]) = stub(page) else {
        return Account { unread: Some("this is not a stub_status page".to_owned()), ..logged };
    };
    Account {
        is_there: true,
        // The connection that reads the account is itself counted.
        active: active.saturating_sub(1),
        accepted,
        dropped: accepted.saturating_sub(handled),
        requests,
        idle: waiting,
        ..logged
    }
}

fn get(socket: &Path) -> Option<String> {
    let request = b"GET /weir HTTP/1.0\r\nHost: localhost\r\n\r\n".to_vec();
    let answer = weir_fetch::ask_and_block(Address::Unix(socket.to_owned()), request, ANSWER_MAX, PATIENCE).ok()?;
    (answer.status == 200).then(|| String::from_utf8(answer.body).ok())?
}

/// `Active connections: 1 \nserver accepts handled requests\n 1 1 1 \nReading: 0 Writing: 1 Waiting: 0`.
fn stub(page: &str) -> Option<[u64; 5]> {
    let numbers: Vec<u64> = page.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [active, accepted, handled, requests, _, _, waiting] = numbers.try_into().ok()?;
    Some([active, accepted, handled, requests, waiting])
}

/// The account in a snapshot.
pub fn of_weir(snapshot: &Snapshot) -> Account {
    let weir = &snapshot.weir;
    let mut account = Account {
        is_there: true,
        accepted: snapshot.connections.accepted,
        dropped: snapshot.connections.dropped,
        active: snapshot.connections.active + snapshot.connections.idle,
        idle: snapshot.connections.idle,
        requests: snapshot.http.requests.total,
        handshakes: snapshot.ssl.handshakes,
        resumed: snapshot.ssl.session_reuses,
        steps: weir.path.iter().map(|step| (step.step.clone(), (step.total.count, step.total.sum_us))).collect(),
        errors: weir.errors.iter().map(|class| (class.class.clone(), class.count)).collect(),
        ..Account::default()
    };
    for (group, peers) in &weir.upstreams {
        let known = snapshot.http.upstreams.get(group);
        for times in peers {
            let plus = known.and_then(|group| group.peers.iter().find(|peer| peer.server == times.server));
            let peer = account.peers.entry(times.server.clone()).or_default();
            let failed: u64 = times.fails.values().sum();
            let refused = plus.map_or(0, |plus| plus.responses.c5xx);
            peer.requests += plus.map_or(times.opened + times.reused, |plus| plus.requests);
            peer.opened = Some(peer.opened.unwrap_or(0) + times.opened);
            peer.bad += failed + refused;
            peer.header.0 += times.header.total.count;
            peer.header.1 += times.header.total.sum_us;
            for (why, count) in &times.fails {
                *account.errors.entry(format!("upstream {why}")).or_default() += count;
            }
            account.tries += plus.map_or(0, |plus| plus.requests).max(times.header.total.count + failed);
            account.exchanges += plus.map_or(0, |plus| plus.requests).max(times.header.total.count + failed);
            account.exchanges = account.exchanges.saturating_sub(times.retries);
        }
    }
    for cache in weir.caches.values() {
        let said = [
            ("HIT", cache.hit),
            ("MISS", cache.miss),
            ("EXPIRED", cache.expired),
            ("STALE", cache.stale),
            ("UPDATING", cache.updating),
            ("REVALIDATED", cache.revalidated),
            ("BYPASS", cache.bypass),
        ];
        for (word, count) in said.into_iter().filter(|(_, count)| *count > 0) {
            *account.cache.said.entry(word.to_owned()).or_default() += count;
        }
        account.cache.fetches += cache.fetches;
        account.cache.waited = Some(account.cache.waited.unwrap_or(0) + cache.waited);
        for (why, count) in &cache.reasons {
            *account.cache.reasons.entry(why.clone()).or_default() += count;
        }
    }
    answers(snapshot, &mut account);
    for (zone, limit) in &snapshot.http.limit_reqs {
        let acted = Acted { refused: limit.rejected, delayed: limit.delayed, delay_us: None };
        account.policies.insert(format!("limit_req {zone}"), acted);
    }
    for (zone, limit) in &snapshot.http.limit_conns {
        let acted = Acted { refused: limit.rejected, ..Acted::default() };
        account.policies.insert(format!("limit_conn {zone}"), acted);
    }
    for (upstream, queue) in &weir.queues {
        let group = snapshot.http.upstreams.get(upstream);
        let overflows = group.and_then(|group| group.queue.as_ref()).map_or(0, |queue| queue.overflows);
        let acted = Acted { refused: overflows + queue.timed_out, delayed: queue.waited, delay_us: None };
        account.policies.insert(format!("queue {upstream}"), acted);
    }
    for limit in &weir.limits {
        let name = format!("{} {}", limit.kind, limit.of);
        account.limits.insert(name, (limit.used, limit.limit, limit.hits));
    }
    account
}

/// Separates the answers with status 400 or higher: those that the clients got beyond those of the servers are the
/// edge's own.
fn answers(snapshot: &Snapshot, account: &mut Account) {
    let refusals = |codes: &BTreeMap<u16, u64>, into: &mut BTreeMap<u16, u64>| {
        for (status, count) in codes.iter().filter(|(status, _)| **status >= 400) {
            *into.entry(*status).or_default() += count;
        }
    };
    let mut all = BTreeMap::new();
    snapshot.http.server_zones.values().for_each(|zone| refusals(&zone.responses.codes, &mut all));
    let peers = snapshot.http.upstreams.values().flat_map(|group| &group.peers);
    peers.for_each(|peer| refusals(&peer.responses.codes, &mut account.given));
    let no_peer = "502 no peer";
    account.no_server = account.errors.get(no_peer).copied().unwrap_or(0);
    let own = |(status, count): (u16, u64)| {
        let unserved: u64 = account
            .errors
            .iter()
            .filter(|(class, _)| class.split_once(' ').is_some_and(|(code, _)| code.parse() == Ok(status)))
            .map(|(_, count)| count)
            .sum();
        (status, count.saturating_sub(account.given.get(&status).copied().unwrap_or(0) + unserved))
    };
    account.own = all.into_iter().map(own).filter(|(_, count)| *count > 0).collect();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_status_page_is_read() {
        let page =
            "Active connections: 3 \nserver accepts handled requests\n 12 11 40 \nReading: 0 Writing: 1 Waiting: 2 \n";
        assert_eq!(stub(page), Some([3, 12, 11, 40, 2]));
        assert_eq!(stub("<html>"), None);
    }

    #[test]
    fn an_answer_of_another_form_is_not_an_edge_that_did_nothing() {
        let whole = Snapshot::example().to_json();
        assert_eq!((weir(&whole).is_there, weir(&whole).unread), (true, None));
        let torn = weir(whole.get(..whole.len() / 2).unwrap());
        assert!(!torn.is_there && torn.unread.is_some());
        let page = nginx("<html>404</html>", Account { errors: [("x".to_owned(), 1)].into(), ..Account::default() });
        assert!(!page.is_there && page.unread.is_some() && page.errors.len() == 1);
    }

    #[test]
    fn answers_that_no_server_gave_are_the_edges_own() {
        let mut snapshot = Snapshot::default();
        let mut zone = weir_meter::live::ServerZone::default();
        [(200, 50), (403, 40), (404, 9), (502, 5)]
            .into_iter()
            .for_each(|(status, count)| zone.responses.add(status, count));
        snapshot.http.server_zones.insert("x".into(), zone);
        let mut peer = weir_meter::live::Peer::default();
        [(200, 50), (404, 9)].into_iter().for_each(|(status, count)| peer.responses.add(status, count));
        snapshot.http.upstreams.entry("app".into()).or_default().peers.push(peer);
        let class =
            |class: &str, count| weir_meter::live::ErrorClass { class: class.into(), count, ..Default::default() };
        snapshot.weir.errors = vec![class("502 no peer", 5)];
        let account = of_weir(&snapshot);
        // The 404 came from the server. A request without a live server was not refused by a policy.
        assert_eq!((account.own, account.given), ([(403, 40)].into(), [(404, 9)].into()));
        assert_eq!(account.no_server, 5);
    }

    #[test]
    fn weirs_own_account_is_put_into_the_same_form() {
        let snapshot = Snapshot::example();
        let account = of_weir(&snapshot);
        assert!(account.is_there && account.requests == snapshot.http.requests.total);
        assert_eq!(account.peers.len(), snapshot.weir.upstreams.values().map(Vec::len).sum::<usize>());
        assert_eq!(account.steps.len(), snapshot.weir.path.len());
        assert!(account.tries >= account.exchanges && account.exchanges > 0);
        let zone = snapshot.http.limit_reqs.iter().next().unwrap();
        assert_eq!(account.policies[&format!("limit_req {}", zone.0)].refused, zone.1.rejected);
        assert_eq!(account.cache.fetches, snapshot.weir.caches.values().map(|cache| cache.fetches).sum::<u64>());
    }
}
