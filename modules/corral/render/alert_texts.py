"""The text of Alertmanager's messages, as its templates: what, since when, where to look first, and the runbook.

Each exists twice: plain, and as Slack reads it, where <!here> or <@somebody> would notify people. Sources:
Alertmanager's "Notification template reference"; Slack's "Formatting text for app surfaces", "Escaping text".
"""

_SHOWN = {
    "plain": "",
    "slack": ' | reReplaceAll "&" "&amp;" | reReplaceAll "<" "&lt;" | reReplaceAll ">" "&gt;"',
}
# Rules of one's own may have other annotations than corral's, or none.
_TEMPLATES = """\
{{ define "corral.NAME.title" -}}
corral {{ .GroupLabels.cluster | SHOWN }}: {{ .GroupLabels.alertname | SHOWN }}
{{- if eq .Status "resolved" }} is over{{ else }}{{ with .CommonLabels.severity }} ({{ . | SHOWN }}){{ end }}{{ end }}
{{- end }}
{{ define "corral.NAME.what" -}}
{{ or .Annotations.summary .Annotations.description .Labels.alertname | SHOWN }}
{{- end }}
{{ define "corral.NAME.text" -}}
{{ range .Alerts.Firing -}}
{{ template "corral.NAME.what" . }}
Since {{ .StartsAt.UTC.Format "2006-01-02 15:04 UTC" }}.
{{ end -}}
{{ range .Alerts.Resolved -}}
Over: {{ template "corral.NAME.what" . }}
From {{ .StartsAt.UTC.Format "2006-01-02 15:04" }} to {{ .EndsAt.UTC.Format "2006-01-02 15:04 UTC" }}.
{{ end -}}
{{ if .Alerts.Firing -}}
{{ with .CommonAnnotations.command }}Look first: {{ . | SHOWN }}
{{ end -}}
{{ with .CommonAnnotations.runbook }}Runbook: {{ . | SHOWN }}{{ end -}}
{{ end -}}
{{ end }}
"""


def alert_texts() -> str:
    """The templates: corral.plain.title and .text, corral.slack.title and .text."""
    return "".join(_TEMPLATES.replace("NAME", name).replace(" | SHOWN", shown) for name, shown in _SHOWN.items())
