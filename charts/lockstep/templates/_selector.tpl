{{/*
lockstep.selectorPattern matches the label selectors that the controller accepts: requirements separated by
commas, such as team=shop,!old,size in (small, large).
*/}}
{{- define "lockstep.selectorPattern" -}}
{{- $word := "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?" -}}
{{- $key := printf "([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?%s" $word -}}
{{- $value := printf "(%s)?" $word -}}
{{- $exists := printf "(!\\s*)?%s" $key -}}
{{- $equal := printf "%s\\s*(=|==|!=)\\s*%s" $key $value -}}
{{- $compared := printf "%s\\s*[<>]\\s*[0-9]+" $key -}}
{{- $among := printf "%s\\s+(in|notin)\\s*\\(\\s*%s\\s*(,\\s*%s\\s*)*\\)" $key $value $value -}}
{{- $one := printf "\\s*(%s|%s|%s|%s)\\s*" $exists $equal $compared $among -}}
{{- printf "^%s(,%s)*$" $one $one -}}
{{- end -}}
