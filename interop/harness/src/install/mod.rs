//! Clients from their own package registries, at the versions that the folders
//! of interop/ name, installed under target/interop.

pub(crate) mod go;
pub(crate) mod kafka_python;
pub(crate) mod librdkafka;
pub(crate) mod maven;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod rust;
pub(crate) mod rust_rdkafka;
pub(crate) mod schemas;
mod stamp;
mod toolchain;

use std::time::Duration;

pub(crate) use toolchain::Toolchain;

/// One download and build, on a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);
