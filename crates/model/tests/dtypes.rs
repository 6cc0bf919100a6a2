//! What runs in which dtype is what docs/PROTOCOL.md says, operation by operation.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use burn::tensor::{Device, FloatDType, Int, Tensor};
use tbps_model::config::ClipConfig;
use tbps_model::{objective, ops};

const PROTOCOL: &str = include_str!("../../../docs/PROTOCOL.md");

/// One test, since the record is the process's.
#[test]
fn every_operation_reads_and_writes_as_the_protocol_says() {
    for (compute, name) in
        [(FloatDType::F32, "f32"), (FloatDType::F16, "f16"), (FloatDType::BF16, "bf16")]
    {
        step(compute);
        let used = ops::take_used();
        let mut found: Vec<String> = used
            .iter()
            .map(|used| format!("| `{}` | {} | {} |", used.operation, used.reads, used.writes))
            .collect();
        found.sort();
        assert_eq!(found, documented(name), "the table of docs/PROTOCOL.md, compute = {name}");
        assert_eq!(ops::take_matmul_dtypes().names(), [name]);
    }
}

/// Forward, loss and backward of a small model.
fn step(compute: FloatDType) {
    let device = Device::flex();
    let model = ClipConfig::tiny().init(0, &device.clone().autodiff()).unwrap();
    let pixels = Tensor::<4>::ones([2, 3, 32, 16], &device);
    let ids = Tensor::<2, Int>::from_ints([[62, 5, 63, 0], [62, 9, 8, 63]], &device);
    let (image, text) = (model.encode_image(pixels, compute), model.encode_text(ids, compute));
    drop(objective::itc(image, text, model.logit_scale()).backward());
}

/// The first three columns of the table's rows, sorted, with the compute dtype put in.
fn documented(compute: &str) -> Vec<String> {
    let table = PROTOCOL.lines().skip_while(|line| !line.starts_with("| operation | reads |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let mut rows: Vec<String> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let dtype = |cell: &str| cell.replace("compute", compute);
            format!("| {} | {} | {} |", cells[1], dtype(cells[2]), dtype(cells[3]))
        })
        .collect();
    rows.sort();
    rows
}
