// Package stakater knows Stakater Reloader's vocabulary and rules: its annotations, which
// workload a changed source reloads, which container shows the change, and the exact values
// that are written there.
package stakater

import "time"

// Type is a type of source, as it ends variable names and as the annotation shows it.
type Type string

// The types of sources.
const (
	ConfigMap           Type = "CONFIGMAP"
	Secret              Type = "SECRET"
	SecretProviderClass Type = "SECRETPROVIDERCLASS"
)

// LastReloadedFrom is the pod template annotation that shows the last Reloaded.
const LastReloadedFrom = "reloader.stakater.com/last-reloaded-from"

// Keys are the annotation keys. Flags rename ten of them.
type Keys struct {
	Auto, ConfigMapAuto, SecretAuto, ClassAuto        string
	ConfigMap, Secret, Class                          string
	Search, Match, Ignore                             string
	ExcludeConfigMaps, ExcludeSecrets, ExcludeClasses string
	RolloutStrategy                                   string
	PauseKeys
}

// PauseKeys are the annotation keys of a Deployment that is paused after a reload.
type PauseKeys struct {
	PausePeriod, PausedAt string
}

// DefaultKeys are the keys without flags.
func DefaultKeys() Keys {
	return Keys{
		Auto:              "reloader.stakater.com/auto",
		ConfigMapAuto:     "configmap.reloader.stakater.com/auto",
		SecretAuto:        "secret.reloader.stakater.com/auto",
		ClassAuto:         "secretproviderclass.reloader.stakater.com/auto",
		ConfigMap:         "configmap.reloader.stakater.com/reload",
		Secret:            "secret.reloader.stakater.com/reload",
		Class:             "secretproviderclass.reloader.stakater.com/reload",
		Search:            "reloader.stakater.com/search",
		Match:             "reloader.stakater.com/match",
		Ignore:            "reloader.stakater.com/ignore",
		ExcludeConfigMaps: "configmaps.exclude.reloader.stakater.com/reload",
		ExcludeSecrets:    "secrets.exclude.reloader.stakater.com/reload",
		ExcludeClasses:    "secretproviderclasses.exclude.reloader.stakater.com/reload",
		RolloutStrategy:   "reloader.stakater.com/rollout-strategy",
		PauseKeys: PauseKeys{
			PausePeriod: "deployment.reloader.stakater.com/pause-period",
			PausedAt:    "deployment.reloader.stakater.com/paused-at",
		},
	}
}

// typed are the keys about sources of one type.
type typed struct {
	named, auto, exclude string
}

func (k Keys) of(t Type) typed {
	switch t {
	case ConfigMap:
		return typed{named: k.ConfigMap, auto: k.ConfigMapAuto, exclude: k.ExcludeConfigMaps}
	case Secret:
		return typed{named: k.Secret, auto: k.SecretAuto, exclude: k.ExcludeSecrets}
	default:
		return typed{named: k.Class, auto: k.ClassAuto, exclude: k.ExcludeClasses}
	}
}

// Words is how workloads and sources ask, under the flags of one process.
type Words struct {
	Keys Keys
	// AutoAll treats workloads without auto annotations like those with auto: "true".
	AutoAll bool
}

// Source is a ConfigMap, Secret or SecretProviderClass that changed.
type Source struct {
	Type Type
	Name string
	// Ignore and Match are what the source's own annotations ask for.
	Ignore, Match bool
}

// Source reads the annotations of a source.
func (w Words) Source(t Type, name string, annotations map[string]string) Source {
	return Source{
		Type: t, Name: name,
		Ignore: annotations[w.Keys.Ignore] == "true",
		Match:  annotations[w.Keys.Match] == "true",
	}
}

// Pause is how long a Deployment with these annotations stays paused after a reload, zero
// without a usable period.
func (w Words) Pause(annotations map[string]string) time.Duration {
	period, err := time.ParseDuration(annotations[w.Keys.PausePeriod])
	if err != nil {
		return 0
	}
	return max(period, 0)
}

// PausedUntil is when a Deployment that Reloader paused resumes. It is the zero time if the
// start of the pause is unreadable; ok is false if Reloader didn't pause the Deployment.
func (w Words) PausedUntil(annotations map[string]string) (until time.Time, ok bool) {
	text, ok := annotations[w.Keys.PausedAt]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, true
	}
	return at.Add(w.Pause(annotations)), true
}

// Restarts reports whether a Rollout with these annotations is restarted instead of rolled
// out with a changed template.
func (w Words) Restarts(annotations map[string]string) bool {
	return annotations[w.Keys.RolloutStrategy] == "restart"
}
