//! Times within a block: when something was high, whether slow or failed requests came with it, and whether it comes at even
//! distances. Pure functions of windows.

use crate::metric::digits;
use crate::said::{Said, say};
use crate::stats;

/// A use that is high for more of a block than this is usual, and no episode.
const HIGH_MOST: f64 = 0.5;
/// A window is slow from this factor above the usual on, and by at least [`SLOW_LEAST_MS`]: as in `quiet`, where less is noise.
const SLOW_FACTOR: f64 = 2.0;
const SLOW_LEAST_MS: f64 = 20.0;
/// A window with at most this part of the usual answers had none.
const ANSWERED_PART: f64 = 0.1;
/// A window in which at least this part of the requests fails, beyond the usual part, is bad.
const FAILED_PART: f64 = 0.05;
/// Windows after an episode that still belong to it: requests that waited are answered then. As long as these are bad, more do.
const AFTER: usize = 2;
/// The part of the episodes that has to come with bad windows, and of the bad windows that has to come with an episode: three of four, so
/// that one of the usual three or four times may be a miss.
const TOGETHER: f64 = 0.75;
/// The usual window is at this part of all, from the fastest on: as many as two of three may be slow, with those that drain a queue.
const USUAL: f64 = 1.0 / 3.0;
/// The largest probability that the windows of episodes are as slow, or fail as often, by chance: one in a hundred, for two questions.
const P_MAX: f64 = 0.005;
/// Least number of windows outside of episodes.
const ELSE_MIN: usize = 4;
/// Requests in episodes may be more than else by this factor. Beyond it, the load itself comes in bursts.
const SENT_FACTOR: f64 = 1.25;
/// Distances are even if they differ by at most this part from the middle one.
const EVEN: f64 = 0.25;
/// How often something is seen before it is said to recur.
pub const RECURS: usize = 3;

/// The windows of a load, compared with the usual one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadWindows {
    /// Whether requests were slow or failed.
    pub slow: Vec<bool>,
    /// Whether no answers came, although requests wait.
    pub none: Vec<bool>,
    /// A quantile of the latencies, ms. Where no answers came, it is endless.
    pub ms: Vec<Option<f64>>,
    /// Requests sent.
    pub sent: Vec<f64>,
}

/// Windows in which something was high, and the bad windows that came with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episodes {
    /// First and last window of each.
    pub runs: Vec<(usize, usize)>,
    /// Whether a window belongs to one of them: from its first window until its effect is over.
    pub area: Vec<bool>,
    /// How many came with a bad window.
    pub hit: usize,
    /// Bad windows within them.
    pub bad_within: usize,
    /// All bad windows.
    pub bad: usize,
}

/// The usual value.
fn usual(mut known: Vec<f64>) -> Option<f64> {
    known.sort_by(f64::total_cmp);
    known.get((known.len() as f64 * USUAL) as usize).copied()
}

/// The windows whose requests were slow or failed, compared with the usual window. `slow`: a quantile of the latency, ms.
pub fn bad(slow: &[Option<f64>], failed: &[(f64, f64)]) -> Vec<bool> {
    let usual = usual(slow.iter().copied().flatten().collect()).unwrap_or(f64::INFINITY);
    let share = |(failed, sent): &(f64, f64)| failed / sent.max(1.0);
    let shares: Vec<f64> = failed.iter().map(share).collect();
    let often = self::usual(shares.clone()).unwrap_or(0.0);
    let is_slow = |ms: &Option<f64>| ms.is_some_and(|ms| ms > SLOW_FACTOR * usual && ms > usual + SLOW_LEAST_MS);
    let is_failing = |at: usize| shares.get(at).is_some_and(|share| *share > often + FAILED_PART);
    slow.iter().enumerate().map(|(at, ms)| is_slow(ms) || is_failing(at)).collect()
}

impl LoadWindows {
    /// `ms`: a quantile of the latency. `counts`: requests sent, answered and failed.
    pub fn of(ms: &[Option<f64>], counts: &[[f64; 3]]) -> LoadWindows {
        let answers = usual(counts.iter().map(|[_, answered, _]| *answered).collect()).unwrap_or(0.0);
        let is_none = |[sent, answered, _]: &[f64; 3]| *sent > 0.0 && *answered <= ANSWERED_PART * answers;
        let none: Vec<bool> = counts.iter().map(is_none).collect();
        let failed: Vec<(f64, f64)> = counts.iter().map(|[sent, _, failed]| (*failed, *sent)).collect();
        let waits = ms.iter().zip(&none).map(|(ms, is_none)| if *is_none { Some(f64::MAX) } else { *ms });
        LoadWindows {
            slow: bad(ms, &failed),
            ms: waits.collect(),
            none,
            sent: counts.iter().map(|[sent, ..]| *sent).collect(),
        }
    }
}

/// The episodes of what is high, if bad windows come with them and hardly without them. One window in between ends no episode.
/// `is_none_felt`: windows without answers are bad by themselves. For what is defined by missing answers, some requests have to be slow.
pub fn together(high: &[bool], load: &LoadWindows, is_none_felt: bool) -> Option<Episodes> {
    let slow = &load.ms;
    let bad: Vec<bool> = load.slow.iter().zip(&load.none).map(|(slow, none)| *slow || *none).collect();
    let felt = if is_none_felt { &bad } else { &load.slow };
    let sent = &load.sent;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in high.iter().enumerate().filter(|(_, is_high)| **is_high).map(|(at, _)| at) {
        match runs.last_mut().filter(|(_, last)| at - *last <= 2) {
            Some((_, last)) => *last = at,
            None => runs.push((at, at)),
        }
    }
    let is_bad = |at: usize| bad.get(at).copied().unwrap_or(false);
    let until =
        |(_, last): &(usize, usize)| last + AFTER + (last + AFTER + 1..bad.len()).take_while(|at| is_bad(*at)).count();
    // Requests of the last one may be answered after the last window.
    let is_felt = |at: usize| felt.get(at).copied().unwrap_or(false);
    let is_cut = |run: &(usize, usize)| run.1 + AFTER >= high.len() && !(run.0..high.len()).any(is_felt);
    runs.pop_if(|run| is_cut(run));
    let within = |at: usize| runs.iter().any(|(first, last)| (*first..=*last).contains(&at));
    let area: Vec<bool> = (0..high.len()).map(|at| runs.iter().any(|run| (run.0..=until(run)).contains(&at))).collect();
    let count = |of: &dyn Fn(usize) -> bool| (0..high.len()).filter(|at| of(*at)).count();
    let is_in = |at: usize| area.get(at).copied().unwrap_or(false);
    let (of_high, of_area) = (count(&within), count(&is_in));
    let (all_bad, bad_within) = (count(&is_bad), count(&|at| is_bad(at) && is_in(at)));
    let hit = runs.iter().filter(|run| (run.0..=until(run)).any(is_felt)).count();
    let rest = high.len() - of_area;
    let is_episodic = !runs.is_empty() && of_high as f64 <= HIGH_MOST * high.len() as f64 && rest >= ELSE_MIN;
    let comes_with = hit as f64 >= TOGETHER * runs.len() as f64 && bad_within as f64 >= TOGETHER * all_bad as f64;
    if !is_episodic || bad_within == 0 || !comes_with {
        return None;
    }
    // For chance, the area is one that does not depend on what is bad.
    let is_near = |at: usize| runs.iter().any(|run| (run.0..=run.1 + AFTER).contains(&at));
    let known = |is_inside: bool| {
        let own = slow.iter().enumerate().filter(|(at, _)| is_near(*at) == is_inside);
        own.filter_map(|(_, ms)| *ms).collect::<Vec<f64>>()
    };
    let p = stats::larger_p(&known(false), &known(true));
    // Where requests fail, their latencies may be as usual.
    let near = count(&is_near);
    let bad_near = count(&|at| is_bad(at) && is_near(at));
    let pair = |part: usize, all: usize| (part as u64, all as u64);
    let p = p.min(stats::fisher_mid_p(pair(bad_near, near), pair(all_bad - bad_near, high.len() - near)));
    let mean = |of: &dyn Fn(usize) -> bool| {
        let sent: Vec<f64> = sent.iter().enumerate().filter(|(at, _)| of(*at)).map(|(_, sent)| *sent).collect();
        sent.iter().sum::<f64>() / sent.len().max(1) as f64
    };
    let is_burst_of_load = mean(&within) > SENT_FACTOR * mean(&|at| !is_in(at)) + 1.0;
    (p < P_MAX && !is_burst_of_load).then_some(Episodes { runs, area, hit, bad_within, bad: all_bad })
}

impl Episodes {
    /// When they were: a period only if they were seen [`RECURS`] times at even distances. `at_s` gives the time of a window, `step_s` its
    /// length.
    pub fn in_words(&self, at_s: impl Fn(usize) -> f64, step_s: f64) -> Said {
        let seconds = |value: f64| digits(value);
        let times: Vec<(f64, f64)> =
            self.runs.iter().map(|(first, last)| (at_s(*first), at_s(*last) + step_s)).collect();
        let long = stats::median(&times.iter().map(|(from, to)| to - from).collect::<Vec<_>>());
        match times.as_slice() {
            [] => Said::default(),
            [(from, to)] => say!(ONCE, seconds(*from), seconds(*to)),
            [(a, b), (c, d)] => say!(TWICE, seconds(*a), seconds(*b), seconds(*c), seconds(*d)),
            [first, ..] => match period(&times, step_s) {
                Some(period) => say!(EVERY, seconds(period), seconds(long), times.len(), seconds(first.0)),
                None => {
                    let all = at_s(self.area.len()) - at_s(0);
                    say!(AT_NO_EVEN_DISTANCE, times.len(), seconds(all), seconds(long))
                }
            },
        }
    }
}

/// The distance of the beginnings, if they are even.
fn period(times: &[(f64, f64)], step_s: f64) -> Option<f64> {
    let gaps: Vec<f64> = times.windows(2).filter_map(|pair| Some(pair.last()?.0 - pair.first()?.0)).collect();
    let middle = stats::median(&gaps);
    // A beginning is known to a window.
    let is_even = |gap: &&f64| (*gap - middle).abs() <= (EVEN * middle).max(1.01 * step_s);
    // One of them may have been missed.
    let is_even_or_double = |gap: &f64| is_even(&gap) || is_even(&&(gap / 2.0));
    let even = gaps.iter().filter(is_even).count();
    (gaps.len() + 1 >= RECURS && 2 * even > gaps.len() && gaps.iter().all(is_even_or_double)).then(|| {
        let (first, last) = (times.first().map_or(0.0, |one| one.0), times.last().map_or(0.0, |one| one.0));
        let steps: f64 = gaps.iter().map(|gap| if is_even(&gap) { 1.0 } else { 2.0 }).sum();
        (last - first) / steps.max(1.0)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// High for two windows of each `every`; the window after the beginning, and the next, are bad.
    fn rhythm(windows: usize, every: usize) -> (Vec<bool>, Vec<bool>) {
        let high = (0..windows).map(|at| at % every == 3 || at % every == 4).collect();
        let bad = (0..windows).map(|at| at % every == 4 || at % every == 5).collect();
        (high, bad)
    }

    /// A load whose windows are so.
    fn load(bad: &[bool]) -> LoadWindows {
        let ms: Vec<Option<f64>> = bad.iter().map(|is_bad| Some(if *is_bad { 300.0 } else { 10.0 })).collect();
        LoadWindows::of(&ms, &vec![[20.0, 20.0, 0.0]; bad.len()])
    }

    fn words(high: &[bool], bad: &[bool]) -> Option<String> {
        let found = together(high, &load(bad), true)?;
        Some(found.in_words(|at| at as f64 * 0.25, 0.25).en().to_owned())
    }

    #[test]
    fn a_period_is_claimed_of_three_times_alone() {
        let (high, bad) = rhythm(44, 12);
        assert_eq!(words(&high, &bad).unwrap(), "every 3.00 s, for 0.500 s: 4 times from 0.750 s on");
        assert_eq!(words(&high[..24], &bad[..24]).unwrap(), "twice, from 0.750 s to 1.25 s and from 3.75 s to 4.25 s");
        // Three times, at 0.75, 3.25 and 10 s.
        let at = |list: &[usize]| (0..60).map(|window| list.contains(&window)).collect::<Vec<_>>();
        assert_eq!(words(&at(&[3, 4]), &at(&[4, 5])).unwrap(), "once, from 0.750 s to 1.25 s");
        let uneven = words(&at(&[3, 4, 13, 14, 40, 41]), &at(&[4, 5, 14, 15, 41, 42])).unwrap();
        assert_eq!(uneven, "3 times in 15.0 s, for 0.500 s each, at no even distance");
    }

    #[test]
    fn a_missed_time_does_not_change_the_period() {
        let (mut high, mut bad) = rhythm(80, 12);
        high[27..=28].fill(false);
        bad[28..=29].fill(false);
        assert!(words(&high, &bad).unwrap().starts_with("every 3.00 s"), "{:?}", words(&high, &bad));
    }

    #[test]
    fn what_changes_nothing_is_no_episode() {
        let (high, bad) = rhythm(40, 12);
        assert_eq!(together(&high, &load(&[false; 40]), true), None, "a harmless job");
        assert_eq!(together(&[true; 40], &load(&bad), true), None, "it is always high");
        // As many bad windows, elsewhere.
        let elsewhere: Vec<bool> = (0..40).map(|at| at % 12 == 10 || at % 12 == 11).collect();
        assert_eq!(together(&high, &load(&elsewhere), true), None);
        // The load itself comes in bursts.
        let sent = high.iter().map(|high| if *high { 60.0 } else { 20.0 }).collect();
        assert_eq!(together(&high, &LoadWindows { sent, ..load(&bad) }, true), None);
    }

    /// An application that stands still: no answer comes for two windows, and in the next one all that waited come late.
    #[test]
    fn a_standstill_is_felt_by_those_who_wait() {
        let still: Vec<bool> = (0..40).map(|at| at % 12 == 3 || at % 12 == 4).collect();
        let counts: Vec<[f64; 3]> = still.iter().map(|still| [20.0, if *still { 0.0 } else { 20.0 }, 0.0]).collect();
        let late = |ms: f64| {
            (0..40).map(move |at| (at % 12 != 3 && at % 12 != 4).then_some(if at % 12 == 5 { ms } else { 10.0 }))
        };
        let load = |ms: f64| LoadWindows::of(&late(ms).collect::<Vec<_>>(), &counts);
        assert_eq!(together(&still, &load(480.0), false).map(|found| found.hit), Some(3));
        // Answers that come in waves: nobody waits longer than usual.
        assert_eq!(together(&still, &load(11.0), false), None);
    }

    /// Windows that are high or bad by chance, each one of six.
    #[test]
    fn chance_is_no_episode() {
        let mut rng = fastrand::Rng::with_seed(7);
        let found = (0..2_000).filter(|_| {
            let mut coins = || (0..32).map(|_| rng.u8(..6) == 0).collect::<Vec<bool>>();
            let (high, bad) = (coins(), coins());
            together(&high, &load(&bad), true).is_some()
        });
        let count = found.count();
        assert!(count <= 10, "{count}");
    }

    #[test]
    fn a_window_is_bad_beside_the_others() {
        let slow: Vec<Option<f64>> = [12.0, 11.0, 480.0, 13.0, 12.0, 25.0, 12.0].map(Some).to_vec();
        let none = vec![(0.0, 20.0); 7];
        assert_eq!(bad(&slow, &none), [false, false, true, false, false, false, false]);
        let mut failed = none.clone();
        failed[5] = (4.0, 20.0);
        assert!(bad(&slow, &failed)[5] && !bad(&slow, &[(4.0, 20.0); 7])[5]);
        assert_eq!(bad(&[None, None], &[]), [false, false]);
    }
}
