//! Which parked requests a step has brought an answer, and which wait on.

use std::time::{Duration, Instant};

use kohort_wire::ErrorCode;
use kohort_wire::messages::*;

use super::{Arrived, Kind, Parked, Play};
use crate::differential::connection::{Received, decode};
use crate::differential::step::Slot;
use crate::failure::Failure;

/// How long an answer may take that nothing holds back.
const ANSWER_LIMIT: Duration = Duration::from_secs(8);
/// A group that stays so long in a rebalance, for no reason that can be seen, waits for somebody.
const PARKED_AFTER: Duration = Duration::from_millis(1500);
/// A join that is older has reached the group: nothing in the description says so.
const ARRIVED_AFTER: Duration = Duration::from_millis(30);
/// The same where a reason can be seen: somebody was given an id and has not come back with it.
const PENDING_AFTER: Duration = Duration::from_millis(250);

impl Play<'_> {
    /// Takes all answers that the last step has brought about.
    pub(super) fn wait_for_answers(&mut self) -> Result<(), Failure> {
        self.wait_while_answers_come()?;
        self.note_arrived()
    }

    pub(super) fn wait_while_answers_come(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let mut in_rebalance_since = None;
        loop {
            let pause = Duration::from_millis(if start.elapsed().as_millis() < 20 {
                1
            } else {
                5
            });
            self.collect(pause)?;
            if self.parked.is_empty() {
                return Ok(());
            }
            let Some(group) = self.describe_group(4)?.and_then(|mut all| all.groups.pop()) else {
                return Err(Failure::new("no answer to DescribeGroups"));
            };
            let outstanding: Vec<Slot> = (self.parked.iter())
                .filter(|parked| parked.kind == Kind::Join)
                .map(|parked| parked.slot)
                .collect();
            let may_wait = match &*group.group_state {
                "PreparingRebalance" => {
                    let since = *in_rebalance_since.get_or_insert_with(Instant::now);
                    let only_joins = outstanding.len() == self.parked.len();
                    only_joins
                        && self
                            .parked
                            .iter()
                            .all(|parked| parked.sent.elapsed() > ARRIVED_AFTER)
                        && (group.members.len() > outstanding.len()
                            || (!self.pending.is_empty() && since.elapsed() > PENDING_AFTER)
                            || self.waits_for.as_ref() == Some(&(outstanding.len(), group.clone()))
                            || since.elapsed() > PARKED_AFTER)
                }
                "CompletingRebalance" => {
                    in_rebalance_since = None;
                    let parked = |parked: &Parked| parked.kind == Kind::Sync { leads: false };
                    self.parked.iter().all(parked)
                }
                _ => {
                    in_rebalance_since = None;
                    false
                }
            };
            if may_wait {
                self.waits_for = Some((outstanding.len(), group));
                // What the description has overtaken.
                return self.collect(Duration::from_millis(1));
            }
            if start.elapsed() > ANSWER_LIMIT {
                for parked in &self.parked {
                    self.lines.push(format!(
                        "member {} is not answered while the group is {}",
                        parked.slot, group.group_state
                    ));
                }
                self.stuck = true;
                return Ok(());
            }
        }
    }

    pub(super) fn collect(&mut self, pause: Duration) -> Result<(), Failure> {
        let mut arrived = Vec::new();
        for mut parked in std::mem::take(&mut self.parked) {
            match parked.connection.receive(pause)? {
                Received::NotYet => self.parked.push(parked),
                Received::Closed => arrived.push((parked, None)),
                Received::Frame(frame) => arrived.push((parked, Some(frame))),
            }
        }
        arrived.sort_by_key(|(parked, _)| parked.step);
        for (parked, frame) in arrived {
            self.arrived.push(Arrived {
                step: parked.step,
                slot: parked.slot,
                version: parked.version,
                kind: parked.kind,
                frame: frame.clone(),
            });
            if frame.is_some() {
                if parked.kind == Kind::Join && parked.id.is_empty() {
                    self.held.push(parked.connection)
                } else {
                    self.free.push(parked.connection)
                }
            }
        }
        Ok(())
    }

    /// Writes down what has arrived: once all of it has, so that everybody's name is known.
    pub(super) fn note_arrived(&mut self) -> Result<(), Failure> {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.sort_by_key(|one| one.step);
        for one in &arrived {
            if let (Some(frame), Kind::Join) = (&one.frame, one.kind) {
                let answer = decode::<JoinGroupRequest>(frame.clone(), one.version)?;
                self.names.learn_member(&answer.member_id, one.slot);
                self.joined(one.slot, &answer);
            }
        }
        for one in arrived {
            let (what, text) = match (one.kind, one.frame) {
                (Kind::Join, Some(frame)) => {
                    let answer = decode::<JoinGroupRequest>(frame, one.version)?;
                    ("join", self.names.text(answer))
                }
                (Kind::Sync { .. }, Some(frame)) => {
                    let answer = decode::<SyncGroupRequest>(frame, one.version)?;
                    ("sync", self.names.text(answer))
                }
                (_, None) => ("request", "the connection was closed".to_owned()),
            };
            let (slot, step) = (one.slot, one.step);
            self.lines
                .push(format!("{what} of member {slot} (step {step}): {text}"));
        }
        Ok(())
    }

    pub(super) fn joined(&mut self, slot: Slot, answer: &JoinGroupResponse) {
        if answer.error_code == ErrorCode::MEMBER_ID_REQUIRED {
            self.pending.push(answer.member_id.to_string());
        }
        let member = self.member(slot);
        if !answer.member_id.is_empty() {
            member.classic_id = answer.member_id.to_string();
        }
        if !answer.error_code.is_error() {
            member.generation = answer.generation_id;
            member.protocol = answer.protocol_name.clone().unwrap_or_default().to_string();
            member.leads = answer.leader == answer.member_id;
            let ids = answer.members.iter().map(|one| one.member_id.to_string());
            member.members = ids.collect();
        }
    }
}
