{{- define "ragwatch.name" -}}
{{- if contains "ragwatch" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-ragwatch" (.Release.Name | trunc 40 | trimSuffix "-") }}{{- end -}}
{{- end }}

{{- define "ragwatch.selector" -}}
app.kubernetes.io/name: ragwatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ragwatch.labels" -}}
{{ include "ragwatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ragwatch.authSecret" -}}
{{- if .Values.auth.existingSecret -}}{{ .Values.auth.existingSecret }}{{- else -}}{{ include "ragwatch.name" . }}-web{{- end -}}
{{- end }}

{{- define "ragwatch.isFleet" -}}
{{- if eq (dig "store" "kind" "sqlite" .Values.config) "postgres" -}}yes{{- end -}}
{{- end }}

{{/* The configuration file. What the chart decides stands above what the values say. */}}
{{- define "ragwatch.config" -}}
{{- $web := dict "listen" "0.0.0.0:10477" "config_file" "/etc/ragwatch-web/web.yml" -}}
{{- $hosts := list (include "ragwatch.name" .) (printf "%s.%s" (include "ragwatch.name" .) .Release.Namespace) (printf "%s.%s.svc" (include "ragwatch.name" .) .Release.Namespace) -}}
{{- $own := dict "state" "/var/lib/ragwatch" "web" (dict "hosts" $hosts) -}}
{{- $set := dict "state" "/var/lib/ragwatch" "web" $web -}}
{{- mergeOverwrite $own (deepCopy .Values.config) $set | toYaml -}}
{{- end }}

{{- define "ragwatch.check" -}}
{{- if not (or .Values.auth.existingSecret .Values.auth.basicAuthUsers) -}}
{{- fail "auth.basicAuthUsers: is empty, and ragwatch does not listen beyond loopback without users; write {NAME: HASH} with the output of `htpasswd -nBC 10 NAME`, or name a Secret with the key web.yml in auth.existingSecret" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "ragwatch.isFleet" .)) -}}
{{- fail "replicas: is above 1, but each worker would have figures of its own; write config.store.kind: postgres, or replicas: 1" -}}
{{- end -}}
{{- end }}
