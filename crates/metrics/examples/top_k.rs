//! Milliseconds of one exact search, in both precisions.
//!
//! ```text
//! cargo run --release -p tbps-metrics --example top_k -- GALLERY QUERIES DIM K FOUND
//! ```
//!
//! GALLERY and QUERIES are raw little-endian f32, row-major. Each query is searched by itself; the
//! median and the range over the queries are printed. FOUND gets the indices that the f32 search
//! found, a line a query. `benchmarks/search/top_k.py` makes the files, measures NumPy on them and
//! compares what was found with sums in f64.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use half::f16;
use std::time::Instant;
use tbps_metrics::retrieval::{Rows, top_k};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [gallery, queries, dim, k, found] = arguments.as_slice() else {
        return Err("usage: top_k GALLERY QUERIES DIM K FOUND".into());
    };
    let (dim, k): (usize, usize) = (dim.parse()?, k.parse()?);
    let (gallery, queries) = (read(gallery)?, read(queries)?);
    let half: Vec<f16> = gallery.iter().map(|&x| f16::from_f32(x)).collect();
    measure("f16", Rows::F16(&half), &queries, dim, k)?;
    let lines = measure("f32", Rows::F32(&gallery), &queries, dim, k)?;
    Ok(std::fs::write(found, lines)?)
}

fn read(path: &str) -> std::io::Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Searches every query and returns the indices found, a line a query.
fn measure(
    name: &str,
    rows: Rows<'_>,
    queries: &[f32],
    dim: usize,
    k: usize,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut times_ms = Vec::new();
    let mut lines = String::new();
    for query in queries.chunks_exact(dim) {
        let began = Instant::now();
        let hits = top_k(query, rows, dim, k)?;
        times_ms.push(began.elapsed().as_secs_f64() * 1e3);
        let indices: Vec<String> = hits[0].iter().map(|hit| hit.index.to_string()).collect();
        lines.push_str(&(indices.join(" ") + "\n"));
    }
    times_ms.sort_by(f64::total_cmp);
    let (first, last) = (times_ms[0], times_ms[times_ms.len() - 1]);
    let median = times_ms[times_ms.len() / 2];
    println!("{name}: median {median:.2} ms ({first:.2} to {last:.2})");
    Ok(lines)
}
