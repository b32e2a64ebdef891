//! `/proc/PID/net/tcp`, `tcp6`, `udp`, `udp6`: bytes that wait in the queues of the sockets of a network namespace. They are data;
//! the buffers that the kernel charges for them are larger, twice as large for full segments and many times for small ones
//! (net/core/skbuff.c, `truesize`).
//!
//! Format: net/ipv4/tcp_ipv4.c, `get_tcp4_sock`:
//! "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode".

use super::foreign;
use super::process::Process;
use crate::base::Bytes;
use crate::base::limits::SOCKET_TABLE_BYTES_MAX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One socket with data in its queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketQueue {
    pub inode: u64,
    /// "10.0.0.7:443"; the local address where it has no peer.
    pub peer: String,
    pub to_send_bytes: Bytes,
    pub received_bytes: Bytes,
}

/// The sockets of the process's namespace; the first ones where there are very many.
pub fn read(process: &Process) -> Vec<SocketQueue> {
    let table = |name: &&str| {
        let file = process.open_file(&format!("net/{name}")).ok()?;
        let bytes = foreign::start(file, SOCKET_TABLE_BYTES_MAX).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().skip(1).filter_map(parse).collect::<Vec<_>>())
    };
    ["tcp", "tcp6", "udp", "udp6"].iter().filter_map(table).flatten().collect()
}

fn parse(line: &str) -> Option<SocketQueue> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let (to_send, received) = words.get(4)?.split_once(':')?;
    let (to_send_bytes, received_bytes) =
        (Bytes::from_str_radix(to_send, 16).ok()?, Bytes::from_str_radix(received, 16).ok()?);
    // Of a socket that listens, the second is its connections (net/ipv4/tcp_ipv4.c).
    const LISTENS: &str = "0A";
    if words[3] == LISTENS || to_send_bytes + received_bytes == 0 {
        return None;
    }
    let peer = address(words[2]).filter(|peer| !peer.ends_with(":0")).or_else(|| address(words[1]))?;
    Some(SocketQueue { inode: words.get(9)?.parse().ok()?, peer, to_send_bytes, received_bytes })
}

/// "0100007F:1F90", "…:01BB" with 32 digits: words of 32 bits in the byte order of the machine.
fn address(text: &str) -> Option<String> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word =
        |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(std::net::SocketAddr::new(ip, port).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_sent_to_us_and_not_read_is_in_a_queue() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = server.local_addr().expect("an address");
        let mut client = std::net::TcpStream::connect(place).expect("connected");
        client.write_all(&[7; 5000]).expect("sent");
        let (_reader, peer) = server.accept().expect("accepted");
        let queues = read(&Process::own().expect("myself"));
        let found = queues.iter().find(|queue| queue.peer == peer.to_string()).expect("a queue");
        assert_eq!((found.received_bytes, found.to_send_bytes), (5000, 0));
    }

    #[test]
    fn lines_that_are_none() {
        for line in
            ["", "a b c d e f g h i j", "0: 0100007F:1F90 00000000:0000 01 FFFFFFFFFFFFFFFFF:0 0 0 0 0 7"]
        {
            assert_eq!(parse(line), None, "{line}");
        }
        let line = "1: 00000000000000000000000001000000:0050 0000000000000000FFFF00000100007F:1F90 01 00000005:00000002 00:0 0 0 0 77";
        let found = parse(line).expect("a queue");
        assert_eq!((found.peer.as_str(), found.inode, found.to_send_bytes), ("127.0.0.1:8080", 77, 5));
    }
}
