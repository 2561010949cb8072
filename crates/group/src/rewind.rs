//! The mark that makes an administrator's commit a rewind, and its options.

use kohort_wire::messages::OffsetCommitRequest;

/// What the metadata of a commit begins with that is to rewind a live group. Options may follow,
/// separated by blanks: `clamp`, `cancel`, and as the last one `metadata=` with the metadata to be
/// committed.
pub const MARK: &str = "kohort:rewind";

/// OffsetFetch by this member gives what was committed before the last rewind of the group. The
/// metadata of each offset is [`MARK`], followed by `at=` when the rewind was, in milliseconds since
/// 1970, `to=` where it went, and `metadata=` the metadata that was committed.
pub const BEFORE_MEMBER: &str = MARK;

/// OffsetFetch by this member gives what is committed now for the partitions of the rewind that is
/// under way, each with metadata as for [`BEFORE_MEMBER`]; nothing if none is.
pub const PENDING_MEMBER: &str = "kohort:rewind:pending";

/// What the mark of a partition says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewindMark<'a> {
    /// Whether an offset outside of the log becomes the nearest one inside of it.
    pub clamp: bool,
    /// Whether a rewind of the partition that is under way is given up, instead of asking for one.
    /// The offset says nothing then.
    pub cancel: bool,
    /// What is committed as metadata; the mark itself is not.
    pub metadata: &'a str,
}

/// A mark that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// Some partitions are marked, and some are not.
    #[error("only some of the partitions are marked with `{MARK}`: nothing was changed")]
    Partial,
    /// An option that does not exist.
    #[error("`{0}` is no option of `{MARK}`: there are `clamp`, `cancel` and `metadata=…`")]
    UnknownOption(String),
    /// Some partitions are to be rewound, and for others that is to be given up.
    #[error("only some of the partitions say `cancel`: nothing was changed")]
    PartlyCancelled,
}

impl<'a> RewindMark<'a> {
    /// Reads the metadata of a commit. `None`: it has no mark.
    ///
    /// # Errors
    ///
    /// An unknown option.
    pub fn read(metadata: &'a str) -> Result<Option<RewindMark<'a>>, MarkError> {
        // confluent-kafka for Python sends the zero that ends a string in C along with it.
        let metadata = metadata.trim_end_matches('\0');
        let Some(mut rest) = metadata.strip_prefix(MARK) else {
            return Ok(None);
        };
        let mut mark = RewindMark::default();
        if !rest.is_empty() && !rest.starts_with(' ') {
            return Err(MarkError::UnknownOption(first_word(rest).to_owned()));
        }
        loop {
            rest = rest.trim_start_matches(' ');
            if rest.is_empty() {
                return Ok(Some(mark));
            }
            if let Some(metadata) = rest.strip_prefix("metadata=") {
                mark.metadata = metadata;
                return Ok(Some(mark));
            }
            let option = first_word(rest);
            match option {
                "clamp" => mark.clamp = true,
                "cancel" => mark.cancel = true,
                _ => return Err(MarkError::UnknownOption(option.to_owned())),
            }
            rest = &rest[option.len()..];
        }
    }

    /// The marks of a request, topic by topic and partition by partition. `None`: it asks for no
    /// rewind, because a member sends it, or because nothing is marked.
    ///
    /// # Errors
    ///
    /// An unknown option, or partitions without a mark among others.
    pub fn read_all(
        request: &'a OffsetCommitRequest,
    ) -> Result<Option<Vec<Vec<RewindMark<'a>>>>, MarkError> {
        if !is_of_an_administrator(request) {
            return Ok(None);
        }
        let (mut marked, mut unmarked, mut cancelled) = (0, 0, 0);
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            let mut marks = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
                match RewindMark::read(metadata)? {
                    Some(mark) => {
                        marked += 1;
                        cancelled += usize::from(mark.cancel);
                        marks.push(mark);
                    }
                    None => unmarked += 1,
                }
            }
            topics.push(marks);
        }
        match (marked, unmarked) {
            (0, _) => Ok(None),
            (_, 0) if ![0, marked].contains(&cancelled) => Err(MarkError::PartlyCancelled),
            (_, 0) => Ok(Some(topics)),
            _ => Err(MarkError::Partial),
        }
    }

    /// The marks that a request without any stands for, where it is to rewind a group all the same.
    /// `None`: a member sends it.
    pub fn unmarked(request: &'a OffsetCommitRequest) -> Option<Vec<Vec<RewindMark<'a>>>> {
        if !is_of_an_administrator(request) {
            return None;
        }
        let marks = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| RewindMark {
                metadata: partition.committed_metadata.as_deref().unwrap_or_default(),
                ..RewindMark::default()
            });
            partitions.collect()
        });
        Some(marks.collect())
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Whether a commit comes from a client that is not a member of a group.
pub fn is_of_an_administrator(request: &OffsetCommitRequest) -> bool {
    request.generation_id_or_member_epoch < 0
        && request.member_id.is_empty()
        && request
            .group_instance_id
            .as_deref()
            .unwrap_or_default()
            .is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_options_and_an_unknown_one_is_named() {
        let read = |text| RewindMark::read(text);
        assert_eq!(read("since monday"), Ok(None));
        assert_eq!(read("kohort:rewind"), Ok(Some(RewindMark::default())));
        let mark = RewindMark {
            clamp: true,
            metadata: "of mine, with blanks",
            ..RewindMark::default()
        };
        assert_eq!(
            read("kohort:rewind  clamp metadata=of mine, with blanks"),
            Ok(Some(mark))
        );
        let cancel = RewindMark {
            cancel: true,
            ..RewindMark::default()
        };
        assert_eq!(read("kohort:rewind cancel"), Ok(Some(cancel)));
        assert_eq!(read("kohort:rewind\0"), Ok(Some(RewindMark::default())));
        let unknown = |option: &str| Err(MarkError::UnknownOption(option.to_owned()));
        assert_eq!(read("kohort:rewind clamp dry run"), unknown("dry"));
        assert_eq!(read("kohort:rewinder"), unknown("er"));
    }
}
