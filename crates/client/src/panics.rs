//! Panics of the application's own code, which is called from tasks of ours.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::FutureExt;

/// Waits for a future; an error with its words if it panics.
pub(crate) async fn unpanicked<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let unwound = AssertUnwindSafe(future).catch_unwind().await;
    unwound.map_err(|panic| format!("a panic: {}", words(&*panic)))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = panic.downcast_ref::<String>().map(|text| &**text);
    text.or(owned).unwrap_or("of unknown cause")
}
