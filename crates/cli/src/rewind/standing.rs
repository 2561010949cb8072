//! How a group stands before it is rewound: whether that is possible, and what it would do.

use kohort::{
    Admin, TopicPartition,
    admin::{GroupFilter, RewindStep},
};

use crate::{failure::Failure, history::view, output::counted};

/// How many characters may differ between a misspelled name and the intended one.
const TYPOS_MAX: usize = 2;

/// How a group stands before it is rewound.
#[derive(Debug)]
pub(super) struct Standing {
    exists: bool,
    /// How many members the group has.
    pub(super) members: usize,
    /// Whether the cluster rewinds groups while their members run.
    rewinds_live: bool,
    /// Groups with a similar name.
    similar: Option<String>,
}

impl Standing {
    pub(super) async fn of(
        admin: &Admin,
        group: &str,
        steps: &[RewindStep],
    ) -> Result<Standing, Failure> {
        let view = view(admin, group).await?.filter(|it| it.state != "Dead");
        let members = view.as_ref().map_or(0, |view| view.members.len());
        let partitions: Vec<TopicPartition> =
            steps.iter().map(|step| step.partition.clone()).collect();
        let rewinds_live = match members {
            0 => false,
            _ => admin.rewinds_live_groups(group, &partitions).await?,
        };
        let similar = match view {
            Some(_) => None,
            None => similar(admin, group).await,
        };
        Ok(Standing {
            exists: view.is_some(),
            members,
            rewinds_live,
            similar,
        })
    }

    /// An error if executing would fail, or create a group by accident.
    pub(super) fn may_execute(&self, group: &str, create: bool) -> Result<(), Failure> {
        if !self.exists && !create {
            return Err(Failure::new(format!(
                "group {group} does not exist{}: pass --create to create it with these offsets",
                self.did_you_mean()
            )));
        }
        if self.members > 0 && !self.rewinds_live {
            return Err(Failure::new(format!(
                "{}: stop them first",
                self.cannot(group)
            )));
        }
        Ok(())
    }

    /// For a dry run: what `--execute` would do.
    pub(super) fn what_execute_does(&self, group: &str) -> String {
        if !self.exists {
            return format!(
                "Group {group} does not exist{}: pass --execute --create to create it with these \
                 offsets",
                self.did_you_mean()
            );
        }
        match self.members {
            0 => "Pass --execute to apply".to_owned(),
            count if self.rewinds_live => format!(
                "Pass --execute to apply: the owners among {} release these partitions, and the next \
                 owners start at the new offsets",
                counted(count, "member")
            ),
            _ => format!(
                "{}: stop them, then pass --execute to apply",
                self.cannot(group)
            ),
        }
    }

    fn cannot(&self, group: &str) -> String {
        format!(
            "This cluster cannot rewind a group while its members run (only kohort serve can), and \
             group {group} has {}",
            counted(self.members, "member")
        )
    }

    fn did_you_mean(&self) -> String {
        let similar = self.similar.as_ref();
        similar.map_or(String::new(), |name| format!(" (did you mean {name}?)"))
    }
}

/// The group whose name is most like this one. That there is none to be found is no error.
async fn similar(admin: &Admin, group: &str) -> Option<String> {
    let groups = admin.list_groups(&GroupFilter::default()).await.ok()?;
    let names = groups.iter().map(|listed| &*listed.group_id);
    most_similar(group, names).map(str::to_owned)
}

fn most_similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typos = |other: &str| strsim::osa_distance(name, other);
    let close = known.filter(|other| typos(other) <= TYPOS_MAX.min(name.chars().count() / 3));
    close.min_by_key(|other| typos(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_group_is_suggested() {
        let known = || ["billing", "shipping", "a"].into_iter();
        for (name, expected) in [
            ("biling", Some("billing")),
            ("billnig", Some("billing")),
            ("Billing", Some("billing")),
            ("orders", None),
            ("b", None),
        ] {
            assert_eq!(most_similar(name, known()), expected, "{name}");
        }
    }
}
