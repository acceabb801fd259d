{{/*
lockstep.check fails, with the way out, for values that cannot become a working installation.
Names that the chart does not know are refused by the schema.
*/}}
{{- define "lockstep.check" -}}
{{- include "lockstep.checkImage" . -}}
{{- include "lockstep.checkScope" . -}}
{{- include "lockstep.checkSwitches" . -}}
{{- $v := .Values -}}
{{- if and (ne (toString $v.podDisruptionBudget.minAvailable) "") (ne (toString $v.podDisruptionBudget.maxUnavailable) "") -}}
{{- fail "\n\npodDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable exclude each other: set one of them" -}}
{{- end -}}
{{- if and $v.podMonitor.enabled $v.serviceMonitor.enabled -}}
{{- fail "\n\npodMonitor.enabled and serviceMonitor.enabled exclude each other: every pod would be read twice. Set one of them to false" -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "\n\nserviceAccount.create is false, and serviceAccount.name is empty: name the account that exists" -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkImage" -}}
{{- $image := .Values.image -}}
{{- if not $image.repository -}}
{{- fail "\n\nimage.repository is empty, and no image is published yet: \"make push IMAGE=registry.example/team/lockstep\" builds and pushes one and prints the command that installs it.\nWith an image that exists: --set image.repository=registry.example/team/lockstep,image.tag=v0.1.0" -}}
{{- end -}}
{{- if or (contains "@" $image.repository) (regexMatch ":[^/]*$" $image.repository) -}}
{{- fail (printf "\n\nimage.repository %q has a tag or a digest in it: put those into image.tag and image.digest" $image.repository) -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkScope" -}}
{{- $v := .Values -}}
{{- if and $v.namespaces $v.namespaceSelector -}}
{{- fail "\n\nnamespaces and namespaceSelector exclude each other: list the namespaces or choose them by label, and leave the other one empty" -}}
{{- end -}}
{{- range $v.revisions.secretNamespaces -}}
{{- if and $v.namespaces (not (has . $v.namespaces)) -}}
{{- fail (printf "\n\nrevisions.secretNamespaces has %q, which namespaces has not: add it there, or take it out here" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkSwitches" -}}
{{- $v := .Values -}}
{{- if and $v.podStrategies.enabled (not $v.reload.enabled) -}}
{{- fail "\n\npodStrategies.enabled needs reload.enabled: the strategies evict and refresh deliver ConfigMaps and Secrets. Set reload.enabled=true, or podStrategies.enabled=false" -}}
{{- end -}}
{{- if and $v.reload.auto (not $v.reload.enabled) -}}
{{- fail "\n\nreload.auto needs reload.enabled: set reload.enabled=true, or reload.auto=false" -}}
{{- end -}}
{{- if and $v.revisions.secretNamespaces (not $v.revisions.enabled) -}}
{{- fail "\n\nrevisions.secretNamespaces needs revisions.enabled: set revisions.enabled=true, or leave revisions.secretNamespaces empty" -}}
{{- end -}}
{{- if and $v.images.webhook.enabled (not $v.images.enabled) -}}
{{- fail "\n\nimages.webhook.enabled needs images.enabled: set images.enabled=true, or images.webhook.enabled=false" -}}
{{- end -}}
{{- if and $v.images.webhook.enabled (not $v.images.webhook.secretName) -}}
{{- fail "\n\nimages.webhook.secretName is empty, and anyone could send notifications: make a Secret and name it, for example\n  kubectl create secret generic lockstep-webhook --from-literal=secrets=\"$(openssl rand -hex 32)\"" -}}
{{- end -}}
{{- end -}}
