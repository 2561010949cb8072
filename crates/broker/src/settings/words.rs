//! Settings whose values are words of a fixed list, as enums: code that reads one must handle
//! every word, and a new word does not compile until all code does.

/// The words that a setting can have.
pub(crate) trait Word: Copy + Sized {
    /// What holds if nothing is set, which is what the table of settings says too.
    const DEFAULT: Self;

    fn parse(word: &str) -> Option<Self>;
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, default $default:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant),+
        }

        impl $name {
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl Word for $name {
            const DEFAULT: $name = $name::$default;

            fn parse(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// An element of `cleanup.policy`.
    Cleanup, default Delete { Compact = "compact", Delete = "delete" }
}

words! {
    /// `message.timestamp.type`.
    Timestamps, default CreateTime { CreateTime = "CreateTime", LogAppendTime = "LogAppendTime" }
}

words! {
    /// `compression.type`.
    StoredCompression, default Producer {
        Uncompressed = "uncompressed",
        Zstd = "zstd",
        Lz4 = "lz4",
        Snappy = "snappy",
        Gzip = "gzip",
        Producer = "producer",
    }
}

words! {
    /// An element of `group.coordinator.rebalance.protocols`.
    Protocol, default Classic { Classic = "classic", Consumer = "consumer" }
}

words! {
    /// An element of `group.consumer.assignors`.
    AssignorName, default Uniform { Uniform = "uniform", Range = "range" }
}

words! {
    /// `group.consumer.migration.policy`.
    Migration, default Bidirectional {
        Bidirectional = "bidirectional",
        Upgrade = "upgrade",
        Downgrade = "downgrade",
        Disabled = "disabled",
    }
}
