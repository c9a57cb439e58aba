{{/* The name of the chart. */}}
{{- define "CHART.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The prefix of object names: the release's name, with the chart's name unless it contains it. */}}
{{- define "CHART.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The name of an object. Only the prefix is truncated, so that names stay unique.
Call it with (dict "suffix" "webhook-service" "context" $). */}}
{{- define "CHART.resourceName" -}}
{{- $length := max 1 (sub 62 (len .suffix)) | int }}
{{- printf "%s-%s" (include "CHART.fullname" .context | trunc $length | trimSuffix "-") .suffix }}
{{- end }}

{{/* The ServiceAccount of the manager. */}}
{{- define "CHART.serviceAccountName" -}}
{{- if .Values.serviceAccount.enable }}
{{- default (include "CHART.resourceName" (dict "suffix" "ACCOUNT" "context" .)) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The image of the manager. */}}
{{- define "CHART.image" -}}
{{- $image := .Values.manager.image }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{/* Labels that select the objects of a release. */}}
{{- define "CHART.selectorLabels" -}}
app.kubernetes.io/name: {{ include "CHART.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "CHART.labels" -}}
{{ include "CHART.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | replace "+" "_" | trunc 63 | quote }}
{{- end }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end }}
