//! MATLAB level 4, the oldest kind, which published data sets still come in.
//!
//! It has no signature: each variable starts with five words, the first of which has the decimal
//! digits M (byte order), O (zero), P (number type) and T (numbers, text or sparse).

use super::{Bytes, Fault, VALUES, Variable, numbers};

pub(super) fn variables(rest: &[u8]) -> Result<Vec<Variable>, Fault> {
    let big = rest.first() == Some(&0) && rest.get(..4) != Some(&[0; 4]);
    let mut file = Bytes { rest, big };
    let mut variables: Vec<Variable> = Vec::new();
    // numbers that may still be read
    let mut values = VALUES;
    while !file.rest.is_empty() {
        let variable = variable(&mut file).ok_or_else(|| {
            Fault::Damaged(match variables.last() {
                Some(last) => format!("it is damaged or cut off after variable {}", last.name),
                None => "it does not start as one".to_owned(),
            })
        })?;
        values = (values.checked_sub(variable.values.len())).ok_or(Fault::TooLarge)?;
        variables.push(variable);
    }
    Ok(variables)
}

fn variable(file: &mut Bytes) -> Option<Variable> {
    let code = file.u32()?;
    // Number type P as a type of level 5, and its size.
    let types = [(9, 8), (7, 4), (5, 4), (3, 2), (4, 2), (2, 1)];
    let &(number, size) = types.get((code / 10 % 10) as usize)?;
    if code / 100 % 10 != 0 || code / 1000 != u32::from(file.big) || code % 10 > 2 {
        return None;
    }
    let [rows, columns, imaginary, length] = [(); 4].map(|()| file.u32());
    let (rows, columns, imaginary) = (rows? as usize, columns? as usize, imaginary? != 0);
    let name = file.take(length? as usize)?;
    let name = name.split(|&b| b == 0).next()?;
    let bytes = rows.checked_mul(columns)?.checked_mul(size)?;
    let data = file.take(bytes)?;
    if imaginary {
        file.take(bytes)?;
    }
    let other = match code % 10 {
        0 if imaginary => Some("complex"),
        0 => None,
        1 => Some("text"),
        _ => Some("sparse"),
    };
    let values = match other {
        None => numbers(number, data, file.big)?,
        Some(_) => Vec::new(),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    Some(Variable {
        name,
        other,
        rows,
        values,
    })
}

#[cfg(test)]
mod tests {
    use crate::record::mat::parse;
    use crate::record::mat::tests::{close, values};
    use crate::record::table::Table;
    use crate::record::testing::dataset;

    #[test]
    fn level_4_is_read_in_both_byte_orders() {
        let words = |code: u32| [code, 2, 1, 0, 2];
        let mut little: Vec<u8> = words(0).iter().flat_map(|w| w.to_le_bytes()).collect();
        little.extend(b"x\0");
        little.extend([1.5_f64, -2.0].iter().flat_map(|v| v.to_le_bytes()));
        let mut big: Vec<u8> = words(1030).iter().flat_map(|w| w.to_be_bytes()).collect();
        big.extend(b"x\0");
        big.extend([3_i16, -4].iter().flat_map(|v| v.to_be_bytes()));
        assert_eq!(values(&parse("a", &little).unwrap(), "x"), [1.5, -2.0]);
        assert_eq!(values(&parse("a", &big).unwrap(), "x"), [3.0, -4.0]);
        little.pop();
        assert!(parse("a", &little).is_err());
    }

    #[test]
    #[ignore = "needs the data sets"]
    fn the_coupled_drives_of_level_4_equal_their_csv() {
        let mat = dataset("coupled_electric_drives/DATAUNIF.MAT");
        let mat = Table::read(mat).unwrap();
        for (u, z, level) in [("u11", "z11", "low"), ("u12", "z12", "high")] {
            for (part, range) in [("train", 0..400), ("test", 400..500)] {
                let csv = format!("coupled_electric_drives/ced_{level}_{part}.csv");
                let csv = dataset(&csv);
                let csv = Table::read(csv).unwrap();
                assert!(close(&values(&mat, u)[range.clone()], values(&csv, "u_V")));
                assert!(close(&values(&mat, z)[range], values(&csv, "y")));
            }
        }
    }
}
