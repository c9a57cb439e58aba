//! What bounds are given as: any number that JSON can hold.

use serde_json::Value;

/// A number of Rust's: integers and floats.
pub trait Numeric: sealed::Sealed {
    /// As JSON has it: a whole number without a fraction, whatever type it is of.
    fn to_json(self) -> Value;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numeric {
    ($($number:ty),*) => {$(
        impl sealed::Sealed for $number {}
        impl Numeric for $number {
            fn to_json(self) -> Value {
                Value::from(self)
            }
        }
    )*};
}

numeric!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);
