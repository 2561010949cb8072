//! Tasks that die with their runtime.
//!
//! A runtime that ends drops its tasks where they are. Other code may still hold the client (a
//! static, a handle on another runtime) and wait for those tasks: it must get an error instead.

/// Runs `task`, and calls `ended` if the runtime drops it before it is complete.
pub(crate) fn on_runtime_end<T>(
    task: impl Future<Output = T>,
    ended: impl FnOnce(),
) -> impl Future<Output = T> {
    // Outside of the async block: a runtime that has ended drops a task without polling it once.
    let guard = Guard(Some(ended));
    async move {
        let mut guard = guard;
        let output = task.await;
        guard.0 = None;
        output
    }
}

struct Guard<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Guard<F> {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn only_a_task_that_is_dropped_is_reported() {
        for (is_polled, completes) in [(false, false), (true, false), (true, true)] {
            let ended = AtomicBool::new(false);
            let task = async {
                if !completes {
                    std::future::pending::<()>().await;
                }
            };
            let mut task = Box::pin(on_runtime_end(task, || {
                ended.store(true, Ordering::Relaxed)
            }));
            if is_polled {
                let polled = futures_util::poll!(&mut task);
                assert_eq!(polled.is_ready(), completes);
            }
            drop(task);
            assert_eq!(ended.load(Ordering::Relaxed), !completes);
        }
    }
}
