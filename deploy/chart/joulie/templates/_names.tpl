{{/* Names are fixed: Joulie's objects belong to the whole cluster, so there is one Joulie in it. A second release is
refused by Helm, because the ClusterRoles belong to the first. */}}

{{- define "joulie.selector" -}}
app.kubernetes.io/name: joulie
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "joulie.labels" -}}
{{ include "joulie.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: joulie
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "joulie.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The Service of the extender, as kube-scheduler's configuration names it: outside of a release called joulie with the
release's name in front, as Helm charts do it. */}}
{{- define "joulie.extenderService" -}}
{{- $full := ternary .Release.Name (printf "%s-joulie" .Release.Name) (contains "joulie" .Release.Name) -}}
{{ printf "%s-scheduler-extender" $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "joulie.simulatorUrl" -}}
http://joulie-simulator.{{ .Release.Namespace }}.svc:18080
{{- end }}

{{/* The plain manifests of one file, in this release's namespace and with its labels. `annotations` may be added. */}}
{{- define "joulie.manifests" -}}
{{- range $text := splitList "\n---\n" (.root.Files.Get .file) }}
{{- $manifest := fromYaml $text }}
{{- if ne $manifest.kind "Namespace" }}
{{- $_ := set $manifest.metadata "labels" (include "joulie.labels" $ | fromYaml) }}
{{- with $.annotations }}
{{- $_ := set $manifest.metadata "annotations" . }}
{{- end }}
{{- range prepend ($manifest.subjects | default list) $manifest.metadata }}
{{- if eq (.namespace | default "") "joulie-system" }}
{{- $_ := set . "namespace" $.root.Release.Namespace }}
{{- end }}
{{- end }}
---
{{ toYaml $manifest }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether the API server serves ValidatingAdmissionPolicy, as every supported version does unless it is switched off.
`helm template` knows of no kinds, and then it counts as served. */}}
{{- define "joulie.validates" -}}
{{- or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") (not (.Capabilities.APIVersions.Has "v1/Pod")) -}}
{{- end }}
