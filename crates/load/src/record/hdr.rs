//! Latencies in an HDR histogram: three digits from 1 µs to an hour, merged exactly, in the format of the HDR tools.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Resolution at the low end, in ns.
const NS_MIN: u64 = 1_000;
/// Longer latencies count as this one, an hour.
const NS_MAX: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Most bytes of an encoded histogram from another process; a full one of weir's has about a third of that.
const ENCODED_MAX: usize = 1 << 20;

/// Mergeable latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hdr(Option<Histogram<u64>>);

impl Hdr {
    /// Adds a latency.
    #[inline]
    pub fn add(&mut self, latency: Duration) {
        self.add_ns(u64::try_from(latency.as_nanos()).unwrap_or(NS_MAX));
    }

    /// Adds a latency in nanoseconds.
    #[inline]
    pub fn add_ns(&mut self, ns: u64) {
        match &mut self.0 {
            Some(histogram) => histogram.saturating_record(ns),
            None => self.add_first(ns),
        }
    }

    #[cold]
    fn add_first(&mut self, ns: u64) {
        // The bounds are constants that the crate accepts; a test checks this.
        if let Ok(mut histogram) = Histogram::new_with_bounds(NS_MIN, NS_MAX, DIGITS) {
            histogram.saturating_record(ns);
            self.0 = Some(histogram);
        }
    }

    /// Adds all latencies of another, exactly.
    pub fn merge(&mut self, other: &Hdr) {
        match (&mut self.0, &other.0) {
            // The bounds are equal, so nothing is out of range.
            (Some(own), Some(other)) => drop(own.add(other)),
            (own @ None, Some(_)) => own.clone_from(&other.0),
            (_, None) => {}
        }
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// The latency that this share of them, 0 to 1, did not exceed; zero if there are none.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let ns = self.0.as_ref().filter(|histogram| !histogram.is_empty());
        Duration::from_nanos(ns.map_or(0, |h| h.value_at_quantile(quantile).min(h.max())))
    }

    /// The longest latency; zero if there are none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.as_ref().map_or(0, Histogram::max))
    }

    /// The shortest latency; zero if there are none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.0.as_ref().map_or(0, Histogram::min))
    }

    /// The mean latency; zero if there are none.
    pub fn mean(&self) -> Duration {
        let mean = self.0.as_ref().filter(|histogram| !histogram.is_empty()).map_or(0.0, Histogram::mean);
        Duration::from_nanos(mean as u64)
    }

    /// The standard deviation of the latencies; zero if there are none.
    pub fn deviation(&self) -> Duration {
        let deviation = self.0.as_ref().filter(|histogram| !histogram.is_empty()).map_or(0.0, Histogram::stdev);
        Duration::from_nanos(deviation as u64)
    }

    /// HdrHistogram's V2 format, compressed, in base64: the format of its log analysers. Unit: ns. Empty if there are
    /// none.
    pub fn encoded(&self) -> String {
        let Some(histogram) = &self.0 else { return String::new() };
        let mut bytes = Vec::new();
        match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
            Ok(_) => STANDARD.encode(bytes),
            Err(_) => String::new(),
        }
    }

    /// Decodes the text of [`Hdr::encoded`]; `None` for any other text.
    pub fn decode(text: &str) -> Option<Hdr> {
        if text.is_empty() {
            return Some(Hdr::default());
        }
        if text.len() > ENCODED_MAX {
            return None;
        }
        let bytes = STANDARD.decode(text).ok()?;
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
        let same = histogram.low() == NS_MIN && histogram.high() == NS_MAX && histogram.sigfig() == DIGITS;
        same.then_some(Hdr(Some(histogram)))
    }

    /// Numbers of latencies between neighbouring bounds, in ns: for a chart.
    pub fn bars(&self, bounds: &[u64]) -> Vec<u64> {
        let Some(histogram) = &self.0 else { return vec![0; bounds.len().saturating_sub(1)] };
        let pairs = bounds.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
        pairs
            .map(|(low, high)| {
                histogram
                    .iter_recorded()
                    .filter(|at| (low..high).contains(&at.value_iterated_to()))
                    .map(|at| at.count_at_value())
                    .sum()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hdr(us: impl IntoIterator<Item = u64>) -> Hdr {
        let mut hdr = Hdr::default();
        us.into_iter().for_each(|us| hdr.add(Duration::from_micros(us)));
        hdr
    }

    #[test]
    fn an_empty_one_is_zero_everywhere() {
        let none = Hdr::default();
        assert_eq!(
            (none.count(), none.quantile(0.99), none.max(), none.mean()),
            (0, Duration::ZERO, Duration::ZERO, Duration::ZERO)
        );
        assert_eq!((none.encoded().as_str(), Hdr::decode("")), ("", Some(none)));
    }

    #[test]
    fn three_digits() {
        let hdr = hdr(1..=10_000);
        for (quantile, us) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.999, 9_990.0)] {
            let seen = hdr.quantile(quantile).as_nanos() as f64 / 1000.0;
            assert!((seen / us - 1.0).abs() < 0.001, "{quantile}: {seen}");
        }
        assert!(hdr.max() >= Duration::from_micros(10_000) && hdr.max() < Duration::from_micros(10_010));
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let mut sum = hdr(1..500);
        sum.merge(&hdr(500..2000));
        sum.merge(&Hdr::default());
        assert!(sum == hdr(1..2000));
        let mut none = Hdr::default();
        none.merge(&sum);
        assert!(none == sum);
    }

    #[test]
    fn text_gives_it_back() {
        let hdr = hdr([0, 1, 17, 1_000_000, 10_000_000_000]);
        let text = hdr.encoded();
        assert!(text.starts_with("HISTFAAA"), "{text}");
        assert!(Hdr::decode(&text) == Some(hdr));
        for bad in ["x", "HISTFAAA", &"A".repeat(ENCODED_MAX + 4)] {
            assert!(Hdr::decode(bad).is_none());
        }
    }

    #[test]
    fn what_is_beyond_an_hour_counts_as_an_hour() {
        assert!(hdr([u64::MAX / 1000]).max() >= Duration::from_secs(3600));
    }

    #[test]
    fn bars_hold_everything_between_their_bounds() {
        let bars = hdr([1, 2, 3, 50, 500]).bars(&[0, 10_000, 100_000, 1_000_000]);
        assert_eq!(bars, [3, 1, 1]);
    }

    mod mutate {
        use super::*;
        /// A latency histogram of an agent: it is read and written as the same one, or it is none.
        #[test]
        fn histograms() {
            let mut own = Hdr::default();
            (1..100).for_each(|us| own.add(Duration::from_micros(us * us)));
            let seeds = [own.encoded(), String::new()];
            weir_mutate::mutate(&seeds, &["=", "A", "HISTFAAA", "/////w", "AAAA", "é"], |bytes| {
                if let Some(read) = Hdr::decode(&String::from_utf8_lossy(bytes)) {
                    let again = Hdr::decode(&read.encoded()).unwrap();
                    assert_eq!((again.count(), again.max()), (read.count(), read.max()));
                    let _ = (read.quantile(0.5), read.mean(), read.deviation(), read.min(), read.bars(&[1, 1_000]));
                }
            });
        }
    }
}
