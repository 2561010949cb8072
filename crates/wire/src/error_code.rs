//! Kafka's error codes.

use std::fmt;

/// An error code as it stands in a response: Kafka's number, kept also when it is one that this
/// version of kohort does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ErrorCode(pub i16);

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal $(, $retriable:ident)?;)*) => {
        impl ErrorCode {
            $($(#[doc = $doc])* pub const $name: ErrorCode = ErrorCode($code);)*
        }

        impl ErrorCode {
            /// Kafka's name of the code, or `None` for a code that is not known.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// What the code says, in a sentence, or `None` for a code that is not known.
            pub const fn meaning(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(concat!($($doc),*).trim_ascii()),)*
                    _ => None,
                }
            }

            /// Whether the same request may succeed later, perhaps at another broker.
            pub const fn is_retriable(self) -> bool {
                match self.0 {
                    $($code => error_codes!(@retriable $($retriable)?),)*
                    _ => false,
                }
            }
        }
    };
    (@retriable retriable) => { true };
    (@retriable) => { false };
}

impl ErrorCode {
    /// Whether the code is anything but `NONE`.
    pub const fn is_error(self) -> bool {
        self.0 != 0
    }

    /// `Ok` for `NONE`, the code as an error otherwise.
    pub const fn ok(self) -> Result<(), ErrorCode> {
        if self.is_error() { Err(self) } else { Ok(()) }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ErrorCode {}

error_codes! {
    /// Something that the broker did not foresee went wrong there.
    UNKNOWN_SERVER_ERROR = -1;
    /// All is well.
    NONE = 0;
    /// The offset is before the partition's first record or after its last.
    OFFSET_OUT_OF_RANGE = 1;
    /// A batch is damaged, or a compacted topic was sent a record without a key.
    CORRUPT_MESSAGE = 2, retriable;
    /// This broker has no such topic or partition, perhaps not yet.
    UNKNOWN_TOPIC_OR_PARTITION = 3, retriable;
    /// The largest size to fetch makes no sense.
    INVALID_FETCH_SIZE = 4;
    /// The partition has no leader while one is being elected.
    LEADER_NOT_AVAILABLE = 5, retriable;
    /// Another broker has to be asked about this partition.
    NOT_LEADER_OR_FOLLOWER = 6, retriable;
    /// What was asked for was not done in time; it may still happen.
    REQUEST_TIMED_OUT = 7, retriable;
    /// The broker is not there.
    BROKER_NOT_AVAILABLE = 8;
    /// The broker does not hold the partition, or not yet.
    REPLICA_NOT_AVAILABLE = 9, retriable;
    /// A batch is larger than the topic takes.
    MESSAGE_TOO_LARGE = 10;
    /// The controller that asks has been replaced.
    STALE_CONTROLLER_EPOCH = 11;
    /// The text that goes with a committed offset is too long.
    OFFSET_METADATA_TOO_LARGE = 12;
    /// The connection broke before the answer came.
    NETWORK_EXCEPTION = 13, retriable;
    /// The coordinator is still reading its log.
    COORDINATOR_LOAD_IN_PROGRESS = 14, retriable;
    /// There is no coordinator yet.
    COORDINATOR_NOT_AVAILABLE = 15, retriable;
    /// Another broker coordinates this group or transaction.
    NOT_COORDINATOR = 16, retriable;
    /// The topic's name is not allowed, or the topic may not be written to.
    INVALID_TOPIC_EXCEPTION = 17;
    /// The batches are larger together than a segment of the log.
    RECORD_LIST_TOO_LARGE = 18;
    /// Too few replicas are in sync; nothing was written.
    NOT_ENOUGH_REPLICAS = 19, retriable;
    /// Too few replicas are in sync; the records were written all the same.
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, retriable;
    /// The acks are neither -1 nor 0 nor 1.
    INVALID_REQUIRED_ACKS = 21;
    /// The generation has passed: the group has rebalanced without this member.
    ILLEGAL_GENERATION = 22;
    /// The member shares no protocol with the group's other members.
    INCONSISTENT_GROUP_PROTOCOL = 23;
    /// The group's id is not allowed.
    INVALID_GROUP_ID = 24;
    /// The group has no such member.
    UNKNOWN_MEMBER_ID = 25;
    /// The session's timeout is outside of what the broker allows.
    INVALID_SESSION_TIMEOUT = 26;
    /// The group rebalances: join again.
    REBALANCE_IN_PROGRESS = 27;
    /// The offsets are too large to be committed.
    INVALID_COMMIT_OFFSET_SIZE = 28;
    /// The client may not do this with the topic.
    TOPIC_AUTHORIZATION_FAILED = 29;
    /// The client may not do this with the group.
    GROUP_AUTHORIZATION_FAILED = 30;
    /// The client may not do this with the cluster.
    CLUSTER_AUTHORIZATION_FAILED = 31;
    /// A record's timestamp is too far off.
    INVALID_TIMESTAMP = 32;
    /// The broker does not have this mechanism.
    UNSUPPORTED_SASL_MECHANISM = 33;
    /// The request does not fit the state of the authentication.
    ILLEGAL_SASL_STATE = 34;
    /// The broker does not have this version of the API.
    UNSUPPORTED_VERSION = 35;
    /// There is a topic of this name.
    TOPIC_ALREADY_EXISTS = 36;
    /// The number of partitions makes no sense.
    INVALID_PARTITIONS = 37;
    /// There are fewer brokers than copies wanted, or no copies are wanted.
    INVALID_REPLICATION_FACTOR = 38;
    /// The brokers chosen for the partitions make no sense.
    INVALID_REPLICA_ASSIGNMENT = 39;
    /// An option, or its value, is not allowed.
    INVALID_CONFIG = 40;
    /// Another broker is the controller.
    NOT_CONTROLLER = 41, retriable;
    /// The request contradicts itself or misses something.
    INVALID_REQUEST = 42;
    /// The topic's record format cannot do this.
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43;
    /// A rule that the cluster's owners set up forbids it.
    POLICY_VIOLATION = 44;
    /// Batches of this producer are missing before this one.
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45;
    /// The batch has been written before.
    DUPLICATE_SEQUENCE_NUMBER = 46;
    /// A newer producer has taken over.
    INVALID_PRODUCER_EPOCH = 47;
    /// The transaction's state does not allow this.
    INVALID_TXN_STATE = 48;
    /// The producer id is not the one of the transactional id.
    INVALID_PRODUCER_ID_MAPPING = 49;
    /// The transaction's timeout is longer than the broker allows.
    INVALID_TRANSACTION_TIMEOUT = 50;
    /// The producer's last transaction has not ended yet.
    CONCURRENT_TRANSACTIONS = 51, retriable;
    /// The transaction coordinator has been replaced.
    TRANSACTION_COORDINATOR_FENCED = 52;
    /// The client may not use the transactional id.
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53;
    /// The broker has no authorizer.
    SECURITY_DISABLED = 54;
    /// Another part of the request failed, so this one was not tried.
    OPERATION_NOT_ATTEMPTED = 55;
    /// The broker's disk failed.
    KAFKA_STORAGE_ERROR = 56, retriable;
    /// The broker has no such directory.
    LOG_DIR_NOT_FOUND = 57;
    /// The credentials are wrong.
    SASL_AUTHENTICATION_FAILED = 58;
    /// The partition remembers nothing of the producer.
    UNKNOWN_PRODUCER_ID = 59;
    /// The partition is being moved.
    REASSIGNMENT_IN_PROGRESS = 60;
    /// The broker has no delegation tokens.
    DELEGATION_TOKEN_AUTH_DISABLED = 61;
    /// There is no such delegation token.
    DELEGATION_TOKEN_NOT_FOUND = 62;
    /// The delegation token belongs to another user.
    DELEGATION_TOKEN_OWNER_MISMATCH = 63;
    /// Delegation tokens are not given out over this kind of connection.
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64;
    /// The client may not do this with the delegation token.
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65;
    /// The delegation token has expired.
    DELEGATION_TOKEN_EXPIRED = 66;
    /// The kind of principal is not supported.
    INVALID_PRINCIPAL_TYPE = 67;
    /// The group has members.
    NON_EMPTY_GROUP = 68;
    /// There is no such group.
    GROUP_ID_NOT_FOUND = 69;
    /// The broker has forgotten the fetch session: open a new one.
    FETCH_SESSION_ID_NOT_FOUND = 70, retriable;
    /// A request of the fetch session was lost or repeated.
    INVALID_FETCH_SESSION_EPOCH = 71, retriable;
    /// The leader cannot be reached by the way that the client came.
    LISTENER_NOT_FOUND = 72, retriable;
    /// Topics may not be deleted in this cluster.
    TOPIC_DELETION_DISABLED = 73;
    /// The client knows an older leader than the broker does.
    FENCED_LEADER_EPOCH = 74, retriable;
    /// The client knows a newer leader than the broker does.
    UNKNOWN_LEADER_EPOCH = 75, retriable;
    /// The version of the request does not allow this compression.
    UNSUPPORTED_COMPRESSION_TYPE = 76;
    /// The broker that asks has been registered anew since.
    STALE_BROKER_EPOCH = 77;
    /// The new leader does not know the high watermark yet.
    OFFSET_NOT_AVAILABLE = 78, retriable;
    /// Join again with the member id of the answer (KIP-394).
    MEMBER_ID_REQUIRED = 79;
    /// The preferred leader cannot lead now.
    PREFERRED_LEADER_NOT_AVAILABLE = 80, retriable;
    /// The group has as many members as the broker allows.
    GROUP_MAX_SIZE_REACHED = 81;
    /// Another member has taken over the instance id.
    FENCED_INSTANCE_ID = 82;
    /// No replica that could lead is there.
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, retriable;
    /// The partition has the right leader.
    ELECTION_NOT_NEEDED = 84, retriable;
    /// The partition is not being moved.
    NO_REASSIGNMENT_IN_PROGRESS = 85;
    /// The group's members consume the topic.
    GROUP_SUBSCRIBED_TO_TOPIC = 86;
    /// A record breaks a rule of the topic.
    INVALID_RECORD = 87;
    /// A transaction that has not ended may change the committed offset.
    UNSTABLE_OFFSET_COMMIT = 88, retriable;
    /// The client has asked for too many changes: wait as long as the answer says.
    THROTTLING_QUOTA_EXCEEDED = 89, retriable;
    /// A newer producer with the same transactional id has taken over.
    PRODUCER_FENCED = 90;
    /// There is no such thing.
    RESOURCE_NOT_FOUND = 91;
    /// There is such a thing already.
    DUPLICATE_RESOURCE = 92;
    /// The credentials do not meet the requirements.
    UNACCEPTABLE_CREDENTIAL = 93;
    /// The controllers disagree about who votes.
    INCONSISTENT_VOTER_SET = 94;
    /// The version of the update makes no sense.
    INVALID_UPDATE_VERSION = 95;
    /// The cluster's features could not be changed.
    FEATURE_UPDATE_FAILED = 96;
    /// A forwarded request does not say readably who sent it.
    PRINCIPAL_DESERIALIZATION_FAILURE = 97;
    /// There is no such snapshot.
    SNAPSHOT_NOT_FOUND = 98;
    /// The snapshot is shorter than this.
    POSITION_OUT_OF_RANGE = 99;
    /// This broker has no topic of this id, perhaps not yet.
    UNKNOWN_TOPIC_ID = 100, retriable;
    /// A broker of this id is registered and alive.
    DUPLICATE_BROKER_REGISTRATION = 101;
    /// No broker of this id is registered.
    BROKER_ID_NOT_REGISTERED = 102;
    /// The topic's id is not the one that the broker's log has.
    INCONSISTENT_TOPIC_ID = 103, retriable;
    /// The request is meant for another cluster.
    INCONSISTENT_CLUSTER_ID = 104;
    /// There is no such transactional id.
    TRANSACTIONAL_ID_NOT_FOUND = 105;
    /// The fetch session changed between topic names and topic ids.
    FETCH_SESSION_TOPIC_ID_ERROR = 106, retriable;
    /// The replica may not join those in sync.
    INELIGIBLE_REPLICA = 107;
    /// The change made another replica the leader.
    NEW_LEADER_ELECTED = 108;
    /// The offset is in remote storage only, where a follower cannot fetch it.
    OFFSET_MOVED_TO_TIERED_STORAGE = 109;
    /// The member's epoch has been fenced: join again with epoch 0 (KIP-848).
    FENCED_MEMBER_EPOCH = 110;
    /// Another member still holds the instance id (KIP-848).
    UNRELEASED_INSTANCE_ID = 111;
    /// The broker has no such assignor (KIP-848).
    UNSUPPORTED_ASSIGNOR = 112;
    /// The member's epoch has moved on: try again with the new one (KIP-848).
    STALE_MEMBER_EPOCH = 113;
    /// The request belongs to a controller and came to a broker, or the reverse.
    MISMATCHED_ENDPOINT_TYPE = 114;
    /// The kind of endpoint is not known.
    UNSUPPORTED_ENDPOINT_TYPE = 115;
    /// There is no controller of this id.
    UNKNOWN_CONTROLLER_ID = 116;
    /// The client's metrics subscription is out of date.
    UNKNOWN_SUBSCRIPTION_ID = 117;
    /// The client's metrics are too large.
    TELEMETRY_TOO_LARGE = 118;
    /// The controller refuses the broker's registration.
    INVALID_REGISTRATION = 119;
    /// The transaction must be aborted, and the producer may go on (KIP-890).
    TRANSACTION_ABORTABLE = 120;
    /// The record is not in the state that the acknowledgement needs (KIP-932).
    INVALID_RECORD_STATE = 121;
    /// The broker has forgotten the share session: open a new one.
    SHARE_SESSION_NOT_FOUND = 122, retriable;
    /// A request of the share session was lost or repeated.
    INVALID_SHARE_SESSION_EPOCH = 123, retriable;
    /// The share coordinator has a newer state.
    FENCED_STATE_EPOCH = 124;
    /// The voter's key is not the one of the receiving controller.
    INVALID_VOTER_KEY = 125;
    /// The controller votes already.
    DUPLICATE_VOTER = 126;
    /// There is no such voter.
    VOTER_NOT_FOUND = 127;
    /// The pattern of topics cannot be read (KIP-848).
    INVALID_REGULAR_EXPRESSION = 128;
    /// The client should begin again with its configured addresses (KIP-1102).
    REBOOTSTRAP_REQUIRED = 129;
    /// The topology of the streams application makes no sense (KIP-1071).
    STREAMS_INVALID_TOPOLOGY = 130;
    /// The epoch of the topology makes no sense.
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131;
    /// The topology of the streams application has been replaced.
    STREAMS_TOPOLOGY_FENCED = 132;
    /// The broker has as many share sessions as it allows.
    SHARE_SESSION_LIMIT_REACHED = 133, retriable;
    /// The group could not be deleted whole.
    GROUP_DELETION_FAILED = 134;
    /// The description of the topology could not be stored.
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135;
    /// No controller of this id is registered.
    CONTROLLER_ID_NOT_REGISTERED = 136;
}
