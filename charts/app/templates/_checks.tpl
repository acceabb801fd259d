{{/* app.check fails, with advice, for values that can't become a working application. */}}
{{- define "app.check" -}}
{{- $v := .Values -}}
{{- include "app.checkNames" . -}}
{{- include "app.checkKnown" . -}}
{{- include "app.checkForms" . -}}
{{- if not $v.appName -}}
{{- fail "\n\nappName is empty: set it to the name of your application, for example --set appName=web" -}}
{{- end -}}
{{- if or (gt (len $v.appName) 63) (not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $v.appName)) -}}
{{- fail (printf "\n\nappName %q is invalid: use at most 63 lowercase letters, digits and dashes, beginning and ending with a letter or digit" $v.appName) -}}
{{- end -}}
{{- include "app.checkSpelling" . -}}
{{- range $group := list "configmaps" "secrets" -}}
{{- range $key, $spec := index $v $group -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" (printf "%s-%s-0" $v.appName $key)) -}}
{{- fail (printf "\n\n%s.%s: the key becomes part of an object's name; use lowercase letters, digits, dashes and single dots" $group $key) -}}
{{- end -}}
{{- if gt (add (len $v.appName) (len $key) 13) 253 -}}
{{- fail (printf "\n\n%s.%s: the key is too long; appName, key and hash together may have at most 253 characters" $group $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $v.mount.layout "flat" -}}
{{- include "app.checkClashes" (dict "root" . "group" "configmaps") -}}
{{- include "app.checkClashes" (dict "root" . "group" "secrets") -}}
{{- end -}}
{{- include "app.checkDirectories" . -}}
{{- if eq $v.revisions.attach "job" -}}
{{- include "app.checkNamed" . -}}
{{- include "app.checkAttachImage" . -}}
{{- end -}}
{{- end -}}

{{/*
app.checkAttachImage: without an image the attach Job would never start, and Helm would wait for it until its
timeout. There is no default, because no Lockstep image is published yet.
*/}}
{{- define "app.checkAttachImage" -}}
{{- if and (include "app.attachJob" .) (not .Values.configmapAttacher.repository) -}}
{{- fail "\n\nconfigmapAttacher.repository is empty: revisions.attach is job, and the attach Job needs a Lockstep image. No image is published yet.\nEither set revisions.attach=controller: no Job, and the Lockstep controller attaches ConfigMaps and Secrets once it runs.\nOr build and push an image with \"make push IMAGE=registry.example/team/lockstep\", and set\nconfigmapAttacher.repository=registry.example/team/lockstep,configmapAttacher.tag=TAG" -}}
{{- end -}}
{{- end -}}

{{/*
app.checkNames rejects top-level names that neither this chart nor Helm knows, and values of the wrong type. It gives
advice, which a schema can't: base-app accepted any key, and a user's own key may have become a value of this chart.
That is why the schema has no types for the lists and maps that base-app didn't have. Every template begins with this
check, because Helm renders templates in any order.
*/}}
{{- define "app.checkNames" -}}
{{- $lists := splitList " " (join " " (list
    "env envFrom command args ports volumes volumeMounts initContainers extraContainers imagePullSecrets"
    "tolerations topologySpreadConstraints"
)) -}}
{{- $maps := splitList " " (join " " (list
    "workload deployment secrets mount revisions livenessProbe readinessProbe startupProbe lifecycle resources"
    "securityContext podSecurityContext podAnnotations podLabels nodeSelector affinity service autoscaling"
    "serviceAccount podDisruptionBudget ingress httpRoute networkPolicy serviceMonitor helmTest sync custom"
)) -}}
{{- $others := splitList " " (join " " (list
    "global enabled tags appName kubeTargetVersionOverride image replicas rollout configmaps configmapsMountPath"
    "secretsMountPath configmapAttacher rbac serviceAccountName automountServiceAccountToken priorityClassName"
    "terminationGracePeriodSeconds unknownValues"
)) -}}
{{- $words := dict "slice" "a list" "map" "a map" "string" "a string" "bool" "a boolean" -}}
{{- range $name, $value := .Values -}}
{{- $want := has $name $lists | ternary "slice" (has $name $maps | ternary "map" "") -}}
{{- if not (or $want (has $name $others) (eq (toString $.Values.unknownValues) "accept")) -}}
{{- fail (printf "\n\n%s is not a value of this chart, and a misspelled name would have no effect: correct it.\nPut your own value below custom, or set unknownValues=accept to allow it at the top level." $name) -}}
{{- end -}}
{{- if and $want (not (or (kindIs $want $value) (kindIs "invalid" $value))) -}}
{{- fail (printf "\n\n%s is %s, but this chart's %s is %s.\nIf it is your own value, rename it, or move it below custom: {{ .Values.custom.%s }}." $name (get $words (kindOf $value) | default "a number") $name (get $words $want) $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* app.checkDirectories finds two volumes that would be mounted in one directory. */}}
{{- define "app.checkDirectories" -}}
{{- $values := dict "configmaps-volume" "configmapsMountPath" "secrets-volume" "secretsMountPath" "lockstep-sync" "sync.mountPath" -}}
{{- $seen := dict -}}
{{- range $mount := include "app.volumeMounts" . | fromYamlArray -}}
{{- $value := get $values $mount.name | default (printf "volumeMounts (%s)" $mount.name) -}}
{{- $dir := clean $mount.mountPath -}}
{{- if hasKey $seen $dir -}}
{{- fail (printf "\n\n%s and %s are the same directory, %s, but Kubernetes mounts only one volume in a directory: change one of them" (get $seen $dir) $value $dir) -}}
{{- end -}}
{{- $_ := set $seen $dir $value -}}
{{- end -}}
{{- end -}}

{{/*
app.checkNamed finds an object that the attach Job couldn't attach to a revision. With
the controller, another workload may use it.
*/}}
{{- define "app.checkNamed" -}}
{{- $root := . -}}
{{- range $group := list "configmaps" "secrets" -}}
{{- range $key, $spec := index $root.Values $group -}}
{{- if not (include "app.named" (dict "root" $root "group" $group "key" $key)) -}}
{{- fail (printf "\n\n%s.%s: use is none and the pod template doesn't reference it, so the attach Job can't attach it to a revision and it would never be removed.\nReference it in volumes, env, envFrom, initContainers or extraContainers, or set revisions.attach=controller." $group $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
app.checkSpelling finds content that would be lost because of a misspelled name, inside the maps
that base-app left open.
*/}}
{{- define "app.checkSpelling" -}}
{{- range $key, $spec := .Values.configmaps -}}
{{- range $name, $value := $spec -}}
{{- $right := get (dict "kv" "kv_data" "kvdata" "kv_data" "raw" "raw_data" "rawdata" "raw_data" "data" "kv_data or raw_data" "binarydata" "binaryData" "binary" "binaryData") ($name | lower | replace "_" "" | replace "-" "") -}}
{{- if and $right (ne $name $right) -}}
{{- fail (printf "\n\nconfigmaps.%s.%s isn't a known name: use %s" $key $name $right) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* app.checkClashes finds two objects that mount the same file into one directory. */}}
{{- define "app.checkClashes" -}}
{{- $seen := dict -}}
{{- $root := .root -}}
{{- $group := .group -}}
{{- if ne $root.Values.mount.clashes "last" -}}
{{- range $key, $spec := index $root.Values $group -}}
{{- if has (($spec).use | default "files") (list "files" "both") -}}
{{- range $file := include "app.files" (dict "root" $root "group" $group "key" $key) | fromJsonArray -}}
{{- if hasKey $seen $file -}}
{{- fail (printf "\n\n%s.%s and %s.%s both contain the file %q, and one would hide the other.\nRename one, or set mount.layout=directories to mount each into its own directory,\nor set mount.clashes=last to use the last one." $group (get $seen $file) $group $key $file) -}}
{{- end -}}
{{- $_ := set $seen $file $key -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
