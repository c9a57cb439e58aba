//! The pure rules of Kubernetes objects.
//!
//! Nothing here does I/O, reads a clock or draws a random number, and nothing here knows tokio: the same
//! input gives the same answer. The API server, the manifest generator and the runtime call these rules;
//! they never write their own.
