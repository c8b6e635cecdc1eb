//! Numbers: integers of i64 ∪ u64 digit by digit, all others as ECMAScript writes a double.

use std::fmt::Display;

use super::fault::Fault;

/// Appends an integer's digits.
pub(super) fn push_integer(out: &mut String, integer: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(integer));
}

/// Appends an integer of up to 128 bits, if 64 hold it.
pub(super) fn push_wide<I>(out: &mut String, integer: I) -> Result<(), Fault>
where
    I: TryInto<u64> + TryInto<i64> + Copy + Display,
{
    if let Ok(unsigned) = TryInto::<u64>::try_into(integer) {
        push_integer(out, unsigned);
    } else if let Ok(signed) = TryInto::<i64>::try_into(integer) {
        push_integer(out, signed);
    } else {
        return Err(wide(&integer));
    }
    Ok(())
}

/// Appends a double; -0 becomes 0.
pub(super) fn push_double(out: &mut String, double: f64) -> Result<(), Fault> {
    if !double.is_finite() {
        return Err(Fault::malformed(format_args!("{double} is no JSON number")));
    }
    out.push_str(ryu_js::Buffer::new().format_finite(double));
    Ok(())
}

/// Appends a number given as JSON text, whose grammar the caller has checked.
///
/// An integer beyond 64 bits is taken only if it is exactly how a double is written (1e20 has no other text): then it
/// is that double and no digit is lost.
pub(super) fn push_literal(out: &mut String, literal: &str) -> Result<(), Fault> {
    let integer = !literal.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if integer {
        if literal == "-0" {
            out.push('0');
            return Ok(());
        }
        if literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok() {
            out.push_str(literal);
            return Ok(());
        }
    }
    let double = literal.parse::<f64>().ok().filter(|double| double.is_finite());
    let Some(double) = double else {
        return Err(Fault::malformed(format_args!(
            "{literal} is beyond the range of a double"
        )));
    };
    let start = out.len();
    push_double(out, double)?;
    if integer && out[start..] != *literal {
        return Err(wide(&literal));
    }
    Ok(())
}

#[cold]
fn wide(integer: &dyn Display) -> Fault {
    Fault::malformed(format_args!(
        "the integer {integer} is outside i64 and u64; write it as a string"
    ))
}
