{{/*
lockstep.checkArgs rejects additional arguments that the rest of the manifest wouldn't match: permissions,
ports and volumes depend on the values.
*/}}
{{- define "lockstep.checkArgs" -}}
{{- $instead := include "lockstep.ownedArgs" . | fromYaml -}}
{{- range $arg := .Values.extraArgs -}}
{{- with get $instead (first (splitList "=" $arg)) -}}
{{- fail (printf "\n\nextraArgs contains %q: %s" $arg .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* lockstep.checkEnv rejects the same flags as variables: --lease-name is LOCKSTEP_LEASE_NAME. */}}
{{- define "lockstep.checkEnv" -}}
{{- $instead := dict "POD_NAMESPACE" "the chart sets it to the release namespace, so remove it" -}}
{{- range $flag, $way := include "lockstep.ownedArgs" . | fromYaml -}}
{{- $_ := set $instead (printf "LOCKSTEP_%s" (trimPrefix "--" $flag | replace "-" "_" | upper)) $way -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- $name := .name -}}
{{- with get $instead $name -}}
{{- fail (printf "\n\nextraEnv contains %q: %s" $name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* lockstep.ownedArgs lists the flags that the chart sets, and what to do instead of setting them. */}}
{{- define "lockstep.ownedArgs" -}}
--log-format: use the value logging.format instead
--log-level: use the value logging.level instead
--reload: use the value reload.enabled instead
--auto: use the value reload.auto instead
--revisions: use the value revisions.enabled instead
--revisions-secret-namespaces: use the value revisions.secretNamespaces instead
--revisions-grace: use the value revisions.grace instead
--images: use the value images.enabled instead
--image-interval: use the value images.interval instead
--image-platforms: use the value images.platforms instead
--image-default-platform: use the value images.defaultPlatform instead
--image-pull-secrets: use the value images.pullSecrets instead
--docker-config-namespaces: use the value images.dockerConfigNamespaces instead
--cloud-identity-namespaces: use the value images.cloudIdentityNamespaces instead
--image-webhook-addr: use the values images.webhook.enabled and images.webhook.port instead
--image-webhook-secret-file: use the values images.webhook.secretName and images.webhook.secretKey instead
--pod-strategies: use the value podStrategies.enabled instead
--observe: use the value observe instead
--namespaces: use the value namespaces instead
--namespace-selector: use the value namespaceSelector instead
--built-in-kinds: use the value builtInKinds instead
--kind: use the value kinds instead
--quiet: use the value quiet instead
--max-delay: use the value maxDelay instead
--ramp: use the value rollouts.ramp instead
--max-rolling: use the value rollouts.maxRolling instead
--stop-after: use the value rollouts.stopAfter instead
--settle: use the value rollouts.settle instead
--rollout-timeout: use the value rollouts.timeout instead
--pause-grace: use the value rollouts.pauseGrace instead
--shared: use the value rollouts.shared instead
--window: use the value rollouts.window instead
--damping: use the value rollouts.damping instead
--max-damping: use the value rollouts.maxDamping instead
--notify-file: use the values notifications.secretName and notifications.secretKey instead
--leader-elect: use the value replicas instead; a single replica elects itself
--lease-name: the roles name the Lease, so remove the flag
--state-name: the record has a fixed name, so remove the flag
--key-name: the roles name the Secret, so remove the flag
--own-namespace: the chart uses the release namespace, so remove the flag
--metrics-addr: the Service and the monitors name the port, so remove the flag
--probe-addr: the probes name the port, so remove the flag
{{- end -}}
