//! Values over the samples of a record: states, their standard deviations, measured channels.

use std::ops::Range;
use std::slice::ChunksExact;

/// One row of equal width for each sample.
///
/// ```
/// use latens::Trajectory;
///
/// let states = Trajectory::new(vec![1.0, 0.0, 0.9, -0.1], 2);
/// assert_eq!((states.len(), states.width()), (2, 2));
/// assert_eq!(states.row(1), [0.9, -0.1]);
/// assert_eq!(states.column(0).collect::<Vec<_>>(), [1.0, 0.9]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trajectory {
    values: Vec<f64>,
    width: usize,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub row: usize,
    pub column: usize,
}

impl Trajectory {
    /// Of the rows one after the other.
    ///
    /// # Panics
    /// Where the last row is incomplete.
    pub fn new(values: Vec<f64>, width: usize) -> Self {
        let rest = values.len().checked_rem(width).unwrap_or(values.len());
        assert_eq!(rest, 0, "{} values in rows of {width}", values.len());
        Self { values, width }
    }

    /// The same value everywhere.
    pub fn filled(value: f64, rows: usize, width: usize) -> Self {
        Self::new(vec![value; rows * width], width)
    }

    /// Rows of some width, none yet.
    pub fn with_capacity(rows: usize, width: usize) -> Self {
        Self::new(Vec::with_capacity(rows * width), width)
    }

    /// Adds a row at the end.
    ///
    /// # Panics
    /// Where it has another width.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.width, "the width of a row");
        self.values.extend_from_slice(row);
    }

    /// How many rows there are; none of rows without width.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The row of sample `k`.
    pub fn row(&self, k: usize) -> &[f64] {
        &self.values[k * self.width..(k + 1) * self.width]
    }

    /// The row of sample `k`, to write.
    pub fn row_mut(&mut self, k: usize) -> &mut [f64] {
        &mut self.values[k * self.width..(k + 1) * self.width]
    }

    /// The last row.
    pub fn last(&self) -> Option<&[f64]> {
        self.rows().next_back()
    }

    /// All rows in order.
    pub fn rows(&self) -> ChunksExact<'_, f64> {
        self.values.chunks_exact(self.width.max(1))
    }

    /// Column `i`, from the first sample to the last.
    pub fn column(&self, i: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        self.values
            .iter()
            .skip(i)
            .step_by(self.width.max(1))
            .copied()
    }

    /// The rows of sample `k` and all after it.
    pub fn starting_at(&self, k: usize) -> Self {
        Self::new(self.values[k * self.width..].to_vec(), self.width)
    }

    /// The rows of some samples.
    pub fn slice(&self, samples: Range<usize>) -> Self {
        let values = &self.values[samples.start * self.width..samples.end * self.width];
        Self::new(values.to_vec(), self.width)
    }

    /// The first `width` columns.
    pub fn narrowed(&self, width: usize) -> Self {
        let rows = self.rows().flat_map(|row| &row[..width]);
        Self::new(rows.copied().collect(), width)
    }

    /// Where a step of this length along `increments` leads.
    pub fn moved(&self, length: f64, increments: &Self) -> Self {
        let pairs = self.values.iter().zip(&increments.values);
        let values = pairs.map(|(x, d)| x + length * d).collect();
        Self::new(values, self.width)
    }

    /// Whether all values are finite numbers.
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|x| x.is_finite())
    }

    /// The first value that is no finite number.
    pub fn first_lost(&self) -> Option<Entry> {
        let at = self.values.iter().position(|x| !x.is_finite())?;
        Some(Entry {
            row: at / self.width,
            column: at % self.width,
        })
    }

    /// The rows one after the other.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// The rows one after the other, to write.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// The rows one after the other, without a copy.
    pub fn into_vec(self) -> Vec<f64> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Trajectory};

    #[test]
    fn rows_of_no_width_are_none() {
        let none = Trajectory::new(vec![], 0);
        assert_eq!((none.len(), none.rows().count(), none.last()), (0, 0, None));
    }

    #[test]
    #[should_panic(expected = "3 values in rows of 2")]
    fn an_incomplete_row_is_refused() {
        Trajectory::new(vec![0.0; 3], 2);
    }

    #[test]
    fn what_is_lost_has_a_place() {
        let values = Trajectory::new(vec![0.0, 1.0, 2.0, f64::NAN], 2);
        assert_eq!(values.first_lost(), Some(Entry { row: 1, column: 1 }));
        assert_eq!(values.narrowed(1).as_slice(), [0.0, 2.0]);
        assert_eq!(values.last().unwrap()[0], 2.0);
    }
}
