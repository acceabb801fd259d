{{/* lockstep.seconds is the length of a duration such as 1m30s. lockstep.checkForms has already checked the syntax. */}}
{{- define "lockstep.seconds" -}}
{{- $units := dict "ns" 1e-9 "us" 1e-6 "µs" 1e-6 "ms" 1e-3 "s" 1 "m" 60 "h" 3600 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9.]+[a-zµ]+" . -1 -}}
{{- $sum = addf $sum (mulf (regexFind "^[0-9.]+" .) (get $units (regexFind "[a-zµ]+$" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}
