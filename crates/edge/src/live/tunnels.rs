//! Upgraded connections: the sums of all workers.

use weir_http::exchange::conf::Conf;
use weir_http::hold::board::tunnels::{Closer, Sender};
use weir_meter::live::histogram::Tally;
use weir_meter::live::{AgeBucket, CLOSE_AGES_S, CloseCode, Times, WebSockets};

use super::Live;

/// All workers' tunnels.
pub(super) fn websockets(live: &Live, conf: &Conf) -> WebSockets {
    let mut all = WebSockets::default();
    let (mut age, mut round_trips) = (Tally::default(), [Tally::default(), Tally::default()]);
    let mut ages = [0; CLOSE_AGES_S.len() + 1];
    let (mut watched, mut received, mut sent) = (0, 0, 0);
    for (_, board) in live.boards.taken() {
        let cell = &board.tunnels;
        for (word, count) in Closer::WORDS.iter().zip(&cell.closed) {
            if count.get() > 0 {
                *all.closes.entry((*word).to_owned()).or_default() += count.get();
            }
        }
        all.opened += cell.opened.get();
        all.received += cell.received.get();
        all.sent += cell.sent.get();
        all.lost += cell.lost.get();
        watched += cell.watched.get();
        received += cell.messages_received.get();
        sent += cell.messages_sent.get();
        cell.codes.all().for_each(|(code, sender, count)| add_code(&mut all.codes, code, sender, count));
        age.add(&cell.age_ms);
        ages.iter_mut().zip(&cell.ages).for_each(|(sum, count)| *sum += count.get());
        round_trips.iter_mut().zip(&cell.round_trips).for_each(|(sum, times)| sum.add(times));
    }
    all.codes.sort_by(|one, other| (one.code, &one.by).cmp(&(other.code, &other.by)));
    all.open = all.opened.saturating_sub(all.closes.values().sum());
    (all.messages_received, all.messages_sent) = ((watched > 0).then_some(received), (watched > 0).then_some(sent));
    all.age = from_ms(age.times());
    let ends = CLOSE_AGES_S.into_iter().map(Some).chain([None]);
    all.ages = ends.zip(ages).map(|(to_s, count)| AgeBucket { to_s, count }).collect();
    [all.rtt_client, all.rtt_upstream] = round_trips.map(|tally| tally.times());
    let proxies = conf.locations.iter().filter(|location| weir_proxy::values(location).proxy.pass.is_some());
    let timeouts = proxies.map(|location| weir_proxy::values(location).proxy.read_timeout.as_millis() as u64);
    all.timeout_ms = timeouts.min().unwrap_or(0);
    all
}

fn add_code(codes: &mut Vec<CloseCode>, code: u16, sender: Sender, count: u64) {
    match codes.iter_mut().find(|known| known.code == code && known.by == sender.as_str()) {
        Some(known) => known.count += count,
        None => codes.push(CloseCode { code, by: sender.as_str().to_owned(), count }),
    }
}

/// Converts times that were counted in milliseconds.
fn from_ms(times: Times) -> Times {
    let us = |ms: u64| ms.saturating_mul(1000);
    Times {
        count: times.count,
        sum_us: us(times.sum_us),
        p50_us: us(times.p50_us),
        p95_us: us(times.p95_us),
        p99_us: us(times.p99_us),
        max_us: us(times.max_us),
    }
}

#[cfg(test)]
mod tests {
    use weir_meter::live::histogram::Count;

    use super::*;
    use weir_http::hold::board::tunnels::TunnelCell;

    #[test]
    fn ages_are_exact_at_their_ends_and_days_are_told_apart() {
        let cell = TunnelCell::default();
        for ms in [0, 1000, 1001, 60_000, 60_001, 3 * 86_400_000] {
            cell.lived(ms);
        }
        let ages: Vec<u64> = cell.ages.iter().map(Count::get).collect();
        assert_eq!(ages.iter().sum::<u64>(), 6);
        assert_eq!((ages[0], ages.last()), (2, Some(&1)));
        let sixty = CLOSE_AGES_S.iter().position(|end| *end == 60).unwrap_or_default();
        assert_eq!((ages[sixty], ages[sixty + 1]), (1, 1));
        let mut tally = Tally::default();
        tally.add(&cell.age_ms);
        assert_eq!(from_ms(tally.times()).max_us, 3 * 86_400_000_000);
    }
}
