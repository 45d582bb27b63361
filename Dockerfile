# The command line as an image: for CPUs, or for GPUs with CUDA 12.
#   docker build -t t2t_jax .
#   docker build -t t2t_jax:cuda --build-arg EXTRAS=cuda .
#   docker build -t t2t_jax:serve --build-arg EXTRAS=serve .   # for --mode=serve
# The current directory is mounted at /runs, where the program starts:
#   docker run --rm --init -v "$PWD":/runs -u "$(id -u):$(id -g)" t2t_jax
#   docker run --rm --init --gpus all -v "$PWD":/runs -u "$(id -u):$(id -g)" t2t_jax:cuda
# JAX's wheels bring CUDA's libraries: of the host only the driver is needed.
FROM python:3.11-slim-bookworm

# Of setup.cfg, with commas between: cuda, serve, export, exchange, plots, …
ARG EXTRAS=""

WORKDIR /opt/t2t_jax
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY t2t_jax t2t_jax
COPY configs configs
# What is installed is this directory, which has no other version.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".${EXTRAS:+[$EXTRAS]}" && rm -rf /opt/t2t_jax/build

# Writable for every user, as in /tmp: -u chooses one.
RUN mkdir -m 1777 /runs
WORKDIR /runs
ENV HOME=/runs XDG_CACHE_HOME=/runs/.cache
USER 1000:1000
ENTRYPOINT ["t2t-jax"]
CMD ["--help"]
