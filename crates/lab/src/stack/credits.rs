//! Burst credits, as those of Amazon's T instances: a host has all of its CPUs while it has credits, and a small part
//! of them afterwards.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A bucket of CPU credits: one is a CPU for a minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Credits {
    /// CPUs while credits are left.
    pub cpus: f64,
    /// CPUs without credits.
    pub baseline: f64,
    /// Credits earned in an hour.
    pub earned_hourly: f64,
    /// Credits at the start.
    pub initial: f64,
    /// How much faster time runs here than on the instance: at 60, the credits of an hour are earned and spent in a
    /// minute.
    pub speed: f64,
}

impl Credits {
    /// An instance type by its name, with `initial` credits at the start. CPUs, baseline and earnings come from
    /// Amazon's table of burstable instances.
    pub fn of(instance: &str, initial: f64, speed: f64) -> Option<Credits> {
        let (cpus, baseline, earned_hourly) = match instance {
            "t2.micro" => (1.0, 0.10, 6.0),
            "t2.small" => (1.0, 0.20, 12.0),
            "t2.medium" => (2.0, 0.40, 24.0),
            "t2.large" => (2.0, 0.60, 36.0),
            "t2.xlarge" => (4.0, 0.90, 54.0),
            _ => return None,
        };
        Some(Credits { cpus, baseline, earned_hourly, initial, speed })
    }
}

/// The present state of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    credits: Credits,
    left: f64,
}

impl Bucket {
    /// A bucket with its initial credits.
    pub fn new(credits: Credits) -> Bucket {
        Bucket { left: credits.initial.max(0.0), credits }
    }

    /// Accounts for the CPU time used in `elapsed`. Returns the CPUs that the host has from then on.
    pub fn after(&mut self, used: Duration, elapsed: Duration) -> f64 {
        let speed = self.credits.speed;
        let burnt = used.as_secs_f64() / 60.0 * speed;
        let earned = elapsed.as_secs_f64() / 3600.0 * self.credits.earned_hourly * speed;
        self.left = (self.left - burnt + earned).max(0.0);
        self.cpus()
    }

    /// The CPUs that the host has. Credits below the price of a tenth of a second of all CPUs count as none.
    /// Otherwise the host would get all of its CPUs at every second step.
    pub fn cpus(&self) -> f64 {
        let least = self.credits.cpus / 60.0 * 0.1 * self.credits.speed;
        if self.left > least { self.credits.cpus } else { self.credits.baseline }
    }

    /// Whether the host has only its baseline.
    pub fn is_out(&self) -> bool {
        self.cpus() <= self.credits.baseline
    }

    /// Credits that are left.
    pub fn left(&self) -> f64 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_busy_host_steps_down_when_it_is_computed_to() {
        // One CPU spends a credit a minute and earns a tenth of one: two credits last 2 / 0.9 minutes. Sixty times
        // faster, that is 2.2 s.
        let mut bucket = Bucket::new(Credits::of("t2.micro", 2.0, 60.0).unwrap());
        let step = Duration::from_millis(100);
        let mut seconds = 0.0;
        while bucket.cpus() > 0.5 {
            bucket.after(step, step);
            seconds += 0.1;
        }
        assert!((2.0..2.4).contains(&seconds), "{seconds}");
        // At its baseline, the host earns as many credits as it spends.
        for _ in 0..1000 {
            assert_eq!(bucket.after(step.mul_f64(0.1), step), 0.1);
        }
        // An idle host earns credits.
        assert_eq!(bucket.after(Duration::ZERO, Duration::from_secs(60)), 1.0);
        assert!((bucket.left() - 6.0).abs() < 0.3, "{}", bucket.left());
        assert_eq!(Credits::of("m5.large", 1.0, 1.0), None);
    }
}
