//! A number of bytes that all connections share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of accounting, in bytes: what is smaller costs as much.
const UNIT: usize = 1024;

/// Memory that all connections share: whoever wants to hold more bytes waits until others have let
/// go of theirs.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    units: Arc<Semaphore>,
    units_max: u32,
}

/// Bytes that are held; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    permit: Option<OwnedSemaphorePermit>,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        let units_max = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Budget {
            units: Arc::new(Semaphore::new(units_max)),
            units_max: units_max as u32,
        }
    }

    fn units(&self, bytes: usize) -> u32 {
        // A single holder may need more than there is; it then waits for all there is.
        bytes.div_ceil(UNIT).min(self.units_max as usize) as u32
    }

    /// Waits until `bytes` are free, and takes them.
    pub(crate) async fn take(&self, bytes: usize) -> Reserved {
        let units = Arc::clone(&self.units);
        Reserved {
            // The semaphore is never closed.
            permit: units.acquire_many_owned(self.units(bytes)).await.ok(),
        }
    }

    /// Takes `bytes` if they are free now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Reserved> {
        let units = Arc::clone(&self.units);
        let permit = units.try_acquire_many_owned(self.units(bytes)).ok()?;
        Some(Reserved {
            permit: Some(permit),
        })
    }
}

impl Reserved {
    /// Adds what the other holds.
    pub(crate) fn merge(&mut self, other: Reserved) {
        match (&mut self.permit, other.permit) {
            (Some(own), Some(other)) => own.merge(other),
            (own, other) => *own = own.take().or(other),
        }
    }

    /// Gives back what is held beyond `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let Some(permit) = &mut self.permit else {
            return;
        };
        let surplus = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
        drop(permit.split(surplus));
    }

    /// How many bytes are held.
    pub(crate) fn bytes(&self) -> usize {
        let units = self
            .permit
            .as_ref()
            .map_or(0, |permit| permit.num_permits());
        units * UNIT
    }
}
