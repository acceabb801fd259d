// Package legacy knows kubernetes-reloader's vocabulary: the annotations that its users
// wrote, the environment variables that it wrote, and the keys under which it stored
// digests.
package legacy

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// kubernetes-reloader's annotations, on the workload itself: names of ConfigMaps or
// Secrets, separated by commas.
const (
	ConfigMapAnnotation = "reloader.k8s.collaborne.com/configmap"
	SecretAnnotation    = "reloader.k8s.collaborne.com/secret" //nolint:gosec // the name of an annotation
)

// Words is kubernetes-reloader's vocabulary.
type Words struct {
	// AlternativeConfigMap and AlternativeSecret are further annotation keys, empty
	// for none.
	AlternativeConfigMap, AlternativeSecret string
	// IgnoreConfigMaps and IgnoreSecrets leave out a kind of source.
	IgnoreConfigMaps, IgnoreSecrets bool
	// StateName is the ConfigMap with the stored digests, which is never a source.
	StateName string
	// Quiet is the coalesce period.
	Quiet time.Duration
}

// Knows implements settings.Vocabulary.
func (w Words) Knows(key string, _ map[string]string) bool {
	switch key {
	case "":
		return false
	case ConfigMapAnnotation, SecretAnnotation, w.AlternativeConfigMap, w.AlternativeSecret:
		return true
	}
	return false
}

// Intent implements settings.Vocabulary. The original used one of two annotations and
// ignored the other; both count here, since no user writes a name that they don't want
// followed.
func (w Words) Intent(workload, _ map[string]string) settings.Intent {
	in := settings.Intent{Whole: true, Strategy: settings.StrategyTemplate, Quiet: w.Quiet}
	if in.Mistakes.TooMany = settings.TooManyContainerKeys(workload, func(key string) bool { return w.Knows(key, nil) }); in.Mistakes.TooMany != "" {
		in.Mode = settings.Follow
		return in
	}
	if !w.IgnoreConfigMaps {
		in.Listed = append(in.Listed, w.listed(input.KindConfigMap, workload[ConfigMapAnnotation], workload[w.AlternativeConfigMap])...)
	}
	if !w.IgnoreSecrets {
		in.Listed = append(in.Listed, w.listed(input.KindSecret, workload[SecretAnnotation], workload[w.AlternativeSecret])...)
	}
	if len(in.Listed) > 0 {
		in.Mode = settings.Follow
	}
	return in
}

// Ignores reports whether sources of the kind are left out.
func (w Words) Ignores(kind input.Kind) bool {
	return kind == input.KindConfigMap && w.IgnoreConfigMaps || kind == input.KindSecret && w.IgnoreSecrets
}

func (w Words) listed(kind input.Kind, lists ...string) []settings.Pattern {
	var found []settings.Pattern
	seen := map[string]bool{"": true}
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			own := kind == input.KindConfigMap && name == w.StateName
			if !seen[name] && !own && !strings.ContainsAny(name, `*?[]\`) {
				seen[name] = true
				found = append(found, settings.Pattern{Kind: kind, Name: name})
			}
		}
	}
	return found
}

// StateKey is the key under which a source's digest is stored.
func StateKey(apiVersion, kind, name string) string {
	return notKey().ReplaceAllString(apiVersion+"."+kind+"_"+name, "_")
}

// SourceKey is the StateKey of a ConfigMap or Secret.
func SourceKey(s input.ID) string {
	return StateKey("v1", string(s.Kind), s.Name)
}

// Variable is the name of the environment variable that shows a source's digest.
func Variable(prefix, kind, name string) string {
	return notVariable().ReplaceAllString(strings.ToUpper(prefix+"_"+kind+"_"+name), "_")
}

// SourceVariable is the Variable of a source. Different names can share a variable
// (my-config and my.config); then each carries a digest of its own name.
func SourceVariable(s input.ID, shared bool) string {
	plain := Variable(settings.LegacyVariablePrefix, string(s.Kind), s.Name)
	if !shared {
		return plain
	}
	sum := sha256.Sum256([]byte(s.Name))
	return plain + "_" + strings.ToUpper(hex.EncodeToString(sum[:4]))
}

func notKey() *regexp.Regexp {
	return regexp.MustCompile(`[^-._a-zA-Z0-9]+`)
}

func notVariable() *regexp.Regexp {
	return regexp.MustCompile(`[^A-Z0-9]+`)
}
