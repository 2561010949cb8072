//! From a host name to a connection: all its addresses are tried, each a little later than the one
//! before, and the first that answers wins (RFC 8305, "Happy Eyeballs").

use std::{collections::VecDeque, io, net::SocketAddr, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, sleep_until},
};

/// How long an address has before the next one is tried too.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to `address`. `failures` says how often opening a connection there has failed: an
/// address that accepts connections and does nothing with them must not come first every time.
pub(super) async fn dial(address: &str, failures: u32) -> io::Result<TcpStream> {
    let addresses = lookup_host(address).await?.collect();
    first_connected(in_turn(addresses, failures), TcpStream::connect).await
}

/// The addresses with the families taking turns, beginning with the one that the resolver prefers;
/// after failures, with another address.
fn in_turn(addresses: Vec<SocketAddr>, failures: u32) -> Vec<SocketAddr> {
    let prefers_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, others): (VecDeque<_>, VecDeque<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == prefers_ipv6);
    let mut families = [preferred, others];
    let mut ordered = Vec::new();
    while families.iter().any(|family| !family.is_empty()) {
        ordered.extend(families[0].pop_front());
        families.swap(0, 1);
    }
    if !ordered.is_empty() {
        let first = failures as usize % ordered.len();
        ordered.rotate_left(first);
    }
    ordered
}

/// The first connection that is made, or the last error if none is.
async fn first_connected<T, F>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let none = || io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    let mut waiting = VecDeque::from(addresses);
    let mut attempts = FuturesUnordered::new();
    let mut error = None;
    loop {
        match waiting.pop_front() {
            Some(address) => attempts.push(connect(address)),
            None if attempts.is_empty() => return Err(error.unwrap_or_else(none)),
            None => {}
        }
        let next = Instant::now() + ATTEMPT_DELAY;
        tokio::select! {
            Some(attempt) = attempts.next(), if !attempts.is_empty() => match attempt {
                Ok(connected) => return Ok(connected),
                Err(failed) => error = Some(failed),
            },
            () = sleep_until(next), if !waiting.is_empty() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter()
            .map(|address| address.parse().unwrap())
            .collect()
    }

    #[test]
    fn families_take_turns_and_a_failure_brings_another_address_first() {
        let resolved = addresses(&["[::1]:1", "[::2]:1", "1.1.1.1:1"]);
        let expected = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1"]);
        assert_eq!(in_turn(resolved, 0), expected);
        let only_ipv4 = addresses(&["1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"]);
        assert_eq!(in_turn(only_ipv4.clone(), 0), only_ipv4);
        let rotated = addresses(&["2.2.2.2:1", "3.3.3.3:1", "1.1.1.1:1"]);
        assert_eq!(in_turn(only_ipv4, 4), rotated);
        assert_eq!(in_turn(Vec::new(), 1), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_does_not_keep_from_the_next_one() {
        for silent in ["1.1.1.1:1", "[::1]:1"] {
            let started = Instant::now();
            let silent: SocketAddr = silent.parse().unwrap();
            let listens: SocketAddr = "2.2.2.2:1".parse().unwrap();
            let connect = |address| async move {
                if address == silent {
                    std::future::pending::<()>().await;
                }
                Ok(address)
            };
            let connected = first_connected(vec![silent, listens], connect).await;
            assert_eq!(connected.unwrap(), listens);
            assert_eq!(started.elapsed(), ATTEMPT_DELAY);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_is_followed_by_the_next_at_once() {
        let started = Instant::now();
        let list = addresses(&["1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"]);
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let last = list[2];
        let connect = |address| async move {
            if address == last {
                Ok(address)
            } else {
                Err(refused())
            }
        };
        let connected = first_connected(list, connect).await.unwrap();
        assert_eq!((connected, started.elapsed()), (last, Duration::ZERO));

        let list = addresses(&["1.1.1.1:1", "2.2.2.2:1"]);
        let connect = |_| async move { Err::<(), _>(refused()) };
        let error = first_connected(list, connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_address_may_still_win() {
        let list = addresses(&["1.1.1.1:1", "2.2.2.2:1"]);
        let slow = list[0];
        let connect = |address| async move {
            if address == slow {
                tokio::time::sleep(Duration::from_secs(1)).await
            } else {
                std::future::pending().await
            }
            Ok(address)
        };
        assert_eq!(first_connected(list, connect).await.unwrap(), slow);
    }
}
