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
{{- if regexMatch `://[^/\s]*@` $text }}
{{- fail (printf "%s holds a user or password, which all users who may view workloads could read: put the URL into a Secret and name that in settingsFromSecrets.%s of the component" $place $name) }}
{{- end }}
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

{{/* A selector that cannot be parsed would only be found when the first pod ends. */}}
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
{{- /* A simulated building is measured; operator and extender have to agree on whether it counts. */}}
{{- if and .root.Values.simulator.enabled (has .component (list "operator" "extender")) }}
{{- $_ := set $all "ENABLE_FACILITY_METRICS" "true" }}
{{- end }}
{{- range list .chart .root.Values.settings $own }}
{{- range $name, $value := . }}
{{- $_ := set $all $name (include "joulie.text" $value) }}
{{- end }}
{{- end }}
{{- if .root.Values.hardwareCatalogue }}
{{- $_ := set $all "HARDWARE_CATALOG_PATH" "/etc/joulie/catalogue/catalogue.toml" }}
{{- end }}
{{- $secrets := (index .root.Values .component).settingsFromSecrets }}
{{- $known := index (.root.Files.Get "files/settings.json" | fromJson) .component }}
{{- range $name, $from := $secrets }}
{{- $about := index $known $name | default (dict "instead" "there is no such setting; docs/reference/settings.md lists them") }}
{{- if $about.instead }}
{{- fail (printf "%s.settingsFromSecrets.%s cannot be set here: %s" $.component $name $about.instead) }}
{{- end }}
{{- $all = omit $all $name }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $from.name }}, key: {{ $from.key }}}}
{{- end }}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
{{- range $name, $value := $all }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
