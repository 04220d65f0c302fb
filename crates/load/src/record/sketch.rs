//! Artillery's histogram: a DDSketch of one per cent. The arithmetic equals that of `sketches-js` bit for bit,
//! because people compare its rounded quantiles between reports (artillery.md §3.1).
//!
//! No crate among the dependencies does the same: the accuracy, the rank rule and the merge that drops negative
//! samples all show in the figures.

use serde_json::{Value, json};

/// γ of one per cent: `1 + 2α / (1 − α)`.
const GAMMA_MANTISSA: f64 = 2.0 * 0.01 / (1.0 - 0.01);
const GAMMA: f64 = 1.0 + GAMMA_MANTISSA;
/// 2⁻¹⁰²³ · γ: numbers nearer to zero count as zero.
const POSSIBLE_MIN: f64 = 1.112_536_929_253_600_7e-308 * GAMMA;
/// The buckets of whole milliseconds up to this are looked up instead of computed.
const LOOKED_UP: usize = 4096;
/// Number of bins by which a store grows.
const BINS_CHUNK: usize = 64;
/// The largest distance between two buckets of finite numbers; a longer decoded store is invalid.
const BINS_MAX: usize = 80_000;

/// A mergeable histogram of any numbers; quantiles are within one per cent, the other figures are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    positive: Store,
    negative: Store,
    zeros: u64,
    /// Number of samples.
    pub count: u64,
    /// Sum of the samples.
    pub sum: f64,
    /// The least sample; infinity if there are none.
    pub min: f64,
    /// The greatest sample; minus infinity if there are none.
    pub max: f64,
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch {
            positive: Store::default(),
            negative: Store::default(),
            zeros: 0,
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Sketch {
    /// Adds a finite sample; ignores others, because they would spoil every figure.
    #[inline]
    pub fn add(&mut self, value: f64, keys: &Keys) {
        if !value.is_finite() {
            return;
        }
        if value > POSSIBLE_MIN {
            self.positive.add(keys.of(value));
        } else if value < -POSSIBLE_MIN {
            self.negative.add(keys.of(-value));
        } else {
            self.zeros += 1;
        }
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all samples of another; its negative ones only if this sketch is empty, as in the reference.
    pub fn merge(&mut self, other: &Sketch) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        self.positive.merge(&other.positive);
        self.zeros += other.zeros;
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The value of rank `quantile * (count - 1)`, rounded down to a sample; NaN if there are none.
    pub fn quantile(&self, quantile: f64) -> f64 {
        if self.count == 0 || !(0.0..=1.0).contains(&quantile) {
            return f64::NAN;
        }
        let rank = quantile * (self.count - 1) as f64;
        let negatives = self.negative.count as f64;
        if rank < negatives {
            return -value(self.negative.key_at(|sum| sum >= negatives - rank));
        }
        let rank = rank - negatives - self.zeros as f64;
        if rank < 0.0 { 0.0 } else { value(self.positive.key_at(|sum| sum > rank)) }
    }

    /// The figures of a report.
    pub fn summary(&self) -> Summary {
        let tenth = |value: f64| tenths(value);
        Summary {
            min: tenth(self.min),
            max: tenth(self.max),
            count: self.count,
            mean: tenth(self.sum / self.count as f64),
            median: tenth(self.quantile(0.5)),
            p75: tenth(self.quantile(0.75)),
            p90: tenth(self.quantile(0.9)),
            p95: tenth(self.quantile(0.95)),
            p99: tenth(self.quantile(0.99)),
            p999: tenth(self.quantile(0.999)),
        }
    }

    /// Encodes the sketch for another process; [`Sketch::from_json`] decodes it.
    pub fn to_json(&self) -> Value {
        json!([self.positive.to_json(), self.negative.to_json(), self.zeros, self.sum, self.min, self.max])
    }

    /// Decodes the JSON of [`Sketch::to_json`]; `None` for any other JSON.
    pub fn from_json(json: &Value) -> Option<Sketch> {
        let number = |at: usize, empty: f64| match json.get(at)? {
            Value::Null => Some(empty),
            other => other.as_f64(),
        };
        let (positive, negative) = (Store::from_json(json.get(0)?)?, Store::from_json(json.get(1)?)?);
        let zeros = json.get(2)?.as_u64()?;
        let count = positive.count.checked_add(negative.count)?.checked_add(zeros)?;
        Some(Sketch {
            positive,
            negative,
            zeros,
            count,
            sum: number(3, 0.0)?,
            min: number(4, f64::INFINITY)?,
            max: number(5, f64::NEG_INFINITY)?,
        })
    }
}

/// The figures of a histogram in a report, to one decimal.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the report")]
pub struct Summary {
    pub min: f64,
    pub max: f64,
    pub count: u64,
    pub mean: f64,
    pub median: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
}

impl Summary {
    /// Every figure by name, in the order of a report; `median` occurs twice.
    pub fn figures(&self) -> [(&'static str, f64); 11] {
        [
            ("min", self.min),
            ("max", self.max),
            ("count", self.count as f64),
            ("mean", self.mean),
            ("p50", self.median),
            ("median", self.median),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p999", self.p999),
        ]
    }
}

/// Rounds as JavaScript's `Math.round(x * 10) / 10`.
pub fn tenths(value: f64) -> f64 {
    round(value * 10.0) / 10.0
}

/// JavaScript's `Math.round`: halves are rounded up.
pub fn round(value: f64) -> f64 {
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// The buckets of small whole numbers, computed once for each recorder.
#[derive(Debug)]
pub struct Keys(Vec<i32>);

impl Default for Keys {
    fn default() -> Keys {
        Keys((0..LOOKED_UP).map(|ms| if ms == 0 { 0 } else { key(ms as f64) }).collect())
    }
}

impl Keys {
    #[inline]
    fn of(&self, value: f64) -> i32 {
        // The cast saturates, so a large number is outside the table.
        let whole = value as usize;
        match self.0.get(whole) {
            Some(&key) if whole as f64 == value => key,
            _ => key(value),
        }
    }
}

/// `1 / log1p(2α / (1 − α)) · ln 2`: converts base-2 logarithms to base γ.
const MULTIPLIER: f64 = 34.65620375188817;

fn key(value: f64) -> i32 {
    (value.log2() * MULTIPLIER).ceil() as i32
}

fn value(key: i32) -> f64 {
    (f64::from(key) / MULTIPLIER).exp2() * (2.0 / (1.0 + GAMMA))
}

/// Counts of neighbouring buckets.
#[derive(Clone, Debug, Default)]
struct Store {
    bins: Vec<u64>,
    /// The bucket of the first bin.
    offset: i32,
    count: u64,
}

/// True if the same buckets hold the same counts; free room at the ends does not matter.
impl PartialEq for Store {
    fn eq(&self, other: &Store) -> bool {
        self.count == other.count && self.filled().eq(other.filled())
    }
}

impl Store {
    #[inline]
    fn add(&mut self, key: i32) {
        let at = usize::try_from(key - self.offset).unwrap_or(usize::MAX);
        match self.bins.get_mut(at) {
            Some(bin) => *bin += 1,
            None => self.add_far(key, 1),
        }
        self.count += 1;
    }

    #[cold]
    fn add_far(&mut self, key: i32, by: u64) {
        self.reach(key);
        let at = usize::try_from(key - self.offset).unwrap_or(usize::MAX);
        if let Some(bin) = self.bins.get_mut(at) {
            *bin += by;
        }
    }

    /// Makes sure that a bucket has a bin.
    fn reach(&mut self, key: i32) {
        if self.bins.is_empty() {
            self.offset = key;
        }
        if key < self.offset {
            let more = ((self.offset - key) as usize).next_multiple_of(BINS_CHUNK);
            self.bins.splice(0..0, std::iter::repeat_n(0, more));
            self.offset -= more as i32;
        }
        let length = (key - self.offset) as usize + 1;
        if length > self.bins.len() {
            self.bins.resize(length.next_multiple_of(BINS_CHUNK), 0);
        }
    }

    fn merge(&mut self, other: &Store) {
        for (key, count) in other.filled() {
            self.add_far(key, count);
        }
        self.count += other.count;
    }

    fn filled(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        (self.offset..).zip(&self.bins).filter(|(_, count)| **count > 0).map(|(key, &count)| (key, count))
    }

    /// The first bucket at which the sum of counts is large enough, or the last bucket.
    fn key_at(&self, is_enough: impl Fn(f64) -> bool) -> i32 {
        let (mut sum, mut last) = (0, self.offset);
        for (key, count) in self.filled() {
            sum += count;
            last = key;
            if is_enough(sum as f64) {
                break;
            }
        }
        last
    }

    /// The first bucket, then for each filled bucket the distance from the one before and its count.
    fn to_json(&self) -> Value {
        let mut before = self.filled().next().map_or(0, |(key, _)| key);
        let mut out = vec![json!(before)];
        for (key, count) in self.filled() {
            out.extend([json!(key - before), json!(count)]);
            before = key;
        }
        Value::Array(out)
    }

    fn from_json(json: &Value) -> Option<Store> {
        let (first, rest) = json.as_array()?.split_first()?;
        let mut key = i32::try_from(first.as_i64()?).ok()?;
        let mut store = Store::default();
        for pair in rest.chunks(2) {
            key = key.checked_add(i32::try_from(pair.first()?.as_u64()?).ok()?)?;
            let count = pair.get(1)?.as_u64()?;
            if key.unsigned_abs() as usize > BINS_MAX / 2 {
                return None;
            }
            store.add_far(key, count);
            store.count = store.count.checked_add(count)?;
        }
        Some(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(samples: &[f64]) -> Sketch {
        let keys = Keys::default();
        let mut sketch = Sketch::default();
        samples.iter().for_each(|&sample| sketch.add(sample, &keys));
        sketch
    }

    #[test]
    fn one_sample_reads_as_in_the_reference() {
        let vectors = [
            (1.0, 1.0),
            (2.0, 2.0),
            (5.0, 5.0),
            (7.0, 7.0),
            (8.0, 7.9),
            (9.0, 8.9),
            (10.0, 10.1),
            (11.0, 10.9),
            (12.0, 12.1),
            (13.0, 13.1),
            (15.0, 15.0),
            (20.0, 19.9),
            (25.0, 24.8),
            (30.0, 30.3),
            (50.0, 49.9),
            (51.0, 50.9),
            (60.0, 59.7),
            (75.0, 74.4),
            (100.0, 100.5),
            (120.0, 120.3),
            (150.0, 149.9),
            (200.0, 198.4),
            (250.0, 252.2),
            (300.0, 301.9),
            (500.0, 497.8),
            (750.0, 742.6),
            (1000.0, 1002.4),
            (1300.0, 1300.1),
            (2000.0, 2018.7),
            (5000.0, 4965.3),
            (10000.0, 9999.2),
        ];
        for (sample, shown) in vectors {
            let summary = sketch(&[sample]).summary();
            assert_eq!((summary.median, summary.p999), (shown, shown), "{sample}");
            assert_eq!((summary.min, summary.max, summary.mean, summary.count), (sample, sample, sample, 1));
        }
    }

    #[test]
    fn ranks_round_down() {
        let tens: Vec<f64> = (1..=10).map(|n| f64::from(n) * 10.0).collect();
        let summary = sketch(&tens).summary();
        assert_eq!((summary.median, summary.p75), (49.9, 70.1));
        assert_eq!((summary.p90, summary.p95, summary.p99, summary.p999), (89.1, 89.1, 89.1, 89.1));
        assert_eq!(summary.max, 100.0);
    }

    /// Figures that the reference (`@artilleryio/sketches-js` 2.1.1) computed for these samples.
    #[test]
    fn zero_and_below_read_as_in_the_reference() {
        let summary = sketch(&[-100.0, -10.0, -1.0, 0.0, 0.0, 0.3, 7.0]).summary();
        assert_eq!((summary.min, summary.median, summary.p75, summary.p90), (-100.0, 0.0, 0.0, 0.3));
        assert_eq!(sketch(&[-100.0, -10.0, -1.0]).summary().median, -10.1);
        assert_eq!(sketch(&[0.0; 5]).summary().p99, 0.0);
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let all: Vec<f64> = (0..2000).map(|n| f64::from(n * n % 7919) * 0.37).collect();
        let (left, right) = all.split_at(700);
        let mut sum = sketch(left);
        sum.merge(&sketch(right));
        let whole = sketch(&all);
        assert_eq!(sum.positive, whole.positive);
        assert_eq!((sum.count, sum.zeros, sum.min, sum.max), (whole.count, whole.zeros, whole.min, whole.max));
        assert_eq!(sum.summary(), whole.summary());
    }

    #[test]
    fn merging_forgets_negatives_unless_it_is_the_first() {
        let mut sum = Sketch::default();
        sum.merge(&sketch(&[-5.0]));
        assert_eq!(sum.summary().median, -5.0);
        sum.merge(&sketch(&[-7.0, 3.0]));
        assert_eq!((sum.count, sum.negative.count, sum.min), (3, 1, -7.0));
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let sketch = sketch(&[f64::NAN, f64::INFINITY, 4.0]);
        assert_eq!((sketch.count, sketch.sum), (1, 4.0));
        assert!(Sketch::default().summary().median.is_nan());
    }

    #[test]
    fn json_gives_it_back() {
        for samples in [&[][..], &[0.0, -3.0, 1.5, 1e9, 1e-9], &[12.0; 9]] {
            let sketch = sketch(samples);
            let text = sketch.to_json().to_string();
            assert_eq!(Sketch::from_json(&serde_json::from_str(&text).unwrap()), Some(sketch), "{text}");
        }
        for bad in ["[]", "[[0],[0],-1,0,0,0]", "[[0,1],[0],0,0,0,0]", "[[0,90000000,1],[0],0,0,0,0]"] {
            assert_eq!(Sketch::from_json(&serde_json::from_str(bad).unwrap()), None, "{bad}");
        }
    }

    #[test]
    fn the_multiplier_is_what_it_says() {
        assert_eq!(MULTIPLIER, 1.0 / GAMMA_MANTISSA.ln_1p() * std::f64::consts::LN_2);
    }

    #[test]
    fn halves_round_up() {
        for (value, rounded) in [(0.5, 1.0), (-0.5, 0.0), (2.5, 3.0), (-2.6, -3.0), (0.499_999_999_999_999_94, 0.0)] {
            assert_eq!(round(value), rounded, "{value}");
        }
    }
}
