{{/*
lockstep.check fails, with a solution, for values that can't become a working installation.
The schema rejects missing values and wrong types. The forms of texts and the known names are in _checkvalues.tpl.
*/}}
{{- define "lockstep.check" -}}
{{- include "lockstep.checkEnabled" . -}}
{{- include "lockstep.checkKnown" . -}}
{{- include "lockstep.checkForms" . -}}
{{- include "lockstep.checkImage" . -}}
{{- include "lockstep.checkScope" . -}}
{{- include "lockstep.checkNeeds" . -}}
{{- include "lockstep.checkImages" . -}}
{{- include "lockstep.checkDockerConfig" .Values -}}
{{- include "lockstep.checkKinds" . -}}
{{- include "lockstep.checkTimes" . -}}
{{- include "lockstep.checkArgs" . -}}
{{- include "lockstep.checkEnv" . -}}
{{- include "lockstep.checkBudget" . -}}
{{- $v := .Values -}}
{{- if and $v.podMonitor.enabled $v.serviceMonitor.enabled -}}
{{- fail "\n\npodMonitor.enabled and serviceMonitor.enabled exclude each other, because Prometheus would scrape every pod twice: set one of them to false" -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "\n\nserviceAccount.create is false, but serviceAccount.name is empty: set it to the name of an existing account" -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.checkEnabled: Helm skips a subchart whose condition is false, and doesn't render this template. If it does, there is no
condition.
*/}}
{{- define "lockstep.checkEnabled" -}}
{{- if and (hasKey .Values "enabled") (not .Values.enabled) -}}
{{- fail "\n\nenabled is false, but this chart doesn't read it: a parent chart skips this one if its dependency sets \"condition: lockstep.enabled\". Add the condition, set replicas=0 to stop the controller, or remove enabled" -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkImage" -}}
{{- $image := .Values.image -}}
{{- if not $image.repository -}}
{{- fail "\n\nimage.repository is empty, and no image is published yet: run \"make push IMAGE=registry.example/team/lockstep\", which builds and pushes one and prints the command that installs it.\nIf you have an image: --set image.repository=registry.example/team/lockstep,image.tag=v0.1.0" -}}
{{- end -}}
{{- if or (contains "@" $image.repository) (regexMatch ":[^/]*$" $image.repository) -}}
{{- fail (printf "\n\nimage.repository %q contains a tag or a digest: set image.tag or image.digest instead" $image.repository) -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkScope" -}}
{{- $v := .Values -}}
{{- include "lockstep.checkNamespaces" . -}}
{{- if and $v.namespaces $v.namespaceSelector -}}
{{- fail "\n\nnamespaces and namespaceSelector exclude each other: list the namespaces or select them by label, and leave the other one empty" -}}
{{- end -}}
{{- if and $v.namespaceSelector (not (regexMatch (include "lockstep.selectorPattern" .) $v.namespaceSelector)) -}}
{{- fail (printf "\n\nnamespaceSelector %q isn't a label selector: use the syntax of \"kubectl get -l\", such as team=shop or \"team in (shop, blog)\"" $v.namespaceSelector) -}}
{{- end -}}
{{- $named := dict "revisions.secretNamespaces" $v.revisions.secretNamespaces "images.dockerConfigNamespaces" $v.images.dockerConfigNamespaces "images.cloudIdentityNamespaces" $v.images.cloudIdentityNamespaces -}}
{{- range $value, $names := $named -}}
{{- range $names -}}
{{- if and $v.namespaces (ne . "*") (not (has . $v.namespaces)) -}}
{{- fail (printf "\n\n%s lists %q, but namespaces doesn't: add it there, or remove it here" $value .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.checkNamespaces: without this check, an upgrade fails halfway, when the previous roles are already gone. The template can
list namespaces, because an installer that grants this permission must have it. Without a cluster, Helm finds none.
*/}}
{{- define "lockstep.checkNamespaces" -}}
{{- $named := concat .Values.namespaces .Values.revisions.secretNamespaces -}}
{{- if and .Values.rbac.create $named -}}
{{- $exist := list -}}
{{- range (lookup "v1" "Namespace" "" "").items -}}
{{- $exist = append $exist .metadata.name -}}
{{- end -}}
{{- range $named -}}
{{- if and $exist (not (has . $exist)) -}}
{{- fail (printf "\n\nnamespaces or revisions.secretNamespaces lists %q, which doesn't exist in the cluster: create the namespace, or remove it from the values" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkImages" -}}
{{- $images := .Values.images -}}
{{- if and $images.webhook.enabled (not $images.webhook.secretName) -}}
{{- fail (printf "\n\nimages.webhook.secretName is empty, so anyone could send notifications: create a Secret in the release namespace and set its name, for example\n  kubectl -n %s create secret generic lockstep-webhook --from-literal=secrets=\"$(openssl rand -hex 32)\"" .Release.Namespace) -}}
{{- end -}}
{{- if and $images.webhook.enabled (has (int $images.webhook.port) (list 8080 8081)) -}}
{{- fail (printf "\n\nimages.webhook.port %v is in use: the controller serves metrics on 8080 and probes on 8081. Choose another port, such as 8082" $images.webhook.port) -}}
{{- end -}}
{{- if and $images.interval (lt (include "lockstep.seconds" $images.interval | float64) 1.0) -}}
{{- fail (printf "\n\nimages.interval %s is too short: set 1s or more, or leave it empty for 1m" $images.interval) -}}
{{- end -}}
{{- end -}}

{{/* lockstep.checkDockerConfig: the controller rejects namespaces without the credentials that they can use. */}}
{{- define "lockstep.checkDockerConfig" -}}
{{- if and .images.dockerConfigNamespaces (not (include "lockstep.given" (dict "values" . "flag" "docker-config"))) -}}
{{- fail "\n\nimages.dockerConfigNamespaces needs --docker-config in extraArgs: add it, and its file with extraVolumes and extraVolumeMounts, or leave images.dockerConfigNamespaces empty" -}}
{{- end -}}
{{- end -}}

{{/* lockstep.given is empty unless extraArgs contains the flag, or extraEnv its variable. */}}
{{- define "lockstep.given" -}}
{{- if regexMatch (printf "(^| )--%s(=| |$)" .flag) (join " " .values.extraArgs) -}}
true
{{- end -}}
{{- $variable := printf "LOCKSTEP_%s" (replace "-" "_" .flag | upper) -}}
{{- range .values.extraEnv -}}
{{- if eq .name $variable -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* lockstep.checkKinds: the controller rejects a kind that it would watch twice, and needs at least one kind. */}}
{{- define "lockstep.checkKinds" -}}
{{- if not (or .Values.builtInKinds .Values.kinds) -}}
{{- fail "\n\nbuiltInKinds and kinds are empty, so Lockstep wouldn't follow any workload: list a kind, or set replicas=0 to stop the controller" -}}
{{- end -}}
{{- $followed := list "apps/Deployment" "apps/StatefulSet" "apps/DaemonSet" "batch/CronJob" "argoproj.io/Rollout" -}}
{{- range .Values.kinds -}}
{{- $kind := printf "%s/%s" (include "lockstep.groupOf" .kind) (first (splitList "=" .kind) | splitList "/" | last) -}}
{{- if has $kind $followed -}}
{{- fail (printf "\n\nkinds lists %q, which is already known: remove it; builtInKinds lists the built-in kinds" .kind) -}}
{{- end -}}
{{- $followed = append $followed $kind -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkTimes" -}}
{{- $quiet := .Values.quiet | default "5s" -}}
{{- $longest := .Values.maxDelay | default "1m" -}}
{{- if gt (include "lockstep.seconds" $quiet | float64) (include "lockstep.seconds" $longest | float64) -}}
{{- fail (printf "\n\nquiet (%s) is longer than maxDelay (%s): set maxDelay to %s or more, or quiet to %s or less" $quiet $longest $quiet $longest) -}}
{{- end -}}
{{- $damping := .Values.rollouts.damping | default "30s" -}}
{{- $most := .Values.rollouts.maxDamping | default "15m" -}}
{{- if gt (include "lockstep.seconds" $damping | float64) (include "lockstep.seconds" $most | float64) -}}
{{- fail (printf "\n\nrollouts.damping (%s) is longer than rollouts.maxDamping (%s): set rollouts.maxDamping to %s or more, or rollouts.damping to %s or less" $damping $most $damping $most) -}}
{{- end -}}
{{- end -}}

{{/* lockstep.checkBudget rejects a budget that doesn't allow any eviction: node drains would wait forever. */}}
{{- define "lockstep.checkBudget" -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- $stay := toString $budget.minAvailable -}}
{{- $gone := toString $budget.maxUnavailable -}}
{{- if and (ne $stay "") (ne $gone "") -}}
{{- fail "\n\npodDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable exclude each other: set one of them" -}}
{{- end -}}
{{- $pods := int .Values.replicas -}}
{{- if and $budget.enabled (gt $pods 1) -}}
{{- if and (ne $gone "") (eq (trimSuffix "%" $gone | int) 0) -}}
{{- fail (printf "\n\npodDisruptionBudget.maxUnavailable %s prevents node drains: set 1 or more, or podDisruptionBudget.enabled=false" $gone) -}}
{{- end -}}
{{- $number := trimSuffix "%" $stay | int -}}
{{- if hasSuffix "%" $stay -}}
{{- $number = div (add (mul $number $pods) 99) 100 | int -}}{{/* Kubernetes rounds up */}}
{{- end -}}
{{- if ge $number $pods -}}
{{- fail (printf "\n\npodDisruptionBudget.minAvailable %s requires all %d replicas, which prevents node drains: set a lower value, raise replicas, or set podDisruptionBudget.enabled=false" $stay $pods) -}}
{{- end -}}
{{- end -}}
{{- end -}}
