//! The open connections, and which new ones are accepted.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::settings::Live;

/// All connections.
#[derive(Debug, Clone)]
pub(crate) struct Guests {
    present: Arc<Mutex<Present>>,
    /// How many there may be, whatever the settings say.
    places: usize,
}

#[derive(Debug, Default)]
struct Present {
    next_id: u64,
    count: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Those that have not asked for anything yet, the oldest first.
    silent: BTreeMap<u64, CancellationToken>,
}

/// A connection that has been let in; until it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    id: u64,
    address: IpAddr,
    present: Arc<Mutex<Present>>,
    /// Tells the connection to go.
    pub(super) dismissal: CancellationToken,
}

/// How many of the files that the process may have open are left to connections: the rest is for
/// logs, which must not fail because of who connects.
#[cfg(unix)]
fn places() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let files = files.and_then(|files| usize::try_from(files).ok());
    files.map_or(usize::MAX, |files| (files / 4 * 3).max(1))
}

#[cfg(not(unix))]
fn places() -> usize {
    usize::MAX
}

impl Guests {
    pub(crate) fn new() -> Guests {
        Guests {
            present: Arc::default(),
            places: places(),
        }
    }

    /// Lets a connection in, or says why not.
    ///
    /// When there are too many already, the oldest that has never asked for anything has to go: who
    /// only opens connections keeps nobody out who has something to say.
    pub(super) fn admit(&self, address: IpAddr, live: &Live) -> Result<Guest, String> {
        let mut present = self.present.lock();
        let own = present.by_address.get(&address).copied().unwrap_or(0);
        if own >= live.connections_per_ip_max {
            return Err(format!(
                "{address} has {own} connections already (max.connections.per.ip)"
            ));
        }
        // Those that have been told to go are still counted until they have gone, but each makes
        // room for one.
        if present.count >= live.connections_max.min(self.places) {
            match present.silent.pop_first() {
                Some((_, dismissal)) => dismissal.cancel(),
                None => {
                    let count = present.count;
                    return Err(format!(
                        "there are {count} connections already (max.connections, or the files that the process may open)"
                    ));
                }
            }
        }
        present.count += 1;
        *present.by_address.entry(address).or_default() += 1;
        present.next_id += 1;
        let id = present.next_id;
        let dismissal = CancellationToken::new();
        present.silent.insert(id, dismissal.clone());
        Ok(Guest {
            id,
            address,
            present: Arc::clone(&self.present),
            dismissal,
        })
    }
}

impl Guest {
    /// Notes that the connection has asked for something.
    pub(super) fn has_spoken(&self) {
        self.present.lock().silent.remove(&self.id);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut present = self.present.lock();
        present.count -= 1;
        present.silent.remove(&self.id);
        if let Some(own) = present.by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                present.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;

    fn live(all: &str, per_ip: &str) -> Live {
        Live::new(&Values::from([
            ("max.connections".to_owned(), all.to_owned()),
            ("max.connections.per.ip".to_owned(), per_ip.to_owned()),
        ]))
    }

    #[test]
    fn the_oldest_silent_one_makes_room_and_those_who_speak_stay() {
        let guests = Guests::new();
        let address = IpAddr::from([127, 0, 0, 1]);
        let live = live("2", "9");
        let first = guests.admit(address, &live).unwrap();
        let second = guests.admit(address, &live).unwrap();
        first.has_spoken();
        let third = guests.admit(address, &live).unwrap();
        assert!(second.dismissal.is_cancelled());
        drop(second);
        third.has_spoken();
        assert!(
            guests
                .admit(address, &live)
                .unwrap_err()
                .contains("max.connections")
        );
        assert!(!first.dismissal.is_cancelled() && !third.dismissal.is_cancelled());
        drop(third);
        assert!(guests.admit(address, &live).is_ok());
    }

    #[test]
    fn one_address_has_its_own_limit() {
        let guests = Guests::new();
        let live = live("9", "1");
        let _first = guests.admit(IpAddr::from([10, 0, 0, 1]), &live).unwrap();
        assert!(guests.admit(IpAddr::from([10, 0, 0, 1]), &live).is_err());
        assert!(guests.admit(IpAddr::from([10, 0, 0, 2]), &live).is_ok());
    }
}
