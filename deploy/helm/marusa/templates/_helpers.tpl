{{- define "marusa.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- define "marusa.select" -}}
app.kubernetes.io/name: marusa
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "marusa.labels" -}}
{{ include "marusa.select" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
app.kubernetes.io/part-of: marusa
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
