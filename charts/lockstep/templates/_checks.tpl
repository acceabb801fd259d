{{/*
lockstep.check fails, with the way out, for values that cannot become a working installation.
Names that the chart does not know are refused by the schema, which lists those at the top. Of durations it could show only a regular
expression.
*/}}
{{- define "lockstep.check" -}}
{{- include "lockstep.checkEnabled" . -}}
{{- include "lockstep.checkDurations" . -}}
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
{{- fail "\n\npodMonitor.enabled and serviceMonitor.enabled exclude each other: every pod would be read twice. Set one of them to false" -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "\n\nserviceAccount.create is false, and serviceAccount.name is empty: name the account that exists" -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.checkEnabled: Helm leaves out a subchart whose condition is false, and does not come here. Whoever
does has no condition.
*/}}
{{- define "lockstep.checkEnabled" -}}
{{- if and (hasKey .Values "enabled") (not .Values.enabled) -}}
{{- fail "\n\nenabled is false, and nothing reads it: a parent chart leaves this one out when its dependency has \"condition: lockstep.enabled\". Add the condition, set replicas=0 to stop the controller, or take enabled out" -}}
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
{{- include "lockstep.checkNamespaces" . -}}
{{- if and $v.namespaces $v.namespaceSelector -}}
{{- fail "\n\nnamespaces and namespaceSelector exclude each other: list the namespaces or choose them by label, and leave the other one empty" -}}
{{- end -}}
{{- if and $v.namespaceSelector (not (regexMatch (include "lockstep.selectorPattern" .) $v.namespaceSelector)) -}}
{{- fail (printf "\n\nnamespaceSelector %q is no label selector: write it as for \"kubectl get -l\", such as team=shop or \"team in (shop, blog)\"" $v.namespaceSelector) -}}
{{- end -}}
{{- $named := dict "revisions.secretNamespaces" $v.revisions.secretNamespaces "images.dockerConfigNamespaces" $v.images.dockerConfigNamespaces "images.cloudIdentityNamespaces" $v.images.cloudIdentityNamespaces -}}
{{- range $value, $names := $named -}}
{{- range $names -}}
{{- if and $v.namespaces (ne . "*") (not (has . $v.namespaces)) -}}
{{- fail (printf "\n\n%s has %q, which namespaces has not: add it there, or take it out here" $value .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.checkNamespaces: without this an upgrade fails half-way, when the roles of before are gone already. The
namespaces are listed, because whoever grants the permission to list them has it. Where Helm renders without a cluster
it finds none at all.
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
{{- fail (printf "\n\nnamespaces or revisions.secretNamespaces has %q, and the cluster has no such namespace: create it, or take it out" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkImages" -}}
{{- $images := .Values.images -}}
{{- if and $images.webhook.enabled (not $images.webhook.secretName) -}}
{{- fail (printf "\n\nimages.webhook.secretName is empty, and anyone could send notifications: create a Secret in the release namespace and name it, for example\n  kubectl -n %s create secret generic lockstep-webhook --from-literal=secrets=\"$(openssl rand -hex 32)\"" .Release.Namespace) -}}
{{- end -}}
{{- if and $images.webhook.enabled (has (int $images.webhook.port) (list 8080 8081)) -}}
{{- fail (printf "\n\nimages.webhook.port %v is taken: the controller serves metrics at 8080 and probes at 8081. Choose another one, such as 8082" $images.webhook.port) -}}
{{- end -}}
{{- if and $images.interval (lt (include "lockstep.seconds" $images.interval | float64) 1.0) -}}
{{- fail (printf "\n\nimages.interval %s is too short: set 1s or more, or leave it empty for 1m" $images.interval) -}}
{{- end -}}
{{- end -}}

{{/* lockstep.checkDockerConfig: the controller refuses namespaces without the credentials that they may use. */}}
{{- define "lockstep.checkDockerConfig" -}}
{{- if and .images.dockerConfigNamespaces (not (include "lockstep.given" (dict "values" . "flag" "docker-config"))) -}}
{{- fail "\n\nimages.dockerConfigNamespaces needs --docker-config in extraArgs: add it, and its file with extraVolumes and extraVolumeMounts, or leave images.dockerConfigNamespaces empty" -}}
{{- end -}}
{{- end -}}

{{/* lockstep.given is empty unless extraArgs has the flag, or extraEnv its variable. */}}
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

{{/* lockstep.checkKinds: the controller refuses a kind that it would watch twice, and needs one kind. */}}
{{- define "lockstep.checkKinds" -}}
{{- if not (or .Values.builtInKinds .Values.kinds) -}}
{{- fail "\n\nbuiltInKinds and kinds are empty, so that no workload would be followed: name a kind, or set replicas=0 to stop the controller" -}}
{{- end -}}
{{- $followed := list "apps/Deployment" "apps/StatefulSet" "apps/DaemonSet" "batch/CronJob" "argoproj.io/Rollout" -}}
{{- range .Values.kinds -}}
{{- $kind := printf "%s/%s" (include "lockstep.groupOf" .kind) (first (splitList "=" .kind) | splitList "/" | last) -}}
{{- if has $kind $followed -}}
{{- fail (printf "\n\nkinds has %q, which is known already: take it out; builtInKinds lists the built-in kinds" .kind) -}}
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

{{/* lockstep.checkBudget refuses a budget that lets no pod go: every drain of a node would wait for ever. */}}
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
{{- fail (printf "\n\npodDisruptionBudget.maxUnavailable %s lets no node be drained: set 1 or more, or podDisruptionBudget.enabled=false" $gone) -}}
{{- end -}}
{{- $number := trimSuffix "%" $stay | int -}}
{{- if hasSuffix "%" $stay -}}
{{- $number = div (add (mul $number $pods) 99) 100 | int -}}{{/* Kubernetes rounds up */}}
{{- end -}}
{{- if ge $number $pods -}}
{{- fail (printf "\n\npodDisruptionBudget.minAvailable %s is every one of the %d replicas, and lets no node be drained: set less, raise replicas, or set podDisruptionBudget.enabled=false" $stay $pods) -}}
{{- end -}}
{{- end -}}
{{- end -}}
