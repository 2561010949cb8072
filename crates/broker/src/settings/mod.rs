//! Settings: what there is to set, what a value has to be, and what is set.

mod broker;
mod coordinator;
mod definition;
mod group;
mod live;
mod shown;
mod topic;
mod without_effect;
mod words;

pub(crate) use broker::BROKER;
pub(crate) use coordinator::coordinator_config;
pub(crate) use definition::{BadValue, Change, Definition, Kind, Table, Values, View, list};
pub(crate) use group::{GROUP, check as check_group};
pub(crate) use live::{Fixed, Live};
pub(crate) use shown::{
    Levels, Shown, broker_settings, cluster_settings, group_settings, topic_settings,
};
pub(crate) use topic::{TOPIC, check_offsets_topic, effective as effective_topic};
pub(crate) use words::{Cleanup, StoredCompression, Timestamps};
