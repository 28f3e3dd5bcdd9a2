{{/* Settings become environment variables. files/settings.json is generated from the code: what is allowed, in words. */}}

{{/* One setting as text: Helm reads 1000000 as a float and would write 1e+06. */}}
{{- define "joulie.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "joulie.checkSettings" -}}
{{- $known := index ($.root.Files.Get "files/settings.json" | fromJson) .of }}
{{- range $name, $value := .settings }}
{{- $place := printf "%s.%s" $.place $name }}
{{- $text := include "joulie.text" $value }}
{{- $about := index $known $name }}
{{- if not $about }}
{{- fail (printf "%s: there is no such setting; docs/reference/settings.md lists them" $place) }}
{{- else if $about.instead }}
{{- fail (printf "%s cannot be set here: %s" $place $about.instead) }}
{{- else if $text }}
{{- $wrong := false }}
{{- if $about.choices }}{{- $wrong = not (has $text $about.choices) }}{{- end }}
{{- if $about.pattern }}{{- $wrong = not (regexMatch $about.pattern $text) }}{{- end }}
{{- if and (hasKey $about "low") (not $wrong) }}
{{- $number := float64 $text }}
{{- if $about.above }}{{- $wrong = le $number $about.low }}{{- else }}{{- $wrong = lt $number $about.low }}{{- end }}
{{- $wrong = or $wrong (gt $number $about.high) }}
{{- end }}
{{- if $wrong }}
{{- fail (printf "%s=%q cannot be used: allowed is %s. %s" $place $text $about.allowed $about.meaning) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A selector that nobody can read would only be found when the first pod ends. */}}
{{- define "joulie.checkManagedNodes" -}}
{{- $word := `[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?` }}
{{- $key := printf `([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?%s` $word }}
{{- $set := printf `%s\s+(in|notin)\s*\([^()]*\)` $key }}
{{- $one := printf `\s*(!\s*%s|%s|%s(\s*(==|=|!=|>|<)\s*(%s)?)?)\s*` $key $set $key $word }}
{{- if not (regexMatch (printf `^\s*$|^%s(,%s)*$` $one $one) .Values.managedNodes) }}
{{- fail (printf "managedNodes=%q cannot be used: it is a label selector such as joulie.io/managed=true,joulie.io/rack in (r1,r2); empty takes every node" .Values.managedNodes) }}
{{- end }}
{{- end }}

{{/* The environment of a component: what the chart says, then shared settings, then its own; the last wins. */}}
{{- define "joulie.environment" -}}
{{- $own := (index .root.Values .component).settings }}
{{- include "joulie.checkManagedNodes" .root }}
{{- include "joulie.checkSettings" (dict "root" .root "of" "shared" "settings" .root.Values.settings "place" "settings") }}
{{- include "joulie.checkSettings" (dict "root" .root "of" .component "settings" $own "place" (printf "%s.settings" .component)) }}
{{- $all := dict }}
{{- range list .chart .root.Values.settings $own }}
{{- range $name, $value := . }}
{{- $_ := set $all $name (include "joulie.text" $value) }}
{{- end }}
{{- end }}
{{- if .root.Values.hardwareCatalogue }}
{{- $_ := set $all "HARDWARE_CATALOG_PATH" "/etc/joulie/catalogue/catalogue.toml" }}
{{- end }}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
{{- range $name, $value := $all }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
