//! Requests that try to reach a file, to fill the memory, or to hold the server up.

use super::start;
use crate::server::Server;
use std::fs;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// A PNG of `side` x `side` grey pixels that are all alike: large only once it is decoded.
fn bomb(side: u32) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let body = [kind.as_slice(), data].concat();
        let mut crc = flate2::Crc::new();
        crc.update(&body);
        [&(data.len() as u32).to_be_bytes()[..], &body, &crc.sum().to_be_bytes()].concat()
    };
    let header = [&side.to_be_bytes()[..], &side.to_be_bytes(), &[1, 0, 0, 0, 0]].concat();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let row = vec![0; side as usize / 8 + 1];
    for _ in 0..side {
        packed.write_all(&row).unwrap();
    }
    let packed = packed.finish().unwrap();
    let chunks = [chunk(b"IHDR", &header), chunk(b"IDAT", &packed), chunk(b"IEND", &[])];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
}

fn check(server: &Server, request: &[u8], expected: &[u16]) {
    let shown = String::from_utf8_lossy(&request[..request.len().min(120)]).into_owned();
    let answer = server.raw(request).unwrap_or_else(|| panic!("no answer: {shown}"));
    assert!(expected.contains(&answer.status), "{} for {shown}", answer.status);
    let body = String::from_utf8_lossy(&answer.body);
    assert!(!body.contains("root:"), "a file was shown: {shown}");
}

#[test]
fn hostile_requests_get_a_refusal_and_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder, &[]);
    let before = server.get("/api/search?q=a+man&k=9").json()["hits"].clone();
    let host = format!("host: {}\r\nconnection: close\r\n", server.addr);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{host}\r\n").into_bytes();

    let names = [
        "../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..\\..\\etc\\passwd",
        "%00",
        "0%00.png",
        "-1",
        "+1",
        "1e0",
        "0x0",
        "%EF%BC%90",
        "99999999999999999999999999",
        "30000",
        "",
        "0/..",
        "%ff",
    ];
    for name in names {
        for room in ["/", "/api/image/", "/api/thumb/", "/api/similar/", "/api/", "//"] {
            if (room, name) == ("/", "") || (room, name) == ("//", "") {
                continue; // the page itself
            }
            check(&server, &get(&format!("{room}{name}")), &[400, 404]);
        }
        for parameter in ["q", "k", "path", "token", "id"] {
            let path = format!("/api/similar/0?{parameter}={name}");
            let answer = server.raw(&get(&path)).unwrap();
            let fine = parameter == "q" && name != "%ff" && answer.status == 200;
            assert!(fine || answer.status == 400, "{}: {path}", answer.status);
        }
    }

    let long = "a".repeat(1_001);
    check(&server, &get(&format!("/api/search?q={long}")), &[400]);
    check(&server, &get(&format!("/api/search?q={}", "a".repeat(100_000))), &[414, 431]);
    check(&server, &get("/api/search?q=%c3%28"), &[400]);
    check(&server, &get("/api/search"), &[400]);
    check(
        &server,
        &[b"GET /api/search?q=\xff\xfe HTTP/1.1\r\n", host.as_bytes(), b"\r\n"].concat(),
        &[400],
    );
    check(&server, &[b"GET /\xff HTTP/1.1\r\n", host.as_bytes(), b"\r\n"].concat(), &[400, 404]);
    check(&server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", &[400]);
    check(&server, b"GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n", &[421]);
    check(&server, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n", &[400, 421]);
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let request =
            format!("{method} /api/search?q=a HTTP/1.1\r\n{host}content-length: 0\r\n\r\n");
        check(&server, request.as_bytes(), &[405]);
    }
    let headers: String = (0..500).map(|n| format!("x-{n}: y\r\n")).collect();
    check(&server, format!("GET / HTTP/1.1\r\n{host}{headers}\r\n").as_bytes(), &[431]);
    let large = "z".repeat(200_000);
    check(&server, format!("GET / HTTP/1.1\r\n{host}x: {large}\r\n\r\n").as_bytes(), &[431]);

    for (body, what) in [
        (b"no picture".to_vec(), "text"),
        (Vec::new(), "nothing"),
        (vec![0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0], "a JPEG cut short"),
        (bomb(16_384), "a bomb"),
        (bomb(16_385), "a bomb with long sides"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>".to_vec(), "a drawing"),
    ] {
        let answer = server.ask("POST", "/api/search/image", "", &body);
        assert_eq!(answer.status, 415, "{what}: {}", String::from_utf8_lossy(&answer.body));
    }
    large_bodies(&server, &host);
    taken_places(&server, folder.path());

    assert_eq!(server.get("/api/search?q=a+man&k=9").json()["hits"], before);
    #[cfg(target_os = "linux")]
    assert!(server.resident_bytes() < 600 << 20, "{} bytes held", server.resident_bytes());
}

/// 100 MB, announced and not: taken, so that the refusal is heard, and not kept; more is cut off.
fn large_bodies(server: &Server, host: &str) {
    let head = |line: &str| format!("POST /api/search/image HTTP/1.1\r\n{host}{line}\r\n\r\n");
    let mebibyte = vec![7; 1 << 20];
    let chunk = [b"100000\r\n".as_slice(), &mebibyte, b"\r\n"].concat();
    let send = |head: String, piece: &[u8], pieces: usize, end: &[u8]| {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let sent = (0..pieces).take_while(|_| stream.write_all(piece).is_ok()).count();
        drop(stream.write_all(end));
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer));
        (sent, answer)
    };
    let announced = send(head("content-length: 104857600"), &mebibyte, 100, b"");
    let chunked = send(head("transfer-encoding: chunked"), &chunk, 100, b"0\r\n\r\n");
    for (sent, answer) in [announced, chunked] {
        assert!(sent == 100 && answer.starts_with("HTTP/1.1 413"), "{sent} MiB: {answer}");
    }
    check(server, head("content-length: 1073741824").as_bytes(), &[413]);
    check(server, head("content-length: 104857600\r\nexpect: 100-continue").as_bytes(), &[413]);
    // Without an end: the connection may be cut before the refusal is read.
    let (sent, answer) = send(head("transfer-encoding: chunked"), &chunk, 1000, b"");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(sent < 300, "{sent} MiB were taken");
}

/// Files that took an image's place are not shown, whatever they are now.
fn taken_places(server: &Server, folder: &std::path::Path) {
    let hit = &server.get("/api/similar/0?k=1").json()["hits"][0];
    assert_eq!(hit["id"], 0);
    let path = folder.join("gallery").join(hit["path"].as_str().unwrap());
    let image = fs::read(&path).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::remove_file(&path).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert_eq!(server.get("/api/image/0").status, 410);
        assert_eq!(server.get("/api/thumb/0").status, 410);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(server.get("/api/image/0").status, 410);
    fs::write(&path, image).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(server.get("/api/image/0").status, 200);
}

#[test]
fn slow_clients_are_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder, &[]);
    let began = Instant::now();
    let mut head = server.connect();
    head.write_all(b"GET / HTTP/1.1\r\nhost: 127").unwrap();
    let mut silent = server.connect();
    let mut body = server.connect();
    let request = format!(
        "POST /api/search/image HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000\r\n\r\nslow",
        server.addr
    );
    body.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    body.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    for stream in [&mut head, &mut silent] {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(server.get("/api/info").status, 200);
}
