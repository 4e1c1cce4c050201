# The visualizer for visitors, as docs/guide/deploying.md says:
#
#     docker build --tag minifuse . && docker run --publish 8501:8501 minifuse
#
# `make docker-commands` runs these commands without Docker, in a bare Debian.
FROM debian:bookworm-slim

# Debian has one version of these packages at a time.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/minifuse \
    && useradd --create-home --uid 10001 minifuse

WORKDIR /src
COPY . .
RUN /opt/minifuse/bin/pip install --no-cache-dir --constraint requirements.txt ".[app]"

# Kernels are compiled by and for this user, in its home folder.
USER 10001
WORKDIR /home/minifuse
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["/opt/minifuse/bin/python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health')"]
CMD ["/opt/minifuse/bin/minifuse", "app", "--public", "--host", "0.0.0.0", "--port", "8501"]
