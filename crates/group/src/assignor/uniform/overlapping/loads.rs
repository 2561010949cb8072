//! How many partitions each member has, and who in a class has the fewest and the most.

use std::collections::BTreeMap;

/// The loads of a part's members.
pub(super) struct Loads {
    counts: Vec<u32>,
    class_of: Vec<u32>,
    /// Each class's members by load.
    classes: Vec<BTreeMap<u32, Vec<u32>>>,
    /// Where each member is in its list.
    positions: Vec<u32>,
}

impl Loads {
    pub(super) fn new(counts: Vec<u32>, class_of: &[u32], classes: usize) -> Loads {
        let mut loads = Loads {
            positions: vec![0; counts.len()],
            class_of: class_of.to_vec(),
            classes: vec![BTreeMap::new(); classes],
            counts,
        };
        for member in 0..loads.counts.len() as u32 {
            loads.insert(member);
        }
        loads
    }

    pub(super) fn of(&self, member: u32) -> u32 {
        self.counts[member as usize]
    }

    /// The load of a class's least loaded member, and the member.
    pub(super) fn least(&self, class: u32) -> (u32, u32) {
        let (load, members) = self.classes[class as usize]
            .first_key_value()
            .expect("a class has members");
        (*load, members[members.len() - 1])
    }

    /// The load of a class's most loaded member, and the member.
    pub(super) fn most(&self, class: u32) -> (u32, u32) {
        let (load, members) = self.classes[class as usize]
            .last_key_value()
            .expect("a class has members");
        (*load, members[members.len() - 1])
    }

    pub(super) fn increase(&mut self, member: u32) {
        self.remove(member);
        self.counts[member as usize] += 1;
        self.insert(member);
    }

    pub(super) fn decrease(&mut self, member: u32) {
        self.remove(member);
        self.counts[member as usize] -= 1;
        self.insert(member);
    }

    fn insert(&mut self, member: u32) {
        let members = self.classes[self.class_of[member as usize] as usize]
            .entry(self.counts[member as usize])
            .or_default();
        self.positions[member as usize] = members.len() as u32;
        members.push(member);
    }

    fn remove(&mut self, member: u32) {
        let load = self.counts[member as usize];
        let class = &mut self.classes[self.class_of[member as usize] as usize];
        let members = class.get_mut(&load).expect("the member has this load");
        let position = self.positions[member as usize];
        members.swap_remove(position as usize);
        match members.get(position as usize) {
            Some(&moved) => self.positions[moved as usize] = position,
            None if members.is_empty() => {
                class.remove(&load);
            }
            None => {}
        }
    }
}
