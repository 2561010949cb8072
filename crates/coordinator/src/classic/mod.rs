//! Classic groups: members join, one of them assigns, all sync.
//!
//! ```text
//!            join                    all joined, or time is up
//!   Empty ─────────▶ PreparingRebalance ─────────▶ CompletingRebalance
//!     ▲                 ▲    │                        │      │ the leader syncs
//!     │   nobody joined │    │                        ▼      ▼
//!     └─────────────────┼────┘◀───────────────────── ─┴─ Stable
//!                       └── a member joins, leaves, fails, or changes
//! ```
//!
//! What outlives the coordinator is one record: the last generation and what each member was
//! assigned. [`ClassicGroup::apply`] is the only place that takes it up.

mod describe;
mod group;
mod heartbeat;
mod join;
mod leave;
mod limits;
mod member;
mod pending;
mod rebalance;
mod step;
mod sync;
mod waiting;

pub(crate) use group::{ClassicGroup, ClassicState};
pub(crate) use leave::{leave_response, leaves, left};
pub(crate) use member::{ClassicMember, MemberProtocol, rebalance_timeout_ms};
pub(crate) use pending::HandedOut;
pub(crate) use step::{ClassicStep, join_refused, sync_refused};

/// The protocol type of consumers: the only one whose metadata the coordinator understands.
pub(crate) const CONSUMER_PROTOCOL_TYPE: &str = "consumer";
