//! The task that keeps a consumer in its group: it steps the member, sends its requests, and lets
//! the application take the steps that the member asks for.

mod requests;
mod steps;
mod topics;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kohort_group::assignor::classic::{ConsumerPartitionAssignor, PartitionCounts};
use kohort_member::{
    Action, Answer, ClassicConfig, ClassicMember, ConsumerMember, ConsumerMemberConfig, Member,
    MemberError, Millis, RequestId, StepId, Subscription as MemberSubscription,
};
use kohort_wire::{ApiKey, ErrorCode, Uuid};
use regex::Regex;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{ConsumerConfig, GroupProtocol, handler::Handler, shared::Shared};
use crate::{
    ByteString, Error, Result, Subject, TopicPartition,
    rpc::{Destination, random_u32},
};
use topics::Counted;

/// How long after a consumer was dropped it is tried to tell the coordinator.
const FAREWELL: Duration = Duration::from_secs(2);

/// What the application wants of the group.
pub(super) enum Command {
    Subscribe(Subscription),
    /// Leave the group, and tell when that is done.
    Leave(oneshot::Sender<()>),
}

/// What a consumer subscribes to: [`Consumer::subscription`](super::Consumer::subscription).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscription {
    /// Topics by name.
    Topics(Vec<ByteString>),
    /// The topics whose whole name matches a regular expression.
    Regex(ByteString),
}

/// What is brought along for the classic protocol.
pub(super) type Assignors = Box<dyn Fn() -> Vec<Box<dyn ConsumerPartitionAssignor>> + Send + Sync>;

/// What has happened. What concerns a member says which: there may be another one by now.
enum Event {
    Answered(u64, RequestId, Destination, Result<Answer>),
    StepDone(u64, StepId),
    /// Names of topics by id; and those that are not known yet.
    Resolved(BTreeMap<Uuid, ByteString>, Vec<Uuid>),
    Counted(Vec<ByteString>, PartitionCounts),
    /// It was looked for topics and partitions that have come since they were counted.
    CountedAgain,
    /// The topics that match the regular expression, or not known.
    Matched(Option<Vec<ByteString>>),
    /// The coordinator knows that a member has given up, or does not.
    Resigned,
}

pub(super) struct GroupTask {
    shared: Arc<Shared>,
    handler: Arc<dyn Handler>,
    assignors: Assignors,
    commands: mpsc::UnboundedReceiver<Command>,
    started: Instant,
    member: Member,
    group: Destination,
    events: FuturesUnordered<BoxFuture<'static, Event>>,
    /// What the application is still to be asked.
    steps: VecDeque<Action>,
    in_step: bool,
    leaving: Vec<oneshot::Sender<()>>,
    /// Whether it was ever let in.
    was_member: bool,
    failures: u32,
    /// How often in a row none of the topics that are assigned was found.
    resolve_failures: u32,
    wish: Option<Subscription>,
    /// The regular expression, if it is for us to resolve it; and when to do that again.
    regex: Option<(Regex, Instant)>,
    matching: bool,
    /// As the leader: how many partitions there were when they were last assigned.
    counted: Option<Counted>,
    closing: bool,
    /// The member has given up.
    failed: bool,
    /// Why a request of the member had no answer and never will, which the member knows only in
    /// its own words.
    refusal: Option<Error>,
    /// The how many-th member this is.
    life: u64,
}

impl GroupTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        handler: Arc<dyn Handler>,
        assignors: Assignors,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Result<GroupTask> {
        let group_id = shared.config.group_id.clone().unwrap_or_default();
        let member = match shared.config.group_protocol {
            GroupProtocol::Classic => classic(&shared, &assignors)?,
            GroupProtocol::Consumer | GroupProtocol::Auto => consumer(&shared),
        };
        Ok(GroupTask {
            group: Destination::Group(group_id),
            shared,
            handler,
            assignors,
            commands,
            started: Instant::now(),
            member,
            events: FuturesUnordered::new(),
            steps: VecDeque::new(),
            in_step: false,
            leaving: Vec::new(),
            was_member: false,
            failures: 0,
            resolve_failures: 0,
            wish: None,
            regex: None,
            matching: false,
            counted: None,
            closing: false,
            failed: false,
            refusal: None,
            life: 0,
        })
    }

    fn now(&self) -> Millis {
        self.started.elapsed().as_millis() as Millis
    }

    fn at(&self, time: Millis) -> Instant {
        self.started + Duration::from_millis(time.max(0) as u64)
    }

    /// Runs until the consumer is closed or dropped.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let mut metadata = shared.cluster.watch_metadata();
        let mut farewell = None;
        loop {
            self.act();
            if self.closing && (self.leaving.is_empty() || farewell.is_some_and(passed)) {
                return;
            }
            let wake = self.next_wake().min(farewell.unwrap_or_else(far_away));
            tokio::select! {
                Some(event) = self.events.next(), if !self.events.is_empty() => self.on(event),
                command = self.commands.recv(), if !self.closing => match command {
                    Some(command) => self.command(command),
                    None => self.close(&mut farewell),
                },
                () = sleep_until(wake) => self.woken(),
                () = shared.away_no_more.notified() => {
                    let now = self.now();
                    self.member.polled(now);
                }
                Ok(()) = metadata.changed() => self.metadata_changed(),
                () = shared.closed.cancelled(), if !self.closing => self.close(&mut farewell),
            }
        }
    }

    /// The application is gone: the coordinator is told if that can be done soon. It may know a
    /// member that does not know yet that it was let in.
    fn close(&mut self, farewell: &mut Option<Instant>) {
        self.closing = true;
        *farewell = Some(Instant::now() + FAREWELL);
        if self.wish.is_some() {
            let (sender, _) = oneshot::channel();
            self.command(Command::Leave(sender));
        }
    }

    fn command(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::Subscribe(wish) => {
                // Subscribing again after an error starts a new membership.
                if std::mem::take(&mut self.failed) {
                    match self.another_member() {
                        Ok(member) => {
                            self.member = member;
                            self.life += 1;
                        }
                        Err(error) => return self.broken(error),
                    }
                }
                self.wish = Some(wish);
                self.subscribe();
            }
            Command::Leave(done) => {
                self.wish = None;
                self.regex = None;
                self.leaving.push(done);
                self.member.leave(now);
            }
        }
    }

    /// A new member of the protocol that is in use.
    fn another_member(&self) -> Result<Member> {
        match self.member {
            Member::Consumer(_) => Ok(consumer(&self.shared)),
            Member::Classic(_) => classic(&self.shared, &self.assignors),
        }
    }

    fn subscribe(&mut self) {
        let now = self.now();
        self.regex = None;
        match (&self.wish, &self.member) {
            (None, _) => {}
            (Some(Subscription::Topics(topics)), _) => {
                let subscription = MemberSubscription::topics(topics.iter().cloned());
                self.member.subscribe(subscription, now);
            }
            (Some(Subscription::Regex(regex)), Member::Consumer(_)) => {
                self.member
                    .subscribe(MemberSubscription::regex(regex.clone()), now);
            }
            // In the classic protocol the members resolve it.
            (Some(Subscription::Regex(regex)), Member::Classic(_)) => match topics::whole(regex) {
                Ok(regex) => {
                    self.regex = Some((regex, Instant::now()));
                    self.match_topics();
                }
                Err(error) => self.broken(error),
            },
        }
    }

    /// When to look again if nothing happens.
    fn next_wake(&self) -> Instant {
        let member = self.member.next_wake().map(|time| self.at(time));
        let regex = self
            .regex
            .as_ref()
            .filter(|_| !self.matching)
            .map(|(_, at)| *at);
        let count = self.counted.as_ref().and_then(Counted::again);
        let poll = self.poll_deadline();
        let times = [member, regex, count, poll].into_iter().flatten();
        times.min().unwrap_or_else(far_away)
    }

    /// When the application will have been away for too long, unless it is waiting for records.
    fn poll_deadline(&self) -> Option<Instant> {
        self.member.identity()?;
        let state = self.shared.lock();
        let away = state.polling == 0 && !self.closing && self.leaving.is_empty();
        away.then(|| state.polled + self.shared.config.poll_interval_max)
    }

    fn woken(&mut self) {
        let now = self.now();
        if self.poll_deadline().is_some_and(passed) {
            let interval = self.shared.config.poll_interval_max.as_millis();
            tracing::warn!(
                max_poll_interval_ms = interval as u64,
                "the application did not ask for records in time: its partitions go to others"
            );
            self.shared.lock().away = true;
            self.member.poll_interval_exceeded(now);
        }
        self.member.wake(now);
        if self.regex.as_ref().is_some_and(|(_, at)| passed(*at)) {
            self.match_topics();
        }
        if self
            .counted
            .as_ref()
            .and_then(Counted::again)
            .is_some_and(passed)
        {
            self.count_again();
        }
    }

    fn on(&mut self, event: Event) {
        let now = self.now();
        self.refusal = None;
        match event {
            Event::Answered(life, ..) if life != self.life => {}
            Event::Answered(_, id, to, Ok(answer)) => {
                self.failures = 0;
                self.shared.answered();
                if let Some(code) = requests::code(&answer) {
                    let error = Error::kafka(ApiKey::FindCoordinator, Subject::Cluster, code);
                    self.shared.cluster.note_error(&to, &error);
                }
                self.member.answered(id, answer, now);
            }
            Event::Answered(_, id, to, Err(error)) => {
                tracing::debug!(%error, "the coordinator did not answer");
                self.shared.cluster.note_error(&to, &error);
                if requests::may_pass(&error, self.was_member) {
                    self.shared.report_refusal(&error);
                    self.failures += 1;
                    let backoff = self.shared.cluster.config().retry_backoff;
                    let retry = backoff.after(self.failures).as_millis() as Millis;
                    self.member.failed(id, retry, now);
                } else {
                    let (code, message) = requests::refusal(&error);
                    self.member.refused(id, code, message);
                    if matches!(error, Error::Authentication { .. }) {
                        self.refusal = Some(error);
                    }
                }
            }
            Event::StepDone(life, id) => {
                self.in_step = false;
                if life == self.life {
                    self.member.done(id, now);
                }
            }
            Event::Resolved(names, missing) => {
                self.resolve_failures = if names.is_empty() {
                    self.resolve_failures + 1
                } else {
                    0
                };
                self.member.topics(&names, now);
                if !missing.is_empty() {
                    self.resolve(missing);
                }
            }
            Event::Counted(topics, counts) => {
                self.counted = Some(self.counted(topics, counts.clone()));
                self.member.partition_counts(counts);
            }
            Event::CountedAgain => self.counted_again(),
            Event::Matched(topics) => {
                self.matching = false;
                self.matched(topics);
            }
            Event::Resigned => {}
        }
    }

    /// Does what the member wants done.
    fn act(&mut self) {
        loop {
            while let Some(action) = self.member.next_action() {
                self.take(action);
            }
            self.note_identity();
            if self.in_step || !self.next_step() {
                return;
            }
        }
    }

    /// Lets everybody know under which name to commit.
    fn note_identity(&mut self) {
        let identity = self.member.identity();
        self.was_member |= identity.is_some();
        self.shared.lock().reader.set_member(identity);
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Send { id, request } => self.send(id, request),
            Action::ResolveTopics(ids) => self.resolve(ids),
            Action::CountPartitions(topics) => self.count(topics),
            Action::Report(error) => {
                let error = self.error(error);
                self.shared.report(error);
            }
            Action::Waiting(error) => {
                tracing::warn!(%error, wait = ?session_timeout_max(&self.shared.config),
                    "another member still has this instance id: waiting for its session to end");
            }
            Action::Fail(error) => self.fail(error),
            Action::Left => self.left(),
            Action::Lose { id, partitions } => {
                // At once: nothing of them may be given out or committed any more.
                self.drop_partitions(&steps::names(&partitions));
                // What was about to be asked of the application has lost its point.
                self.steps
                    .retain(|step| matches!(step, Action::Lose { .. }));
                self.steps.push_back(Action::Lose { id, partitions });
            }
            step @ (Action::Assign { .. } | Action::Revoke { .. }) => self.steps.push_back(step),
        }
    }

    fn left(&mut self) {
        self.note_identity();
        match self.wish {
            // The call that waits for it may have been dropped, so it is noted here.
            None => {
                let mut state = self.shared.lock();
                state.reader.set_subscribed(false);
                state.broken = None;
                drop(state);
                self.shared.ready.notify_waiters();
            }
            // Meanwhile the application has subscribed again.
            Some(_) if !self.closing && !self.failed => self.subscribe(),
            Some(_) => {}
        }
        self.leaving.drain(..).for_each(|done| {
            let _ = done.send(());
        });
    }

    fn fail(&mut self, error: MemberError) {
        let unsupported = matches!(
            &error,
            MemberError::Refused { code, .. } if *code == ErrorCode::UNSUPPORTED_VERSION
        );
        let auto = self.shared.config.group_protocol == GroupProtocol::Auto;
        if auto && unsupported && !self.was_member && matches!(self.member, Member::Consumer(_)) {
            tracing::info!("the cluster has no consumer protocol: the classic one is used");
            match classic(&self.shared, &self.assignors) {
                Ok(member) => {
                    self.member = member;
                    self.life += 1;
                    self.subscribe();
                }
                Err(error) => self.broken(error),
            }
            return;
        }
        self.failed = true;
        if self.was_member {
            self.resign();
        }
        let error = self.error(error);
        self.broken(error);
    }

    fn error(&mut self, error: MemberError) -> Error {
        if let Some(refusal) = self.refusal.take() {
            return refusal;
        }
        let api = match self.member {
            Member::Consumer(_) => ApiKey::ConsumerGroupHeartbeat,
            Member::Classic(_) => ApiKey::JoinGroup,
        };
        let group = self.shared.config.group_id.clone().unwrap_or_default();
        match error {
            MemberError::Refused { code, message } => Error::Kafka {
                api,
                subject: Subject::Group(group),
                code,
                message,
            },
            error => Error::State(format!("group {group}: {error}")),
        }
    }

    fn broken(&self, error: Error) {
        self.shared.lock().broken = Some(error);
        self.shared.ready.notify_waiters();
    }

    fn drop_partitions(&self, names: &[TopicPartition]) {
        self.shared.lock().unassign(names, false);
    }
}

fn consumer(shared: &Shared) -> Member {
    let config = &shared.config;
    Member::Consumer(Box::new(ConsumerMember::new(ConsumerMemberConfig {
        group_id: config.group_id.clone().unwrap_or_default(),
        member_id: random_id(),
        instance_id: config.group_instance_id.clone(),
        rack_id: config.rack.clone(),
        rebalance_timeout_ms: millis(config.poll_interval_max),
        server_assignor: config.group_remote_assignor.clone(),
        session_timeout_ms: millis(session_timeout_max(config)),
    })))
}

/// How long a session may last. In the consumer protocol the broker decides
/// (`group.consumer.session.timeout.ms`): by default 45 s, and no more than 60 s.
fn session_timeout_max(config: &ConsumerConfig) -> Duration {
    config.session_timeout.max(Duration::from_secs(60))
}

/// A version 4 UUID in the form in which Kafka writes ids. None begins with a dash, which command
/// lines would take for an option.
fn random_id() -> ByteString {
    loop {
        let random = (0..4).fold(0, |id: u128, _| id << 32 | u128::from(random_u32()));
        let versioned = random & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let id = Uuid(versioned).to_string();
        if !id.starts_with('-') {
            return id.into();
        }
    }
}

fn classic(shared: &Shared, assignors: &Assignors) -> Result<Member> {
    let config = &shared.config;
    let member = ClassicMember::new(ClassicConfig {
        group_id: config.group_id.clone().unwrap_or_default(),
        instance_id: config.group_instance_id.clone(),
        rack_id: config.rack.clone(),
        session_timeout_ms: millis(config.session_timeout),
        rebalance_timeout_ms: millis(config.poll_interval_max),
        heartbeat_interval_ms: millis(config.heartbeat_interval),
        assignors: assignors(),
    });
    match member {
        Ok(member) => Ok(Member::Classic(Box::new(member))),
        Err(error) => {
            let setting = "partition.assignment.strategy";
            Err(Error::config(setting, error.to_string()))
        }
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn passed(time: Instant) -> bool {
    time <= Instant::now()
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}
