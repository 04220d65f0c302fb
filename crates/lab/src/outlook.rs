//! What is known of a lab before its first block: whether its blocks can answer, and how long it will take.

use std::time::Duration;

use crate::ask::{Ask, Load};
use crate::metric::Metric;
use crate::said::{Said, say};

/// Why no block of this length can answer, where that is known: a rate and a length are enough to know it.
pub fn too_few(ask: &Ask, metric: &Metric) -> Option<Said> {
    let Load::Path { rate: Some(rate), .. } = ask.load else { return None };
    let needed = metric.requests_min as f64;
    let requests = rate * ask.length().as_secs_f64();
    (requests < needed).then(|| {
        say!(
            TOO_FEW_AT_RATE,
            metric.key,
            needed,
            rate,
            ask.length().as_secs_f64(),
            format!("{requests:.0}"),
            (needed / rate).ceil(),
            (needed / ask.length().as_secs_f64().max(1e-3)).ceil(),
        )
    })
}

/// How long so many blocks take, the least and the most of them; starting the processes comes on top.
pub fn duration(ask: &Ask, (least, most): (usize, usize)) -> Said {
    let block = ask.length() + ask.warm_up;
    let times = |blocks: usize| time(block * u32::try_from(blocks).unwrap_or(u32::MAX));
    let (length, warm_up) = (seconds(ask.length()), seconds(ask.warm_up));
    if least == most {
        return say!(TAKES, times(most), most, length, warm_up);
    }
    say!(TAKES_FROM_TO, times(least), times(most), least, most, length, warm_up)
}

fn seconds(time: Duration) -> String {
    crate::metric::digits(time.as_secs_f64())
}

fn time(time: Duration) -> Said {
    let seconds = time.as_secs_f64();
    match seconds < 90.0 {
        true => say!(SECONDS, format!("{seconds:.0}")),
        false => say!(MINUTES, format!("{:.0}", seconds / 60.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;

    #[test]
    fn a_load_that_cannot_answer_is_known_before_it_is_sent() {
        let ask = |rate, block| Ask {
            load: Load::Path { path: "/".to_owned(), connections: 8, rate },
            block: Duration::from_secs(block),
            warm_up: Duration::from_secs(1),
            ..crate::ask::tests::ask()
        };
        let few = |rate, block, key: &str| too_few(&ask(rate, block), metric::of(key)?);
        let why = few(Some(60.0), 2, "p95").unwrap_or_default();
        assert_eq!(
            why,
            "p95 needs 2000 requests in a block, and --rate 60 for 2 s gives 120: --block 34s, --rate 1000, or another --metric"
        );
        assert_eq!((few(Some(60.0), 34, "p95"), few(Some(60.0), 2, "p50").is_some()), (None, true));
        // Of a closed loop the first blocks tell.
        assert_eq!(few(None, 2, "p95"), None);
        assert_eq!(
            duration(&ask(None, 20), (12, 48)),
            "Takes about 4 min to 17 min: 12 to 48 blocks of 20.0 s and 1.00 s of warm-up"
        );
        assert_eq!(duration(&ask(None, 1), (12, 12)), "Takes about 24 s: 12 blocks of 1.00 s and 1.00 s of warm-up");
    }
}
