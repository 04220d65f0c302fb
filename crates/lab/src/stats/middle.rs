//! The middle and the spread of a list.

/// The mean; NaN for an empty list.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample's standard deviation; NaN for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// The median; NaN for an empty list.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (len, half) if len % 2 == 1 => sorted.get(half).copied().unwrap_or(f64::NAN),
        (_, half) => {
            let pair = (sorted.get(half - 1), sorted.get(half));
            if let (Some(low), Some(high)) = pair { (low + high) / 2.0 } else { f64::NAN }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_and_spreads() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0]), mean(&[1.0, 3.0])), (2.0, 2.5, 2.0));
        assert!((deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - 2.138_089_935).abs() < 1e-8);
        assert!(median(&[]).is_nan() && deviation(&[1.0]).is_nan() && mean(&[]).is_nan());
    }
}
