//! Definitions as text, and what is made of them.
