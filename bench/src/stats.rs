//! Distributions of times and the figures that the tables quote.

/// The percentiles of the tables, with their names.
pub const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// Microseconds, sorted.
#[derive(Debug, Default)]
pub struct Distribution {
    sorted: Vec<f64>,
}

impl Distribution {
    /// Takes nanoseconds in any order.
    pub fn new(nanos: impl Iterator<Item = u64>) -> Distribution {
        let mut sorted: Vec<f64> = nanos.map(micros).collect();
        sorted.sort_by(f64::total_cmp);
        Distribution { sorted }
    }

    /// How many times there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Average, the percentiles in order, maximum.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = vec![("avg", self.average())];
        for (name, percent) in PERCENTILES {
            figures.push((name, self.percentile(percent)));
        }
        figures.push(("max", self.sorted.last().copied().unwrap_or(0.0)));
        figures
    }

    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn average(&self) -> f64 {
        let sum: f64 = self.sorted.iter().sum();
        sum / self.sorted.len().max(1) as f64
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank within a vector's length"
    )]
    fn percentile(&self, percent: f64) -> f64 {
        let rank = (self.sorted.len() as f64 * percent / 100.0) as usize;
        let last = self.sorted.len().saturating_sub(1);
        self.sorted.get(rank.min(last)).copied().unwrap_or(0.0)
    }
}

/// Nanoseconds as microseconds.
#[allow(
    clippy::cast_precision_loss,
    reason = "times are far below 2^52 nanoseconds"
)]
pub fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// A figure with about three digits.
pub fn short(figure: f64) -> String {
    if figure >= 1000.0 {
        grouped(&format!("{figure:.0}"))
    } else if figure >= 100.0 {
        format!("{figure:.0}")
    } else if figure >= 10.0 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.2}")
    }
}

/// Digits in groups of three.
pub fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let times = Distribution::new((1..=1000).rev().map(|n| n * 1000));
        let figures = times.figures();
        let at = |name| {
            figures.iter().find(|(found, _)| *found == name).map(|(_, x)| *x)
        };
        assert_eq!(at("avg"), Some(500.5));
        assert_eq!(at("p50"), Some(501.0));
        assert_eq!(at("p99.9"), Some(1000.0));
        assert_eq!(at("max"), Some(1000.0));
        assert!(Distribution::default().figures().iter().all(|f| f.1 == 0.0));
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(short(1.234), "1.23");
        assert_eq!(short(12.34), "12.3");
        assert_eq!(short(123.4), "123");
        assert_eq!(short(1_234_567.8), "1,234,568");
    }
}
