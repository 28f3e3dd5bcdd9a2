"""Settings of the scheduler extender."""

from __future__ import annotations

from dataclasses import dataclass

from joulie.settings.decision import (
    HardwareSettings,
    MarginalSettings,
    enable_facility_metrics,
    max_connections,
    power_profile_label,
)
from joulie.settings.loading import group, setting
from joulie.settings.parsing import ADDRESS, BOOLEAN, BYTES, DURATION, TEXT, integer


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How a node is scored for a pod."""

    twin_staleness_s: float = setting(
        "TWIN_STALENESS_THRESHOLD",
        "5m",
        DURATION,
        "A twin older than this says nothing: the score is neutral.",
    )
    count_recent_pods: bool = setting(
        "EXTENDER_COUNT_RECENT_PODS", "true", BOOLEAN, "Count pods bound since a twin was written."
    )
    score_max: int = setting(
        "EXTENDER_SCORE_MAX",
        "100",
        integer(1, 100),
        "Highest score over HTTP; the scheduler multiplies it by weight × 10.",
    )
    power_profile_label: str = power_profile_label()
    enable_facility_metrics: bool = enable_facility_metrics()


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """Scoring, and where the extender listens."""

    score: ScoreSettings = group(ScoreSettings)
    marginal: MarginalSettings = group(MarginalSettings)
    hardware: HardwareSettings = group(HardwareSettings)
    addr: str = setting("EXTENDER_ADDR", ":9876", ADDRESS, "Where kube-scheduler calls.")
    metrics_addr: str = setting("METRICS_ADDR", ":9877", ADDRESS, "Where metrics and health are served.")
    tls_cert_file: str = setting(
        "EXTENDER_TLS_CERT_FILE", "", TEXT, "Certificate (PEM) to serve HTTPS with, read again when it changes."
    )
    tls_key_file: str = setting("EXTENDER_TLS_KEY_FILE", "", TEXT, "Its private key (PEM).")
    request_timeout_s: float = setting(
        "EXTENDER_REQUEST_TIMEOUT",
        "4s",
        DURATION,
        "A request that has not arrived whole by then is refused.",
    )
    max_request_bytes: int = setting(
        "EXTENDER_MAX_REQUEST_BYTES", "128Mi", BYTES, "Largest request; 5,000 whole nodes are about 19 MB."
    )
    max_connections: int = max_connections()
    cache_ttl_s: float = setting(
        "CACHE_TTL", "30s", DURATION, "Kept for compatibility: objects are watched, not cached."
    )
