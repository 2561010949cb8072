//! librdkafka with its tests, whose sources come inside an npm package, built without optimising.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

const PACKAGE: &str = "@confluentinc/kafka-javascript";

/// What the tests need is zlib and OpenSSL; nothing else that the machine happens to have is used.
const CONFIGURE: &[&str] = &[
    "--disable-optimization",
    "--disable-debug-symbols",
    "--disable-gssapi",
    "--disable-curl",
    "--disable-lz4-ext",
    "--disable-zstd",
];

/// The folder of the sources, built, with `tests/test-runner`.
pub(crate) fn folder(workspace: &Workspace, version: &str) -> Result<PathBuf, Failure> {
    let folder = workspace.made("librdkafka")?;
    let sources = folder.join("librdkafka");
    let wanted = format!("{PACKAGE}@{version} {}", CONFIGURE.join(" "));
    stamp::unless_made_from(&folder, &wanted, || {
        fs::remove_dir_all(&folder)?;
        fs::create_dir_all(&folder)?;
        let logs = workspace.made("logs")?.join("install");
        let complete = |mut command: Command, place: &Path, name: &str| {
            command.current_dir(place);
            let name = format!("librdkafka-{name}");
            Process::complete(command, &name, &logs, INSTALL_LIMIT)
        };
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", &format!("{PACKAGE}@{version}")]);
        complete(pack, &folder, "npm")?;
        let packed = stamp::files(&folder, &[".tgz"])?;
        let mut unpack = Command::new("tar");
        unpack.arg("xzf").args(packed);
        unpack.args(["--strip-components=2", "package/deps/librdkafka"]);
        complete(unpack, &folder, "tar")?;
        let mut configure = Command::new("./configure");
        configure.args(CONFIGURE);
        configure.arg(format!("--prefix={}", installed(&sources).display()));
        complete(configure, &sources, "configure")?;
        let jobs = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
        let goals: [(&str, &[&str]); 4] = [
            ("libs", &["libs"]),
            ("c", &["-C", "src", "install"]),
            ("c++", &["-C", "src-cpp", "install"]),
            ("tests", &["-C", "tests", "build"]),
        ];
        for (name, goal) in goals {
            let mut make = Command::new("make");
            make.arg(format!("-j{jobs}")).args(goal);
            complete(make, &sources, &format!("make-{name}"))?;
        }
        Ok(())
    })?;
    Ok(sources)
}

/// Where other programs find the library: `lib`, `include`, `lib/pkgconfig`.
pub(crate) fn installed(sources: &Path) -> PathBuf {
    sources.join("installed")
}

/// The version of the library, from its header.
pub(crate) fn version(sources: &Path) -> Result<String, Failure> {
    let header = fs::read_to_string(sources.join("src/rdkafka.h"))?;
    let number = header
        .lines()
        .find_map(|line| line.strip_prefix("#define RD_KAFKA_VERSION 0x"))
        .and_then(|number| u32::from_str_radix(number.get(..8)?, 16).ok())
        .ok_or_else(|| Failure::new("librdkafka's header names no version"))?;
    let [major, minor, revision, _] = number.to_be_bytes();
    Ok(format!("{major}.{minor}.{revision}"))
}
