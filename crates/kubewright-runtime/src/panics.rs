//! Contains panics of the operator's functions: reconcilers, predicates, map functions, webhooks.
//!
//! A contained panic is one line in the log, written where it is handled, with the fields `panic` (the message), `at`
//! (file and line) and `times` (how many panics at this place were contained). [`install`] provides the place and keeps
//! the standard library from printing contained panics, unless `RUST_BACKTRACE` asks for a backtrace. Other panics are
//! printed as usual.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, Once, PoisonError};
use std::task::Poll;

thread_local! {
    /// Whether a panic of this thread is contained.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// The place of the last contained panic of this thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Contained panics by place. A program has few places that panic.
static TIMES: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// A contained panic. Its `Display` is the message with the place.
#[derive(Debug)]
pub(crate) struct Panic {
    pub(crate) message: String,
    /// File and line; `None` without [`install`].
    pub(crate) at: Option<String>,
    /// How many panics at this place were contained; `None` without a place.
    pub(crate) times: Option<u64>,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.at {
            Some(at) => write!(f, " at {at}"),
            None => Ok(()),
        }
    }
}

impl Panic {
    fn new(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let at = PLACE.take();
        let times = at.as_ref().map(|at| {
            let mut all = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
            let times = all.entry(at.clone()).or_default();
            *times += 1;
            *times
        });
        Self { message: text.unwrap_or_else(|| "no message".to_owned()), at, times }
    }
}

/// Installs the panic hook of operators. It calls the previous hook for panics that are not contained.
pub fn install() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                return previous(panic);
            }
            PLACE.set(panic.location().map(|it| format!("{}:{}", it.file(), it.line())));
            if Backtrace::capture().status() == BacktraceStatus::Captured {
                previous(panic);
            }
        }));
    });
}

/// Calls a function and contains its panic.
pub(crate) fn contain<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    PLACE.take();
    let outer = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CONTAINED.set(outer);
    result.map_err(|payload| Panic::new(&*payload))
}

/// Runs a future and contains its panic.
pub(crate) async fn contain_future<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    poll_fn(|cx| match contain(|| future.as_mut().poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(message: &str) {
        panic!("{message}");
    }

    #[test]
    fn a_panic_has_its_place_and_is_counted() {
        install();
        let line = || contain(|| fail("out of cheese")).unwrap_err();
        let first = line();
        let at = first.at.clone().unwrap();
        assert!(at.starts_with(&format!("{}:", file!())), "{at}");
        assert_eq!((first.message.as_str(), first.times), ("out of cheese", Some(1)));
        assert_eq!(first.to_string(), format!("out of cheese at {at}"));
        // A different message at the same place.
        let second = contain(|| fail("still")).unwrap_err();
        assert_eq!((second.at, second.times), (Some(at), Some(2)));
        assert_eq!(contain(|| panic!("elsewhere")).map(|(): ()| ()).unwrap_err().times, Some(1));
        assert!(!CONTAINED.get());
    }

    #[tokio::test]
    async fn a_future_is_contained_only_while_it_is_polled() {
        install();
        let (send, receive) = tokio::sync::oneshot::channel::<()>();
        let mut contained = pin!(contain_future(async {
            receive.await.unwrap();
            assert!(CONTAINED.get());
            panic!("late");
        }));
        tokio::select! {
            biased;
            result = &mut contained => panic!("{result:?}"),
            () = std::future::ready(()) => assert!(!CONTAINED.get()),
        }
        send.send(()).unwrap();
        let result: Result<(), Panic> = contained.await;
        let panic = result.unwrap_err();
        assert_eq!(panic.message, "late");
        assert!(panic.at.is_some() && !CONTAINED.get());
    }

    #[test]
    fn a_panic_without_a_place_is_not_counted() {
        // The hook is not called.
        let panic = contain(|| std::panic::resume_unwind(Box::new(7))).map(|(): ()| ()).unwrap_err();
        assert_eq!((panic.message.as_str(), panic.at, panic.times), ("no message", None, None));
    }
}
