//! Events as far as they can be seen from outside, by describing the group again and again.

use std::collections::{BTreeMap, BTreeSet};

use super::{MemberView, View};
use crate::{
    Id, Millis,
    history::{Cause, Causes, Event, Few, Needs, Phase, What, Who},
};

/// Makes events of what changes between two looks at a group.
///
/// Reasons cannot be seen, nor what comes and goes between two looks.
#[derive(Debug)]
pub struct Observer {
    group_id: Id,
    last: Option<View>,
    began_at: Option<Millis>,
    phase_since: Millis,
    /// For whom the group was last seen to wait.
    waits_for: Vec<(Who, Needs)>,
}

impl Observer {
    /// Nothing was observed yet.
    pub fn new(group_id: &str) -> Observer {
        Observer {
            group_id: group_id.into(),
            last: None,
            began_at: None,
            phase_since: 0,
            waits_for: Vec::new(),
        }
    }

    /// Takes how the group stands; `None`: it does not exist. Gives what has happened since the last
    /// look; of the first, what a rebalance that goes on waits for.
    pub fn look(&mut self, view: Option<View>, now: Millis) -> Vec<Event> {
        let mut seen = Vec::new();
        match (&self.last, &view) {
            (None, None) => {}
            (None, Some(view)) => self.first_look(view, now, &mut seen),
            (Some(_), None) => {
                self.began_at = None;
                seen.push("the group does not exist any more".into());
            }
            (Some(last), Some(view)) => {
                let causes = changes(last, view);
                let last = last.clone();
                self.changed(&last, view, causes, now, &mut seen);
            }
        }
        if let Some(view) = &view {
            self.waiting(view, now, &mut seen);
        }
        self.last = view;
        let event = |what| Event {
            at: now,
            group_id: self.group_id.clone(),
            what,
        };
        seen.into_iter().map(event).collect()
    }

    fn first_look(&mut self, view: &View, now: Millis, seen: &mut Vec<What>) {
        let members = match view.members.len() {
            1 => "1 member".to_owned(),
            count => format!("{count} members"),
        };
        let text = format!("{} with {members} at the first look", view.state);
        seen.push(text.into());
        if !view.is_stable() && !view.is_empty() {
            self.began_at = Some(now);
            self.phase_since = now;
        }
    }

    fn changed(
        &mut self,
        last: &View,
        view: &View,
        causes: Causes,
        now: Millis,
        seen: &mut Vec<What>,
    ) {
        let epoch = view.epoch.unwrap_or_default();
        let is_new_epoch = view.epoch != last.epoch;
        let is_settled = view.is_stable() || view.is_empty();
        let was_settled = last.is_stable() || last.is_empty();
        // Between two looks a group may have come to the end of a rebalance already.
        let rebalances = !view.is_empty()
            && (is_new_epoch || (was_settled && !is_settled) || (is_settled && !causes.is_empty()));
        if rebalances && (self.began_at.is_none() || is_new_epoch) {
            self.began_at.get_or_insert(now);
            self.phase_since = now;
            let unknown = || Causes::from("for a reason that cannot be seen from outside");
            seen.push(What::RebalanceBegan {
                epoch,
                causes: if causes.is_empty() { unknown() } else { causes },
                deadline_at: None,
            });
        } else {
            seen.extend(causes.first.into_iter().map(What::from));
        }
        if view.state != last.state && !is_settled {
            self.phase_since = now;
            seen.push(format!("now {}", view.state).into());
        }
        if view.is_empty() && !last.is_empty() {
            self.began_at = None;
            seen.push(What::Emptied { epoch });
        } else if view.is_stable()
            && let Some(began_at) = self.began_at.take()
        {
            seen.push(What::Stable {
                epoch,
                total_ms: now - began_at,
                took_ms: now - self.phase_since,
                last: None,
            });
        }
    }

    fn waiting(&mut self, view: &View, now: Millis, seen: &mut Vec<What>) {
        let waited = match &*view.state {
            "Reconciling" => view.waited(&BTreeSet::new()),
            _ => Vec::new(),
        };
        let who: Vec<_> = waited
            .iter()
            .map(|waited| (waited.member.clone(), waited.needs))
            .collect();
        // What members do with their next heartbeat is not worth a word.
        let is_slow = now - self.phase_since >= 1_000;
        if !is_slow || who == self.waits_for {
            return;
        }
        self.waits_for = who;
        if !waited.is_empty() {
            seen.push(What::Waiting {
                epoch: view.epoch.unwrap_or_default(),
                phase: Phase::Reconcile,
                since: self.phase_since,
                deadline_at: None,
                members: waited.into_iter().collect(),
            });
        }
    }
}

/// Members that joined and left, and what else has changed.
fn changes(last: &View, view: &View) -> Causes {
    let by_id = |view: &View| -> BTreeMap<Id, MemberView> {
        let members = view.members.iter();
        members
            .map(|member| (member.who.id.clone(), member.clone()))
            .collect()
    };
    let (before, now) = (by_id(last), by_id(view));
    let mut causes = Causes::default();
    let holder = |who: &Who| {
        let instance_id = who.instance_id.as_ref()?;
        let mut members = before.values();
        members.find(|member| member.who.instance_id.as_ref() == Some(instance_id))
    };
    let mut replaced = Vec::new();
    for (id, member) in &now {
        match before.get(id) {
            Some(known) => causes.extend(subscription_change(known, member)),
            None => causes.extend([match holder(&member.who) {
                Some(old) => {
                    replaced.push(old.who.id.clone());
                    Cause::MemberReturned {
                        member: member.who.clone(),
                        old_member_id: old.who.id.clone(),
                        reason: None,
                    }
                }
                None => Cause::MemberJoined {
                    member: member.who.clone(),
                    reason: None,
                },
            }]),
        }
    }
    for (id, member) in &before {
        if !now.contains_key(id) && !replaced.contains(id) {
            causes.extend([Cause::from(format!(
                "member {} is gone: it left or was removed",
                member.who
            ))]);
        }
    }
    if last.protocol != view.protocol {
        causes.extend([Cause::from(format!(
            "the group became a {} group",
            view.protocol
        ))]);
    }
    causes
}

fn subscription_change(known: &MemberView, member: &MemberView) -> Option<Cause> {
    // While a classic group rebalances nothing can be seen of its subscriptions.
    let is_seen = |member: &MemberView| !member.topics.is_empty() || member.regex.is_some();
    let differs = (&known.topics, &known.regex) != (&member.topics, &member.regex);
    (differs && is_seen(known) && is_seen(member)).then(|| Cause::SubscriptionChanged {
        member: member.who.clone(),
        topics: member.topics.iter().cloned().collect::<Few<Id>>(),
        regex: member.regex.clone(),
    })
}
