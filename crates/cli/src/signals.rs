//! Signals that end the program in good order.

use crate::failure::Failure;

/// SIGINT and SIGTERM. With a listener SIGXFSZ does not end the program either: a file that reaches
/// the limit of `ulimit -f` is then a write that fails, as on a full disk.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    _file_size: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            _file_size: listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for a signal to interrupt or end the program.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    /// Waits for a signal to interrupt or end the program.
    pub(crate) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Runs what goes on until somebody interrupts it, which is then its good end. Whatever else is
/// interrupted fails, as the system has it.
pub(crate) async fn until_interrupted(
    is_endless: bool,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    if !is_endless {
        return work.await;
    }
    let mut signals = Signals::new()?;
    tokio::select! {
        done = work => done,
        () = signals.next() => Ok(()),
    }
}
