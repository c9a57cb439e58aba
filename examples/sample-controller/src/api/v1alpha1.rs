//! Version v1alpha1 of samplecontroller.example.com.

mod bar;

pub use bar::*;
