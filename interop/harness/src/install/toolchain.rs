//! What suites need of the machine: languages, and rights.

use std::process::{Command, Stdio};

/// Programs that come with the machine, not with the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// `cargo`, which runs this program
    Rust,
    /// `python3` with `venv`
    Python,
    /// `go`
    Go,
    /// `node` and `npm`
    Node,
    /// `java` and `mvn`
    Java,
    /// A C and a C++ compiler with `make` and `pkg-config`, and the headers of zlib and OpenSSL
    C,
    /// `unshare` and the right to mount a file system where only the suite sees it
    Mounts,
}

impl Toolchain {
    fn probes(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Rust => &[],
            Self::Python => &[&["python3", "-m", "venv", "--help"]],
            Self::Go => &[&["go", "version"]],
            Self::Node => &[&["node", "--version"], &["npm", "--version"]],
            Self::Java => &[
                &["java", "-version"],
                &["javac", "-version"],
                &["mvn", "--version"],
            ],
            Self::Mounts => &[&[
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs none /tmp",
            ]],
            Self::C => &[
                &["c++", "--version"],
                &["make", "--version"],
                &["pkg-config", "--version"],
                &["tar", "--version"],
                &["cc", "-E", "-include", "zlib.h", "-xc", "/dev/null"],
                &["cc", "-E", "-include", "openssl/ssl.h", "-xc", "/dev/null"],
            ],
        }
    }

    /// The first program, header or right that is not on the machine, if one is missing.
    pub(crate) fn missing(self) -> Option<&'static str> {
        let works = |probe: &[&str]| {
            let mut command = Command::new(probe[0]);
            command.args(&probe[1..]).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        self.probes()
            .iter()
            .find(|probe| !works(probe))
            .map(|probe| match probe {
                ["cc", _, "-include", header, ..] => header,
                ["unshare", ..] => "right to mount",
                probe => probe[0],
            })
    }
}
