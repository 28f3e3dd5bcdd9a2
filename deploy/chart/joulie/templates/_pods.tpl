{{/* What the pods of all components have in common. */}}

{{/* Not the chart's version: a chart that changes nothing else would replace every pod, and agents would lift caps. */}}
{{- define "joulie.podLabels" -}}
{{ include "joulie.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "joulie.podMetadata" -}}
labels:
  {{- include "joulie.podLabels" . | nindent 2 }}
  {{- with .more }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  {{- if .root.Values.hardwareCatalogue }}
  joulie.io/catalogue-checksum: {{ .root.Values.hardwareCatalogue | sha256sum }}
  {{- end }}
  kubectl.kubernetes.io/default-container: {{ .component }}
  {{- with (index .root.Values .component).podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "joulie.placement" -}}
{{- $values := index .root.Values .component }}
{{- if eq .component "agent" }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- if hasKey $values $key }}
{{- fail (printf "agent.%s is gone: set %s" $key (ternary "agent.pool.affinity, with agent.mode: pool" (printf "agent.daemonset.%s, or with agent.mode: pool agent.pool.%s" $key $key) (eq $key "affinity"))) }}
{{- end }}
{{- end }}
{{- $values = merge (dict "priorityClassName" $values.priorityClassName) (index $values $values.mode) }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with $values.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of several pods no two on one node, if it can be helped. */}}
{{- define "joulie.apart" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "joulie.selector" . | nindent 8 }}
{{- end }}

{{/* The pod security standard `restricted`. */}}
{{- define "joulie.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "joulie.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "joulie.containerImage" -}}
image: {{ include "joulie.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "joulie.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- define "joulie.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.hardwareCatalogue }}
- {name: catalogue, mountPath: /etc/joulie/catalogue, readOnly: true}
{{- end }}
{{- end }}

{{- define "joulie.volumes" -}}
- {name: tmp, emptyDir: {sizeLimit: 64Mi}}
{{- if .Values.hardwareCatalogue }}
- {name: catalogue, configMap: {name: joulie-catalogue}}
{{- end }}
{{- end }}

{{/* A pod of a hook, wherever the operator may run: it runs one command and ends. */}}
{{- define "joulie.hookPod" -}}
serviceAccountName: joulie-{{ .component }}
restartPolicy: Never
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with .root.Values.operator.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.operator.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "joulie.podSecurity" .root | nindent 2 }}
containers:
  - name: {{ .component }}
    {{- include "joulie.containerImage" .root | nindent 4 }}
    args: {{ toJson .args }}
    env:
      - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
      {{- with .root.Values.settings.POWER_PROFILE_LABEL }}
      - {name: POWER_PROFILE_LABEL, value: {{ . | quote }}}
      {{- end }}
    resources:
      {{- toYaml .root.Values.cleanup.resources | nindent 6 }}
    securityContext:
      {{- include "joulie.containerSecurity" .root | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
volumes:
  - {name: tmp, emptyDir: {sizeLimit: 16Mi}}
{{- end }}
