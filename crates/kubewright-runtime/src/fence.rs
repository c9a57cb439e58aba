//! placeholder
/// Fence
#[derive(Clone)]
pub struct Fence;
/// Fenced
#[derive(Debug)]
pub struct Fenced;
impl Fence {
    /// open
    pub fn open() -> Self {
        Self
    }
    /// guard
    pub async fn guard<F: Future>(&self, f: F) -> Result<F::Output, Fenced> {
        Ok(f.await)
    }
}
