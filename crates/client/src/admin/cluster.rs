//! The cluster.

use bytestring::ByteString;
use kohort_wire::{ApiKey, messages::*};

use super::Admin;
use crate::{
    Result, Subject,
    error::check,
    rpc::{BrokerMetadata, Destination, Topics},
};

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterDescription {
    /// Its id, if it has one.
    pub cluster_id: Option<ByteString>,
    /// The broker to ask for what concerns the whole cluster.
    pub controller: Option<i32>,
    /// Its brokers, by id.
    pub brokers: Vec<BrokerDescription>,
}

/// A broker of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerDescription {
    /// Where it is.
    pub broker: BrokerMetadata,
    /// Whether it is fenced: registered, but not serving.
    pub fenced: bool,
}

impl Admin {
    /// What there is to know of the cluster.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription> {
        let request = DescribeClusterRequest::default();
        let checked = |response: &DescribeClusterResponse| {
            let message = response.error_message.as_ref();
            let cluster = || Subject::Cluster;
            check(
                ApiKey::DescribeCluster,
                response.error_code,
                message,
                cluster,
            )
        };
        let to = Destination::Any;
        let response = match self.cluster.ask(&to, |_| request.clone(), checked).await {
            Ok(response) => response,
            Err(crate::Error::UnsupportedVersion { .. }) => {
                return self.describe_from_metadata().await;
            }
            Err(error) => return Err(error),
        };
        let mut brokers: Vec<_> = response
            .brokers
            .into_iter()
            .map(|broker| BrokerDescription {
                broker: BrokerMetadata {
                    id: broker.broker_id,
                    host: broker.host,
                    port: broker.port,
                    rack: broker.rack,
                },
                fenced: broker.is_fenced,
            })
            .collect();
        brokers.sort_by_key(|broker| broker.broker.id);
        Ok(ClusterDescription {
            cluster_id: Some(response.cluster_id),
            controller: (response.controller_id >= 0).then_some(response.controller_id),
            brokers,
        })
    }

    /// From brokers before DescribeCluster (Kafka 2.8).
    async fn describe_from_metadata(&self) -> Result<ClusterDescription> {
        let metadata = self.cluster.refresh(&Topics::Named(Vec::new())).await?;
        let mut brokers: Vec<_> = metadata
            .brokers()
            .map(|broker| BrokerDescription {
                broker: broker.clone(),
                fenced: false,
            })
            .collect();
        brokers.sort_by_key(|broker| broker.broker.id);
        Ok(ClusterDescription {
            cluster_id: metadata.cluster_id().cloned(),
            controller: metadata.controller(),
            brokers,
        })
    }
}
