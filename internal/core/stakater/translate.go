package stakater

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Translator reads Stakater Reloader's annotations as Lockstep's own. It implements
// settings.ReloadWords.
type Translator struct {
	Words Words
}

// What Lockstep does instead of the annotations that have no counterpart.
const (
	insteadOfJob     = "Lockstep doesn't run a Job again; the next Job reads the current content"
	insteadOfCronJob = "Lockstep doesn't start a Job when content changes; the next scheduled Job reads the current content"
	insteadOfClass   = "Lockstep doesn't follow SecretProviderClasses"
	insteadOfPause   = "Lockstep doesn't pause Deployments; " + settings.Quiet + " collects changes before a rollout, and " + settings.Window + " limits when one may start"
	insteadOfPaused  = "Lockstep doesn't resume Deployments that Reloader paused; do it with \"kubectl rollout resume\""
	insteadOfRestart = "Lockstep changes the pod template and doesn't write restartAt; " + settings.Strategy + ": evict replaces pods and leaves the template alone"
	insteadOfSearch  = "Lockstep can't combine search for one kind of source with auto for the other kind; list these sources"
	insteadOfIgnore  = "a workload that lists the source by its exact name still follows it"
)

// Knows implements settings.ReloadWords.
func (Translator) Knows(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	const theirs = "reloader.stakater.com"
	return found && (domain == theirs || strings.HasSuffix(domain, "."+theirs))
}

// Source implements settings.ReloadWords.
func (t Translator) Source(kind string, own map[string]string) settings.Translation {
	keys := t.Words.Keys
	tr := newTranslation(t.unread(own, kind, keys.Ignore, keys.Match))
	switch s := t.Words.Source("", "", own); {
	case s.Ignore:
		tr.Annotations[settings.Reload] = "never"
		tr.Lost[keys.Ignore] = insteadOfIgnore
	case s.Match:
		tr.Annotations[settings.Reload] = "match"
	}
	return tr
}

// Workload implements settings.ReloadWords.
func (t Translator) Workload(kind string, own, template map[string]string) settings.Translation {
	keys := t.Words.Keys
	asks := []string{keys.Auto, keys.ConfigMapAuto, keys.SecretAuto, keys.ClassAuto, keys.ConfigMap, keys.Secret, keys.Class, keys.Search}
	known := slices.Concat(asks, []string{keys.ExcludeConfigMaps, keys.ExcludeSecrets, keys.ExcludeClasses})
	switch kind {
	case "Job":
		return newTranslation(t.every(own, template, insteadOfJob))
	case "CronJob":
		return newTranslation(t.every(own, template, insteadOfCronJob))
	case "Deployment":
		known = append(known, keys.PausePeriod, keys.PausedAt)
	case "Rollout":
		known = append(known, keys.RolloutStrategy)
	}
	tr := newTranslation(t.unread(own, kind, known...))
	maps.Copy(tr.Lost, t.unread(template, "pod template", append(asks, LastReloadedFrom)...))
	if !t.anyKey(own) && !t.anyKey(template) {
		return tr
	}
	on := Workload{Annotations: own, Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: template}}}
	t.loseOthers(tr, on, kind)
	if elements := t.elements(tr, on); len(elements) > 0 {
		tr.Annotations[settings.Reload] = strings.Join(elements, ", ")
	}
	return tr
}

func newTranslation(lost map[string]string) settings.Translation {
	return settings.Translation{Annotations: map[string]string{}, Lost: lost}
}

func (t Translator) anyKey(annotations map[string]string) bool {
	for key := range annotations {
		if t.Knows(key) {
			return true
		}
	}
	return false
}

// every loses all of the original's annotations.
func (t Translator) every(own, template map[string]string, sentence string) map[string]string {
	lost := map[string]string{}
	for _, annotations := range []map[string]string{own, template} {
		for key := range annotations {
			if t.Knows(key) && key != LastReloadedFrom {
				lost[key] = sentence
			}
		}
	}
	return lost
}

// unread loses the annotations that the original doesn't read there either.
func (t Translator) unread(annotations map[string]string, where string, read ...string) map[string]string {
	lost := map[string]string{}
	for key := range annotations {
		if t.Knows(key) && !slices.Contains(read, key) {
			lost[key] = "Reloader doesn't read it on a " + where
		}
	}
	return lost
}

// loseOthers loses the annotations that aren't about ConfigMaps and Secrets.
func (t Translator) loseOthers(tr settings.Translation, on Workload, kind string) {
	w := t.Words
	classes := w.place(on, SecretProviderClass)
	for key, lost := range map[string]bool{w.Keys.ClassAuto: isTrue(classes[w.Keys.ClassAuto]), w.Keys.Class: classes[w.Keys.Class] != ""} {
		if lost {
			tr.Lost[key] = insteadOfClass
		}
	}
	if kind == "Rollout" && w.Restarts(on.Annotations) {
		tr.Lost[w.Keys.RolloutStrategy] = insteadOfRestart
	}
	if kind != "Deployment" {
		return
	}
	if on.Annotations[w.Keys.PausePeriod] != "" {
		tr.Lost[w.Keys.PausePeriod] = insteadOfPause
	}
	if _, paused := w.PausedUntil(on.Annotations); paused {
		tr.Lost[w.Keys.PausedAt] = insteadOfPaused
	}
}

// elements are those of the reload annotation. Their order matters: an exception applies to the
// elements before it, so kinds that auto doesn't cover come before the named sources, and
// excluded names come last.
func (t Translator) elements(tr settings.Translation, on Workload) []string {
	configMaps, secrets := t.Words.read(on, ConfigMap), t.Words.read(on, Secret)
	all := ofKinds("auto", configMaps.auto, secrets.auto)
	if search := ofKinds("search", configMaps.search, secrets.search); len(all) == 0 {
		all = search
	} else if !configMaps.auto && configMaps.search || !secrets.auto && secrets.search {
		tr.Lost[t.Words.Keys.Search] = insteadOfSearch
	}
	all = append(all, t.named(tr, ConfigMap, configMaps.named)...)
	all = append(all, t.named(tr, Secret, secrets.named)...)
	if len(all) == 0 {
		all = t.off(on)
	}
	if slices.Equal(all, []string{"never"}) {
		return all
	}
	return slices.Concat(all, t.excluded(on, ConfigMap), t.excluded(on, Secret))
}

// ofKinds is a word for the referenced sources of some kinds.
func ofKinds(word string, configMaps, secrets bool) []string {
	switch {
	case configMaps && secrets:
		return []string{word}
	case configMaps:
		return []string{word, allBut(Secret)}
	case secrets:
		return []string{word, allBut(ConfigMap)}
	}
	return nil
}

// off is for a workload that doesn't ask for any source: kinds that it switches off stay off
// when the controller follows every workload.
func (t Translator) off(on Workload) []string {
	var off []string
	for _, kind := range []Type{ConfigMap, Secret} {
		place := t.Words.place(on, kind)
		if place[t.Words.Keys.Auto] != "" || place[t.Words.Keys.of(kind).auto] != "" {
			off = append(off, allBut(kind))
		}
	}
	if len(off) == 2 {
		return []string{"never"}
	}
	return off
}

// named translates a list of regular expressions.
func (t Translator) named(tr settings.Translation, kind Type, list string) []string {
	var all, lost []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		name, ok := glob(item)
		switch {
		case item == "":
		case ok:
			all = append(all, element(kind, name))
		default:
			lost = append(lost, strconv.Quote(settings.Shorten(item)))
		}
	}
	if len(lost) > 0 {
		tr.Lost[t.Words.Keys.of(kind).named] = fmt.Sprintf("%s can't be written as a name or as a pattern in which * stands for any characters; list the names", strings.Join(lost, ", "))
	}
	return all
}

// excluded are the exceptions. A name that no object can have is left out.
func (t Translator) excluded(on Workload, kind Type) []string {
	var all []string
	for name := range strings.SplitSeq(on.Annotations[t.Words.Keys.of(kind).exclude], ",") {
		if name = strings.TrimSpace(name); isName(name) {
			all = append(all, "!"+element(kind, name))
		}
	}
	return all
}

// allBut is the exception of a whole kind.
func allBut(kind Type) string { return "!" + element(kind, "*") }

// element is a source, or a pattern of sources, as an element of the list.
func element(kind Type, name string) string {
	if kind == Secret {
		return input.Secret(name).String()
	}
	return input.ConfigMap(name).String()
}

func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

// glob writes a regular expression as a name or as a pattern with stars; ok is false for one that
// says more. A dot stands for itself here, because names contain dots and nobody means any
// character by it. No name ends with a dash, so "-.+" at the end is the same as "-.*".
func glob(expression string) (name string, ok bool) {
	rest := strings.TrimSuffix(strings.TrimPrefix(expression, "^"), "$")
	if start, found := strings.CutSuffix(rest, "-.+"); found {
		rest = start + "-.*"
	}
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, ".*"):
			name, rest = strings.TrimSuffix(name, "*")+"*", rest[2:]
		case strings.HasPrefix(rest, `\.`), strings.HasPrefix(rest, `\-`):
			name, rest = name+rest[1:2], rest[2:]
		case strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-", rune(rest[0])):
			name, rest = name+rest[:1], rest[1:]
		default:
			return "", false
		}
	}
	return name, isName(name) || strings.Contains(name, "*") && len(name) <= validation.DNS1123SubdomainMaxLength
}
