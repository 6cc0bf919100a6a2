# tbps for NVIDIA GPUs: docker build -f deploy/cuda.Dockerfile -t tbps-cuda .
# docker run --rm --gpus all -v ... tbps-cuda doctor --device cuda
# Not built or run yet, for want of a GPU. The build downloads an LLVM bundle.
FROM nvidia/cuda:12.8.1-devel-ubuntu24.04 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends curl ca-certificates gcc g++ libc6-dev git
ENV PATH=/root/.cargo/bin:$PATH
RUN curl --proto '=https' --tlsv1.2 --fail --silent --show-error https://sh.rustup.rs \
    | sh -s -- -y --profile minimal --default-toolchain 1.95.0
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist --package tbps --features cuda

# Kernels become PTX by the LLVM inside the binary. Beside the driver, which the container's runtime brings,
# they need the toolkit's bitcode of the math functions.
FROM nvidia/cuda:12.8.1-base-ubuntu24.04
COPY --from=build /usr/local/cuda/nvvm/libdevice /usr/local/cuda/nvvm/libdevice
COPY --from=build /src/target/dist/tbps /usr/local/bin/tbps
RUN useradd --create-home tbps
USER tbps
ENTRYPOINT ["tbps"]
