//! The matrix product of one thread, bounds-checked.

/// A strided view of an f32 matrix.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// All of `data`, row-major.
    pub(super) fn new(data: &'a [f32], columns: usize) -> Self {
        Self::strided(data, data.len() / columns, columns, columns)
    }

    /// `[rows, columns]` with `stride` elements from row to row.
    pub(super) fn strided(data: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        let matrix = Self { data, rows, columns, row_stride: stride, column_stride: 1 };
        assert!(rows > 0 && columns > 0 && columns <= stride, "[{rows}, {columns}] by {stride}");
        assert!((rows - 1) * stride + columns <= data.len(), "the matrix ends within its data");
        matrix
    }

    /// The transpose.
    pub(super) fn t(self) -> Self {
        let Self { data, rows, columns, row_stride, column_stride } = self;
        let (rows, columns) = (columns, rows);
        Self { data, rows, columns, row_stride: column_stride, column_stride: row_stride }
    }
}

/// Whether a product replaces or increases what is in its output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Into {
    Replaced,
    Increased,
}

/// `out = a @ b` or `out += a @ b`, `out` having `stride` elements from row to row.
pub(super) fn product(out: &mut [f32], stride: usize, into: Into, a: Matrix, b: Matrix) {
    let (rows, depth, columns) = (a.rows, a.columns, b.columns);
    assert_eq!(depth, b.rows, "[{rows}, {depth}] @ [{}, {columns}]", b.rows);
    let _ends_within = Matrix::strided(out, rows, columns, stride);
    #[expect(unsafe_code, reason = "gemm takes pointers; every view's bounds are asserted above")]
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            out.as_mut_ptr(),
            1,
            stride as isize,
            into == Into::Increased,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
