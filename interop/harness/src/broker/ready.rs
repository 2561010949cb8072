//! A broker is ready when it answers an ApiVersions request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::failure::Failure;
use crate::process::Process;
use crate::wait::wait_for;

/// A Java program takes long to start on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(180);
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// ApiVersions version 0 with request header version 1: length, api key 18,
/// version 0, correlation id 7, client id "xtask".
const API_VERSIONS_REQUEST: [u8; 19] = *b"\0\0\0\x0f\0\x12\0\0\0\0\0\x07\0\x05xtask";

pub(super) fn wait_until_it_answers(process: &mut Process, address: &str) -> Result<(), Failure> {
    let address: SocketAddr = address
        .parse()
        .map_err(|error| Failure::new(format!("{address}: {error}")))?;
    let answered = wait_for("the broker's first answer", START_LIMIT, || {
        if let Some(status) = process.ended()? {
            return Err(process.failed(status));
        }
        Ok(ask(&address).ok())
    });
    answered.map_err(|failure| Failure::new(format!("{failure}{}", process.tail())))
}

fn ask(address: &SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(address, ANSWER_LIMIT)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.write_all(&API_VERSIONS_REQUEST)?;
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    if head[4..] == [0, 0, 0, 7] {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}
