//! What members of the classic protocol do.

use super::{LONG_MS, SLOTS, Writer};
use crate::differential::step::*;

impl Writer {
    pub(super) fn classic(&mut self) {
        let slot = self.rng.u8(..SLOTS);
        let joined = self.slots[slot as usize].classic;
        match self.rng.u8(..100) {
            0..=29 if !joined => self.join_anew(slot),
            0..=44 => self.round(),
            45..=54 => {
                let who = self.classic_who(slot);
                let version = self.rng.i16(0..=4);
                self.steps.push(Step::Heartbeat { version, who });
            }
            55..=61 => self.sync(slot),
            62..=66 => self.rejoin(slot),
            67..=76 => self.leave(slot),
            77..=86 => {
                let who = Committer::Classic(self.classic_who(slot));
                self.commit(who);
            }
            87..=91 => {
                let who = Committer::Classic(self.classic_who(slot));
                self.fetch(who);
            }
            _ => self.nobody(),
        }
    }

    /// Who a request says it comes from: mostly who it does come from.
    pub(super) fn classic_who(&mut self, slot: Slot) -> Who {
        let instance = self.slots[slot as usize].instance.clone();
        let mut who = Who {
            slot,
            id: Id::Own,
            epoch: Epoch::Own(0),
            instance,
        };
        if self.chance(25) {
            match self.rng.u8(..6) {
                0 => who.epoch = Epoch::Own(-1),
                1 => who.epoch = Epoch::Own(1),
                2 => who.id = self.pick(&[Id::Empty, Id::Unknown]),
                3 => who.id = Id::Of(self.rng.u8(..SLOTS)),
                4 => who.instance = self.some_instance(),
                _ => who.epoch = Epoch::Exactly(-1),
            }
        }
        who
    }

    pub(super) fn some_instance(&mut self) -> Option<String> {
        self.pick(&[
            Some("instance-0"),
            Some("instance-1"),
            Some("stranger"),
            None,
        ])
        .map(str::to_owned)
    }

    pub(super) fn protocols(&mut self) -> Vec<Protocol> {
        let topics = self.some_topics();
        let names: &[&str] = match self.rng.u8(..10) {
            0..=6 => &["range"],
            7..=8 => &["range", "roundrobin"],
            _ => &["roundrobin"],
        };
        let named = names
            .iter()
            .map(|name| ((*name).to_owned(), topics.clone()));
        named.collect()
    }

    pub(super) fn join_anew(&mut self, slot: Slot) {
        let version = self.pick(&[0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 9]);
        let instance = if version >= 5 && self.chance(30) {
            Some(format!("instance-{}", slot % 2))
        } else {
            None
        };
        let protocols = self.protocols();
        let own = &mut self.slots[slot as usize];
        own.instance.clone_from(&instance);
        own.classic = true;
        own.join = Some((protocols.clone(), version));
        let dynamic = instance.is_none();
        self.join(slot, Id::Empty, instance, protocols, version);
        if version >= 4 && dynamic && self.chance(95) {
            self.rejoin(slot);
        }
        if self.chance(50) {
            self.round();
        }
    }

    pub(super) fn join(
        &mut self,
        slot: Slot,
        id: Id,
        instance: Option<String>,
        protocols: Vec<Protocol>,
        version: i16,
    ) {
        let protocol_type = if self.opaque { "connect" } else { "consumer" };
        let protocol_type = if self.chance(2) {
            "other"
        } else {
            protocol_type
        };
        let session_timeout_ms = if self.chance(1) { 1 } else { LONG_MS };
        self.steps.push(Step::Join(Join {
            version,
            who: Who {
                slot,
                id,
                epoch: Epoch::Own(0),
                instance,
            },
            protocol_type: protocol_type.to_owned(),
            protocols,
            session_timeout_ms,
        }));
    }

    /// A join of a slot that has joined before.
    pub(super) fn rejoin(&mut self, slot: Slot) {
        let own = self.slots[slot as usize].clone();
        let Some((mut protocols, version)) = own.join else {
            return self.join_anew(slot);
        };
        if self.chance(15) {
            protocols = self.protocols();
        }
        let id = match self.rng.u8(..20) {
            0 => Id::Unknown,
            1 => Id::Empty,
            2 => Id::Of(self.rng.u8(..SLOTS)),
            _ => Id::Own,
        };
        self.join(slot, id, own.instance, protocols, version);
    }

    pub(super) fn sync(&mut self, slot: Slot) {
        let who = self.classic_who(slot);
        let wrong = self.chance(8);
        let version = self.rng.i16(0..=5);
        let protocol = wrong.then(|| {
            let protocol_type = self.pick(&["consumer", "connect"]);
            let name = self.pick(&["range", "roundrobin", "none"]);
            (protocol_type.to_owned(), name.to_owned())
        });
        self.steps.push(Step::Sync(Sync {
            version,
            who,
            protocol,
        }));
    }

    /// Everybody joins again, then everybody asks for an assignment.
    pub(super) fn round(&mut self) {
        let joined: Vec<Slot> = (0..SLOTS)
            .filter(|slot| self.slots[*slot as usize].classic)
            .collect();
        for &slot in &joined {
            let own = self.slots[slot as usize].clone();
            if let Some((protocols, version)) = own.join {
                self.join(slot, Id::Own, own.instance, protocols, version);
            }
        }
        if self.chance(92) {
            for slot in joined {
                let version = self.rng.i16(0..=5);
                let instance = self.slots[slot as usize].instance.clone();
                self.steps.push(Step::Sync(Sync {
                    version,
                    who: Who {
                        slot,
                        id: Id::Own,
                        epoch: Epoch::Own(0),
                        instance,
                    },
                    protocol: None,
                }));
            }
        }
    }

    pub(super) fn leave(&mut self, slot: Slot) {
        let mut who = vec![self.classic_who(slot)];
        if self.chance(30) {
            let other = self.rng.u8(..SLOTS);
            who.push(self.classic_who(other));
        }
        if self.chance(20)
            && let Some(instance) = self.slots[slot as usize].instance.clone()
        {
            // As an administrator removes a static member.
            who[0].id = Id::Empty;
            who[0].instance = Some(instance);
        }
        for one in &who {
            if one.id == Id::Own {
                self.slots[one.slot as usize].classic = false;
            }
        }
        let version = self.rng.i16(0..=5);
        self.steps.push(Step::Leave { version, who });
    }
}
