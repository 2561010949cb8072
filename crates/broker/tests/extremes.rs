//! Requests that are well-formed and extreme cost their own sender at most. Another group of the same
//! shard never notices.

mod common;

use common::*;
use kohort_wire::{ByteString, ErrorCode, Request, codec::TEXT_LENGTH_MAX, frame, messages::*};
use tokio::io::AsyncWriteExt;

/// A broker whose groups are all in one shard.
async fn one_shard() -> kohort_broker::Broker {
    builder()
        .set("offsets.topic.num.partitions", "1")
        .start()
        .await
        .unwrap()
}

/// A member of a group, which is to stay one.
struct Member {
    client: Client,
    id: ByteString,
    generation: i32,
}

impl Member {
    async fn join(mut client: Client) -> Member {
        client.find_coordinator("quiet").await;
        let mut request = join("quiet".into());
        let given = client.ask(9, request.clone()).await;
        assert_eq!(given.error_code, ErrorCode::MEMBER_ID_REQUIRED);
        request.member_id = given.member_id;
        let joined = client.ask(9, request).await;
        assert_eq!(joined.error_code, ErrorCode::NONE);
        let sync = SyncGroupRequest {
            group_id: "quiet".into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: vec![SyncGroupAssignment {
                member_id: joined.member_id.clone(),
                assignment: vec![1].into(),
            }],
            ..SyncGroupRequest::default()
        };
        let synced = client.ask(5, sync).await;
        assert_eq!(synced.error_code, ErrorCode::NONE);
        Member {
            client,
            id: joined.member_id,
            generation: joined.generation_id,
        }
    }

    /// A shard that is loaded again answers something else for a moment, or to a parked request.
    async fn is_undisturbed(&mut self, by: &str) {
        let request = HeartbeatRequest {
            group_id: "quiet".into(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            ..HeartbeatRequest::default()
        };
        let response = self.client.ask(4, request).await;
        assert_eq!(response.error_code, ErrorCode::NONE, "after {by}");
        let code = self.client.commit("other", "t", 0, 1).await;
        assert_eq!(code, ErrorCode::NONE, "after {by}");
    }
}

fn join(group_id: ByteString) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id,
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            ..JoinGroupProtocol::default()
        }],
        ..JoinGroupRequest::default()
    }
}

/// Texts of extreme lengths and contents, in an order that a seed gives.
struct Extremes(u64);

impl Extremes {
    fn number(&mut self) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.number() % choices.len()].clone()
    }

    fn text(&mut self) -> ByteString {
        let unit = self.one_of(&["a", "\0", "é", "\u{10ffff}", "\n", "(", "\u{fffd}", "."]);
        let length = self.one_of(&[0, 1, 249, 255, 4_097, TEXT_LENGTH_MAX - 1, TEXT_LENGTH_MAX]);
        unit.repeat(length / unit.len()).into()
    }

    fn maybe(&mut self) -> Option<ByteString> {
        self.number().is_multiple_of(2).then(|| self.text())
    }

    fn texts(&mut self) -> Vec<ByteString> {
        let count = self.one_of(&[0, 1, 2, 31]);
        (0..count).map(|_| self.text()).collect()
    }

    fn int(&mut self) -> i32 {
        self.one_of(&[i32::MIN, -2, -1, 0, 1, 30_000, i32::MAX])
    }

    fn bytes(&mut self) -> bytes::Bytes {
        vec![0xff; self.one_of(&[0, 1, 70_000, 1 << 20])].into()
    }

    fn join(&mut self) -> JoinGroupRequest {
        let protocols = (0..self.one_of(&[1, 1, 2, 40])).map(|_| JoinGroupProtocol {
            name: self.text(),
            metadata: self.bytes(),
        });
        JoinGroupRequest {
            protocols: protocols.collect(),
            group_instance_id: self.maybe(),
            member_id: self.maybe().unwrap_or_default(),
            protocol_type: self.text(),
            reason: self.maybe(),
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: self.int(),
            ..join(self.text())
        }
    }

    fn sync(&mut self) -> SyncGroupRequest {
        let assignments = (0..self.one_of(&[0, 1, 5])).map(|_| SyncGroupAssignment {
            member_id: self.text(),
            assignment: self.bytes(),
        });
        SyncGroupRequest {
            assignments: assignments.collect(),
            group_id: self.text(),
            generation_id: self.int(),
            member_id: self.text(),
            group_instance_id: self.maybe(),
            protocol_type: self.maybe(),
            protocol_name: self.maybe(),
        }
    }

    fn consumer_heartbeat(&mut self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.text(),
            member_id: self.text(),
            member_epoch: self.one_of(&[0, 0, 0, 1, -1, -2, i32::MIN]),
            instance_id: self.maybe(),
            rack_id: self.maybe(),
            rebalance_timeout_ms: self.one_of(&[1, 30_000, i32::MAX]),
            subscribed_topic_names: Some(self.texts()),
            subscribed_topic_regex: self.maybe(),
            server_assignor: match self.number() % 4 {
                0 => self.maybe(),
                _ => None,
            },
            topic_partitions: Some(Vec::new()),
        }
    }

    fn commit(&mut self) -> OffsetCommitRequest {
        let mut request = commit("", "t", 0, 0);
        request.group_id = self.text();
        request.member_id = self.maybe().unwrap_or_default();
        request.group_instance_id = self.maybe();
        request.generation_id_or_member_epoch = self.one_of(&[-1, -1, 0, i32::MAX]);
        request.topics[0].partitions[0].committed_metadata = self.maybe();
        request.topics[0].partitions[0].committed_offset = self.one_of(&[0, 1, i64::MAX]);
        for name in self.texts() {
            let mut topic = request.topics[0].clone();
            topic.name = name;
            request.topics.push(topic);
        }
        request
    }

    fn leave(&mut self) -> LeaveGroupRequest {
        LeaveGroupRequest {
            group_id: self.text(),
            members: vec![MemberIdentity {
                member_id: self.text(),
                group_instance_id: self.maybe(),
                reason: self.maybe(),
            }],
            ..LeaveGroupRequest::default()
        }
    }
}

/// Sends a request; what comes back, if anything, does not matter.
async fn throw<R: Request>(client: &mut Client, version: i16, request: R) {
    client.send(version, &request).await;
}

#[tokio::test]
async fn extreme_requests_never_disturb_another_group_of_the_shard() {
    let broker = one_shard().await;
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let mut member = Member::join(client).await;
    for seed in 0..60 {
        let mut extremes = Extremes(seed);
        // A join may be parked: what follows it on its connection would wait.
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(Client::connect(&broker).await);
        }
        throw(&mut clients[0], 9, extremes.join()).await;
        throw(&mut clients[1], 5, extremes.sync()).await;
        throw(&mut clients[2], 1, extremes.consumer_heartbeat()).await;
        throw(&mut clients[3], 9, extremes.commit()).await;
        throw(&mut clients[4], 5, extremes.leave()).await;
        for client in &mut clients[1..] {
            client.receive().await;
        }
        member.is_undisturbed(&format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn a_group_id_as_long_as_a_text_may_be_is_one_like_any_other() {
    let broker = one_shard().await;
    let mut client = Client::connect(&broker).await;
    client.find_coordinator("g").await;
    let group_id: ByteString = "g".repeat(TEXT_LENGTH_MAX).into();
    let mut request = join(group_id);
    let given = client.ask(9, request.clone()).await;
    assert_eq!(given.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    request.member_id = given.member_id;
    let joined = client.ask(9, request).await;
    assert_eq!(joined.error_code, ErrorCode::NONE);
}

/// A frame whose group id `x` is replaced by bytes that no encoder writes.
fn join_with_group_id(bytes: &[u8]) -> Vec<u8> {
    let frame = frame::encode_request(&join("x".into()), 9, 1, Some("test")).unwrap();
    let frame = frame.into_bytes();
    // Length, API, version, correlation id, client id, no tags.
    let at = 4 + 2 + 2 + 4 + 2 + 4 + 1;
    assert_eq!(&frame[at..at + 2], b"\x02x");
    let length = bytes.len() as u32 + 1;
    let varint = [
        length as u8 | 0x80,
        (length >> 7) as u8 | 0x80,
        (length >> 14) as u8,
    ];
    let mut changed = [&frame[..at], &varint, bytes, &frame[at + 2..]].concat();
    let length = changed.len() as i32 - 4;
    changed[..4].copy_from_slice(&length.to_be_bytes());
    changed
}

#[tokio::test]
async fn a_text_that_is_too_long_ends_its_own_connection_only() {
    let broker = one_shard().await;
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let mut member = Member::join(client).await;
    for bytes in [vec![b'x'; 33_000], vec![0xff; 20_000]] {
        let mut client = Client::connect(&broker).await;
        let frame = join_with_group_id(&bytes);
        client.stream.write_all(&frame).await.unwrap();
        assert_eq!(client.receive().await, None);
        member.is_undisturbed("an overlong text").await;
    }
}

/// As Kafka, which decodes every text with Java's replacement.
#[tokio::test]
async fn a_text_that_is_not_utf8_is_answered() {
    let broker = one_shard().await;
    let mut client = Client::connect(&broker).await;
    client.find_coordinator("g").await;
    let frame = join_with_group_id(b"\xffg");
    client.stream.write_all(&frame).await.unwrap();
    let response = client.receive_as::<JoinGroupRequest>(9).await;
    assert_eq!(response.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    assert!(response.member_id.starts_with("\u{fffd}g-"), "{response:?}");
    // The client's own name, too.
    let mut frame = frame::encode_request(&ListGroupsRequest::default(), 4, 2, Some("test"));
    let mut frame = frame.as_mut().unwrap().clone().into_bytes().to_vec();
    assert_eq!(&frame[14..18], b"test");
    frame[15] = 0xfe;
    client.stream.write_all(&frame).await.unwrap();
    let response = client.receive_as::<ListGroupsRequest>(4).await;
    assert_eq!(response.error_code, ErrorCode::NONE);
}
