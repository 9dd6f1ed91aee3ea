//! Projection to more cores by the Universal Scalability Law:
//! X(n) = λ n ÷ (1 + σ (n − 1) + κ n (n − 1)), fitted to a sweep over cores.

/// A fitted law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// Throughput of one core.
    pub lambda: f64,
    /// Contention: the share that is serial.
    pub sigma: f64,
    /// Coherency: the cost of each pair.
    pub kappa: f64,
}

impl Law {
    /// Throughput of n cores.
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Fits by least squares to pairs of cores and throughput. None with less
    /// than three numbers of cores: two parameters and the speed of one core
    /// cannot be told apart.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let mut cores: Vec<f64> = points.iter().map(|p| p.0).collect();
        cores.sort_by(f64::total_cmp);
        cores.dedup();
        if cores.len() < 3 || points.iter().any(|p| p.1 <= 0.0) {
            return None;
        }
        // n / X = a + b (n − 1) + c n (n − 1), with λ = 1/a, σ = b/a, κ = c/a
        let row = |n: f64| [1.0, n - 1.0, n * (n - 1.0)];
        let [a, b, c] = least_squares(points, row)?;
        let law = Self {
            lambda: 1.0 / a,
            sigma: b / a,
            kappa: c / a,
        };
        (a > 0.0 && law.sigma >= -0.01 && law.kappa >= -0.01).then(|| Self {
            sigma: law.sigma.max(0.0),
            kappa: law.kappa.max(0.0),
            ..law
        })
    }
}

/// Solves the normal equations of n / X over three terms.
fn least_squares(points: &[(f64, f64)], row: impl Fn(f64) -> [f64; 3]) -> Option<[f64; 3]> {
    let mut matrix = [[0.0; 4]; 3];
    for &(n, x) in points {
        let terms = row(n);
        for (i, line) in matrix.iter_mut().enumerate() {
            for (j, cell) in line.iter_mut().take(3).enumerate() {
                *cell += terms[i] * terms[j];
            }
            line[3] += terms[i] * n / x;
        }
    }
    solve(matrix)
}

/// Gauss-Jordan elimination with the largest pivot.
fn solve(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|a, b| m[*a][column].abs().total_cmp(&m[*b][column].abs()))?;
        m.swap(column, pivot);
        let lead = m[column][column];
        if lead.abs() < 1e-12 {
            return None;
        }
        m[column].iter_mut().for_each(|cell| *cell /= lead);
        let line = m[column];
        for (at, other) in m.iter_mut().enumerate() {
            if at != column {
                let factor = other[column];
                other
                    .iter_mut()
                    .zip(line)
                    .for_each(|(cell, own)| *cell -= factor * own);
            }
        }
    }
    Some([m[0][3], m[1][3], m[2][3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_is_found_again_from_its_own_points() {
        let law = Law {
            lambda: 10_000.0,
            sigma: 0.03,
            kappa: 0.0005,
        };
        let points: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, law.at(n))).to_vec();
        let found = Law::fit(&points).expect("fits");
        assert!((found.lambda / law.lambda - 1.0).abs() < 1e-9);
        assert!((found.sigma - law.sigma).abs() < 1e-9);
        assert!((found.kappa - law.kappa).abs() < 1e-9);
    }

    #[test]
    fn two_numbers_of_cores_are_no_sweep() {
        assert_eq!(Law::fit(&[(1.0, 10.0), (2.0, 19.0), (2.0, 19.1)]), None);
    }

    #[test]
    fn faster_than_linear_is_no_law() {
        assert_eq!(Law::fit(&[(1.0, 10.0), (2.0, 30.0), (4.0, 90.0)]), None);
    }
}
