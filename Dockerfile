# syntax=docker/dockerfile:1
# One image for operator, agent, extender, simulator and the command line, for amd64 and arm64:
#   docker buildx build --platform linux/amd64,linux/arm64 --tag REGISTRY/joulie:VERSION --push .
# Holds Python, Joulie and the libraries that they load: no shell, no package manager. Runs without rights; the agent alone is
# given UID 0 by the chart. Writes nothing but /tmp and STATE_DIR. `make release` builds it such that the same input gives
# the same digest.
ARG PYTHON_IMAGE=python:3.12.14-slim-trixie@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY pyproject.toml requirements.lock ./
COPY deploy/image/locked.py deploy/image/rootfs.py deploy/image/
# What it needs, from the lock that development uses, each file checked by its hash. amdsmi has to match the ROCm release
# of the host and is left out: limits of AMD GPUs are set through sysfs.
RUN python deploy/image/locked.py 'joulie[nvidia,podresources]' > runtime.txt \
 && python deploy/image/locked.py hatchling > build.txt \
 && python -m venv --without-pip /opt/joulie \
 && pip --python /opt/joulie/bin/python install --require-hashes --only-binary :all: --requirement runtime.txt \
 && pip install --require-hashes --only-binary :all: --requirement build.txt
COPY README.md LICENSE ./
COPY src src
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && pip --python /opt/joulie/bin/python install --no-deps --no-index --find-links /wheels joulie \
 && python deploy/image/rootfs.py /opt/joulie /rootfs

FROM scratch
ARG PYTHON_IMAGE
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Joulie" \
      org.opencontainers.image.description="Energy management for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}"
COPY --from=build /rootfs /
ENV PATH=/opt/joulie/bin HOME=/tmp SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["joulie"]
CMD ["--help"]
