//! Single operations at the shapes that matter, odd ones too, against f64.

use super::Doctor;
use super::reference::{attention, layer_norm, matmul, quick_gelu, softmax, values};
use anyhow::{Context, Result};
use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData, activation};
use half::{bf16, f16};
use tbps_model::config::Activation;
use tbps_model::ops;

/// Half of the last place of f16, twice: of the operands' sums and of the result.
const F16: f64 = 1e-3;
/// The same of bf16.
const BF16: f64 = 8e-3;

pub(super) fn run(doctor: &mut Doctor) -> Result<()> {
    let device = doctor.device.clone();
    matmuls(doctor, &device)?;
    softmaxes(doctor, &device)?;
    norms(doctor, &device)?;
    attentions(doctor, &device)?;
    maps(doctor, &device)?;
    embedding(doctor, &device)?;
    reductions(doctor, &device)?;
    casts(doctor, &device)
}

fn put<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

fn get<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    let data = tensor.cast(FloatDType::F32).try_into_data().context("the device fails")?;
    Ok(data.as_slice::<f32>().context("the device gave no f32")?.to_vec())
}

/// The nearest values that a dtype has.
fn rounded(values: Vec<f32>, dtype: FloatDType) -> Vec<f32> {
    let round = |x: f32| match dtype {
        FloatDType::F16 => f16::from_f32(x).to_f32(),
        FloatDType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    };
    values.into_iter().map(round).collect()
}

/// The dtypes of the device, each with its name and what a product may be off by.
fn dtypes(doctor: &Doctor) -> Vec<(FloatDType, &'static str, f64)> {
    let all = [
        (FloatDType::F32, "f32", doctor.f32_product()),
        (FloatDType::F16, "f16", F16),
        (FloatDType::BF16, "bf16", BF16),
    ];
    all.into_iter().filter(|(dtype, ..)| doctor.device.supports_dtype(*dtype)).collect()
}

fn matmuls(doctor: &mut Doctor, device: &Device) -> Result<()> {
    for (dtype, name, at_most) in dtypes(doctor) {
        for [n, k, m] in [[1, 1, 1], [7, 13, 5], [129, 77, 65], [193, 768, 96], [64, 512, 64]] {
            let a = rounded(values(n * k, 1), dtype);
            let b = rounded(values(k * m, 2), dtype);
            let product =
                put(&a, [n, k], device).cast(dtype).matmul(put(&b, [k, m], device).cast(dtype));
            let of = format!("[{n}, {k}] x [{k}, {m}] {name}");
            doctor.check("matmul", of, &get(product)?, &matmul(&a, &b, k, m), at_most);
        }
        let (a, b) =
            (rounded(values(3 * 17 * 33, 3), dtype), rounded(values(3 * 33 * 9, 4), dtype));
        let product = put(&a, [3, 17, 33], device)
            .cast(dtype)
            .matmul(put(&b, [3, 33, 9], device).cast(dtype));
        let expected: Vec<f64> = (a.chunks_exact(17 * 33).zip(b.chunks_exact(33 * 9)))
            .flat_map(|(a, b)| matmul(a, b, 33, 9))
            .collect();
        let of = format!("3 x [17, 33] x [33, 9] {name}");
        doctor.check("matmul", of, &get(product)?, &expected, at_most);
    }
    // The transpose is a view, which kernels must read by its strides.
    let (a, b) = (values(65 * 33, 5), values(65 * 31, 6));
    let product = put(&a, [65, 33], device).transpose().matmul(put(&b, [65, 31], device));
    let turned: Vec<f32> = (0..33 * 65).map(|i| a[i % 65 * 33 + i / 65]).collect();
    let at_most = doctor.f32_product();
    let of = "[65, 33] transposed x [65, 31] f32".to_owned();
    doctor.check("matmul", of, &get(product)?, &matmul(&turned, &b, 65, 31), at_most);
    Ok(())
}

fn softmaxes(doctor: &mut Doctor, device: &Device) -> Result<()> {
    for [rows, w] in [[3, 1], [5, 77], [2, 129], [4, 1000]] {
        // Large scores: a softmax that does not take the maximum off overflows.
        let x: Vec<f32> = values(rows * w, 7).into_iter().map(|x| 200.0 * x).collect();
        let exact: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let found = get(activation::softmax(put(&x, [rows, w], device), 1))?;
        doctor.check("softmax", format!("[{rows}, {w}] f32"), &found, &softmax(&exact, w), 2e-5);
    }
    Ok(())
}

fn norms(doctor: &mut Doctor, device: &Device) -> Result<()> {
    for [rows, w] in [[5, 2], [7, 77], [193, 768]] {
        let [x, gamma, beta] = [values(rows * w, 8), values(w, 9), values(w, 10)];
        let norm = ops::layer_norm(
            put(&x, [rows, w], device),
            put(&gamma, [w], device),
            put(&beta, [w], device),
        );
        let of = format!("[{rows}, {w}] f32");
        doctor.check("layer norm", of, &get(norm)?, &layer_norm(&x, &gamma, &beta), 1e-5);
    }
    Ok(())
}

fn attentions(doctor: &mut Doctor, device: &Device) -> Result<()> {
    for (dtype, name, at_most) in dtypes(doctor) {
        for (b, n, w, heads, causal) in [
            (2, 1, 8, 2, false),
            (2, 77, 64, 4, true),
            (1, 193, 64, 2, false),
            (3, 13, 24, 3, true),
        ] {
            let qkv = rounded(values(b * n * 3 * w, 11), dtype);
            let found = ops::attention(put(&qkv, [b, n, 3 * w], device).cast(dtype), heads, causal);
            let expected = attention(&qkv, n, w, heads, causal);
            let mask = if causal { ", causal" } else { "" };
            let of = format!("[{b}, {n}, 3 x {w}], {heads} heads{mask} {name}");
            doctor.check("attention", of, &get(found)?, &expected, 2.0 * at_most);
        }
    }
    Ok(())
}

/// The two affine maps of a block with what is fused to them.
fn maps(doctor: &mut Doctor, device: &Device) -> Result<()> {
    let (rows, k, m) = (67, 48, 33);
    let [x, gamma, beta] = [values(rows * k, 12), values(k, 13), values(k, 14)];
    let [weight, bias, residual] = [values(k * m, 15), values(m, 16), values(rows * m, 17)];
    let at_most = 4.0 * doctor.f32_product();
    let add_bias = |mut product: Vec<f64>| {
        product.iter_mut().enumerate().for_each(|(i, y)| *y += f64::from(bias[i % m]));
        product
    };
    let normed: Vec<f32> = layer_norm(&x, &gamma, &beta).into_iter().map(|x| x as f32).collect();
    let found = ops::norm_linear(
        put(&x, [rows, k], device),
        [put(&gamma, [k], device), put(&beta, [k], device)],
        put(&weight, [k, m], device),
        put(&bias, [m], device),
        FloatDType::F32,
    );
    let of = format!("[{rows}, {k}] to {m} f32");
    let expected = add_bias(matmul(&normed, &weight, k, m));
    doctor.check("norm and map", of.clone(), &get(found)?, &expected, at_most);

    let active: Vec<f32> = x.iter().map(|&x| quick_gelu(f64::from(x)) as f32).collect();
    let found = ops::linear_onto(
        put(&residual, [rows, m], device),
        put(&x, [rows, k], device),
        Some(Activation::QuickGelu),
        put(&weight, [k, m], device),
        put(&bias, [m], device),
    );
    let expected: Vec<f64> = add_bias(matmul(&active, &weight, k, m))
        .into_iter()
        .zip(&residual)
        .map(|(y, &r)| y + f64::from(r))
        .collect();
    doctor.check("activation and map", of, &get(found)?, &expected, at_most);
    Ok(())
}

fn embedding(doctor: &mut Doctor, device: &Device) -> Result<()> {
    let (rows, w) = (1001, 37);
    let table = values(rows * w, 18);
    let ids: Vec<i32> = vec![0, 1000, 7, 7, 513, 0];
    let expected: Vec<f64> = ids
        .iter()
        .flat_map(|&id| &table[id as usize * w..(id as usize + 1) * w])
        .map(|&x| f64::from(x))
        .collect();
    let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [6]), device);
    let found = put(&table, [rows, w], device).select(0, ids);
    doctor.check("embedding", format!("6 of [{rows}, {w}] f32"), &get(found)?, &expected, 0.0);
    Ok(())
}

fn reductions(doctor: &mut Doctor, device: &Device) -> Result<()> {
    for [rows, w] in [[1, 100_003], [129, 77], [77, 129]] {
        let x = values(rows * w, 19);
        let of = format!("[{rows}, {w}] f32");
        let sums: Vec<f64> =
            x.chunks_exact(w).map(|row| row.iter().map(|&x| f64::from(x)).sum()).collect();
        let tensor = put(&x, [rows, w], device);
        // A sum may cancel: its error is measured against the terms.
        let found = get(tensor.clone().abs().sum_dim(1))?;
        let magnitudes: Vec<f64> =
            x.chunks_exact(w).map(|row| row.iter().map(|&x| f64::from(x.abs())).sum()).collect();
        doctor.check("sum", of.clone(), &found, &magnitudes, 2e-5);
        let means: Vec<f64> = sums.iter().map(|sum| sum / w as f64 + 1.0).collect();
        let found = get(tensor.clone().add_scalar(1.0).mean_dim(1))?;
        doctor.check("mean", of.clone(), &found, &means, 2e-5);
        let most: Vec<f64> = x
            .chunks_exact(w)
            .map(|row| row.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(f64::from(x))))
            .collect();
        doctor.check("max", of, &get(tensor.max_dim(1))?, &most, 0.0);
    }
    Ok(())
}

fn casts(doctor: &mut Doctor, device: &Device) -> Result<()> {
    // What is halfway, too small for a normal number, or at the edge of the range.
    let mut x = values(1001, 20);
    x.extend([0.0, -0.0, 1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 6e-8, 1e-7, -6e-5, 65504.0]);
    for (dtype, name, _) in dtypes(doctor).into_iter().skip(1) {
        let expected: Vec<f64> = rounded(x.clone(), dtype).into_iter().map(f64::from).collect();
        let found = get(put(&x, [x.len()], device).cast(dtype))?;
        // The absolute scale is that of the largest: each value is looked at by its own.
        let relative = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
            values.zip(&x).map(|(v, &x)| if x == 0.0 { v } else { v / f64::from(x) }).collect()
        };
        let expected = relative(&mut expected.into_iter());
        let found: Vec<f32> =
            relative(&mut found.into_iter().map(f64::from)).into_iter().map(|x| x as f32).collect();
        doctor.check("cast", format!("f32 to {name} and back"), &found, &expected, 1e-7);
    }
    Ok(())
}
