//! What the applications of each group have processed.
//!
//! A rewind says of a partition that everything before some offset counts as processed, and nothing
//! from there on, whatever was processed before. So with each rewind the account begins anew there,
//! and what former owners go on to process belongs to the account that was closed.

use std::collections::BTreeMap;

use kohort_coordinator::inspect::Place;
use kohort_group::Id;
use kohort_wire::Uuid;

use crate::eras::Rewound;

/// What the applications of each group have processed, whoever of them it was.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: BTreeMap<(Id, Place), Account>,
    /// Up to which offset records have been removed: nobody can process them any more.
    removed: BTreeMap<Place, i64>,
    /// How many records have been processed, those more than once included.
    pub(crate) processed: u64,
}

/// What has been processed of a partition since it was last rewound.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    /// How often it has been rewound.
    pub(crate) era: u64,
    /// Where it was last rewound to, and so where its first new owner begins.
    pub(crate) begins_at: i64,
    /// Up to which offset every record has been processed, or does not have to be.
    pub(crate) done: i64,
    /// Whether something has been committed.
    pub(crate) is_committed: bool,
}

impl Ledger {
    /// Somebody who began in that era has processed the records from `from` up to, and without, `to`.
    pub(crate) fn process(&mut self, group: &Id, place: Place, era: u64, from: i64, to: i64) {
        self.processed += (to - from) as u64;
        let done = self.account(group, place).done;
        let account = self.accounts.entry((group.clone(), place)).or_default();
        if era == account.era && from <= done {
            account.done = to.max(done);
        }
    }

    /// A partition has been rewound.
    pub(crate) fn rewound(&mut self, rewound: &Rewound) {
        let key = (rewound.group.clone(), rewound.place);
        let account = self.accounts.entry(key).or_default();
        let begins_at = rewound.to.max(0);
        *account = Account {
            era: account.era + 1,
            begins_at,
            done: begins_at,
            is_committed: rewound.to >= 0,
        };
    }

    /// Something was committed.
    pub(crate) fn committed(&mut self, group: &Id, place: Place) {
        let account = self.accounts.entry((group.clone(), place)).or_default();
        account.is_committed = true;
    }

    /// What was committed is not any more, for any topic that ever had the name: who begins now
    /// begins where the client says, also after a rewind.
    pub(crate) fn uncommitted(&mut self, group: &Id, topics: &[Uuid], partition: i32) {
        for topic in topics {
            let key = (group.clone(), (*topic, partition));
            if let Some(account) = self.accounts.get_mut(&key) {
                account.is_committed = false;
                account.begins_at = 0;
            }
        }
    }

    /// The records before an offset have been removed.
    pub(crate) fn remove_before(&mut self, place: Place, offset: i64) {
        self.removed.insert(place, offset);
    }

    /// Somebody who found nothing committed begins where the client says.
    pub(crate) fn skip(&mut self, group: &Id, place: Place, era: u64, offset: i64) {
        let account = self.accounts.entry((group.clone(), place)).or_default();
        if era == account.era {
            account.done = account.done.max(offset);
        }
    }

    pub(crate) fn account(&self, group: &Id, place: Place) -> Account {
        let account = self.accounts.get(&(group.clone(), place));
        let account = account.copied().unwrap_or_default();
        let removed = self.removed.get(&place).copied().unwrap_or_default();
        Account {
            done: account.done.max(removed),
            ..account
        }
    }
}
