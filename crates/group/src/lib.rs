//! Kafka's group protocols as state machines without I/O.
//!
//! [`coordinator`] is the server side, [`member`] the client side, and [`assignor`] assigns partitions.
//! [`explain`] describes in words what groups are doing, and [`text`] makes names from peers safe to
//! print.
//!
//! Nothing here opens a socket, reads a clock or starts a task. A program that uses a
//! [`Shard`](coordinator::Shard) or a [`Member`](member::Member) calls it with requests, responses and
//! the time, and carries out what it returns. Here are both sides of a group, driven by hand:
//!
//! ```
//! use std::{collections::BTreeMap, sync::Arc};
//!
//! use kohort_group::{
//!     coordinator::{Caller, Config, Outbox, Reply, Request, Shard, Token, Topic, Topics},
//!     member::{
//!         Action, Answer, ConsumerMember, ConsumerMemberConfig, Member, MemberRequest, Subscription,
//!     },
//! };
//! use kohort_wire::{ByteString, Uuid};
//!
//! // The server side: a shard without groups, on a broker with one topic.
//! let orders = Topic {
//!     id: Uuid(7),
//!     name: "orders".into(),
//!     partition_count: 3,
//!     is_internal: false,
//!     created_at: 0,
//! };
//! let topics = Arc::new(Topics::new(1, [orders]));
//! let mut shard = Shard::new(Arc::new(Config::default()), topics, [0; 32]);
//! let mut out = Outbox::default();
//! shard.loaded(0, &mut out);
//!
//! // The client side: a member that subscribes.
//! let mut member = Member::Consumer(Box::new(ConsumerMember::new(ConsumerMemberConfig {
//!     group_id: "billing".into(),
//!     member_id: "member-1".into(),
//!     instance_id: None,
//!     rack_id: None,
//!     rebalance_timeout_ms: 60_000,
//!     server_assignor: None,
//!     session_timeout_ms: 45_000,
//! })));
//! let mut now = 1_000;
//! member.subscribe(Subscription::topics([ByteString::from("orders")]), now);
//!
//! // Their shells: carry requests and responses, and do what the member asks for.
//! let names = BTreeMap::from([(Uuid(7), ByteString::from("orders"))]);
//! let mut assigned = 0;
//! while assigned < 3 {
//!     match member.next_action() {
//!         Some(Action::Send { id, request: MemberRequest::ConsumerHeartbeat(request) }) => {
//!             let request = Request::ConsumerGroupHeartbeat { version: 1, request };
//!             shard.request(Token(1), &Caller::default(), request, now, &mut out);
//!             // A real shell appends `out.records` to the log and flushes it first.
//!             out.records.clear();
//!             for (_, reply) in out.replies.drain(..) {
//!                 if let Reply::ConsumerGroupHeartbeat(response) = reply {
//!                     member.answered(id, Answer::ConsumerHeartbeat(response), now);
//!                 }
//!             }
//!         }
//!         Some(Action::ResolveTopics(_)) => member.topics(&names, now),
//!         Some(Action::Assign { id, all, .. }) => {
//!             assigned = all.len();
//!             member.done(id, now);
//!         }
//!         Some(action) => panic!("{action:?}"),
//!         None => {
//!             // Nothing to do before the next heartbeat. The coordinator has alarms, too.
//!             now = member.next_wake().expect("a subscribed member heartbeats");
//!             if shard.next_alarm().is_some_and(|alarm| alarm <= now) {
//!                 shard.on_alarm(now, &mut out);
//!             }
//!             member.wake(now);
//!         }
//!     }
//! }
//! ```

pub mod assignor;
pub mod coordinator;
pub mod explain;
pub mod member;
pub mod text;
mod topic_ids;
mod topic_partitions;

pub use topic_ids::TopicIds;
pub use topic_partitions::{Run, TopicPartitions};
