//! 500 clients at once, for `TBPS_LOAD_S` seconds (default 3): answers, or 503 with Retry-After.

use super::start;
use crate::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: usize = 500;

/// What a client saw.
#[derive(Default)]
struct Seen {
    answers_ms: Vec<f64>,
    turned_away: usize,
    others: Vec<String>,
}

#[test]
fn many_clients_get_answers_or_are_told_to_come_back() {
    let seconds = std::env::var("TBPS_LOAD_S").map_or(3, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder, &[]);
    let began = Instant::now();
    let end = began + Duration::from_secs(seconds);
    let (seen, held) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                scope.spawn({
                    let server = &server;
                    move || client(server, n, end)
                })
            })
            .collect();
        let mut held = Vec::new();
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(200));
            held.push(resident(&server));
        }
        let seen: Vec<Seen> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (seen, held)
    });
    let others: Vec<&String> = seen.iter().flat_map(|seen| &seen.others).collect();
    assert!(others.is_empty(), "{} others, such as {:?}", others.len(), &others[..1]);
    let mut ms: Vec<f64> = seen.iter().flat_map(|seen| &seen.answers_ms).copied().collect();
    ms.sort_by(f64::total_cmp);
    let turned_away: usize = seen.iter().map(|seen| seen.turned_away).sum();
    assert!(ms.len() > 100, "only {} answers", ms.len());
    let at = |part: f64| ms[((ms.len() - 1) as f64 * part) as usize];
    let (early, late) = (held[held.len() / 3], held[held.len() - 1]);
    println!(
        "{CLIENTS} clients, {seconds} s: {} answers ({:.0} a second), p50 {:.1} ms, p99 {:.1} ms, \
         longest {:.1} ms; {turned_away} times 503; {:.1} MiB held after a third, {:.1} at the end",
        ms.len(),
        ms.len() as f64 / seconds as f64,
        at(0.5),
        at(0.99),
        at(1.0),
        early as f64 / f64::from(1 << 20),
        late as f64 / f64::from(1 << 20),
    );
    assert!(late <= early + (32 << 20), "memory grew from {early} to {late} bytes");
    assert_eq!(server.get("/api/search?q=a&k=1").status, 200, "afterwards as before");
}

#[cfg(target_os = "linux")]
fn resident(server: &Server) -> u64 {
    server.resident_bytes()
}

/// Memory is looked at where the system tells it.
#[cfg(not(target_os = "linux"))]
fn resident(_: &Server) -> u64 {
    0
}

/// One query after another on one connection; a client that is turned away waits a little, though
/// less than it was told to.
fn client(server: &Server, number: usize, end: Instant) -> Seen {
    let mut seen = Seen::default();
    // One file handle a client: half of what a process may commonly have.
    let mut stream = BufReader::new(server.connect());
    let mut count = 0;
    while Instant::now() < end {
        count += 1;
        let began = Instant::now();
        let request = format!(
            "GET /api/search?q=person+{number}+{count}+in+a+red+coat&k=10 HTTP/1.1\r\nhost: {}\r\n\r\n",
            server.addr
        );
        if let Err(error) = stream.get_mut().write_all(request.as_bytes()) {
            seen.others.push(format!("write: {error}"));
            break;
        }
        match read_answer(&mut stream) {
            Ok((200, _, body)) if body.starts_with(b"{\"hits\":[{") => {
                seen.answers_ms.push(began.elapsed().as_secs_f64() * 1e3);
            }
            Ok((503, head, _)) if head.contains("retry-after: 1\r\n") => {
                seen.turned_away += 1;
                thread::sleep(Duration::from_millis(100));
            }
            Ok((status, head, _)) => seen.others.push(format!("{status} {head}")),
            Err(error) => {
                seen.others.push(error.to_string());
                break;
            }
        }
    }
    seen
}

fn read_answer(
    reader: &mut BufReader<std::net::TcpStream>,
) -> std::io::Result<(u16, String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(std::io::Error::other(format!("cut off after {head:?}")));
        }
    }
    let head = head.to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|text| text.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok((status, head, body))
}
