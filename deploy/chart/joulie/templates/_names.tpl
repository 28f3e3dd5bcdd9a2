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
