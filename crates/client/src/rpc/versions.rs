//! The API versions that a broker supports.

use kohort_wire::{ApiKey, Request, codec::Versions, messages::ApiVersionsResponse};
use rustc_hash::FxHashMap;

/// The API versions that a broker supports.
#[derive(Debug, Clone, Default)]
pub struct ApiVersions {
    versions: FxHashMap<i16, Versions>,
}

impl ApiVersions {
    pub(super) fn new(response: &ApiVersionsResponse) -> ApiVersions {
        let versions = response
            .api_keys
            .iter()
            .map(|api| (api.api_key, Versions::new(api.min_version, api.max_version)));
        ApiVersions {
            versions: versions.collect(),
        }
    }

    /// The versions that the broker knows of the API with the number `api_key`.
    pub fn broker(&self, api_key: i16) -> Option<Versions> {
        self.versions.get(&api_key).copied()
    }

    /// The newest version of `api` that broker and client know.
    pub fn newest(&self, api: ApiKey) -> Option<i16> {
        self.newest_of(api, api.versions())
    }

    /// The newest version that the broker and the client know, among `wanted`.
    pub fn newest_of(&self, api: ApiKey, wanted: Versions) -> Option<i16> {
        let broker = self.broker(api as i16)?;
        let client = api.versions();
        let first = broker.first.max(client.first).max(wanted.first);
        let last = broker.last.min(client.last).min(wanted.last);
        (first <= last).then_some(last)
    }

    /// Whether the broker can be asked `R`.
    pub fn supports<R: Request>(&self) -> bool {
        self.newest(R::API_KEY).is_some()
    }
}
