# The image of manager and node daemon, for ordinary builds:
#
#   docker build --tag pykruise/kruise-manager:dev .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag ... --push .
#
# The first stage makes the directories of the three layers with the very code that `make image` runs, from Debian's
# packages and the locked wheels; the last one has nothing else: no shell, no package manager. Nothing of the target's
# architecture is run, so no emulation is needed.
ARG DEBIAN=debian:bookworm-slim

FROM --platform=$BUILDPLATFORM ${DEBIAN} AS build
ARG TARGETARCH
ARG SOURCE_DATE_EPOCH
# There are no tags in here: --build-arg PYKRUISE_VERSION=1.2.3 for a release that is not built from its sdist.
ARG PYKRUISE_VERSION
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates mmdebstrap python3 python3-venv
WORKDIR /src
COPY requirements requirements
RUN python3 -m venv /venv \
 && /venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
COPY pyproject.toml README.md LICENSE PKG-INFO* ./
COPY completions completions
COPY hack/version.py hack/version.py
COPY hack/image hack/image
COPY src src
RUN /venv/bin/python -m hack.image --arch "${TARGETARCH:-$(dpkg --print-architecture)}" --trees /layers

FROM scratch
COPY --from=build /layers/base/ /
COPY --from=build /layers/dependencies/ /
COPY --from=build /layers/kruise/ /
ENV PATH=/usr/local/bin:/usr/bin
USER 65534:65534
ENTRYPOINT ["kruise"]
CMD ["--help"]
