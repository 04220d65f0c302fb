//! Facts about a lab before its first block: whether its blocks can answer the question, and how long it takes.

use std::time::Duration;

use crate::ask::{Ask, Load};
use crate::command::CommandLine;
use crate::metric::Metric;
use crate::said::{Said, Text, say};
use crate::texts;

/// With fewer requests, a single failure is more than a per cent, which already counts as not answered.
const WHY_REQUESTS_MIN: f64 = 100.0;

/// Why no block of this length can answer, if that is known, and the command that can. A rate and a length are enough
/// to know it, and so is a script whose plan shows its requests.
pub fn too_few(ask: &Ask, metric: &Metric, command: &CommandLine) -> Option<Said> {
    let needed = metric.requests_min as f64;
    let requests = requests(ask).filter(|requests| *requests < needed)?;
    let (why, command) = match &ask.load {
        Load::Path { .. } => {
            let seconds = (needed / requests.max(1e-9) * ask.length().as_secs_f64()).ceil();
            (few(ask, metric, texts::TOO_FEW_AT_RATE)?, command.with(&["--block"], &format!("{seconds}s")))
        }
        Load::Script { .. } => {
            let why = say!(TOO_FEW_IN_SCRIPT, metric.key, needed, format!("{requests:.0}"));
            (why, command.with(&["--metric"], crate::metric::SMALL.key))
        }
    };
    Some(say!(TOO_FEW_NEXT, why, say!(NEXT, command.to_string())))
}

/// The number of requests in a block, if it is known before the first block.
pub fn requests(ask: &Ask) -> Option<f64> {
    match ask.load {
        Load::Path { rate, .. } => Some(rate? * ask.length().as_secs_f64()),
        Load::Script { requests, .. } => requests,
    }
}

/// The text, if a rate gives too few requests for the metric.
fn few(ask: &Ask, metric: &Metric, text: Text) -> Option<Said> {
    let Load::Path { rate: Some(rate), .. } = ask.load else { return None };
    let needed = metric.requests_min as f64;
    let seconds = ask.length().as_secs_f64();
    let requests = rate * seconds;
    (requests < needed).then(|| {
        text.with(&[
            metric.key.into(),
            needed.into(),
            rate.into(),
            seconds.into(),
            format!("{requests:.0}").into(),
            (needed / rate).ceil().into(),
            (needed / seconds.max(1e-3)).ceil().into(),
        ])
    })
}

/// The sentence for a small load: the lab compares the mean, because a block has too few requests for a quantile.
pub fn small(metric: &Metric, requests: f64) -> Said {
    say!(SMALL_LOAD, format!("{requests:.0}"), metric.key, metric.requests_min, crate::metric::SMALL.key)
}

/// The lines that `weir lab why` prints before its first block: whether its blocks have enough requests. The error
/// says that they cannot answer, for the quantile of its objective or for a proof.
pub fn of_why(ask: &Ask, quantile: Option<&str>, is_proving: bool) -> Result<Vec<Said>, Said> {
    let of_objective = |metric: &Metric| few(ask, metric, texts::TOO_FEW_FOR_OBJECTIVE);
    if let Some(why) = quantile.and_then(crate::metric::of).and_then(of_objective) {
        return Err(why);
    }
    let Load::Path { rate: Some(rate), .. } = ask.load else {
        return Ok(vec![say!(FIRST_BLOCK_TELLS)]);
    };
    let (seconds, least) = (ask.length().as_secs_f64(), WHY_REQUESTS_MIN);
    let requests = rate * seconds;
    let longer = |requests: f64| format!("{:.0}", (least / requests.max(1e-9) * seconds).ceil());
    if is_proving && requests < least {
        return Err(say!(TOO_FEW_TO_PROVE, seconds, rate, format!("{requests:.0}"), longer(requests)));
    }
    let half = requests / 2.0;
    Ok(if half < least { vec![say!(HALF_HAS_FEW, format!("{half:.0}"), longer(half))] } else { Vec::new() })
}

/// The time of the least and of the most blocks. Starting the processes takes extra time.
pub fn duration(ask: &Ask, (least, most): (usize, usize)) -> Said {
    let block = ask.length() + ask.warm_up;
    let times = |blocks: usize| time(block * u32::try_from(blocks).unwrap_or(u32::MAX));
    let (length, warm_up) = (seconds(ask.length()), seconds(ask.warm_up));
    if least == most {
        return say!(TAKES, times(most), most, length, warm_up);
    }
    say!(TAKES_FROM_TO, times(least), times(most), least, most, length, warm_up)
}

/// The windows of a report of `weir load`: their first length, and the most of them. With more, each covers twice the time.
const WINDOWS: (f64, f64) = (0.25, 600.0);

/// The line about a long block: how long it takes, and what it can see. Something recurs only if it was seen three times.
pub fn long_block(length: Duration) -> Said {
    let all = length.as_secs_f64();
    let mut window = WINDOWS.0;
    while all / window > WINDOWS.1 {
        window *= 2.0;
    }
    let digits = crate::metric::digits;
    say!(LONG_BLOCK, time(length), digits(3.0 * window), digits(all / 3.0), digits(window))
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
    use weir_words::Language;

    use super::*;
    use crate::metric;

    #[test]
    fn why_says_beforehand_whether_its_blocks_can_answer() {
        let ask = |rate, block| Ask {
            load: Load::Path { path: "/".to_owned(), connections: 8, rate },
            block: Duration::from_secs(block),
            ..crate::ask::tests::ask()
        };
        let of = |rate, block, quantile, is_proving| of_why(&ask(rate, block), quantile, is_proving);
        assert_eq!(of(Some(200.0), 8, None, true), Ok(Vec::new()));
        let why = of(Some(20.0), 4, None, true).err().unwrap_or_default();
        assert_eq!(
            why,
            "--prove: a block of 4 s at --rate 20 has 80 requests, so one request is more than 1 %: use --block 5s"
        );
        assert!(of(Some(20.0), 4, None, false).is_ok_and(|lines| lines.len() == 1 && lines[0].contains("40 requests")));
        let why = of(Some(60.0), 8, Some("p95"), false).err().unwrap_or_default();
        assert_eq!(
            why,
            "p95 needs 2000 requests in a block, and --rate 60 for 8 s gives 480: use --block 34s, --rate 250, or a lower quantile in --slo"
        );
        assert!(
            why.say(Language::Korean).ends_with("--slo에 더 낮은 분위수를 쓰세요"),
            "{}",
            why.say(Language::Korean)
        );
        assert!(of(None, 8, Some("p95"), true).is_ok_and(|lines| lines[0].contains("The first block shows")));
    }

    #[test]
    fn a_long_block_says_what_it_sees() {
        let said = |seconds| long_block(Duration::from_secs(seconds)).en().to_owned();
        assert_eq!(
            said(600),
            "One block of 10 min at the load as asked: it shows what recurs every 3.00 s to 200 s, and what happens once, to 1.00 s; half of the load follows only if this load fails"
        );
        assert!(said(120).contains("every 0.750 s to 40.0 s") && said(120).contains("to 0.250 s"), "{}", said(120));
    }

    #[test]
    fn a_load_that_cannot_answer_is_known_before_it_is_sent() {
        let ask = |rate, block| Ask {
            load: Load::Path { path: "/".to_owned(), connections: 8, rate },
            block: Duration::from_secs(block),
            warm_up: Duration::from_secs(1),
            ..crate::ask::tests::ask()
        };
        let command = CommandLine::new("weir lab ab a b --block 2s".split(' ').map(str::to_owned));
        let few = |rate, block, key: &str| too_few(&ask(rate, block), metric::of(key)?, &command);
        let why = few(Some(60.0), 2, "p95").unwrap_or_default();
        assert_eq!(
            why,
            "p95 needs 2000 requests in a block, and --rate 60 for 2 s gives 120: use --block 34s, --rate 1000, or another --metric\n  Next: weir lab ab a b --block 34s"
        );
        let script = Ask {
            load: Load::Script {
                file: "l.yml".into(),
                over: None,
                length: Duration::from_secs(20),
                requests: Some(98.0),
            },
            ..ask(None, 2)
        };
        let why = too_few(&script, metric::of("p95").unwrap_or(&metric::SMALL), &command).unwrap_or_default();
        assert!(why.contains("gives 98") && why.ends_with("Next: weir lab ab a b --block 2s --metric mean"), "{why}");
        assert_eq!(too_few(&script, &metric::SMALL, &command), None);
        assert_eq!((few(Some(60.0), 34, "p95"), few(Some(60.0), 2, "p99").is_some()), (None, true));
        // For a closed loop, the first blocks show it.
        assert_eq!(few(None, 2, "p95"), None);
        assert_eq!(
            duration(&ask(None, 20), (12, 48)),
            "Takes about 4 min to 17 min: 12 to 48 blocks of 20.0 s and 1.00 s of warm-up"
        );
        assert_eq!(duration(&ask(None, 1), (12, 12)), "Takes about 24 s: 12 blocks of 1.00 s and 1.00 s of warm-up");
    }
}
