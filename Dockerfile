# The commands of starmint in a container; docs/how_to/containers.rst.
#   docker build --tag starmint .
#   docker build --tag starmint-gpu --target gpu .

# With an NVIDIA GPU: PyCUDA is compiled here.
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04 AS gpu
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates g++ openssh-client python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python3 -m venv /opt/starmint \
    && /opt/starmint/bin/pip install --no-cache-dir '/src[aws,data,gpu,report]' \
    && rm -rf /src
ENV PATH=/opt/starmint/bin:$PATH
WORKDIR /work
CMD ["spearmint", "--help"]

# Without a GPU: the default.
FROM debian:13-slim AS cpu
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates openssh-client python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python3 -m venv /opt/starmint \
    && /opt/starmint/bin/pip install --no-cache-dir '/src[aws,data,report]' \
    && rm -rf /src
ENV PATH=/opt/starmint/bin:$PATH
WORKDIR /work
CMD ["spearmint", "--help"]
