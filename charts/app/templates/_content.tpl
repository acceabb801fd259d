{{/*
app.content is the final content of one ConfigMap or Secret, as JSON:
{"data": {key: text}, "binaryData": {key: base64}}. A Secret uses only binaryData,
as Kubernetes stores it. Names, objects and mounts are all derived from this.
*/}}
{{- define "app.content" -}}
{{- $root := .root -}}
{{- $path := printf "%s.%s" .group .key -}}
{{- $spec := index $root.Values .group .key | default dict -}}
{{- $data := dict -}}
{{- $binary := dict -}}
{{- range $name, $value := $spec.kv_data -}}
{{- $_ := set $data $name (include "app.scalar" (dict "value" $value "path" (printf "%s.kv_data.%s" $path $name))) -}}
{{- end -}}
{{- range $name, $value := $spec.raw_data -}}
{{- if hasKey $data $name -}}
{{- fail (printf "\n\n%s: the key %q is in kv_data and in raw_data; keep one" $path $name) -}}
{{- end -}}
{{- $text := include "app.scalar" (dict "value" $value "path" (printf "%s.raw_data.%s" $path $name)) -}}
{{- if ne (toString $spec.templated) "false" -}}
{{- $text = tpl $text $root -}}
{{- end -}}
{{- $_ := set $data $name $text -}}
{{- end -}}
{{- range $name, $value := $spec.binaryData -}}
{{- if hasKey $data $name -}}
{{- fail (printf "\n\n%s: the key %q is in binaryData and in kv_data or raw_data; keep one" $path $name) -}}
{{- end -}}
{{- $encoded := regexReplaceAll "\\s" (toString $value) "" -}}
{{- if not (regexMatch "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" $encoded) -}}
{{- fail (printf "\n\n%s.binaryData.%s isn't valid base64; encode the file with: base64 -w0 FILE" $path $name) -}}
{{- end -}}
{{- $_ := set $binary $name $encoded -}}
{{- end -}}
{{- if eq .group "secrets" -}}
{{- range $name, $text := $data -}}
{{- $_ := set $binary $name (b64enc $text) -}}
{{- end -}}
{{- $data = dict -}}
{{- end -}}
{{- toJson (dict "data" $data "binaryData" $binary) -}}
{{- end -}}

{{/* app.scalar is one value as text. */}}
{{- define "app.scalar" -}}
{{- $value := .value -}}
{{- if kindIs "string" $value -}}
{{- $value -}}
{{- else if kindIs "invalid" $value -}}
{{- else if kindIs "bool" $value -}}
{{- toString $value -}}
{{- else if or (kindIs "float64" $value) (kindIs "int" $value) (kindIs "int64" $value) -}}
{{- if or (ge (float64 $value) 9007199254740992.0) (le (float64 $value) -9007199254740992.0) -}}
{{- fail (printf "\n\n%s: the number is too large to be kept exactly; quote it" .path) -}}
{{- end -}}
{{- toJson $value -}}
{{- else -}}
{{- fail (printf "\n\n%s is a %s, but must be text, a number or a boolean; write structured content in quotes or in a block (|)" .path (kindOf $value)) -}}
{{- end -}}
{{- end -}}

{{/* app.files lists the keys of an object, as a JSON list. */}}
{{- define "app.files" -}}
{{- $content := include "app.content" . | fromJson -}}
{{- concat (keys $content.data) (keys $content.binaryData) | sortAlpha | toJson -}}
{{- end -}}

{{/*
app.quote is text as a YAML scalar that decodes to exactly this text. JSON is
YAML, except for a few characters that YAML reads as line breaks or refuses.
*/}}
{{- define "app.quote" -}}
{{- $text := toJson . -}}
{{- range $code := concat (untilStep 127 160 1) (list 65534 65535) -}}
{{- $text = replace (printf "%c" (int $code)) (printf "\\u%04x" (int $code)) $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/*
app.digest is the hash of an object's final content. The type of a Secret counts
as content, because Kubernetes doesn't allow changing it. So does mutability, because an
immutable object can't become mutable again.
*/}}
{{- define "app.digest" -}}
{{- $salt := "" -}}
{{- $type := "" -}}
{{- if eq .group "secrets" -}}
{{- $salt = .root.Values.revisions.secretSalt -}}
{{- $type = include "app.secretType" . -}}
{{- $type = eq $type "Opaque" | ternary "" $type -}}
{{- end -}}
{{- $mutable := .root.Values.revisions.immutable | ternary "" "mutable" -}}
{{- printf "%s%s%s%s" $salt (include "app.content" .) $type $mutable | sha256sum -}}
{{- end -}}

{{/* app.secretType is the type of a Secret. */}}
{{- define "app.secretType" -}}
{{- (index .root.Values "secrets" .key).type | default "Opaque" -}}
{{- end -}}

{{/* app.objectName is the name of a ConfigMap or Secret. Its suffix depends on the content. */}}
{{- define "app.objectName" -}}
{{- $suffix := include "app.digest" . | trunc 10 -}}
{{- if eq .root.Values.revisions.naming "adler32" -}}
{{- $suffix = print (index .root.Values .group .key) | adler32sum -}}
{{- end -}}
{{- printf "%s-%s-%s" .root.Values.appName .key $suffix -}}
{{- end -}}

{{/*
app.named is whether the pod template references an object: "true" or empty. With
use: none, the user's own volumes, variables or containers may reference it.
*/}}
{{- define "app.named" -}}
{{- if ne ((index .root.Values .group .key).use | default "files") "none" -}}
true
{{- else if contains (include "app.objectName" .) (include "app.podTemplate" .root) -}}
true
{{- end -}}
{{- end -}}

{{/* app.objects lists the objects that the attach Job attaches: configmap/NAME,secret/NAME,… */}}
{{- define "app.objects" -}}
{{- $root := . -}}
{{- $names := list -}}
{{- range $group, $kind := dict "configmaps" "configmap" "secrets" "secret" -}}
{{- range $key, $spec := index $root.Values $group -}}
{{- $of := dict "root" $root "group" $group "key" $key -}}
{{- if include "app.named" $of -}}
{{- $names = append $names (printf "%s/%s" $kind (include "app.objectName" $of)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{/* app.checksum changes with the content of any ConfigMap or Secret. */}}
{{- define "app.checksum" -}}
{{- $root := . -}}
{{- $sums := list -}}
{{- range $group := list "configmaps" "secrets" -}}
{{- range $key, $spec := index $root.Values $group -}}
{{- $of := dict "root" $root "group" $group "key" $key -}}
{{- $sums = append $sums (printf "%s %s %s" $group (include "app.objectName" $of) (include "app.digest" $of)) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $sums | sha256sum -}}
{{- end -}}
