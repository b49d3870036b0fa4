//! Normal equations of many records, summed in one order wherever the records live.
//!
//! Records are summed one after another in groups, and groups as a binary tree: of any range of records
//! that one worker has, some twenty matrices go over the line, however many records there are, and what
//! is added to what depends on the number of records alone.

use crate::numerics::linalg::normal::NormalEquations;

/// Records of a group: each has an A of its own until the group is summed.
pub(in crate::solve) const GROUP_RECORDS: usize = 8;

/// A part of the sum.
pub(in crate::solve) struct Part {
    /// 0 for a record, 1 for a group, one more for two of those below.
    level: usize,
    /// Which of its level it is.
    index: usize,
    pub equations: NormalEquations,
}

/// The parts of a sum that wait for others, from the first record on.
pub(in crate::solve) struct Sum {
    /// All records that there are.
    records: usize,
    waiting: Vec<Part>,
}

impl Part {
    pub fn new(level: usize, index: usize, equations: NormalEquations) -> Self {
        Self {
            level,
            index,
            equations,
        }
    }

    /// The equations of a record.
    pub fn of_record(index: usize, equations: NormalEquations) -> Self {
        Self::new(0, index, equations)
    }

    /// Where it stands in the tree.
    pub fn place(&self) -> (usize, usize) {
        (self.level, self.index)
    }
}

impl Sum {
    pub fn new(records: usize) -> Self {
        Self {
            records,
            waiting: vec![],
        }
    }

    /// Adds the part that follows the last one.
    pub fn add(&mut self, part: Part) {
        let (level, index) = part.place();
        self.waiting.push(part);
        if level == 0 && (index % GROUP_RECORDS == GROUP_RECORDS - 1 || index == self.records - 1) {
            self.close_group(index / GROUP_RECORDS);
        }
        while let [.., left, right] = self.waiting.as_slice()
            && left.level == right.level
            && left.level > 0
            && left.index % 2 == 0
            && left.index + 1 == right.index
        {
            let right = self.waiting.pop().expect("two at the least");
            let left = self.waiting.last_mut().expect("two at the least");
            left.equations.add(&right.equations);
            (left.level, left.index) = (left.level + 1, left.index / 2);
        }
    }

    /// Sums a group whose last record has come, if all of it is here.
    fn close_group(&mut self, group: usize) {
        let members = GROUP_RECORDS.min(self.records - group * GROUP_RECORDS);
        let Some(first) = self.waiting.len().checked_sub(members) else {
            return;
        };
        if self.waiting[first].place() != (0, group * GROUP_RECORDS) {
            return;
        }
        let mut records = self.waiting.drain(first..).map(|part| part.equations);
        let first_record = records.next().expect("a group has a record");
        // as a sum that begins at zero: −0 + 0 is 0
        let mut sum = first_record.zero();
        sum.add(&first_record);
        records.for_each(|equations| sum.add(&equations));
        self.waiting.push(Part::new(1, group, sum));
    }

    /// The parts of a range of records, for whoever has the others.
    pub fn parts(self) -> Vec<Part> {
        self.waiting
    }

    /// The sum of all records.
    pub fn total(self) -> Option<NormalEquations> {
        let mut parts = self.waiting.into_iter().map(|part| part.equations);
        let mut total = parts.next()?;
        parts.for_each(|equations| total.add(&equations));
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row each, of sizes that do not add up exactly.
    fn of_record(i: usize) -> NormalEquations {
        let mut equations = NormalEquations::new(2, 1);
        let row = [(i as f64).sin() * 10f64.powi(i as i32 % 7), 0.1 + i as f64];
        equations.push(0, &row, &[(i as f64).cos()]);
        equations.flush();
        equations
    }

    fn bits(equations: &NormalEquations) -> Vec<u64> {
        let all = equations.diagonal().into_iter().chain(equations.b.clone());
        all.chain([equations.entry(1, 0)])
            .map(f64::to_bits)
            .collect()
    }

    fn range(records: usize, range: std::ops::Range<usize>) -> Vec<Part> {
        let mut sum = Sum::new(records);
        range.for_each(|i| sum.add(Part::of_record(i, of_record(i))));
        sum.parts()
    }

    /// However the records are shared out, the sum has the same bits, and a range sends few parts.
    #[test]
    fn the_sum_does_not_depend_on_who_has_which_records() {
        for records in [1, 2, 7, 8, 9, 16, 17, 40, 100, 513] {
            let mut sum = Sum::new(records);
            let all = range(records, 0..records);
            assert!(all.len() <= 12, "{}", all.len());
            all.into_iter().for_each(|part| sum.add(part));
            let expected = bits(&sum.total().unwrap());
            for cuts in [vec![1], vec![5], vec![8, 16], vec![3, 4, 37], vec![64, 200]] {
                let mut sum = Sum::new(records);
                let ends = cuts.iter().copied().filter(|cut| *cut < records);
                let ends: Vec<usize> = std::iter::once(0).chain(ends).chain([records]).collect();
                for pair in ends.windows(2) {
                    let parts = range(records, pair[0]..pair[1]);
                    assert!(
                        parts.len() <= 2 * (GROUP_RECORDS - 1) + 2 * 10,
                        "{}",
                        parts.len()
                    );
                    parts.into_iter().for_each(|part| sum.add(part));
                }
                assert_eq!(bits(&sum.total().unwrap()), expected, "{records} {cuts:?}");
            }
        }
    }

    /// Of few records the sum is the plain one.
    #[test]
    fn few_records_are_summed_one_after_another() {
        let mut plain = NormalEquations::new(2, 1);
        let mut sum = Sum::new(GROUP_RECORDS);
        for i in 0..GROUP_RECORDS {
            plain.add(&of_record(i));
            sum.add(Part::of_record(i, of_record(i)));
        }
        assert_eq!(bits(&sum.total().unwrap()), bits(&plain));
    }
}
