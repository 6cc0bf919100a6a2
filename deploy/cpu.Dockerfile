# tbps for the CPU: docker build -f deploy/cpu.Dockerfile -t tbps .
# docker run --rm -v "$PWD/runs:/runs" -v /images:/images:ro tbps \
#     search --run /runs/demo/fp32-ema.s0 --gallery /images --query "a woman with a red bag"
# A server in a container is behind the container's own address, so that it needs a token:
# docker run --rm -p 127.0.0.1:8080:8080 -e TBPS_TOKEN=... -v ... tbps \
#     serve --run /runs/... --gallery /images --addr 0.0.0.0:8080 --allow-remote
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist --package tbps

FROM debian:bookworm-slim
COPY --from=build /src/target/dist/tbps /usr/local/bin/tbps
RUN useradd --create-home tbps
USER tbps
ENTRYPOINT ["tbps"]
