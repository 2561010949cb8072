//! The data folder of a broker that is stopped, for tools that look at its files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use kohort_log::{LogError, OpenFiles, begin_at};
use kohort_wire::Uuid;

use crate::{
    StartError,
    data_folder::{CATALOG, DataFolder},
    logs::{folder_name, write_owner},
    topics::Store,
};

/// The data folder of a broker that is stopped. No broker can start on it for as long as this
/// value lives.
#[derive(Debug)]
pub struct StoppedBroker {
    folder: Arc<DataFolder>,
    partitions: Vec<StoppedPartition>,
}

/// A partition of a stopped broker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoppedPartition {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub index: i32,
    /// Where its files are, or should be.
    pub folder: PathBuf,
    /// Its folder was created with the topic, and is not there.
    pub is_missing: bool,
    topic_id: Uuid,
}

impl StoppedPartition {
    /// `<topic>-<partition>`.
    pub fn name(&self) -> String {
        folder_name(&self.topic, self.index)
    }
}

impl StoppedBroker {
    /// Locks the data folder and reads which partitions there are.
    ///
    /// # Errors
    ///
    /// If a broker is running on the folder, or it is not one of kohort's.
    pub fn open(path: &Path) -> Result<StoppedBroker, StartError> {
        let failed = |source| StartError::Folder {
            folder: path.to_owned(),
            source,
        };
        // Opening would create it.
        if !path.is_dir() {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        let folder = Arc::new(DataFolder::open(path, OpenFiles::unlimited())?);
        if !folder.path().join(CATALOG).exists() {
            let error = format!("it has no {CATALOG}");
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, error)));
        }
        let document = Store::Folder(Arc::clone(&folder)).open(0).map_err(failed)?;
        let mut partitions = Vec::new();
        for (topic, entry) in document.topics {
            for index in 0..entry.partitions {
                let place = folder.path().join(folder_name(&topic, index));
                let exists = place.exists();
                // One that was never used may have no folder.
                if exists || entry.has_folders {
                    partitions.push(StoppedPartition {
                        topic: topic.clone(),
                        index,
                        is_missing: !exists,
                        folder: place,
                        topic_id: entry.id,
                    });
                }
            }
        }
        Ok(StoppedBroker { folder, partitions })
    }

    /// The partitions of all topics, in order.
    pub fn partitions(&self) -> &[StoppedPartition] {
        &self.partitions
    }

    /// Creates the missing folder of a partition. Its log is empty and begins at `start_offset`, so
    /// that offsets before are not assigned again.
    ///
    /// # Errors
    ///
    /// If there is a folder, or none can be created.
    pub fn create_folder(
        &self,
        partition: &StoppedPartition,
        start_offset: i64,
    ) -> Result<(), LogError> {
        let folder = &partition.folder;
        let failed = |e| LogError::io("cannot create", folder.display().to_string(), e);
        self.folder.create_folder(folder).map_err(failed)?;
        write_owner(&self.folder, folder, partition.topic_id).map_err(failed)?;
        begin_at(folder, start_offset)?;
        self.folder.sync().map_err(failed)
    }
}
