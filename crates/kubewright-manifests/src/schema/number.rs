//! Argument types of numeric bounds.

use serde_json::Value;

/// A Rust integer or float.
pub trait Numeric: sealed::Sealed {
    /// The JSON number. Whole floats have no fraction.
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
