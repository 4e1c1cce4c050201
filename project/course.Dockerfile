# The course for a class, as docs/course/container.md says:
#
#     docker build --file project/course.Dockerfile --tag minifuse-course .
#     docker run --rm -it --user "$(id -u):$(id -g)" --volume "$PWD:/work" minifuse-course check 0.1
FROM debian:bookworm-slim

# Debian has one version of these packages at a time.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/minifuse

WORKDIR /src
COPY . .
RUN /opt/minifuse/bin/pip install --no-cache-dir --constraint requirements.txt ".[course]" && rm -rf /src/*

# Any user may run it, also one that the image does not know: nothing is written outside of /work and /tmp.
ENV HOME=/tmp MINIFUSE_CACHE=/tmp/minifuse PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /work
ENTRYPOINT ["/opt/minifuse/bin/minifuse", "course"]
CMD ["--help"]
