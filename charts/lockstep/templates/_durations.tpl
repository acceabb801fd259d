{{/* lockstep.checkDurations rejects values that aren't durations, with an example. Empty stands for the default. */}}
{{- define "lockstep.checkDurations" -}}
{{- $values := .Values -}}
{{- range $path := list "quiet" "maxDelay" "revisions.grace" "images.interval" "rollouts.settle" "rollouts.timeout" "rollouts.pauseGrace" "rollouts.damping" "rollouts.maxDamping" "podMonitor.interval" "serviceMonitor.interval" -}}
{{- $value := $values -}}
{{- range splitList "." $path -}}
{{- $value = get $value . -}}
{{- end -}}
{{- if not (regexMatch "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$" $value) -}}
{{- fail (printf "\n\n%s is %q: set a duration, such as 30s, 5m or 1h30m, or leave it empty for the default" $path $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* lockstep.seconds is the length of a duration such as 1m30s. lockstep.checkDurations has already checked the syntax. */}}
{{- define "lockstep.seconds" -}}
{{- $units := dict "ns" 1e-9 "us" 1e-6 "µs" 1e-6 "ms" 1e-3 "s" 1 "m" 60 "h" 3600 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9.]+[a-zµ]+" . -1 -}}
{{- $sum = addf $sum (mulf (regexFind "^[0-9.]+" .) (get $units (regexFind "[a-zµ]+$" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}
